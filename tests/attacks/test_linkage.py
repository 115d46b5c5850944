"""Linkage and authors: found where they show, at chance in noise, ties and blocks counted right.

Noise must stay below exact binomial quantiles at 1e-6. The known channel is checked by enumeration.
"""

import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dptext.attacks import author_reidentification, linkage
from dptext.attacks.linkage import rank_scores, similarities
from dptext.errors import MissingExtraError
from dptext.privacy.randomness import RandomBits
from laws import most_by_luck


@pytest.fixture(scope="module")
def vectors():
    points = np.random.default_rng(1).normal(size=(400, 12))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_slightly_noisy_vectors_are_linked_and_noise_is_not(vectors, similarity):
    generator = np.random.default_rng(2)
    near = vectors + 0.05 * generator.normal(size=vectors.shape)
    first, ten, reciprocal = linkage(vectors, near, similarity=similarity, seed=1)
    assert first.score.value > 0.8
    assert all(entry.succeeded for entry in (first, ten, reciprocal))
    assert (first.baseline, ten.baseline) == (1 / 400, 10 / 400)
    assert reciprocal.baseline == pytest.approx(sum(1 / n for n in range(1, 401)) / 400)
    noise = generator.normal(size=vectors.shape)
    scores = linkage(vectors, noise, similarity=similarity, seed=1)
    assert scores[0].score.value <= most_by_luck(400, 1 / 400)
    assert scores[1].score.value <= most_by_luck(400, 10 / 400)
    assert not any(entry.succeeded for entry in scores)  # by the choice of the seeds: 2.5% a score


def test_ranks_are_those_of_sorting_whatever_the_blocks(monkeypatch):
    generator = np.random.default_rng(4)
    scores = generator.normal(size=(60, 37))
    true = generator.integers(37, size=60)
    brute = [int((row > row[position]).sum()) for row, position in zip(scores, true, strict=True)]
    for entries in (1, 100, 1 << 22):
        monkeypatch.setattr(sys.modules["dptext.attacks.linkage"], "_ENTRIES", entries)
        assert rank_scores(lambda a, b: scores[a:b], true, 37, RandomBits(1)).tolist() == brute


def test_ties_are_broken_as_chance_would():
    """Scores that are all equal: each rank 20 times in 400 on average (chi-square, 1e-6)."""
    result = rank_scores(lambda a, b: np.zeros((b - a, 20)), np.zeros(400, dtype=np.int64), 20, RandomBits(5))
    assert stats.chisquare(np.bincount(result, minlength=20)).pvalue > 1e-6
    # a rank that puts the true one first in every tie would link everybody
    assert stats.chisquare(np.bincount(np.zeros(400, dtype=int), minlength=20)).pvalue < 1e-6


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("side", ["original", "private"])
def test_one_huge_row_does_not_hide_the_others(vectors, similarity, side):
    """Noise with heavy tails may be huge once: in single precision all else would be 0, and every row a tie."""
    strange = vectors.copy()
    strange[0] *= 1e30
    pairs, _ = similarities(**{"original": vectors, "private": vectors, side: strange}, similarity=similarity)
    others = pairs(1, len(vectors))[:, 1:]  # the huge one may rightly be the likeliest of all
    assert (others.argmax(axis=1) == np.arange(len(vectors) - 1)).mean() > 0.99


@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
def test_clusters_far_apart_are_linked_within(similarity):
    """Two clusters 1,000 apart, rows one apart within, noise of a hundredth: in single precision every row is a tie."""
    generator = np.random.default_rng(41)
    points = generator.normal(size=(400, 20))
    points[200:] += 1000 / 20**0.5
    near = points + 0.01 * generator.normal(size=points.shape)
    for scale in (1.0, 1e-200, 1e200):
        assert linkage(scale * points, scale * near, similarity=similarity, seed=1)[0].score.value == 1.0
    distance = 1e9 * (np.arange(400) >= 200)[:, None]  # double precision needs differences here
    if similarity == "euclidean":
        assert linkage(points + distance, near + distance, similarity=similarity, seed=1)[0].score.value > 0.99
    chance = linkage(points, generator.permutation(near), similarity=similarity, seed=1)[0]
    assert chance.score.value <= most_by_luck(400, 1 / 200)


@pytest.mark.parametrize("distance", [1e-4, 1e-7, 1e-10])
def test_nearly_parallel_rows_are_linked(distance):
    """Cosines that differ by the square of the angle: below rounding from an angle of 1e-8 on."""
    generator = np.random.default_rng(42)
    points = generator.normal(size=20) + distance * generator.normal(size=(300, 20))
    near = points + 0.01 * distance * generator.normal(size=points.shape)
    near *= generator.uniform(0.5, 2, size=(300, 1))  # a cosine does not see lengths
    assert linkage(points, near, seed=1)[0].score.value > 0.99
    noise = points.mean(axis=0) + distance * generator.normal(size=points.shape)
    assert linkage(points, noise, seed=1)[0].score.value <= most_by_luck(300, 1 / 300)


def test_equal_rows_are_ties():
    """Ten candidates are alike each time, at any length where only the direction counts: one in ten is linked."""
    generator = np.random.default_rng(43)
    rows = np.repeat(np.abs(generator.normal(size=(60, 30))), 10, axis=0)
    longer = rows * generator.integers(1, 9, size=(600, 1))
    for row in (rows, longer):
        scores = linkage(row, rows, top=[1, 10], seed=1)
        assert scores[0].score.value <= most_by_luck(600, 1 / 10)
        assert scores[1].score.value == 1.0
    words = linkage(["a cat", "a dog"] * 50, ["a cat", "a dog"] * 50, seed=1)[0]
    assert words.score.value <= most_by_luck(100, 1 / 50)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_scores_are_those_of_exact_arithmetic(similarity):
    """Ranks of rows with many near ties, against fractions."""
    generator = np.random.default_rng(44)
    digits = 15 if similarity == "cosine" else 1  # on a grid equal angles differ by rounding of rows
    left = 1e8 + np.round(generator.normal(size=(25, 3)), digits)
    right = 1e8 + np.round(generator.normal(size=(12, 3)), digits)
    exact_left, exact_right = ([[Fraction(float(x)) for x in row] for row in rows] for rows in (left, right))

    def score(a, b):
        product = sum(x * y for x, y in zip(a, b, strict=True))
        square = sum(x * x for x in a)
        return {"dot": product, "euclidean": 2 * product - square, "cosine": product**2 / square}[similarity]

    true = np.arange(12)
    pairs, _ = similarities(left, right, similarity=similarity)
    result = rank_scores(pairs, true, 25, RandomBits(1))
    for row, place in zip(exact_right, true, strict=True):
        scores = [score(entry, row) for entry in exact_left]
        first = sum(entry > scores[place] for entry in scores)
        ties = sum(entry == scores[place] for entry in scores)
        assert first <= result[place] < first + ties
    one, other = (entry.astype(np.float32) for entry in (left, right))  # the broken variant
    if similarity == "cosine":
        one /= np.linalg.norm(one, axis=1, keepdims=True)
    rough = other @ one.T - (similarity == "euclidean") * (one**2).sum(axis=1) / 2
    assert [(row > row[position]).sum() for row, position in zip(rough, true, strict=True)] != result.tolist()


def test_texts_and_bags_of_words_are_linked():
    generator = np.random.default_rng(6)
    bags = [[f"w{n}" for n in generator.integers(500, size=12)] for _ in range(80)]
    changed = [[word if generator.random() < 0.6 else f"w{generator.integers(500)}" for word in bag] for bag in bags]
    texts = [" ".join(bag) for bag in bags], [None if n == 3 else " ".join(bag) for n, bag in enumerate(changed)]
    for original, private in ((bags, changed), texts):
        assert linkage(original, private, seed=1)[0].score.value > 0.9
    shuffled = [bags[n] for n in generator.permutation(80)]
    assert linkage(bags, shuffled, seed=1)[0].score.value <= most_by_luck(80, 1 / 80)


# -- authors ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def posts():
    """Fifteen authors, each with words of his own; the last two have more texts."""
    generator = np.random.default_rng(10)
    authors = np.concatenate([np.repeat(np.arange(15), 8), np.repeat([13, 14], 10)])
    texts = [" ".join([f"w{n}" for n in generator.integers(60, size=10)] + [f"own{author}"]) for author in authors]
    return np.array(texts, dtype=object), authors


@pytest.mark.parametrize("attacker", ["linear", "centroid"])
def test_authors_are_named_and_in_noise_they_are_not(posts, attacker):
    texts, authors = posts
    known = np.arange(len(texts)) % 2 == 0
    first, five = author_reidentification(
        texts[known], authors[known], texts[~known], authors[~known], attacker=attacker, seed=1
    )
    assert first.score.value > 0.7
    assert first.succeeded
    assert five.succeeded
    assert (first.score.of, first.score.count) == ("people", 15)
    noise = np.random.default_rng(11).normal(size=(len(texts), 4))
    result = author_reidentification(
        noise[known], authors[known], noise[~known], authors[~known], attacker=attacker, seed=1
    )
    # no author is named more often than the most frequent author would be right by luck
    assert result[0].score.value <= most_by_luck(70, 9 / 70)
    assert not any(entry.succeeded for entry in result)


def test_who_names_the_most_frequent_authors_is_the_baseline():
    known, private = np.zeros((7, 1)), np.zeros((4, 1))
    first, two = author_reidentification(
        known, list("aaabbcc"), private, list("abbc"), attacker="centroid", top=[1, 2, 3], seed=1
    )[:2]
    assert first.baseline == 0.25  # a alone
    assert two.baseline == pytest.approx((1 + 3 * 0.5) / 4)  # a, and b or c by lot


# -- what cannot be judged -------------------------------------------------------------------------------------


def test_without_scikit_learn_the_install_line_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[audit\]"'):
        linkage(["a", "b"], ["a"])
