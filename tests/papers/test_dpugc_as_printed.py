"""Algorithm 1-b as printed: refused by default, run as it is, and its printed budget compared with the true one."""

import math

import numpy as np
import pytest
from papers.dpugc.as_printed import DPUGC, PublishedAccount, _Lots

from dptext import ApproxDP, Document
from dptext.errors import RefusedError
from dptext.privacy.gaussian import gaussian_epsilon
from dptext.privacy.randomness import RandomBits
from dptext.text.tokens import Vocabulary
from dptext.users.grouping import stored_users, users_of

pytest.importorskip("numba")
WORDS = Vocabulary([f"w{'abcdefghij'[n % 10]}{n}" for n in range(40)] + ["<unk>"])


def people(count=20, length=30):
    for user in range(count):
        text = " ".join(WORDS.words[(7 * user + place**2) % 40] for place in range(length))
        yield Document(text, user=str(user), attributes={"wish": "strict" if user % 2 else "open"})


def model(**options):
    fields = {"epsilon": 1.0, "lot": 16, "steps": 30, "dimension": 6, "seed": 1, "unsafe_as_published": True}
    return DPUGC(WORDS, **fields | options)


def test_it_is_refused_by_default_with_the_reason():
    with pytest.raises(RefusedError, match=r"charged 1 / L.*Use SkipGram or Cooccurrence with level="):
        DPUGC(WORDS, epsilon=1.0)


def test_the_statement_has_the_printed_budget_and_the_true_one():
    statement = model().fit(people()).statement_
    assert statement.claimed_epsilon == 1.0
    bound = gaussian_epsilon(5.0, delta=1e-5, sensitivity=2 * 16 * math.sqrt(30))
    assert statement.guarantee == ApproxDP(bound, 1e-5)
    assert statement.parameters["claim_is"] == "false"
    text = " ".join(statement.explain().split())
    assert "The paper behind this mechanism prints epsilon = 1. This is false: the noise of a step is shared" in text
    assert "a user alone, with 16 samples" in text


def test_the_witness_loses_more_than_is_claimed_and_no_more_than_the_bound():
    for epsilon, lot, steps in ((0.125, 128, 1000), (5.7, 128, 1000), (1.0, 1, 10), (50.0, 8, 5)):
        result = model(epsilon=epsilon, lot=lot, steps=steps).finding("everyone")
        assert result.attained <= result.bound
        assert (result.verdict == "false") == (result.attained > epsilon)
        assert result.verdict != "true"  # a user in one step has lost epsilon_1 already
    paper = model(epsilon=5.7, lot=128, steps=1000)
    assert paper.charge * 1000 == pytest.approx(5.7, abs=0.05)
    assert paper.max_steps("everyone") in (999, 1000)


def test_users_are_charged_a_share_per_step_and_leave_when_it_is_spent():
    output = model(epsilon=0.2, steps=60).fit(people())
    maximum = output.max_steps("everyone")
    assert (maximum - 1) * output.charge <= 0.2 < maximum * output.charge
    [accounts] = output.accounts_.values()
    assert output.left_ == {"everyone": 20}
    assert {account.taken_part for account in accounts} == {maximum}
    assert all(account.claimed == pytest.approx(maximum * output.charge) for account in accounts)
    assert all(account.true > 5 * account.claimed for account in accounts)
    assert any(account.samples > 1 for account in accounts)
    assert model(epsilon=50.0).fit(people()).left_ == {"everyone": 0}


def test_each_level_has_a_budget():
    fitted = model(epsilon={"strict": 0.1, "open": 5.0}, level="wish", steps=60).fit(people())
    assert fitted.left_ == {"strict": 10, "open": 0}
    assert {level: len(entry) for level, entry in fitted.accounts_.items()} == {"strict": 10, "open": 10}
    assert fitted.statements_["strict"].claimed_epsilon == 0.1
    assert fitted.statement_.claimed_epsilon == 5.0
    assert fitted.statements_["strict"].guarantee == fitted.statement_.guarantee  # leaving protects nobody


def test_a_lot_has_distinct_samples_of_one_document_each_and_none_of_users_who_left():
    documents = [Document("wa0 wb1", user="A"), Document("wc2 wd3", user="A"), Document("we4 nothing wf5", user="B")]
    with users_of(documents, WORDS, unit="user", seed=1) as users, stored_users(users) as store:
        lots = _Lots(store, len(WORDS), WORDS.unknown_row, model(lot=6), RandomBits(1))
        pairs, owners = lots.draw()
        words = {frozenset((int(a), int(b) - len(WORDS))) for a, b in pairs[:, :2]}
        assert words == {frozenset((0, 1)), frozenset((2, 3)), frozenset((4, 5))}
        assert len(pairs) == len(owners) == 6  # each in both directions
        assert ((pairs[:, 2:] == -1) | (pairs[:, 2:] != pairs[:, 1:2])).all()
        lots.leave(np.unique(owners[pairs[:, 0] < 4]))
        left, who = lots.draw()
        assert (len(left), len(set(who.tolist()))) == (2, 1)
        lots.leave(np.arange(2))
        assert lots.draw()[0].shape == (0, 7)


def test_the_published_accountant_claims_an_eighth_of_the_true_epsilon():
    account = PublishedAccount(noise_multiplier=5.0, lot=128, taken_part=1000, samples=1, delta=1e-5)
    assert account.claimed == pytest.approx(5.7, abs=0.05)
    assert account.true == pytest.approx(46.2, abs=0.05)
    several = PublishedAccount(noise_multiplier=5.0, lot=128, taken_part=1000, samples=4, delta=1e-5)
    assert several.claimed == account.claimed  # for any number of samples
    assert several.true > 4 * account.true
