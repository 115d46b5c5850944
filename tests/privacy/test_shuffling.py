"""Shuffled messages: the bound against a sum over all counts, and against exact distributions of shuffled messages."""

import dataclasses
import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

import dptext
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    MetricDP,
    NoGuarantee,
    PureDP,
    Relation,
    Trust,
    Unit,
    sum_upwards,
)
from dptext.privacy.neighbours import (
    Condition,
    EncoderStays,
    OneGroup,
    SameLayout,
    SameSentenceCount,
    Stated,
    TextsOfOne,
    WordsChanged,
)
from dptext.privacy.restating import after_redaction, statement_for_user
from dptext.privacy.shuffling import local_epsilon, shuffled, shuffled_delta, shuffled_epsilon
from dptext.privacy.statement import PrivacyStatement, release_statement
from dptext.representations.privunit import PrivUnit

EPSILONS = (0.0, 0.01, 0.1, 0.5, 1.0, 1.9)


def statement(guarantee=PureDP(4.0), **changes):  # noqa: B008  frozen
    fields = {"unit": Unit.DOCUMENT, "relation": Relation.SUBSTITUTION, "trust": Trust.LOCAL, "mechanism": "made up"}
    return release_statement(guarantee=guarantee, **fields | changes)


# -- the number --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon0", "users", "epsilon"),
    [
        (3, 1_000, 1.265),
        (3, 10_000, 0.321),
        (4, 10_000, 0.601),
        (6, 10_000, 5.721),
        (6, 100_000, 0.5242),
        (8, 100_000, 2.189),
        (8, 1_000_000, 0.4445),
    ],
)
def test_the_epsilon_of_known_cases(epsilon0, users, epsilon):
    assert shuffled_epsilon(epsilon0, users, 1e-6) == pytest.approx(epsilon, rel=1e-3)


def summed_delta(epsilon0, users, epsilon, clone=None):
    """Delta of the pair of the theorem, summed over every count of both kinds of clones."""
    clone = math.exp(-epsilon0) if clone is None else clone
    likely = 1 / (1 + math.exp(-epsilon0))
    total = []
    for c in range(users):
        mass = stats.binom.pmf(np.arange(-1, c + 2), c, 0.5)  # of k - 1 and k, k from 0 to c + 1
        one, other = mass[:-1], mass[1:]
        first, second = likely * one + (1 - likely) * other, (1 - likely) * one + likely * other
        gain = np.maximum(first - math.exp(epsilon) * second, 0).sum()
        total.append(stats.binom.pmf(c, users - 1, clone) * gain)
    return math.fsum(total)


@pytest.mark.parametrize("users", [1, 2, 3, 10, 300, 700])
@pytest.mark.parametrize("epsilon0", [0.05, 0.7, 2.0, 5.0])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_is_the_sum_over_all_counts_rounded_up(epsilon0, users, epsilon):
    computed = shuffled_delta(epsilon0, users, epsilon)
    if epsilon >= epsilon0:
        assert computed == 0
        return
    exact = summed_delta(epsilon0, users, epsilon)
    assert exact * (1 - 1e-9) <= computed + 1e-15
    assert computed <= exact * (1 + 1e-5) + 1e-13


def test_many_counts_are_evaluated_in_blocks_on_the_safe_side(monkeypatch):
    exact = [shuffled_delta(1.0, 2_000, epsilon) for epsilon in (0.05, 0.1, 0.2)]
    monkeypatch.setattr("dptext.privacy.shuffling._BLOCKS", 50)
    blocks = [shuffled_delta(1.0, 2_000, epsilon) for epsilon in (0.05, 0.1, 0.2)]
    assert all(one < two < one * 1.3 for one, two in zip(exact, blocks, strict=True))


def test_fewer_levels_of_the_fraction_only_increase_delta(monkeypatch):
    exact = shuffled_delta(1.0, 2_000, 0.05)
    for levels in (2, 4, 8):
        monkeypatch.setattr("dptext.privacy.shuffling._LEVELS", levels)
        assert shuffled_delta(1.0, 2_000, 0.05) >= exact


def test_mass_outside_the_window_is_added_to_delta(monkeypatch):
    exact = shuffled_delta(2.0, 20_000, 0.3)
    monkeypatch.setattr("dptext.privacy.shuffling._DEVIATIONS", 1)
    assert shuffled_delta(2.0, 20_000, 0.3) > exact + 0.02


def test_it_is_monotone():
    numbers = [1, 2, 5, 20, 100, 1_000, 10_000, 100_000, 10**7, 10**10]
    by_users = [shuffled_epsilon(4.0, users, 1e-6) for users in numbers]
    assert sorted(by_users, reverse=True) == by_users
    by_local = [shuffled_epsilon(epsilon0, 5_000, 1e-6) for epsilon0 in (0, 1e-300, 1e-6, 0.1, 1, 2, 4, 8, 16, 63, 65)]
    assert sorted(by_local) == by_local
    by_delta = [shuffled_epsilon(4.0, 5_000, delta) for delta in (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.9)]
    assert sorted(by_delta, reverse=True) == by_delta


def test_it_is_never_larger_than_the_local_epsilon():
    assert shuffled_epsilon(0.0, 7, 1e-6) == 0
    assert shuffled_epsilon(1.0, 1, 1e-6) == pytest.approx(1.0, rel=1e-5)
    assert shuffled_epsilon(100.0, 1_000, 1e-6) == 100
    for epsilon0 in (0.01, 1.0, 20.0):
        assert shuffled_epsilon(epsilon0, 2, 1e-9) <= epsilon0
        assert shuffled_delta(epsilon0, 2, epsilon0) == 0


def test_the_inverse():
    for target, users in [(1.0, 10_000), (0.1, 1_000), (3.0, 10**6), (1.0, 1)]:
        local = local_epsilon(target, users, 1e-6)
        assert target <= local
        assert shuffled_epsilon(local, users, 1e-6) <= target * (1 + 1e-9)
        assert shuffled_epsilon(local * (1 + 1e-4), users, 1e-6) > target
    assert local_epsilon(1.0, 10_000, 1e-6) == pytest.approx(4.797, abs=1e-3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((-1.0, 10, 1e-6), "epsilon0 must"),
        ((math.inf, 10, 1e-6), "epsilon0 must"),
        ((1.0, 0, 1e-6), "users must"),
        ((1.0, 10**11, 1e-6), "users must"),
        ((1.0, 10, 0.0), "delta must"),
        ((1.0, 10, 1.0), "delta must"),
    ],
)
def test_numbers_out_of_range(values, message):
    with pytest.raises(ParameterError, match=message):
        shuffled_epsilon(*values)


# -- exact distributions of shuffled messages --------------------------------------------------------------------------


def k_ary(epsilon0, k):
    """Randomised response over k values: (k, k) probabilities of the messages for each input."""
    table = np.ones((k, k)) + np.eye(k) * math.expm1(epsilon0)
    return table / table.sum(axis=1, keepdims=True)


def subset_selection(epsilon0, sets, outputs):
    table = np.ones((len(sets), outputs))
    for row, members in enumerate(sets):
        table[row, list(members)] = math.exp(epsilon0)
    return table / table.sum(axis=1, keepdims=True)


def histogram(messages):
    """Exact distribution of the shuffled messages, as counts of each value, of users with these distributions."""
    users, values = messages.shape
    total = np.zeros((users + 1,) * (values - 1))
    total[(0,) * (values - 1)] = 1.0
    for probabilities in messages:
        added = total * probabilities[-1]
        for value in range(values - 1):
            added += np.roll(total, 1, axis=value) * probabilities[value]  # the last place is still empty
        total = added
    return total


def largest_delta(table, users, epsilon):
    """The delta of the shuffled messages, the largest over the inputs of all others and both orders of neighbours."""
    result = 0.0
    inputs = range(len(table))
    for others in combinations_with_replacement(inputs, users - 1):
        rest = [table[value] for value in others]
        one, two = (histogram(np.array([table[value], *rest])) for value in (0, 1))
        result = max(result, *(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((one, two), (two, one))))
    return result


CASES = [
    *((k_ary(epsilon0, 2), epsilon0, users) for epsilon0 in (0.5, 1.0, 3.0) for users in (1, 2, 5, 30)),
    *((k_ary(epsilon0, 3), epsilon0, users) for epsilon0 in (0.5, 1.0, 3.0) for users in (2, 6)),
    *((k_ary(epsilon0, 4), epsilon0, 5) for epsilon0 in (1.0, 3.0)),
    *((subset_selection(epsilon0, [(0, 2), (1, 2), (3, 0)], 4), epsilon0, 5) for epsilon0 in (1.0, 3.0)),
]


@pytest.mark.parametrize(("table", "epsilon0", "users"), CASES)
def test_no_shuffled_distribution_has_a_larger_delta(table, epsilon0, users):
    for epsilon in EPSILONS:
        assert largest_delta(table, users, epsilon) <= shuffled_delta(epsilon0, users, epsilon) + 1e-12


def test_the_stated_epsilon_holds_at_its_delta():
    for epsilon0, users in [(1.0, 30), (2.0, 60)]:
        for delta in (1e-2, 1e-4, 1e-6):
            assert largest_delta(k_ary(epsilon0, 2), users, shuffled_epsilon(epsilon0, users, delta)) <= delta


@pytest.mark.parametrize(("epsilon0", "users"), [(1.0, 30), (2.0, 60)])
def test_an_overstated_number_of_users_is_refuted(epsilon0, users):
    table = k_ary(epsilon0, 2)
    assert largest_delta(table, users, shuffled_epsilon(epsilon0, 3 * users, 1e-4)) > 1e-4


def test_clones_with_probability_one_are_refuted():
    assert largest_delta(k_ary(1.0, 2), 30, 0.5) > summed_delta(1.0, 30, 0.5, clone=1.0)


# -- statements --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guarantee", "slack", "local"),
    [
        (PureDP(4.0), 0.0, 4.0),
        (PureDP(3.5), 0.5, 4.0),
        (ApproxDP(4.0, 0.0), 0.0, 4.0),
        (MetricDP(2.0, "euclidean", 2.0), 0.0, 4.0),
        (MetricDP(2.0, "euclidean", 1.5), 1.0, 4.0),
    ],
)
def test_a_pure_guarantee_is_restated(guarantee, slack, local):
    before = statement(guarantee, slack=slack, exposed=("the number of texts, and their order",))
    after = shuffled(before, users=10_000)
    assert after.guarantee == ApproxDP(shuffled_epsilon(local, 10_000, 1e-6), 1e-6)
    assert (after.unit, after.relation, after.condition) == (before.unit, before.relation, before.condition)
    assert (after.trust, after.slack, after.claimed_epsilon) == (Trust.SHUFFLER, 0.0, None)
    assert dict(after.parameters) == {"local_epsilon": local, "shuffled_users": 10_000, "shuffled_delta": 1e-6}
    assert after.exposed == ("the number of texts",)
    assert after.assumptions[: len(before.assumptions)] == before.assumptions
    assert "10,000 documents" in after.assumptions[-4]
    assert after.assumptions[-1].startswith(
        "if the shuffler fails, the local guarantee of each message still holds: 4-diff"
    )
    assert PrivacyStatement.from_json(after.to_json()) == after


def test_the_explanation_has_the_local_epsilon_rounded_up():
    text = " ".join(shuffled(statement(PureDP(1.23456)), users=1_000).explain().split())
    assert "a shuffler mixes the messages" in text
    assert "the local guarantee of each message still holds: 1.235-differential privacy (pure)" in text


def test_a_paper_claim_does_not_remain():
    claim = {"claim_is": "false", "reason": "because", "relinking_among_300": 0.5, "epsilon": 4.0}
    after = shuffled(statement(claimed_epsilon=2.0, parameters=claim), users=100)
    assert set(after.parameters) == {"epsilon", "local_epsilon", "shuffled_users", "shuffled_delta"}


def test_conditions_that_admit_any_two_inputs_remain():
    trained = Condition(requirements=(EncoderStays(),))
    assert shuffled(statement(condition=trained), users=100).condition == trained
    vectors = Condition(about="vectors")
    assert shuffled(statement(condition=vectors), users=100).condition == vectors
    assert shuffled(after_redaction(statement()), users=100).epsilon < 4
    assert shuffled(statement(unit=Unit.USER), users=100).unit is Unit.USER


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"guarantee": ApproxDP(4.0, 1e-9)}, "pure, finite"),
        ({"guarantee": PureDP(math.inf)}, "pure, finite"),
        ({"guarantee": ZCDP(0.5)}, "zCDP"),
        ({"guarantee": NoGuarantee("none")}, "no guarantee"),
        ({"guarantee": MetricDP(2.0, "euclidean", None)}, "max_distance"),
        ({"trust": Trust.CENTRAL}, "local trust"),
        ({"trust": Trust.SHUFFLER}, "local trust"),
        ({"relation": Relation.ADD_REMOVE}, "substitution"),
        ({"unit": Unit.WORD}, "any two documents or users"),
        ({"unit": Unit.SENTENCE}, "any two documents or users"),
        *(
            ({"condition": Condition(requirements=(requirement,))}, "any two documents or users")
            for requirement in (
                SameLayout(),
                SameSentenceCount(),
                OneGroup("by length"),
                WordsChanged(1),
                TextsOfOne(3),
                Stated("close texts"),
            )
        ),
    ],
)
def test_statements_without_a_proof_are_refused(changes, message):
    with pytest.raises(RefusedError, match=message):
        shuffled(statement(**changes), users=100)


def test_redacted_words_are_refused():
    words = after_redaction(statement(condition=Condition(requirements=(SameLayout(),))))
    with pytest.raises(RefusedError, match="any two documents or users"):
        shuffled(words, users=100)


def test_a_second_shuffling_is_refused():
    with pytest.raises(RefusedError, match="local trust"):
        shuffled(shuffled(statement(), users=100), users=100)


def test_several_texts_of_a_person_are_a_group():
    after = shuffled(PrivUnit(epsilon=4.0).statement(16), users=10_000)
    person = statement_for_user(after, 3)
    assert person.trust is Trust.SHUFFLER
    assert person.epsilon == pytest.approx(3 * after.epsilon)
    assert person.delta > 3 * after.delta


def test_the_composition_with_a_local_release_trusts_the_shuffler():
    both = shuffled(statement(), users=10_000).compose(statement(PureDP(1.0)))
    assert both.trust is Trust.SHUFFLER
    assert both.guarantee == ApproxDP(sum_upwards(1.0, shuffled_epsilon(4.0, 10_000, 1e-6)), 1e-6)


def test_seeds_remain_in_the_statement():
    assert shuffled(dataclasses.replace(statement(), seeded=True), users=100).seeded


def test_the_public_name():
    assert dptext.shuffled is shuffled
