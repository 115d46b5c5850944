"""Which epsilon keeps a text from being traced back: proved, by the mechanism, and among public texts."""

import math

import numpy as np
import pytest

import dptext
from dptext.calibration.reidentification import bank_epsilon
from dptext.errors import ParameterError
from dptext.privacy.guarantee import best_guesses, epsilon_at_most, rate_at_most
from sentences.banks import bank, documents

OPTIONS = ({}, {"unit": "document"}, {"max_sentences": 2}, {"unit": "document", "max_sentences": 3})


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("relinking", "people"), [(0.1, 60), (0.011, 100)])
def test_the_target_is_kept_and_hardly_more_than_that(options, relinking, people):
    calibration = dptext.calibrate(bank(), relinking=relinking, people=people, **options)
    parts = options.get("max_sentences", 1)
    assert calibration.parts == parts
    rewriter = dptext.BankRewriter(bank(), epsilon=calibration.epsilon, **options)
    assert calibration.reached == rewriter.relinking(people, parts=parts) <= relinking
    assert calibration.rewriter.parameters() == rewriter.parameters()
    more = dptext.BankRewriter(bank(), epsilon=calibration.epsilon * 1.01, **options)
    assert more.relinking(people, parts=parts) > relinking * (1 - 1e-3)
    # any mechanism: by the epsilon of all that the attacker sees
    whole = calibration.pure * (parts if options.get("unit") is None else 1)
    assert rate_at_most(whole, people) <= relinking < rate_at_most(whole * 1.002, people)
    assert calibration.pure <= calibration.epsilon
    assert calibration.epsilon == float(f"{calibration.epsilon:.4g}")


def test_no_attacker_exceeds_the_target():
    """The best attacker, enumerated, on texts whose sets are as far apart as can be."""
    calibration = dptext.calibrate(bank(), relinking=0.2, people=20)
    shares = calibration.rewriter.distributions(bank().texts)
    prior = np.full(20, 1 / 20)
    for start in range(0, 200, 20):
        assert best_guesses([shares[start : start + 20]], prior).rate <= 0.2 * (1 + 1e-12)
    # a twin that counts on one set for all would promise too much
    loose = dptext.BankRewriter(bank(), epsilon=2 * calibration.epsilon)
    shares = loose.distributions(bank().texts)
    assert max(best_guesses([shares[start : start + 20]], prior).rate for start in range(0, 200, 20)) > 0.2


def test_among_public_texts_it_is_exact():
    texts = [*dict.fromkeys(documents(300, max_sentences=1)[0])]
    calibration = dptext.calibrate(bank(), relinking=0.1, people=60, texts=texts)
    assert calibration.public >= calibration.epsilon
    rewriter = dptext.BankRewriter(bank(), epsilon=calibration.public)
    groups = [texts[start : start + 60] for start in range(0, len(texts) - 59, 60)]
    exact = np.mean([rewriter.relinking(60, group) for group in groups])
    assert calibration.public_reached == pytest.approx(exact)
    assert exact <= 0.1
    assert calibration.public_reached > 0.0995
    assert dptext.calibrate(bank(), relinking=0.1, people=60).public is None


@pytest.mark.slow
def test_among_public_documents_it_is_sampled():
    texts, _ = documents(60)
    calibration = dptext.calibrate(
        bank(), relinking=0.2, people=40, texts=texts, unit="document", max_sentences=2, seed=1
    )
    repeated = dptext.calibrate(bank(), relinking=0.2, people=40, texts=texts, unit="document", max_sentences=2, seed=1)
    assert calibration.public == repeated.public > calibration.epsilon
    assert 0.15 < calibration.public_reached <= 0.2


def test_a_bank_that_is_too_small_to_tell_people_apart_says_so():
    calibration = dptext.calibrate(bank(), relinking=0.9, people=1000)
    assert calibration.is_any
    assert calibration.reached <= len(bank()) / 1000 + 1e-9
    assert not dptext.calibrate(bank(), relinking=0.1, people=1000).is_any


def test_what_an_epsilon_does_is_said_by_public_numbers():
    rows = [bank_epsilon(bank(), epsilon) for epsilon in (1.0, 4.0, 8.0)]
    assert [row.size for row in rows] == sorted((row.size for row in rows), reverse=True)
    assert [row.similarity[0] for row in rows] == sorted(row.similarity[0] for row in rows)
    for row in rows:
        rewriter = dptext.BankRewriter(bank(), epsilon=row.epsilon)
        assert row.relinking == {people: rewriter.relinking(people) for people in (10, 100, 1000)}
        assert row.similarity[1] < row.similarity[0]
    profile = bank().profile_of(["tea", "the law", "a horse in the barn"])
    assert bank_epsilon(bank(), 4.0, profile=profile).similarity != rows[1].similarity


def test_the_largest_pure_epsilon_for_a_chance():
    for rate, people in ((0.1, 300), (0.6, 2), (0.9, 10)):
        epsilon = epsilon_at_most(rate, people)
        assert rate_at_most(epsilon, people) == pytest.approx(rate)
    assert epsilon_at_most(0.5, 3) == pytest.approx(math.log(2))
    for rate, people in ((0.1, 10), (0.05, 10), (1.0, 10), (0.5, 1)):
        with pytest.raises(ParameterError):
            epsilon_at_most(rate, people)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"relinking": 0.1, "people": 10}, "the chance level"),
        ({"relinking": 0.5, "people": 10, "unit": "user"}, "unit must be"),
        ({"relinking": 0.5, "people": 10, "texts": ["tea"] * 20}, "at least 10 distinct ones"),
        ({"relinking": 0.5, "keep_rate": 0.5}, "a bank has no keep_rate"),
        ({"relinking": 0.5, "mechanism": "madlib"}, "a bank has no mechanism"),
        ({}, "give the target of a bank"),
    ],
)
def test_what_cannot_be_reached_is_refused(options, said):
    with pytest.raises(ParameterError, match=said):
        dptext.calibrate(bank(), **options)


def test_words_have_no_such_target(small):
    with pytest.raises(ParameterError, match="give a TextBank in place of vectors"):
        dptext.calibrate(small, relinking=0.1)
    with pytest.raises(ParameterError, match="vectors must be WordVectors"):
        dptext.calibrate(["tea"], keep_rate=0.5)
