"""Predicted quality agrees with releases for the same number of people, and with their warnings."""

import numpy as np
import pytest

import dptext
from dptext.embeddings.plan import expected_vectors
from dptext.embeddings.refinement import strengths
from dptext.errors import DataError, ParameterError

WIDTH, WORDS = 8, 400


def halves(rng, *, signal, chance):
    """Return mean matrices of two halves of public users: a shared signal, and chance in each half."""
    public = rng.normal(size=(WORDS, WIDTH))
    shared = public @ rng.normal(size=(WIDTH, WIDTH)) + 2.0 + signal * rng.normal(size=(WORDS, 1)) * np.eye(WIDTH)[0]
    noise = [chance * rng.normal(size=(WORDS, WIDTH)) for _ in range(2)]
    return shared + noise[0], shared + noise[1], public


def test_the_signal_is_common_to_both_halves():
    rng = np.random.default_rng(0)
    measured = np.ones(WORDS, dtype=bool)
    result = strengths(*halves(rng, signal=3.0, chance=0.5), measured)
    assert sum(result.words) == WORDS
    assert all(variance.size and variance[0] == pytest.approx(9.0, rel=0.35) for variance in result.variances)
    # chance alone is no signal, however many people it is multiplied by
    assert not any(variance.size for variance in strengths(*halves(rng, signal=0.0, chance=0.5), measured).variances)


def test_half_the_noise_needs_half_the_people():
    result = strengths(*halves(np.random.default_rng(1), signal=3.0, chance=0.2), np.ones(WORDS, dtype=bool))
    passed = [result.passed(people, 1.0, WIDTH) for people in (0.01, 0.5, 1.0, 10.0, 1e4)]
    assert passed == sorted(passed)
    assert passed[0] == 0
    assert passed[-1] == pytest.approx(1.0)
    minimum = result.minimum_people(1.0, WIDTH)
    assert result.passed(1.01 * minimum, 1.0, WIDTH) > 0
    assert result.passed(0.99 * minimum, 1.0, WIDTH) == 0
    assert result.minimum_people(0.5, WIDTH) == pytest.approx(minimum / 2)


TOPICS = (("tea", "cup", "milk", "sugar"), ("law", "court", "judge", "tax"))


def texts(count, seed):
    """Yield texts in which some words occur with one of two topics, unlike in their public vectors."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        topic = rng.integers(2)
        words = [*rng.choice(TOPICS[topic], 8), *(f"w{n}" for n in rng.integers(0, 400, 12) * 2 + topic)]
        yield dptext.Document(" ".join(rng.permutation(words)))


@pytest.fixture(scope="module")
def vectors():
    names = [*sum(TOPICS, ()), *(f"w{n}" for n in range(800)), "<unk>"]
    return dptext.WordVectors(names, np.random.default_rng(5).normal(size=(len(names), 6)))


@pytest.mark.slow
def test_predictions_agree_with_releases(vectors):
    [text] = expected_vectors(
        dptext.Cooccurrence(vectors, epsilon=1.0, unit="document").plan(), texts(1500, 0), people=600, epsilon=8.0
    )
    assert text.sigma == pytest.approx(0.652936)
    assert text.min_people < text.half
    hidden, visible = (
        dptext.Cooccurrence(vectors, epsilon=8.0, unit="document", seed=2).fit(texts(count, 1)).doubts_
        for count in (text.min_people // 3, 4 * text.half)
    )
    assert "noise hides the whole" in hidden[0]
    assert visible == ()


def test_predictions_need_two_users(vectors):
    plan = dptext.Cooccurrence(vectors, epsilon=1.0, unit="user").plan()
    compare_two = [dptext.Document(entry.text, user=str(n // 2)) for n, entry in enumerate(texts(600, 3))]
    assert len(expected_vectors(plan, compare_two, people=10, unit="user")) > 3
    with pytest.raises(DataError, match="at least two users"):
        expected_vectors(plan, compare_two[:2], people=10, unit="user")
    with pytest.raises(ParameterError, match="people must be"):
        expected_vectors(plan, compare_two, people=0)


@pytest.mark.slow
def test_skip_gram_warns_if_the_noise_hides_everything(vectors):
    pytest.importorskip("dp_accounting")
    plan = dptext.SkipGram(vectors, epsilon=8.0, steps=200, sampling_rate=0.05).plan()
    silent = np.zeros((2 * len(plan.rows), plan.dimension), dtype=np.float32)
    assert "noise hides the whole" in plan.doubts(silent)[0]
    loud = silent.copy()
    loud[len(plan.rows) :] = 10 * plan.noise_of_tables * np.random.default_rng(0).normal(size=(len(plan.rows), 6))
    assert plan.doubts(loud) == ()
