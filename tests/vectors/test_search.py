"""Exact distances and exact neighbours, against brute force."""

import numpy as np
import pytest

from dptext.vectors.search import ExactDistances, NearestNeighbours


def brute_force(matrix):
    points = matrix.astype(np.float64)
    return ((points[:, None] - points[None]) ** 2).sum(axis=2)


def test_squared_distances_are_exact_integers_of_the_grid():
    spread = np.geomspace(1e-6, 1e6, 20)
    matrix = (np.random.default_rng(1).normal(size=(200, 20)) * spread).astype(np.float32)
    table = ExactDistances(matrix)
    grid = np.rint(matrix.astype(np.float64) / table.step).astype(np.int64)
    exact = ((grid[:, None] - grid[None]) ** 2).sum(axis=2)  # integer arithmetic
    result = table.squared(table.rows(np.arange(200)), table.columns(0, 200))
    np.testing.assert_array_equal(result, exact)
    assert exact.max() < 2**53


def test_rounding_bounds_the_error_of_every_distance():
    matrix = np.random.default_rng(3).normal(size=(300, 30)).astype(np.float32)
    table = ExactDistances(matrix)
    result = np.sqrt(table.squared(table.rows(np.arange(300)), table.columns(0, 300))) * table.step
    error = np.abs(result - np.sqrt(brute_force(matrix))).max()
    assert 0 < error <= 2 * table.rounding
    assert table.rounding < 1e-5


def test_near_ties_that_float32_cannot_see_are_decided_exactly():
    generator = np.random.default_rng(5)
    base = generator.normal(size=8).astype(np.float32)
    # 3,000 points that differ in the last bits, across several blocks
    matrix = np.repeat(base[None], 3000, axis=0)
    matrix = matrix * (1 + generator.integers(0, 8, size=matrix.shape) * 2.0**-23).astype(np.float32)
    queries = matrix[generator.integers(0, 3000, 200)].astype(np.float64)
    result = NearestNeighbours(matrix).find_several(queries, 1)[:, 0]
    # a distance of zero is there for every query; float64 of a difference of squares sees 1e-15 of it
    assert ((queries - matrix[result]) ** 2).sum(axis=1).max() < 1e-13
    scores = queries.astype(np.float32) @ matrix.T - (matrix**2).sum(axis=1) / 2
    naive = scores.argmax(axis=1)
    assert ((queries - matrix[naive]) ** 2).sum(axis=1).max() > 1e-13


def test_a_neighbour_does_not_depend_on_the_queries_beside_it():
    generator = np.random.default_rng(6)
    # rows with the same entries in other orders are true ties for a constant query; a sum sees them by its order
    base = np.rint(generator.normal(size=(40, 50)) * 64) / 64
    matrix = np.concatenate([generator.permuted(base, axis=1) for _ in range(60)]).astype(np.float32)
    queries = generator.normal(size=(150, 1)) * np.ones(50)
    search = NearestNeighbours(matrix)
    alone = np.concatenate([search.find_several(queries[index : index + 1], 1)[:, 0] for index in range(150)])
    for batch in (2, 3, 5, 8, 64, 150):
        np.testing.assert_array_equal(search.find_several(queries[:batch], 1)[:, 0], alone[:batch])
        np.testing.assert_array_equal(search.find_several(queries[-batch:], 1)[:, 0], alone[-batch:])


@pytest.mark.parametrize(("size", "count", "length"), [(3, 3, 0.01), (513, 2, 1000.0), (5000, 3, 0.01)])
def test_several_neighbours_are_those_of_brute_force_in_order(size, count, length):
    generator = np.random.default_rng(7)
    matrix = generator.normal(size=(size, 12)).astype(np.float32)
    queries = generator.normal(size=(100, 12)) * length
    several = NearestNeighbours(matrix).find_several(queries, count)
    squared = ((queries[:, None] - matrix[None].astype(np.float64)) ** 2).sum(axis=2)
    assert several.shape == (100, count)
    assert all(len(set(rows)) == count for rows in several.tolist())
    reached = np.take_along_axis(squared, several, axis=1)
    np.testing.assert_allclose(reached, np.sort(squared, axis=1)[:, :count], rtol=1e-12)
    equal = np.zeros((1500, 2), dtype=np.float32)
    assert NearestNeighbours(equal).find_several(np.ones((3, 2)), 1)[:, 0].tolist() == [0, 0, 0]
