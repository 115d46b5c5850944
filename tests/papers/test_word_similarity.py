"""Correlations are scipy's, and coverage is said."""

import numpy as np
import pytest
from papers.word_similarity import similarity
from scipy import stats

from dptext import WordVectors

QUICK = {"resamples": 100, "seed": 1}


def pairs_of(vectors, count, generator, noise=0.5):
    """Pairs whose ratings follow the cosines of these vectors, with noise."""
    rows = generator.choice(np.arange(1, len(vectors)), size=(count, 2))
    points = vectors.matrix[rows].astype(float)
    points /= np.linalg.norm(points, axis=2, keepdims=True)
    cosines = (points[:, 0] * points[:, 1]).sum(axis=1)
    ratings = cosines + noise * generator.normal(size=count)
    rated = [(vectors.words[a], vectors.words[b], r) for (a, b), r in zip(rows, ratings, strict=True)]
    return rated, stats.spearmanr(ratings, cosines).statistic


@pytest.fixture(scope="module")
def vectors():
    generator = np.random.default_rng(1)
    words = ["<unk>", *(f"w{'abcdefghij'[n % 10]}{n}" for n in range(400))]
    return WordVectors(words, generator.normal(size=(401, 6)))


def test_the_score_is_spearmans_with_the_pairs_said(vectors):
    rated, expected = pairs_of(vectors, 200, np.random.default_rng(2))
    result = similarity(vectors, rated, **QUICK)
    assert (result.value, result.count, result.of) == (pytest.approx(expected), 200, "pairs")
    upper = [(first.upper(), second, rating) for first, second, rating in rated]
    assert similarity(vectors, upper, **QUICK) == result
    ties = [(first, second, round(rating)) for first, second, rating in rated]
    cosines = [vectors[a] @ vectors[b] / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b]) for a, b, _ in ties]
    tied = stats.spearmanr([ty[2] for ty in ties], cosines).statistic
    assert similarity(vectors, ties, **QUICK).value == pytest.approx(tied)


def test_pairs_without_vectors_are_left_out(vectors):
    rated, expected = pairs_of(vectors, 100, np.random.default_rng(3))
    unknown = [*rated, *(("zebra", "yak", float(entry)) for entry in np.linspace(-2, 2, 100))]
    result = similarity(vectors, unknown, **QUICK)
    assert (result.value, result.count) == (pytest.approx(expected), 100)


@pytest.mark.statistical
def test_intervals_over_pairs_cover(vectors):
    """At least 92 of 100, asked with probability of a false alarm below 1e-6; at half the width they do not."""
    generator = np.random.default_rng(4)
    _, whole = pairs_of(vectors, 50_000, generator)
    hits, narrow, trials = 0, 0, 70
    for _ in range(trials):
        score = similarity(vectors, pairs_of(vectors, 80, generator)[0], **QUICK)
        hits += score.low <= whole <= score.high
        narrow += abs(score.value - whole) <= (score.high - score.low) / 4
    assert stats.binomtest(hits, trials, 0.92, alternative="less").pvalue > 1e-6
    assert stats.binomtest(narrow, trials, 0.92, alternative="less").pvalue < 1e-6


def test_a_perfect_order_of_a_few_pairs_is_no_certainty():
    """No resample of pairs in perfect order is in another order."""
    angles = np.linspace(0.1, 1.2, 12)
    points = np.vstack([[1.0, 0.0], np.stack([np.cos(angles), np.sin(angles)], axis=1)])
    vectors = WordVectors(["<unk>", "cat", *(f"w{n}" for n in range(12))], np.vstack([[0.0, 0.1], points]))
    score = similarity(vectors, [("cat", f"w{n}", -angles[n]) for n in range(12)], **QUICK)
    assert score.value == pytest.approx(1.0)
    assert score.low < 0.6
