"""The regularised Mahalanobis norm: against exact rational arithmetic, its error bound, its diameter."""

from fractions import Fraction

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.vectors.metrics import Ellipsoid


def cloud(size=400, dimension=5, spread=4.0, seed=1):
    generator = np.random.default_rng(seed)
    widths = np.geomspace(spread, 1 / spread, dimension)
    return (generator.normal(size=(size, dimension)) * widths + 3.0).astype(np.float32)


def exact_shape(matrix, lambda_):
    """(d, d) of fractions: lambda S + (1 - lambda) I."""
    columns = [[Fraction(float(entry)) for entry in column] for column in matrix.T]
    size, dimension = len(matrix), len(columns)
    columns = [[entry - sum(column) / size for entry in column] for column in columns]
    total = [[sum(a * b for a, b in zip(one, other, strict=True)) for other in columns] for one in columns]
    mean = sum(total[k][k] for k in range(dimension)) / dimension
    weight = Fraction(lambda_)
    return [[weight * total[i][j] / mean + (1 - weight) * (i == j) for j in range(dimension)] for i in range(dimension)]


@pytest.mark.slow
@pytest.mark.parametrize("lambda_", [0.2, 1.0])
def test_the_root_is_within_its_error_of_exact_arithmetic(lambda_):
    matrix = cloud()
    ellipsoid = Ellipsoid(matrix, lambda_)
    exact = exact_shape(matrix, lambda_)
    root = [[Fraction(float(entry)) for entry in row] for row in ellipsoid.root]
    square = [[sum(a * b for a, b in zip(one, other, strict=True)) for other in root] for one in root]
    gap = np.array([[float(a - b) for a, b in zip(*rows, strict=True)] for rows in zip(square, exact, strict=True)])
    smallest = np.linalg.eigvalsh(np.array(exact, dtype=float))[0]
    assert ellipsoid.smallest <= smallest * (1 + 1e-12)
    assert ellipsoid.smallest > smallest * (1 - 1e-5)
    assert np.linalg.norm(gap, 2) <= ellipsoid.error * ellipsoid.smallest
    assert ellipsoid.error < 1e-8


def test_no_two_points_are_farther_apart_than_the_diameter():
    matrix = cloud(200)
    for lambda_ in (0.0, 0.2, 1.0):
        ellipsoid = Ellipsoid(matrix, lambda_)
        whitened = np.linalg.solve(ellipsoid.root, matrix.T.astype(np.float64)).T
        far = np.sqrt(((whitened[:, None] - whitened[None]) ** 2).sum(axis=2)).max()
        assert far <= ellipsoid.diameter_bound <= 2 * far


def test_lambda_zero_is_euclidean_and_flat_points_are_refused_at_lambda_one():
    np.testing.assert_array_equal(Ellipsoid(cloud(), 0.0).root, np.eye(5))
    equal = Ellipsoid(np.ones((7, 3), dtype=np.float32), 1.0)
    np.testing.assert_array_equal(equal.root, np.eye(3))
    assert equal.diameter_bound < 1e-300
    flat = cloud()
    flat[:, 4] = 2.0
    with pytest.raises(ParameterError, match="without noise"):
        Ellipsoid(flat, 1.0)
    assert Ellipsoid(flat, 0.999).smallest == pytest.approx(0.001)
