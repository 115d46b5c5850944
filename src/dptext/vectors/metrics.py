"""Metrics between words: Euclidean and angular distances on public grids, a caller's function, Mahalanobis norms."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise.selection import DistanceTable
from dptext.validation import check_float, display_value
from dptext.vectors.search import ExactDistances, Factor, Floats, Rows, Tile
from dptext.vectors.word_vectors import WordVectors

_ROWS_AT_ONCE = 4096
_UNIT = 2.0**-53
_LARGEST_ERROR = 1e-6


class Ellipsoid:
    """Unit ball of the regularised Mahalanobis norm, as the image of a sphere."""

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
                f"lambda {lambda_:g} leaves directions without noise, because the vectors hardly vary there: use a "
                "lambda below 1 (the paper uses .2)"
            )
        self.root: Floats = np.linalg.cholesky(shape).astype(np.float64)

    @cached_property
    def diameter_bound(self) -> float:
        """Bound on the norm of the difference of any two rows: twice the radius around the mean."""
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
    for _ in range(2):  # the second pass corrects rounding errors, which matter far from the origin
        parts = [
            (matrix[index : index + _ROWS_AT_ONCE] - mean).sum(axis=0) for index in range(0, len(matrix), _ROWS_AT_ONCE)
        ]
        mean += np.sum(parts, axis=0) / len(matrix)
    return mean


Distance: TypeAlias = Callable[[Floats, Floats], npt.ArrayLike]
"""((n, d), (m, d)) float64 points -> (n, m) distances."""

TOLERANCE = 1e-6
"""Tolerance for rounding when a function is tested as a metric, relative to the largest distance that counts."""

Metric: TypeAlias = str | Distance
"""One of `METRICS`, or a function ((n, d), (m, d)) float64 -> (n, m)."""

METRICS = ("euclidean", "angular")
CALLERS = "caller's "
"""Prefix of the name of a caller's function in a statement."""

_EXP_ONLY = "float32 exp errs"
_EXACT_ROOTS = "float32 square roots are correctly rounded and float32"
_BLOCK = 512  # rows of the matrix per call of a caller's function
_SAMPLE = 48
_WITH_NEIGHBOUR = 16


@dataclass(frozen=True)
class MetricSpace:
    """Words as points of a metric space, ready for `dptext.noise.selection`."""

    name: str
    space: str
    exact: DistanceTable
    coarse: DistanceTable | None
    diameter: float = math.inf
    functions: str = _EXP_ONLY
    assumptions: tuple[str, ...] = ()


def metric_space(vectors: WordVectors, metric: Metric, *, threshold: float) -> MetricSpace:
    """Return the words under a metric: the exact table of distances, and a faster one for bounds."""
    if callable(metric):
        return _function_metric(vectors, metric, limit=threshold)
    if metric == "euclidean":
        exact, coarse = (ExactDistances(vectors.matrix, dtype=dtype) for dtype in (np.float64, np.float32))
        return MetricSpace(metric, vectors.fingerprint, exact, coarse, functions=f"{_EXACT_ROOTS} exp errs")
    if metric == "angular":
        points = directions(vectors.matrix)
        exact, coarse = (AngularDistances(points, dtype=dtype) for dtype in (np.float64, np.float32))
        functions = f"{_EXACT_ROOTS} exp and arctan2 err"
        return MetricSpace(metric, vectors.fingerprint, exact, coarse, ANGULAR_DIAMETER, functions)
    if isinstance(metric, str) and metric.lower() in ("cosine", "cos"):
        raise ParameterError(
            "metric must not be 'cosine': 1 - cosine breaks the triangle inequality (0, 45 and 90 degrees: .29 + "
            ".29 is less than 1), and the proof with it; use 'angular', the angle itself"
        )
    known = ", ".join(map(repr, METRICS))
    raise ParameterError(f"metric must be one of {known} or a function, got {display_value(metric)}")


def _function_metric(vectors: WordVectors, function: Distance, *, limit: float) -> MetricSpace:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ParameterError(
            f"a metric needs a name for the statement, got a {type(function).__name__} without a name: use a "
            "function defined with def"
        )
    triples, values = refute_metric(vectors.matrix, function, unknown=vectors.vocabulary.unknown_row, limit=limit)
    # two functions with the same name are different metrics: their guarantees must not be added as one
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
    """Distances of a caller's function, capped at a limit."""

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
        """Return (d, stop - start) points."""
        return self._matrix[start:stop].astype(np.float64).T

    def rows(self, rows: Rows) -> Floats:
        """Return (n, d) points."""
        return self._matrix[rows].astype(np.float64)

    def distances(self, rows: Factor, columns: Factor, limit: float, out: Tile | None = None) -> Tile:
        """Return (n, m) distances, at most ``limit``."""
        if out is None:
            out = np.empty((len(rows), columns.shape[1]), dtype=np.float32)
        for place in range(len(rows)):
            values = self._values(rows[place : place + 1], columns)
            out[place] = np.clip(np.nan_to_num(values, nan=limit), 0.0, limit)
        return out

    def whole_row(self, row: int) -> Floats:
        """Return (V,) distances from one row to all, not capped; raise if one is not a distance."""
        values = self._values(self.rows(np.array([row])), self.columns(0, len(self)))
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if bad.size:
            raise ParameterError(
                f"the metric returns {values[bad[0]]} for rows {row} and {bad[0]}: a distance must be finite and not "
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
                    f"the metric must return one distance for each of 1 x {len(block)} pairs of rows, got an array of "
                    f"shape {values.shape}: metric(rows (n, d), matrix (m, d)) -> (n, m)"
                )
            result[first : first + _BLOCK] = values[0]
        return result


def refute_metric(
    matrix: npt.NDArray[np.float32], function: Distance, *, unknown: int, limit: float
) -> tuple[int, str]:
    """Check the axioms on a public sample; return the number of valid triples and a fingerprint of the values."""
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


_TILE = 4096

ANGULAR_DIAMETER = math.nextafter(math.pi, 4.0)
"""Upper bound on every angle: the next float64 above pi."""


def directions(matrix: npt.ArrayLike) -> Floats:
    """Return (V, d) float64 unit vectors along the rows; a row of zeros becomes the first axis."""
    values = np.asarray(matrix)
    result = np.empty(values.shape, dtype=np.float64)
    for start in range(0, len(values), _TILE):
        part = values[start : start + _TILE].astype(np.float64)
        part[~part.any(axis=1), 0] = 1.0
        # divide by the largest entry first: the square of a small number could underflow
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
        """Return (n, m) halves of angles, at most ``limit``."""
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
