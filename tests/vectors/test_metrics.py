"""Tables of distances: as near to the metric as they say, the same bits for any blocks, refusals with reasons."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.vectors.metrics import (
    METRICS,
    AngularDistances,
    CallerDistances,
    directions,
    metric_space,
)
from dptext.vectors.search import ExactDistances
from laws import canberra

UNIT = 2.0**-24


def fractions(row):
    return [Fraction(float(value)) for value in row]


def reference(metric, x, y):
    """The distance of two float32 rows from exact differences and 60 digits; angles from exact products."""
    a, b = fractions(x), fractions(y)
    distance = [abs(p - q) for p, q in zip(a, b, strict=True)]
    with localcontext() as context:
        context.prec = 80
        if metric == "angular":
            a, b = ([Fraction(1), *[Fraction(0)] * (len(v) - 1)] if not any(v) else v for v in (a, b))
            dot = sum(p * q for p, q in zip(a, b, strict=True))
            cross = sum(p * p for p in a) * sum(q * q for q in b) - dot * dot  # exact: |a|^2 |b|^2 sin^2
            return math.atan2(float(root(cross)), float(dot)) if abs(dot) < 1e300 else math.nan
        return float(root(sum(p * p for p in distance)))


def root(fraction):
    return (Decimal(fraction.numerator) / Decimal(fraction.denominator)).sqrt()


def hard_points(dimension=6, size=60):
    """Random rows, and those that metrics find hard."""
    generator = np.random.default_rng(1)
    points = generator.normal(size=(size, dimension)).astype(np.float32)
    points[0] = 0.0
    points[1] = points[2]
    points[3] = -points[2]
    points[4] = points[2] * np.float32(3.7)
    points[5] = points[2] * (1 + 1e-6)
    points[6] = -points[2] * (1 + 1e-6)
    points[7] = 0.0
    points[7, 1] = 1e-20
    points[8] = [5.0] + [0.0] * (dimension - 1)
    points[9] = [1e-3] + [0.0] * (dimension - 1)
    return points


def tables(metric, points):
    if metric == "euclidean":
        return [ExactDistances(points), ExactDistances(points, dtype=np.float32)]
    ways = directions(points)
    return [AngularDistances(ways), AngularDistances(ways, dtype=np.float32)]


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
def test_distances_are_as_near_to_the_metric_as_the_table_says(metric):
    points = hard_points()
    rows = np.arange(len(points))
    exact = np.array([[reference(metric, x, y) for y in points] for x in points])
    for table in tables(metric, points):
        result = table.distances(table.rows(rows), table.columns(0, len(points)), 1e13).astype(np.float64) * table.step
        allowed = table.row_rounding[:, None] + table.row_rounding + table.units * UNIT * exact
        error = np.abs(result - exact)
        assert (error <= allowed).all()
        assert error.max() > 0
        assert table.row_rounding.max() <= table.rounding
        assert table.units <= 20
        maximum = 0.5 / table.step
        cut = table.distances(table.rows(rows), table.columns(0, len(points)), maximum)
        np.testing.assert_array_equal(cut, np.minimum(result / table.step, maximum).astype(np.float32))
    # the table that counts is fine enough, except where a row lies far from the others
    if metric != "euclidean":
        first = tables(metric, points)[0]
        assert first.rounding < 1e-5


@pytest.mark.parametrize("metric", METRICS)
def test_distances_are_the_same_bits_whatever_the_blocks(metric):
    generator = np.random.default_rng(2)
    points = generator.normal(size=(1_100, 13)).astype(np.float32)
    for table in tables(metric, points):
        whole = table.distances(table.rows(np.arange(1_100)), table.columns(0, 1_100), 3.0 / table.step)
        for rows, start, stop in (
            ([3], 0, 1_100),
            (range(5, 70), 512, 515),
            ([999, 1], 0, 513),
            (range(7), 1_024, 1_100),
        ):
            rows = np.array(rows)
            out = np.full(rows.size * (stop - start) + 3, np.nan, dtype=np.float32)[3:].reshape(rows.size, -1)
            part = table.distances(table.rows(rows), table.columns(start, stop), 3.0 / table.step)
            np.testing.assert_array_equal(part, whole[rows, start:stop])
            part = table.distances(table.rows(rows), table.columns(start, stop), 3.0 / table.step, out)
            np.testing.assert_array_equal(part, whole[rows, start:stop])


def test_float32_functions_are_as_accurate_as_the_slack_assumes():
    tangents = np.concatenate([np.logspace(-30, 30, 1_000_001), np.linspace(0, 4, 1_000_001)]).astype(np.float32)
    result, exact = np.arctan2(tangents, np.float32(1.0)), np.arctan2(tangents.astype(np.float64), 1.0)
    error = np.abs(result - exact) / np.spacing(np.maximum(exact, 2.0**-120).astype(np.float32))
    assert error.max() <= 4  # units in the last place
    assert np.arctan2(np.float32(0), np.float32(2)) == 0


# -- a caller's function -----------------------------------------------------------------------------------------


def cosine(rows, matrix):
    dots = rows @ matrix.T
    return np.clip(1 - dots / np.linalg.norm(rows, axis=1)[:, None] / np.linalg.norm(matrix, axis=1), 0, None)


def squared(rows, matrix):
    return ((rows[:, None] - matrix[None]) ** 2).sum(axis=2)


def one_way(rows, matrix):
    return np.maximum(rows[:, None, 0] - matrix[None, :, 0], 0.0)


def negative(rows, matrix):
    return -canberra(rows, matrix)


def broken(rows, matrix):
    return np.where(matrix[None, :, 0] > 2.5, np.nan, np.abs(rows[:, None, 0] - matrix[None, :, 0]))


def test_a_function_that_is_no_metric_is_refuted_with_the_rows(small):
    for function, message in (
        (cosine, "triangle inequality"),
        (squared, "triangle inequality"),
        (one_way, "back"),
        (lambda rows, matrix: 0.001 + canberra(rows, matrix), "to itself"),
        (negative, "not negative"),
        (broken, "nan"),
        (lambda rows, matrix: canberra(matrix, rows), "one distance for each"),
        (lambda rows, matrix: canberra(rows, matrix)[0], "shape"),
    ):
        function.__name__ = "callers_metric"
        with pytest.raises(ParameterError, match=message):
            metric_space(small, function, threshold=3.0)


def test_a_function_that_is_a_metric_is_taken_and_its_assumption_is_stated(small):
    space = metric_space(small, canberra, threshold=3.0)
    assert space.name == "caller's canberra"
    assert "canberra is a metric" in space.assumptions[0]
    assert "sampled triples" in space.assumptions[0]
    assert metric_space(small, canberra, threshold=3.0).space == space.space
    other = canberra.__name__

    def impostor(rows, matrix):
        return 0.5 * canberra(rows, matrix)

    impostor.__name__ = other
    assert metric_space(small, impostor, threshold=3.0).space != space.space


def test_a_private_word_never_ends_in_an_error():
    points = np.linspace(0, 4, 700)[:, None].astype(np.float32)
    table = CallerDistances(points, broken, limit=3.0)
    distances = table.distances(table.rows(np.array([0, 699])), table.columns(0, 700), 3.0)
    assert (distances[:, points[:, 0] > 2.5] == 3.0).all()
    assert np.isfinite(distances).all()
    table = CallerDistances(points, negative, limit=3.0)
    assert not table.distances(table.rows(np.array([5])), table.columns(0, 700), 3.0).any()
