"""The epsilon at which a text is re-identified rarely enough: proved, and for any mechanism."""

import math

import numpy as np
import pytest

import dptext
from dptext.calibration.reidentification import bank_epsilon
from dptext.errors import ParameterError
from dptext.privacy.guarantee import best_guesses, epsilon_at_most, rate_at_most
from sentences.banks import bank


@pytest.mark.parametrize(
    "options", [{}, {"unit": "document"}, {"max_sentences": 2}, {"unit": "document", "max_sentences": 3}]
)
def test_the_target_is_met_and_missed_at_a_slightly_larger_epsilon(options):
    parts = options.get("max_sentences", 1)
    for relinking, people in ((0.1, 60), (0.011, 100)):
        calibration = dptext.calibrate(bank(), relinking=relinking, people=people, **options)
        assert calibration.parts == parts
        rewriter = dptext.BankRewriter(bank(), epsilon=calibration.epsilon, **options)
        assert calibration.reached == rewriter.relinking(people, parts=parts) <= relinking
        assert calibration.rewriter.parameters() == rewriter.parameters()
        larger = dptext.BankRewriter(bank(), epsilon=calibration.epsilon * 1.01, **options)
        assert larger.relinking(people, parts=parts) > relinking * (1 - 1e-3)
        # any mechanism: by the epsilon of all sentences that the attacker sees
        whole = calibration.pure * (parts if options.get("unit") is None else 1)
        assert rate_at_most(whole, people) <= relinking < rate_at_most(whole * 1.002, people)
        assert calibration.pure <= calibration.epsilon
        assert calibration.epsilon == float(f"{calibration.epsilon:.4g}")


def test_no_attacker_exceeds_the_target():
    """The best attacker, enumerated, on texts whose sets are as far apart as can be."""
    calibration = dptext.calibrate(bank(), relinking=0.2, people=20)
    prior = np.full(20, 1 / 20)
    starts = range(0, 200, 20)
    shares = calibration.rewriter.distributions(bank().texts)
    assert max(best_guesses([shares[start : start + 20]], prior).rate for start in starts) <= 0.2 * (1 + 1e-12)
    shares = dptext.BankRewriter(bank(), epsilon=2 * calibration.epsilon).distributions(bank().texts)
    assert max(best_guesses([shares[start : start + 20]], prior).rate for start in starts) > 0.2


def test_a_bank_with_too_few_texts_meets_the_target_at_any_epsilon():
    calibration = dptext.calibrate(bank(), relinking=0.9, people=1000)
    assert calibration.is_any
    assert calibration.reached <= len(bank()) / 1000 + 1e-9
    assert not dptext.calibrate(bank(), relinking=0.1, people=1000).is_any


def test_the_effect_of_an_epsilon_follows_from_public_numbers():
    rows = [bank_epsilon(bank(), epsilon) for epsilon in (1.0, 4.0, 8.0)]
    assert [row.size for row in rows] == sorted((row.size for row in rows), reverse=True)
    assert [row.similarity[0] for row in rows] == sorted(row.similarity[0] for row in rows)
    for row in rows:
        rewriter = dptext.BankRewriter(bank(), epsilon=row.epsilon)
        assert row.relinking == {people: rewriter.relinking(people) for people in (10, 100, 1000)}
        assert row.similarity[1] < row.similarity[0]


def test_the_largest_pure_epsilon_for_a_chance():
    for rate, people in ((0.1, 300), (0.6, 2), (0.9, 10)):
        assert rate_at_most(epsilon_at_most(rate, people), people) == pytest.approx(rate)
    assert epsilon_at_most(0.5, 3) == pytest.approx(math.log(2))
    for rate, people in ((0.1, 10), (0.05, 10), (1.0, 10), (0.5, 1)):
        with pytest.raises(ParameterError):
            epsilon_at_most(rate, people)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relinking": 0.1, "people": 10}, "the chance level"),
        ({"relinking": 0.5, "people": 10, "unit": "user"}, "unit must be"),
        ({"relinking": 0.5, "keep_rate": 0.5}, "a bank has the target relinking="),
        ({"relinking": 0.5, "mechanism": "madlib"}, "a bank has the target relinking="),
        ({}, "a bank has the target relinking="),
    ],
)
def test_bad_targets_of_a_bank_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        dptext.calibrate(bank(), **options)
