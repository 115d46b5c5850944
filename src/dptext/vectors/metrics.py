"""Exact distance tables on public grids (Euclidean, Manhattan, Chebyshev, angular, Poincare) and Mahalanobis norms."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.validation import check_float, display_value
from dptext.vectors.search import ExactDistances, Factor, Floats, Rows, Tile
from dptext.vectors.word_vectors import WordVectors

_ROWS_AT_ONCE = 4096
_UNIT = 2.0**-53
_LARGEST_ERROR = 1e-6


class Ellipsoid:
    """The unit ball of the norm, as the image of a sphere."""

    def __init__(self, matrix: npt.NDArray[np.float32], lambda_: float) -> None:
        lambda_ = check_float("lambda", lambda_, minimum=0, maximum=1)
        size, dimension = matrix.shape
        self._matrix = matrix
        mean, covariance = _mean(matrix), np.zeros((dimension, dimension))
        for start in range(0, size, _ROWS_AT_ONCE):
            part = matrix[start : start + _ROWS_AT_ONCE] - mean
            covariance += part.T @ part
        spread = np.trace(covariance) / dimension
        covariance = covariance / spread if spread > 0 else np.eye(dimension)
        shape = (1 - lambda_) * np.eye(dimension) + lambda_ * covariance
        self.smallest = max(1.0 - lambda_, float(np.linalg.eigvalsh(shape)[0]) * (1 - 2 * _LARGEST_ERROR))
        units = 4 * dimension * (_ROWS_AT_ONCE + size / _ROWS_AT_ONCE + dimension**1.5 + 16)
        self.error = units * _UNIT / self.smallest if self.smallest > 0 else math.inf
        if self.error > _LARGEST_ERROR:
            raise ParameterError(
                f"lambda {lambda_:g} leaves directions without noise, because the vectors hardly spread there: use a "
                "lambda below 1 (the paper uses .2)"
            )
        self.root: Floats = np.linalg.cholesky(shape).astype(np.float64)

    @cached_property
    def diameter_bound(self) -> float:
        """A bound on the norm of the difference of any two rows: twice the radius around the mean."""
        inverse = np.zeros_like(self.root)
        for row in range(len(inverse)):
            inverse[row] = -(self.root[row, :row] @ inverse[:row])
            inverse[row, row] += 1.0
            inverse[row] /= self.root[row, row]
        mean, radius = _mean(self._matrix), 0.0
        for start in range(0, len(self._matrix), _ROWS_AT_ONCE):
            whitened = (self._matrix[start : start + _ROWS_AT_ONCE] - mean) @ inverse.T
            radius = max(radius, float(np.sqrt((whitened**2).sum(axis=1)).max()))
        # one error for L, one for its inverse
        return math.nextafter(2.0 * radius * (1 + 4 * self.error + 1e-12), math.inf)


def _mean(matrix: npt.NDArray[np.float32]) -> Floats:
    mean = np.zeros(matrix.shape[1])
    for _ in range(2):  # the second pass adds what rounding left out: far from the origin it would count
        parts = [
            (matrix[index : index + _ROWS_AT_ONCE] - mean).sum(axis=0) for index in range(0, len(matrix), _ROWS_AT_ONCE)
        ]
        mean += np.sum(parts, axis=0) / len(matrix)
    return mean


Distance: TypeAlias = Callable[[Floats, Floats], npt.ArrayLike]
"""((n, d), (m, d)) float64 points -> (n, m) distances."""

TOLERANCE = 1e-6
"""How far, in units of the largest distance that counts, a function may be from a metric: rounding is not refuted."""

Metric: TypeAlias = str | Distance
"""One of `METRICS`, or a function ((n, d), (m, d)) float64 -> (n, m)."""

METRICS = ("euclidean", "angular", "manhattan", "chebyshev", "poincare")
CALLERS = "caller's "
"""How the name of a caller's function begins in a statement."""

_TIGHT = 0.65  # nats that bounds may lose for a quicker table: drawing again costs less than a slower one
_EXP_ONLY = "float32 exp errs"
_BLOCK = 512  # rows of the matrix per call of a caller's function
_SAMPLE = 48
_WITH_NEIGHBOUR = 16
_LARGEST_SUM = 1e6  # words that loose bounds may count as (the sampler adds them up in 64 bits, 2^44 each)


@dataclass(frozen=True)
class MetricSpace:
    """Words as points of a metric space, ready for `dptext.noise.selection`."""

    name: str
    space: str
    exact: Any
    coarse: Any
    diameter: float = math.inf
    functions: str = _EXP_ONLY
    assumptions: tuple[str, ...] = ()


def metric_space(vectors: WordVectors, metric: Metric, *, rate: float, threshold: float) -> MetricSpace:
    """Return the words under a metric: the table whose distances count, and a quicker one for bounds."""
    matrix, functions, diameter = vectors.matrix, _EXP_ONLY, math.inf
    exact: Any
    coarse: Any
    if callable(metric):
        return _function_metric(vectors, metric, limit=threshold)
    match metric if isinstance(metric, str) else None:
        case "euclidean":
            exact, coarse = ExactDistances(matrix), ExactDistances(matrix, dtype=np.float32)
            functions = "float32 square roots are correctly rounded and float32 exp errs"
        case "angular":
            points = directions(matrix)
            exact, coarse = AngularDistances(points), AngularDistances(points, dtype=np.float32)
            functions = "float32 square roots are correctly rounded and float32 exp and arctan2 err"
            diameter = ANGULAR_DIAMETER
        case "manhattan":
            exact = LatticeDistances(matrix, kind="manhattan", dtype=np.uint32)
            coarse = LatticeDistances(matrix, kind="manhattan", dtype=np.uint16)
        case "chebyshev":
            exact = LatticeDistances(matrix, kind="chebyshev", dtype=np.int32)
            coarse = LatticeDistances(matrix, kind="chebyshev", dtype=np.int8)
            if not _is_tight(coarse, rate):
                coarse = LatticeDistances(matrix, kind="chebyshev", dtype=np.int16)
        case "poincare":
            factors = conformal_factors(matrix)
            exact, coarse = PoincareDistances(matrix, factors), PoincareBounds(matrix, factors, dtype=np.float32)
            if not _is_tight(coarse, rate):
                coarse = PoincareBounds(matrix, factors)
            functions = "float32 square roots are correctly rounded and float32 exp and arcsinh err"
        case str() if metric.lower() in ("cosine", "cos"):
            raise ParameterError(
                "metric must not be 'cosine': 1 - cosine breaks the triangle inequality (0, 45 and 90 degrees: .29 + "
                ".29 is less than 1), and the proof with it; use 'angular', the angle itself"
            )
        case _:
            known = ", ".join(map(repr, METRICS))
            raise ParameterError(f"metric must be one of {known} or a function, got {display_value(metric)}")
    return MetricSpace(metric, vectors.fingerprint, exact, coarse, diameter=diameter, functions=functions)


def _is_tight(table: Any, rate: float) -> bool:
    loss = 2 * rate * table.rounding
    return bool(loss <= _TIGHT and len(table) * math.exp(loss) < _LARGEST_SUM)


def _function_metric(vectors: WordVectors, function: Distance, *, limit: float) -> MetricSpace:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ParameterError(
            f"a metric needs a name for the statement, got a {type(function).__name__} without one: use a function "
            "defined with def"
        )
    triples, values = refute_metric(vectors.matrix, function, unknown=vectors.vocabulary.unknown_row, limit=limit)
    # two functions of one name are two metrics: their guarantees must not add up as one
    digest = hashlib.sha256(f"{vectors.fingerprint}/{values}".encode()).hexdigest()
    return MetricSpace(
        f"{CALLERS}{name}",
        digest,
        exact=CallerDistances(vectors.matrix, function, limit=limit),
        coarse=None,
        assumptions=(
            f"the caller's function {name} is a metric on the words, up to rounding, and gives the same values each "
            f"time (that was checked on {triples:,} sampled triples of words only)",
        ),
    )


class CallerDistances:
    """Distances of a caller's function, cut at a largest one."""

    step = 1.0
    units = 1.0  # a conversion to float32

    def __init__(self, matrix: npt.NDArray[np.float32], function: Distance, *, limit: float) -> None:
        self._matrix = matrix
        self._function = function
        self.rounding = TOLERANCE * limit
        self.row_rounding = np.full(len(matrix), self.rounding)

    def __len__(self) -> int:
        return len(self._matrix)

    def columns(self, start: int, stop: int) -> Floats:
        """(d, stop - start): points."""
        return self._matrix[start:stop].astype(np.float64).T

    def rows(self, rows: Rows) -> Floats:
        """(n, d): points."""
        return self._matrix[rows].astype(np.float64)

    def distances(self, rows: Factor, columns: Factor, limit: float, out: Tile | None = None) -> Tile:
        """(n, m) distances, at most ``limit``."""
        if out is None:
            out = np.empty((len(rows), columns.shape[1]), dtype=np.float32)
        for place in range(len(rows)):
            values = self._values(rows[place : place + 1], columns)
            out[place] = np.clip(np.nan_to_num(values, nan=limit), 0.0, limit)
        return out

    def whole_row(self, row: int) -> Floats:
        """(V,) distances of one row to all, as the function gives them; raise if one is no distance."""
        values = self._values(self.rows(np.array([row])), self.columns(0, len(self)))
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if bad.size:
            raise ParameterError(
                f"the metric gives {values[bad[0]]} between rows {row} and {bad[0]}: a distance is finite and not "
                "negative"
            )
        return values

    def _values(self, row: Floats, columns: Factor) -> Floats:
        result = np.empty(columns.shape[1])
        for first in range(0, result.size, _BLOCK):
            block = np.ascontiguousarray(columns[:, first : first + _BLOCK].T)
            values = np.asarray(self._function(row, block), dtype=np.float64)
            if values.shape != (1, len(block)):
                raise ParameterError(
                    f"the metric must give one distance for each of 1 x {len(block)} pairs of rows, got an array of "
                    f"shape {values.shape}: metric(rows (n, d), matrix (m, d)) -> (n, m)"
                )
            result[first : first + _BLOCK] = values[0]
        return result


def refute_metric(
    matrix: npt.NDArray[np.float32], function: Distance, *, unknown: int, limit: float
) -> tuple[int, str]:
    """Look for a violation of the axioms on a public sample: how many triples held, and a fingerprint of the values."""
    table = CallerDistances(matrix, function, limit=limit)
    spread = np.unique(np.append(np.linspace(0, len(matrix) - 1, _SAMPLE).astype(np.int64), unknown))
    rows = {row: table.whole_row(row) for row in spread.tolist()}
    for row in spread[:: max(1, len(spread) // _WITH_NEIGHBOUR)].tolist():
        others = rows[row].copy()
        others[row] = np.inf
        near = int(np.argmin(others))
        rows.setdefault(near, table.whole_row(near))
    names = np.array(sorted(rows))
    between = np.stack([rows[row][names] for row in names.tolist()])
    scale = TOLERANCE * min(float(between.max()), limit)
    diagonal = np.diagonal(between)
    worst = int(np.argmax(diagonal))
    if diagonal[worst] > scale:
        raise ParameterError(f"not a metric: row {names[worst]} has distance {diagonal[worst]:.6g} to itself, not 0")
    gap = np.abs(between - between.T)
    i, j = np.unravel_index(int(np.argmax(gap - TOLERANCE * between)), gap.shape)
    if gap[i, j] > scale + TOLERANCE * between[i, j]:
        raise ParameterError(
            f"not a metric: {between[i, j]:.6g} from row {names[i]} to row {names[j]}, {between[j, i]:.6g} back"
        )
    for middle in range(len(names)):
        around = between[:, middle, None] + between[middle]
        excess = between * (1 - TOLERANCE) - around
        i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
        if excess[i, j] > scale:
            raise ParameterError(
                f"not a metric: {between[i, j]:.6g} from row {names[i]} to row {names[j]}, but "
                f"{around[i, j]:.6g} by way of row {names[middle]} (the triangle inequality)"
            )
    return len(names) * (len(names) - 1) * (len(names) - 2), hashlib.sha256(between.tobytes()).hexdigest()


Kind: TypeAlias = Literal["manhattan", "chebyshev"]

_TILE = 4096
_CACHED = 1 << 20  # bytes of a tile that stays near the core; smaller ones let threads wait for each other


class LatticeDistances:
    """Manhattan or Chebyshev distances between the rows of a matrix, exact on a public grid."""

    units = 1.0  # a conversion to float32

    def __init__(self, matrix: npt.ArrayLike, *, kind: Kind, dtype: type[np.integer[Any]]) -> None:
        values = np.asarray(matrix)
        size, dimension = values.shape
        self._kind, self._dtype = kind, dtype
        low = values.min(axis=0).astype(np.float64)  # the grid starts here, so that a common offset costs nothing
        # rounding moves a coordinate by at most 1/2, so a difference of two by at most 1
        room = float(np.iinfo(dtype).max) - (dimension + 2 if kind == "manhattan" else 3)
        diameter = _diameter(values, low, kind)
        self.step = diameter / max(room, 1.0) if diameter > 0.0 else 1.0
        points = np.empty((dimension, size), dtype=np.float64)
        self.row_rounding = np.empty(size, dtype=np.float64)
        for start in range(0, size, _TILE):
            part = (values[start : start + _TILE].astype(np.float64) - low) / self.step
            nearest = np.rint(part)
            error = np.abs(part - nearest) + part * 2.0**-51  # of difference and quotient in float64
            error = error.sum(axis=1) if kind == "manhattan" else error.max(axis=1)
            self.row_rounding[start : start + _TILE] = error * self.step * (1 + 1e-12)
            points[:, start : start + _TILE] = nearest.T
        self._points = points.astype(dtype)
        self._sums = points.sum(axis=0).astype(np.uint64).astype(dtype)  # modulo 2^16 (2^32)
        self.rounding = float(self.row_rounding.max(initial=0.0))

    def __len__(self) -> int:
        return int(self._points.shape[1])

    def columns(self, start: int, stop: int) -> npt.NDArray[Any]:
        """(d + 1, stop - start): the columns start .. stop - 1 and, last, the sum of each."""
        return np.concatenate([self._points[:, start:stop], self._sums[None, start:stop]])

    def rows(self, rows: Rows) -> npt.NDArray[Any]:
        """(n, d + 1): the given rows and, last, the sum of each."""
        return np.concatenate([self._points[:, rows].T, self._sums[rows, None]], axis=1)

    def distances(self, rows: Factor, columns: Factor, limit: float, out: Tile | None = None) -> Tile:
        """(n, m) float32 distances in grid steps, at most ``limit``."""
        if out is None:
            out = np.empty((len(rows), columns.shape[1]), dtype=np.float32)
        height = max(1, _CACHED // (columns.shape[1] * self._dtype(0).itemsize))
        measure = _manhattan if self._kind == "manhattan" else _chebyshev
        for start in range(0, len(rows), height):
            np.copyto(out[start : start + height], measure(rows[start : start + height], columns), casting="same_kind")
        return np.minimum(out, np.float32(limit), out=out)


def _manhattan(rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
    total: npt.NDArray[Any] = np.maximum(rows[:, :1], columns[0])
    larger = np.empty_like(total)
    for k in range(1, len(columns) - 1):
        np.maximum(rows[:, k : k + 1], columns[k], out=larger)
        total += larger
    total += total
    total -= rows[:, -1:]
    total -= columns[-1]
    return total


def _chebyshev(rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
    farthest: npt.NDArray[Any] = np.abs(rows[:, :1] - columns[0])
    distance = np.empty_like(farthest)
    for k in range(1, len(columns) - 1):
        np.subtract(rows[:, k : k + 1], columns[k], out=distance)
        np.abs(distance, out=distance)
        np.maximum(farthest, distance, out=farthest)
    return farthest


def _diameter(values: npt.NDArray[Any], low: Floats, kind: Kind) -> float:
    """A bound on the distance of any two rows."""
    ranges = values.max(axis=0).astype(np.float64) - low
    if kind == "chebyshev":
        return float(ranges.max(initial=0.0)) * (1 + 1e-12)
    middle = low + ranges / 2
    radius = 0.0
    for start in range(0, len(values), _TILE):
        part = np.abs(values[start : start + _TILE].astype(np.float64) - middle).sum(axis=1)
        radius = max(radius, float(part.max(initial=0.0)))
    return min(float(ranges.sum()), 2.0 * radius) * (1 + 1e-12)


ANGULAR_DIAMETER = math.nextafter(math.pi, 4.0)
"""No angle is larger: the next float64 above pi."""


def directions(matrix: npt.ArrayLike) -> Floats:
    """(V, d) float64 unit vectors along the rows; a row of zeros gets the first axis, so that it has a place too."""
    values = np.asarray(matrix)
    result = np.empty(values.shape, dtype=np.float64)
    for start in range(0, len(values), _TILE):
        part = values[start : start + _TILE].astype(np.float64)
        part[~part.any(axis=1), 0] = 1.0
        # to length 1 at the largest entry first: the square of a small number could vanish
        part /= np.abs(part).max(axis=1, keepdims=True)
        result[start : start + _TILE] = part / np.sqrt((part**2).sum(axis=1, keepdims=True))
    return result


class AngularDistances(ExactDistances):
    """Angles between directions on a public grid, within ``rounding`` of the exact angles."""

    units = 11.5  # roots and quotient 3, arctan2 8, second-order terms

    def __init__(self, unit_vectors: Floats, *, dtype: type[np.floating[Any]] = np.float64) -> None:
        super().__init__(unit_vectors, dtype=dtype)
        self.step = 2.0
        moved = self.row_rounding + (unit_vectors.shape[1] + 6) * 2.0**-53  # normalising in float64
        self.row_rounding = math.sqrt(2) * moved * (1 + 4 * moved.max(initial=0.0) ** 2) * (1 + 1e-12)
        self.rounding = 2.0 * float(self.row_rounding.max(initial=0.0))

    def distances(self, rows: Factor, columns: Factor, limit: float, out: Tile | None = None) -> Tile:
        """(n, m) halves of angles, at most ``limit``."""
        place: Any = out if rows.dtype == np.float32 else None
        distance = self.squared(rows, columns, place)  # |p - q|^2
        together = 2.0 * rows[:, -2:-1] - distance
        together += 2.0 * columns[-1:]  # |p + q|^2, an integer below 2^53 (2^24) too
        halves = distance.astype(np.float32, copy=False)
        sums = together.astype(np.float32, copy=False)
        np.sqrt(halves, out=halves)
        np.sqrt(sums, out=sums)
        np.arctan2(halves, sums, out=halves)
        return np.minimum(halves, np.float32(limit), out=halves)


_LEAST = 2.0**-40  # of 1 - |x|^2: closer to the border the distances leave the range of float32
_TILE_BYTES = 1 << 18  # bytes of a tile of float64 that stay near the core


def conformal_factors(matrix: npt.ArrayLike) -> Floats:
    """(V,) float64: 1 / (1 - |x|^2), which is half the factor by which the ball stretches lengths at x."""
    values = np.asarray(matrix)
    inside = np.empty(len(values), dtype=np.float64)
    for start in range(0, len(values), _TILE):
        part = values[start : start + _TILE].astype(np.float64)
        rest, lost = np.ones(len(part)), np.zeros(len(part))
        for column in part.T:
            # squares of float32 numbers are exact; what a difference loses is kept (Knuth, TwoSum)
            square = column**2
            less = rest - square
            other = less - rest
            lost += (rest - (less - other)) - (square + other)
            rest = less
        inside[start : start + _TILE] = rest + lost
    bad = np.flatnonzero(~(inside >= _LEAST))
    if bad.size:
        longest = float(np.sqrt(max((row.astype(np.float64) ** 2).sum() for row in values[bad])))
        raise DataError(
            f"row {int(bad[0])} does not lie inside the unit ball ({bad.size:,} rows do not; the longest has length "
            f"{longest:.6g}): the Poincare distance is for hyperbolic vectors; divide all of them by a number above "
            "the largest length, or use another metric"
        )
    factors: Floats = 1.0 / inside
    return factors


class PoincareDistances:
    """Poincare distances of the rows of a matrix, each within float64 accuracy."""

    step = 2.0

    def __init__(self, matrix: npt.NDArray[np.float32], factors: Floats) -> None:
        self._matrix = np.ascontiguousarray(np.asarray(matrix).T)
        self._factors = factors
        self.units = 9.6 + (len(self._matrix) + 10) * 2.0**-29
        # what squares below the range of float32 may lose
        self.row_rounding = np.full(len(factors), 2.0**-60)
        self.rounding = 2.0**-59

    def __len__(self) -> int:
        return int(self._factors.size)

    def columns(self, start: int, stop: int) -> Floats:
        """(d + 1, stop - start): the columns start .. stop - 1 and their factors."""
        return np.concatenate([self._matrix[:, start:stop], self._factors[None, start:stop]])

    def rows(self, rows: Rows) -> Floats:
        """(n, d + 1): the given rows and their factors."""
        return np.concatenate([self._matrix[:, rows].T, self._factors[rows, None]], axis=1)

    def distances(self, rows: Factor, columns: Factor, limit: float, out: Tile | None = None) -> Tile:
        """(n, m) halves of distances, at most ``limit``."""
        if out is None:
            out = np.empty((len(rows), columns.shape[1]), dtype=np.float32)
        height = max(1, _TILE_BYTES // (8 * columns.shape[1]))
        for start in range(0, len(rows), height):
            out[start : start + height] = _stretched_squares(rows[start : start + height], columns)
        return _arsinh_of_roots(out, limit)


class PoincareBounds(ExactDistances):
    """Poincare distances from exact distances of grid points, for bounds: quick, and coarse near the border."""

    units = 12.5  # conversion and factors 5 / 2, root 1, arsinh 8, second-order terms

    def __init__(
        self, matrix: npt.NDArray[np.float32], factors: Floats, *, dtype: type[np.floating[Any]] = np.float64
    ) -> None:
        super().__init__(matrix, dtype=dtype)
        self._factors, self._squared_step, self.step = factors, self.step**2, 2.0
        moved = self.row_rounding + self.rounding
        self.row_rounding = 2.0 * np.sqrt(factors * factors.max()) * moved * (1 + 1e-12) + 2.0**-60
        self.rounding = float(self.row_rounding.max(initial=0.0))

    def columns(self, start: int, stop: int, step: int = 1) -> Floats:
        """(d + 3, stop - start): the columns of the grid and, last, their factors."""
        columns = super().columns(start, stop, step)
        return np.concatenate([columns, self._factors[None, start:stop:step].astype(columns.dtype)])

    def rows(self, rows: Rows) -> Floats:
        """(n, d + 3): the rows of the grid and, last, their factors, for squares in steps."""
        left = super().rows(rows)
        factors = self._factors[rows] * self._squared_step
        return np.concatenate([left, factors[:, None].astype(left.dtype)], axis=1)

    def distances(self, rows: Factor, columns: Factor, limit: float, out: Tile | None = None) -> Tile:
        """(n, m) halves of distances, at most ``limit``."""
        place: Any = out if rows.dtype == np.float32 else None
        squared = self.squared(rows[:, :-1], columns[:-1], place)
        stretched = squared.astype(np.float32, copy=False)
        stretched *= rows[:, -1:].astype(np.float32)
        stretched *= columns[-1].astype(np.float32)
        return _arsinh_of_roots(stretched, limit)


def _stretched_squares(rows: Floats, columns: Floats) -> Floats:
    """(n, m) float64: |x - y|^2 / ((1 - |x|^2) (1 - |y|^2)), the coordinates in their order."""
    total: Floats = (rows[:, :1] - columns[0]) ** 2
    distance = np.empty_like(total)
    for k in range(1, len(columns) - 1):
        np.subtract(rows[:, k : k + 1], columns[k], out=distance)
        np.multiply(distance, distance, out=distance)
        total += distance
    total *= rows[:, -1:]
    total *= columns[-1]
    return total


def _arsinh_of_roots(squared: npt.NDArray[np.float32], limit: float) -> npt.NDArray[np.float32]:
    np.sqrt(squared, out=squared)
    np.arcsinh(squared, out=squared)
    return np.minimum(squared, np.float32(limit), out=squared)
