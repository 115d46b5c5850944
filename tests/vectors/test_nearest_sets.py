"""Sets of the nearest rows, against a computation in integers."""

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.vectors.nearest_sets import NearestSets

STEPS = 2**15


def on_the_grid(values):
    """(n, d) float32 in whole units of 2^-15, of length at most 1."""
    values = np.asarray(values, dtype=np.float64)
    lengths = np.maximum(np.sqrt((values**2).sum(axis=1, keepdims=True)), 1.0)
    return (np.trunc(values / lengths * (STEPS - 1)) / STEPS).astype(np.float32)


def drawn(n, d, *, seed=1):
    return on_the_grid(np.random.default_rng(seed).normal(size=(n, d)))


def integer_scores(matrix, queries):
    units, others = (np.rint(each.astype(np.float64) * STEPS).astype(np.int64) for each in (matrix, queries))
    return others @ units.T


def brute_force(matrix, queries, count):
    order = np.argsort(-integer_scores(matrix, queries), axis=1, kind="stable")
    return np.sort(order[:, :count], axis=1)


def coarse(n, d, *, seed=2, levels=2):
    """Few numbers, so that there are ties and duplicates; and zeros."""
    values = np.random.default_rng(seed).integers(-levels, levels + 1, size=(n, d)) / (levels * np.sqrt(d))
    values[::7] = 0.0
    return (np.trunc(values * STEPS) / STEPS).astype(np.float32)


@pytest.mark.parametrize("size", [1, 2, 5, 128, 1000, 1025])
def test_sets_are_those_of_integers(size):
    matrix, queries = drawn(size, 12), drawn(30, 12, seed=3)
    sets = NearestSets(matrix)
    for count in sorted({1, 2, size // 4, size - 1, size} - {0}):
        if count <= size:
            np.testing.assert_array_equal(sets.find(queries, count), brute_force(matrix, queries, count))


@pytest.mark.parametrize("count", [1, 3, 100, 1250, 5000, 19_999, 20_000])
def test_sets_of_a_large_matrix_with_ties_are_those_of_integers(count):
    matrix, queries = coarse(20_000, 3), coarse(40, 3, seed=4)
    np.testing.assert_array_equal(NearestSets(matrix).find(queries, count), brute_force(matrix, queries, count))


@pytest.mark.parametrize("count", [1, 34, 1200, 5000])
def test_sets_of_a_large_matrix_are_those_of_integers(count):
    matrix, queries = drawn(20_000, 24), drawn(60, 24, seed=5)
    np.testing.assert_array_equal(NearestSets(matrix).find(queries, count), brute_force(matrix, queries, count))


def test_what_is_not_of_the_grid_is_refused():
    with pytest.raises(ParameterError, match="whole units"):
        NearestSets(np.full((2, 2), 0.3, dtype=np.float32))
    with pytest.raises(ParameterError, match="length at most 1"):
        NearestSets(np.ones((2, 2), dtype=np.float32))
    with pytest.raises(ParameterError, match="whole units"):
        NearestSets(np.array([[np.nan]], dtype=np.float32))
    sets = NearestSets(drawn(3, 2))
    with pytest.raises(ParameterError, match="queries"):
        sets.find(np.array([[0.3, 0.0]]), 1)


def test_similarities_and_profile_are_those_of_integers():
    matrix, queries = drawn(2000, 10), drawn(20, 10, seed=6)
    sets = NearestSets(matrix)
    scores = integer_scores(matrix, queries)
    rows = sets.find(queries, 7)
    np.testing.assert_array_equal(sets.similarities(queries, rows) * 2**30, np.take_along_axis(scores, rows, axis=1))
    profile = sets.profile(queries)
    cumulative = np.cumsum(-np.sort(-scores, axis=1), axis=1).sum(axis=0)
    np.testing.assert_array_equal(profile.cumulative, [cumulative[r - 1] / (20 * 2**30) for r in profile.ranks])
    assert profile.candidates == 2000
