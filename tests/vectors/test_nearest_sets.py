"""Sets of the nearest rows, against a computation in integers."""

from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest

from dptext import threads
from dptext.errors import ParameterError
from dptext.vectors import nearest_sets
from dptext.vectors.nearest_sets import NearestSets

UNITS = 2**15


def on_the_grid(values):
    """(n, d) float32 in whole units of 2^-15, of length at most 1."""
    values = np.asarray(values, dtype=np.float64)
    lengths = np.maximum(np.sqrt((values**2).sum(axis=1, keepdims=True)), 1.0)
    return (np.trunc(values / lengths * (UNITS - 1)) / UNITS).astype(np.float32)


def drawn(n, d, *, seed=1):
    return on_the_grid(np.random.default_rng(seed).normal(size=(n, d)))


def coarse(n, d, *, seed=2):
    """Of few numbers, so that there are ties and duplicates, with zero vectors among them."""
    values = np.random.default_rng(seed).integers(-2, 3, size=(n, d)) / (2 * np.sqrt(d))
    values[::7] = 0.0
    return on_the_grid(values)


def nearly_tied(n, d, *, seed=3):
    """Rows whose products with a query are near 1 and differ by 0 to 8 units of 2^-30; and such queries.

    The rows have the same numbers in other orders: a sum that is rounded sees the order.
    """
    generator = np.random.default_rng(seed)
    base = np.abs(generator.normal(size=d - 1))
    rows = np.empty((n, d))
    rows[:, 1:] = generator.permuted(np.tile(np.trunc(base / np.linalg.norm(base) * 0.99 * UNITS), (n, 1)), axis=1)
    rows[:, 0] = generator.integers(0, 9, n)
    queries = np.full((3, d), np.trunc(0.99 * UNITS / np.sqrt(d)))
    queries[:, 0] = 1.0
    return (rows / UNITS).astype(np.float32), (queries / UNITS).astype(np.float32)


def integer_products(matrix, queries):
    rows, others = (np.rint(query.astype(np.float64) * UNITS).astype(np.int64) for query in (matrix, queries))
    return others @ rows.T


def find_in_integers(matrix, queries, count):
    order = np.argsort(-integer_products(matrix, queries), axis=1, kind="stable")  # the lower row in a tie
    return np.sort(order[:, :count], axis=1)


@pytest.mark.parametrize("size", [1, 128, 1025])
@pytest.mark.parametrize("make", [drawn, coarse])
def test_sets_of_a_small_matrix_are_those_of_integers(make, size):
    matrix, queries = make(size, 12), np.concatenate([make(20, 12, seed=4), np.zeros((1, 12), np.float32)])
    sets = NearestSets(matrix)
    for count in sorted({1, min(2, size), max(1, size // 4), max(1, size - 1), size}):
        result = sets.find(queries, count)
        np.testing.assert_array_equal(result, find_in_integers(matrix, queries, count))
        assert result.dtype == np.int64


def test_sets_of_a_large_matrix_are_those_of_integers():
    for matrix, queries in ((drawn(20_000, 24), drawn(40, 24, seed=5)), (coarse(20_000, 3), coarse(40, 3, seed=6))):
        sets = NearestSets(matrix)
        for count in (1, 34, 1250, 19_999, 20_000):
            np.testing.assert_array_equal(sets.find(queries, count), find_in_integers(matrix, queries, count))


def test_a_difference_of_one_unit_decides():
    matrix, queries = nearly_tied(5000, 384)
    products = integer_products(matrix, queries[:1])
    assert np.diff(np.unique(products)).tolist() == [1] * 8  # units of 2^-30, of numbers near 2^30
    assert products.min() > 0.7 * 2**30
    sets = NearestSets(matrix)
    for count in (1, 1000, 2500, 4999):
        np.testing.assert_array_equal(sets.find(queries, count), find_in_integers(matrix, queries, count))
    with mock.patch.object(sets, "_errors", lambda queries: np.full(len(queries), 1e-30)):  # without the bound
        assert (sets.find(queries, 1000) != find_in_integers(matrix, queries, 1000)).any()


def test_scores_in_any_order_of_adding_are_within_the_bound():
    generator = np.random.default_rng(7)
    # numbers of one sign in ascending order, whose sum in sequence loses the most
    for values in (generator.normal(size=(200, 384)), np.sort(np.abs(generator.normal(size=(200, 384))))[:, ::-1]):
        matrix, queries = on_the_grid(values[:190]), on_the_grid(values[190:])
        exact = integer_products(matrix, queries) / 2**30
        bound = NearestSets(matrix)._errors(queries)[:, None] / 2
        in_sequence = np.zeros(exact.shape, dtype=np.float32)
        for index in range(384):
            in_sequence += queries[:, index, None] * matrix[None, :, index]
        for scores in (in_sequence, queries @ matrix.T, (queries[:, ::-1] @ matrix[:, ::-1].T)):
            error = np.abs(scores - exact)
            assert error.max() > 0
            assert (error <= bound).all()


@pytest.mark.parametrize("count", [1, 3000])
def test_a_set_depends_on_its_query_and_the_matrix_alone(count, monkeypatch):
    matrix = np.concatenate([drawn(10_000, 16), nearly_tied(2000, 16)[0]])
    queries = np.concatenate([drawn(30, 16, seed=8), nearly_tied(1, 16)[1], np.zeros((1, 16), np.float32)])
    sets, expected = NearestSets(matrix), find_in_integers(matrix, queries, count)
    alone = np.concatenate([sets.find(queries[index : index + 1], count) for index in range(len(queries))])
    order = np.random.default_rng(9).permutation(len(queries))
    np.testing.assert_array_equal(alone, expected)
    np.testing.assert_array_equal(sets.find(queries[order], count), expected[order])
    np.testing.assert_array_equal(sets.find(np.asfortranarray(queries.astype(np.float64)), count), expected)
    for module, name, value in (
        (nearest_sets, "_TILE_ROWS", 2**11),
        (nearest_sets, "_SCORES", 2**15),
        (nearest_sets, "_EXACT", 64),
        (threads, "_cores", lambda: 1),
        (threads, "_cores", lambda: 3),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, value)
            np.testing.assert_array_equal(sets.find(queries, count), expected)
    with ThreadPoolExecutor(3) as pool:
        for result in pool.map(lambda _: sets.find(queries, count), range(3)):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("size", [3, 130, 5000])
@pytest.mark.parametrize("itself", [False, True])
def test_a_profile_is_that_of_integers(size, itself, monkeypatch):
    matrix = coarse(size, 6)
    left_out = np.arange(0, size, max(1, size // 10)) if itself else None
    queries = matrix[left_out] if itself else drawn(9, 6, seed=16)
    monkeypatch.setattr(nearest_sets, "_SCORES", 4 * size)  # four queries together
    profile = NearestSets(matrix).profile(queries, left_out)
    products = integer_products(matrix, queries)
    if itself:
        products = np.array([np.delete(entry, row) for entry, row in zip(products, left_out, strict=True)])
    sums = np.cumsum(-np.sort(-products, axis=1), axis=1).sum(axis=0)
    assert profile.candidates == size - itself
    np.testing.assert_array_equal(profile.cumulative, sums[profile.ranks - 1] / (len(queries) * 2**30))
    assert profile.ranks[:128].tolist() == list(range(1, min(size - itself, 128) + 1))
    assert (np.diff(profile.ranks) <= np.maximum(1.0, profile.ranks[:-1] * 0.02 + 1)).all()


def test_finer_and_longer_vectors_are_refused():
    for value in (0.3, 2.0**-16, 1.0, -1.0, np.nan, np.inf, 1e38):
        matrix = np.zeros((70_000, 2), dtype=np.float32)
        matrix[-1] = value
        with pytest.raises(ParameterError, match="the matrix must be vectors of length at most 1"):
            NearestSets(matrix)
        sets = NearestSets(matrix[:3])
        for queries in (matrix[-2:], matrix[-2:].astype(np.float64), [[2.0**-40, 0.0]]):  # float32 would hold the last
            with pytest.raises(ParameterError, match="queries must be vectors of length at most 1"):
                sets.find(queries, 1)
