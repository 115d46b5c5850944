"""Tables of distances: as near to the metric as they say, the same bits for any blocks, refusals with reasons."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.vectors.metrics import (
    ANGULAR_DIAMETER,
    METRICS,
    AngularDistances,
    CallerDistances,
    LatticeDistances,
    PoincareBounds,
    PoincareDistances,
    conformal_factors,
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
    if metric == "manhattan":
        return float(sum(distance))
    if metric == "chebyshev":
        return float(max(distance))
    with localcontext() as context:
        context.prec = 80
        if metric == "angular":
            a, b = ([Fraction(1), *[Fraction(0)] * (len(v) - 1)] if not any(v) else v for v in (a, b))
            dot = sum(p * q for p, q in zip(a, b, strict=True))
            cross = sum(p * p for p in a) * sum(q * q for q in b) - dot * dot  # exact: |a|^2 |b|^2 sin^2
            return math.atan2(float(root(cross)), float(dot)) if abs(dot) < 1e300 else math.nan
        squared = sum(p * p for p in distance)
        if metric == "euclidean":
            return float(root(squared))
        q = squared / ((1 - sum(p * p for p in a)) * (1 - sum(p * p for p in b)))
        return float(2 * (root(q) + root(1 + q)).ln())


def root(fraction):
    return (Decimal(fraction.numerator) / Decimal(fraction.denominator)).sqrt()


def hard_points(metric, dimension=6, size=60):
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
    if metric == "poincare":
        points /= np.float32(1.02) * np.sqrt((points**2).sum(axis=1).max())
        for row, gap in ((10, 1e-2), (11, 1e-4), (12, 1e-6), (13, 1e-6)):
            points[row] *= np.float32((1 - gap) / np.sqrt((points[row].astype(np.float64) ** 2).sum()))
        points[13] = points[12]
        points[13, 0] = np.nextafter(points[13, 0], np.float32(0))
    return points


def tables(metric, points):
    if metric == "euclidean":
        return [ExactDistances(points), ExactDistances(points, dtype=np.float32)]
    if metric == "angular":
        ways = directions(points)
        return [AngularDistances(ways), AngularDistances(ways, dtype=np.float32)]
    if metric == "poincare":
        factors = conformal_factors(points)
        bounds = [PoincareBounds(points, factors, dtype=dtype) for dtype in (np.float64, np.float32)]
        return [PoincareDistances(points, factors), *bounds]
    types = {"manhattan": (np.uint32, np.uint16), "chebyshev": (np.int32, np.int16, np.int8)}[metric]
    return [LatticeDistances(points, kind=metric, dtype=dtype) for dtype in types]


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
def test_distances_are_as_near_to_the_metric_as_the_table_says(metric):
    points = hard_points(metric)
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
    points = (generator.normal(size=(1_100, 13)) * (0.1 if metric == "poincare" else 1.0)).astype(np.float32)
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
    for result, exact in (
        (np.arctan2(tangents, np.float32(1.0)), np.arctan2(tangents.astype(np.float64), 1.0)),
        (np.arcsinh(tangents), np.arcsinh(tangents.astype(np.float64))),
    ):
        error = np.abs(result - exact) / np.spacing(np.maximum(exact, 2.0**-120).astype(np.float32))
        assert error.max() <= 4  # units in the last place
    assert np.arctan2(np.float32(0), np.float32(2)) == np.arcsinh(np.float32(0)) == 0


@pytest.mark.parametrize("dimension", [1, 300])
@pytest.mark.parametrize(("scale", "offset"), [(1e-25, 0.0), (1.0, 7.0), (1e25, -1e25), (1.0, 1e7)])
def test_lattices_of_any_scale_and_dimension_do_not_overflow(dimension, scale, offset):
    generator = np.random.default_rng(3)
    points = (generator.standard_cauchy(size=(300, dimension)) * scale + offset).astype(np.float32)
    exact = np.abs(points[:, None].astype(np.float64) - points[None])
    rows = np.arange(300)
    for metric, want in (("manhattan", exact.sum(axis=2)), ("chebyshev", exact.max(axis=2))):
        for table in tables(metric, points):
            result = table.distances(table.rows(rows), table.columns(0, 300), 1e18).astype(np.float64) * table.step
            assert (np.abs(result - want) <= 2 * table.rounding + UNIT * want * 1.01).all()


def test_a_row_of_zeros_lies_on_the_first_axis():
    points = np.array([[0, 0], [2, 0], [0, 3], [-1e-30, 0]], dtype=np.float32)
    np.testing.assert_array_equal(directions(points), [[1, 0], [1, 0], [0, 1], [-1, 0]])
    table = AngularDistances(directions(points))
    result = table.distances(table.rows(np.array([0])), table.columns(0, 4), 9.0)[0] * 2
    np.testing.assert_allclose(result, [0, 0, math.pi / 2, math.pi], atol=1e-6)
    assert math.pi < ANGULAR_DIAMETER < math.pi + 1e-15


@pytest.mark.parametrize(
    ("row", "inside"),
    [
        ([0.6, 0.8], False),  # in float32 the squares add up to 1 + 2e-8
        ([1.0, 0.0], False),
        ([3.0, 4.0], False),
        ([np.float32(1) - np.float32(2.0**-24), 0.0], True),
        ([0.6, 0.7999], True),
    ],
)
def test_the_ball_ends_at_length_one(row, inside):
    points = np.array([[0.1, 0.2], row, [0.0, 0.0]], dtype=np.float32)
    if inside:
        exact = [1 / (1 - sum(value**2 for value in fractions(point))) for point in points]
        np.testing.assert_allclose(conformal_factors(points), [float(value) for value in exact], rtol=1e-15)
    else:
        with pytest.raises(DataError, match=r"row 1 does not lie inside the unit ball \(1 rows do not"):
            conformal_factors(points)


# -- a caller's function -----------------------------------------------------------------------------------------


def cosine(rows, matrix):
    dots = rows @ matrix.T
    return np.clip(1 - dots / np.linalg.norm(rows, axis=1)[:, None] / np.linalg.norm(matrix, axis=1), 0, None)


def squared(rows, matrix):
    return ((rows[:, None] - matrix[None]) ** 2).sum(axis=2)


def one_way(rows, matrix):
    return np.maximum(rows[:, None, 0] - matrix[None, :, 0], 0.0)


def shifted(rows, matrix):
    return 0.001 + np.abs(rows[:, None] - matrix[None]).sum(axis=2)


def negative(rows, matrix):
    return -np.abs(rows[:, None] - matrix[None]).sum(axis=2)


def broken(rows, matrix):
    return np.where(matrix[None, :, 0] > 2.5, np.nan, np.abs(rows[:, None, 0] - matrix[None, :, 0]))


def transposed(rows, matrix):
    return canberra(matrix, rows)


def flat(rows, matrix):
    return canberra(rows, matrix)[0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (cosine, r"but .* by way of row \d+ \(the triangle inequality\)"),
        (squared, "the triangle inequality"),
        (one_way, "from row .* back"),
        (shifted, "to itself, not 0"),
        (negative, "finite and not negative"),
        (broken, "gives nan between rows"),
        (transposed, "one distance for each of 1 x "),
        (flat, r"shape \(301,\): metric\(rows"),
    ],
)
def test_a_function_that_is_no_metric_is_refuted_with_the_rows(small, function, message):
    with pytest.raises(ParameterError, match=message):
        metric_space(small, function, rate=1.0, threshold=3.0)


def test_a_function_that_is_a_metric_is_taken_and_its_assumption_is_stated(small):
    space = metric_space(small, canberra, rate=1.0, threshold=3.0)
    assert space.name == "caller's canberra"
    assert "canberra is a metric" in space.assumptions[0]
    assert "sampled triples" in space.assumptions[0]
    assert metric_space(small, canberra, rate=1.0, threshold=3.0).space == space.space
    other = canberra.__name__

    def impostor(rows, matrix):
        return 0.5 * canberra(rows, matrix)

    impostor.__name__ = other
    assert metric_space(small, impostor, rate=1.0, threshold=3.0).space != space.space


def test_a_private_word_never_ends_in_an_error():
    points = np.linspace(0, 4, 700)[:, None].astype(np.float32)
    table = CallerDistances(points, broken, limit=3.0)
    distances = table.distances(table.rows(np.array([0, 699])), table.columns(0, 700), 3.0)
    assert (distances[:, points[:, 0] > 2.5] == 3.0).all()
    assert np.isfinite(distances).all()
    table = CallerDistances(points, negative, limit=3.0)
    assert not table.distances(table.rows(np.array([5])), table.columns(0, 700), 3.0).any()


def test_a_function_is_always_asked_for_one_row_and_one_block():
    shapes = set()

    def recorded_metric(rows, matrix):
        shapes.add((rows.shape, matrix.shape))
        assert rows.dtype == matrix.dtype == np.float64
        return canberra(rows, matrix)

    vectors = dptext.load_vectors(
        ([f"w{'abcdefghij'[n % 10]}{n}x" for n in range(1_199)], np.random.default_rng(1).normal(size=(1_199, 3)))
    )
    mechanism = dptext.TEM(vectors, epsilon=2.0, metric=recorded_metric)
    mechanism.sample(list(vectors.words[:50]))
    mechanism.probabilities(vectors.words[3])
    assert shapes == {((1, 3), (512, 3)), ((1, 3), (176, 3))}
