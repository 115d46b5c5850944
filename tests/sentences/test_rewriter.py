"""Tests of the guarantee of a rewriter, by enumeration and against its statement."""

import math
from decimal import Decimal, localcontext
from itertools import permutations, product

import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError
from dptext.privacy.guarantee import Unit

TEXTS = ["I like tea.", "She drinks tea.", "He pays his tax.", "Taxes are due.", "Dogs bark.", "My dog barks."]
INPUTS = ["I like tea.", "tea", "tax is due", "", "a dog", "nothing of it"]


@pytest.fixture(scope="module")
def bank():
    return dptext.TextBank(TEXTS, encoder="words", cache=False, name="six sentences")


def test_the_largest_loss_between_two_texts_is_epsilon(bank):
    for size, epsilon in product((1, 2, 5), (0.5, 3.0, 12.0)):
        rewriter = dptext.BankRewriter(bank, epsilon=epsilon, size=size)
        shares = rewriter.distributions(INPUTS)
        assert np.allclose(shares.sum(axis=1), 1)
        losses = [np.log(shares[one] / shares[other]).max() for one, other in permutations(range(len(INPUTS)), 2)]
        assert max(losses) <= epsilon + 1e-9
        assert max(losses) >= epsilon - 1e-9


def test_a_document_always_has_the_same_number_of_parts(bank):
    rewriter = dptext.BankRewriter(bank, epsilon=3.0, unit="document", max_sentences=3)
    assert rewriter.selection.epsilon * 3 <= 3.0
    assert [len(rewriter.parts(text)) for text in ("", "One.", "One. Two. Three. Four.")] == [3, 3, 3]
    [short, long] = dptext.privatize(["", "One. Two. Three. Four."], rewriter, seed=1).texts
    assert all(len(dptext.BankRewriter(bank, epsilon=1.0).parts(entry)) == 3 for entry in (short, long))


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 1000])
def test_the_loss_of_all_parts_is_at_most_the_epsilon_of_a_document(bank, parts):
    """In 60 digits: a document loses parts times ln(a / b), at most epsilon and hardly less."""
    with localcontext(prec=60):
        for epsilon in np.exp(np.random.default_rng(parts).uniform(-9, 3, size=40)).tolist():
            selection = dptext.BankRewriter(bank, epsilon=epsilon, unit="document", max_sentences=parts).selection
            loss = parts * (Decimal(selection.high) / selection.low).ln()
            assert loss <= Decimal(epsilon)
            assert loss > Decimal(epsilon) - parts * Decimal(2) ** -40


def test_a_set_depends_on_its_own_text_alone(bank):
    rewriter = dptext.BankRewriter(bank, epsilon=3.0, size=2)
    alone = [rewriter.probabilities(text) for text in INPUTS]
    assert (rewriter.distributions(INPUTS) == alone).all()
    assert (rewriter.distributions(INPUTS[::-1]) == alone[::-1]).all()


def test_samples_follow_the_probabilities(bank):
    rewriter = dptext.BankRewriter(bank, epsilon=2.0, size=2)
    draws = 40_000
    sample = rewriter.sample(["tea"] * draws, seed=3)
    counts = np.array([sample.count(text) for text in bank.texts])
    expected = rewriter.probabilities("tea") * draws
    assert ((counts - expected) ** 2 / expected).sum() < 37.3  # 5 degrees of freedom: false alarm below 1e-6


@pytest.mark.parametrize(
    ("options", "epsilon", "neighbours"),
    [
        ({"unit": "document"}, 4.0, "any two texts"),
        ({"unit": "document", "max_sentences": 2}, 4.0, "any two texts"),
        ({"unit": "sentence"}, 12.0, "the same number of sentences"),
        ({"unit": "sentence", "max_sentences": 2}, 8.0, "the same number of sentences"),
    ],
)
def test_the_statement_for_documents(bank, options, epsilon, neighbours):
    rewriter = dptext.BankRewriter(bank, epsilon=4.0, **options)
    statement = dptext.privatize(["One. Two. Three.", "", None], rewriter).statement
    assert (statement.unit, statement.guarantee) == (Unit.DOCUMENT, dptext.PureDP(epsilon))
    assert neighbours in statement.neighbours
    assert dptext.PrivacyStatement.from_json(statement.to_json()) == statement
    assert rewriter.statement.unit == options["unit"]
    assert any("texts of the bank, word for word" in entry for entry in statement.exposed)


def test_relinking_is_the_success_of_the_best_attack(bank):
    rewriter = dptext.BankRewriter(bank, epsilon=2.0, size=2)
    shares = rewriter.distributions(INPUTS)
    assert math.isclose(rewriter.relinking(len(INPUTS), INPUTS), shares.max(axis=0).sum() / len(INPUTS))
    assert rewriter.relinking(len(INPUTS), INPUTS) <= rewriter.relinking(len(INPUTS))
    for people, texts in ((0, None), (0, []), (2, ["one"])):
        with pytest.raises(ParameterError, match="people"):
            rewriter.relinking(people, texts)


@pytest.mark.parametrize(
    ("options", "parts"),
    [({"unit": "document"}, 1), ({"unit": "document", "max_sentences": 4}, 4), ({"max_sentences": 3}, 3), ({}, 3)],
)
def test_statements_bound_the_relinking_of_a_document(bank, options, parts):
    rewriter = dptext.BankRewriter(bank, epsilon=4.0, **options)
    statement = dptext.privatize(["One. Two. Three. Four.", ""][: 1 + (parts > 3)], rewriter).statement
    longest = 4 if parts == 3 and "max_sentences" not in options else parts
    assert statement.parameters["relinking_among_300"] == rewriter.selection.relinking(300, parts=longest)
    assert statement.parameters["chance_of_the_set"] == pytest.approx(
        np.sort(rewriter.probabilities("tea"))[-rewriter.size :].sum()
    )
    assert "relinking_among_300" not in dptext.statement_for_user(statement, 2).parameters
    with pytest.raises(ParameterError, match="exact probability for one part"):
        rewriter.relinking(2, INPUTS, parts=2)


def test_the_guarantee_of_a_part_is_a_share_of_its_document(bank):
    rewriter = dptext.BankRewriter(bank, epsilon=3.0, unit="document", max_sentences=3)
    part = rewriter.part_statement
    assert (part.unit, part.guarantee) == (Unit.SENTENCE, dptext.PureDP(rewriter.selection.epsilon))
    assert part.parameters["relinking_among_300"] < rewriter.statement.parameters["relinking_among_300"]
    shares = rewriter.distributions(INPUTS)
    assert np.log(shares.max(axis=0) / shares.min(axis=0)).max() <= part.epsilon + 1e-12
    for unit in ("sentence", "document"):
        whole = dptext.BankRewriter(bank, epsilon=3.0, unit=unit)
        assert whole.part_statement == whole.statement


def test_invalid_arguments_are_refused(bank):
    for options, part in [
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": 1, "unit": "user"}, "unit must be"),
        ({"epsilon": 1, "max_sentences": 0}, "max_sentences must be"),
        ({"epsilon": 1, "max_sentences": 10**400}, "max_sentences must be"),
        ({"epsilon": 5e-324, "unit": "document", "max_sentences": 2}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": True}, "epsilon must be"),
        ({"epsilon": 1, "size": 6}, "size must be"),
        ({"epsilon": 60}, "epsilon must be"),
    ]:
        with pytest.raises(ParameterError, match=part):
            dptext.BankRewriter(bank, **options)


def test_unchanged_sentences_are_counted(bank):
    certain = dptext.BankRewriter(bank, epsilon=36.0, size=1)  # another text than the likeliest: 1e-15
    texts = ["I like tea.", "Dogs  bark.  I like TEA.", "Dogs bark. A cat sleeps.", "", None]
    tally = dptext.privatize(texts, certain).tally
    assert (tally.words, tally.kept, tally.unchanged) == (5, 4, 2)
    cut = dptext.BankRewriter(bank, epsilon=36.0, size=1, max_sentences=1)
    tally = dptext.privatize(["Dogs bark. I like tea.", "Dogs bark."], cut).tally
    assert (tally.kept, tally.unchanged) == (2, 1)
