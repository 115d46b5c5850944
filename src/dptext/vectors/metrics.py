"""Metrics between words: which there are, what each asks of the vectors, and the tables that compute them.

Derivation: docs/mechanisms/sampler.md#vectors-metrics
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.vectors.angular import ANGULAR_DIAMETER, AngularDistances, directions
from dptext.vectors.lattice import LatticeDistances
from dptext.vectors.poincare import PoincareBounds, PoincareDistances, conformal_factors
from dptext.vectors.search import ExactDistances, Factor, Floats, Rows, Tile
from dptext.vectors.word_vectors import WordVectors

__all__ = [
    "CALLERS",
    "METRICS",
    "TOLERANCE",
    "CallerDistances",
    "Distance",
    "Metric",
    "MetricSpace",
    "metric_space",
    "refute_metric",
]

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
_FUNCTIONS = {
    "euclidean": "float32 square roots are correctly rounded and float32 exp errs",
    "angular": "float32 square roots are correctly rounded and float32 exp and arctan2 err",
    "poincare": "float32 square roots are correctly rounded and float32 exp and arcsinh err",
}
_BLOCK = 512  # rows of the matrix that a caller's function is asked for at once
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
    """The words of a vocabulary under a metric."""
    if callable(metric):
        return _of_function(vectors, metric, most=threshold)
    if not isinstance(metric, str) or metric not in METRICS:
        raise ParameterError(_not_offered(metric))
    exact, coarse = _tables(vectors, metric, rate)
    diameter = ANGULAR_DIAMETER if metric == "angular" else math.inf
    functions = _FUNCTIONS.get(metric, _EXP_ONLY)
    return MetricSpace(metric, vectors.fingerprint, exact, coarse, diameter=diameter, functions=functions)


def _not_offered(metric: object) -> str:
    known = ", ".join(repr(name) for name in METRICS)
    if isinstance(metric, str) and metric.lower() in ("cosine", "cos"):
        return (
            "metric must not be 'cosine': 1 - cosine breaks the triangle inequality (0, 45 and 90 degrees: .29 + .29 "
            "is less than 1), and the proof with it; use 'angular', the angle itself"
        )
    given = repr(metric) if isinstance(metric, str) else type(metric).__name__
    return f"metric must be one of {known} or a function, got {given}"


def _tables(vectors: WordVectors, metric: str, rate: float) -> tuple[Any, Any]:
    """The table whose distances count, and a quicker one for bounds."""
    matrix = vectors.matrix
    match metric:
        case "euclidean":
            return ExactDistances(matrix), ExactDistances(matrix, dtype=np.float32)
        case "angular":
            points = directions(matrix)
            return AngularDistances(points), AngularDistances(points, dtype=np.float32)
        case "manhattan":
            exact = LatticeDistances(matrix, kind="manhattan", dtype=np.uint32)
            return exact, LatticeDistances(matrix, kind="manhattan", dtype=np.uint16)
        case "chebyshev":
            coarse = LatticeDistances(matrix, kind="chebyshev", dtype=np.int8)
            if not _is_tight(coarse, rate):
                coarse = LatticeDistances(matrix, kind="chebyshev", dtype=np.int16)
            return LatticeDistances(matrix, kind="chebyshev", dtype=np.int32), coarse
        case _:
            factors = conformal_factors(matrix)
            bounds = PoincareBounds(matrix, factors, dtype=np.float32)
            if not _is_tight(bounds, rate):
                bounds = PoincareBounds(matrix, factors)
            return PoincareDistances(matrix, factors), bounds


def _is_tight(table: Any, rate: float) -> bool:
    loss = 2 * rate * table.rounding
    return bool(loss <= _TIGHT and len(table) * math.exp(loss) < _LARGEST_SUM)


def _of_function(vectors: WordVectors, function: Distance, *, most: float) -> MetricSpace:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ParameterError(
            f"a metric needs a name for the statement, got a {type(function).__name__} without one: use a function "
            "defined with def"
        )
    triples, values = refute_metric(vectors.matrix, function, unknown=vectors.vocabulary.unknown_row, most=most)
    # two functions of one name are two metrics: their guarantees must not add up as one
    digest = hashlib.sha256(f"{vectors.fingerprint}/{values}".encode()).hexdigest()
    return MetricSpace(
        f"{CALLERS}{name}",
        digest,
        exact=CallerDistances(vectors.matrix, function, most=most),
        coarse=None,
        assumptions=(
            f"the caller's function {name} is a metric on the words, up to rounding, and gives the same values each "
            f"time (that was checked on {triples:,} sampled triples of words only)",
        ),
    )


# -- a caller's function ---------------------------------------------------------------------------------------


class CallerDistances:
    """Distances of a caller's function, cut at a largest one."""

    step = 1.0
    units = 1.0  # a conversion to float32

    def __init__(self, matrix: npt.NDArray[np.float32], function: Distance, *, most: float) -> None:
        self._matrix = matrix
        self._function = function
        self.rounding = TOLERANCE * most
        self.row_rounding = np.full(len(matrix), self.rounding)

    def __len__(self) -> int:
        return len(self._matrix)

    def columns(self, start: int, stop: int) -> Floats:
        """(d, stop - start): points."""
        return self._matrix[start:stop].astype(np.float64).T

    def rows(self, rows: Rows) -> Floats:
        """(n, d): points."""
        return self._matrix[rows].astype(np.float64)

    def distances(self, rows: Factor, columns: Factor, most: float, out: Tile | None = None) -> Tile:
        """(n, m) distances, at most ``most``."""
        if out is None:
            out = np.empty((len(rows), columns.shape[1]), dtype=np.float32)
        for first in range(0, columns.shape[1], _BLOCK):
            block = np.ascontiguousarray(columns[:, first : first + _BLOCK].T)
            for place in range(len(rows)):
                found = _ask(self._function, rows[place : place + 1], block)
                out[place, first : first + _BLOCK] = np.clip(np.nan_to_num(found[0], nan=most), 0.0, most)
        return out


def refute_metric(matrix: npt.NDArray[np.float32], function: Distance, *, unknown: int, most: float) -> tuple[int, str]:
    """Look for a violation of the axioms on a public sample: how many triples held, and a fingerprint of the values."""
    table = CallerDistances(matrix, function, most=most)
    spread = np.unique(np.append(np.linspace(0, len(matrix) - 1, _SAMPLE).astype(np.int64), unknown))
    rows: dict[int, Floats] = {}
    for row in spread.tolist():
        rows[row] = _whole_row(table, row)
    for row in spread[:: max(1, len(spread) // _WITH_NEIGHBOUR)].tolist():
        others = rows[row].copy()
        others[row] = np.inf
        near = int(np.argmin(others))
        rows.setdefault(near, _whole_row(table, near))
    names = np.array(sorted(rows))
    between = np.stack([rows[row][names] for row in names.tolist()])
    scale = TOLERANCE * min(float(between.max()), most)
    _refute_identity(between, names, scale)
    _refute_symmetry(between, names, scale)
    _refute_triangles(between, names, scale)
    return len(names) * (len(names) - 1) * (len(names) - 2), hashlib.sha256(between.tobytes()).hexdigest()


def _whole_row(table: CallerDistances, row: int) -> Floats:
    found = np.empty(len(table))
    point = table.rows(np.array([row]))
    for start in range(0, len(table), _BLOCK):
        block = table.columns(start, min(start + _BLOCK, len(table))).T
        found[start : start + _BLOCK] = _ask(table._function, point, np.ascontiguousarray(block))[0]
    bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
    if bad.size:
        raise ParameterError(
            f"the metric gives {found[bad[0]]} between rows {row} and {bad[0]}: a distance is finite and not negative"
        )
    return found


def _ask(function: Distance, rows: Floats, block: Floats) -> Floats:
    found = np.asarray(function(rows, block), dtype=np.float64)
    if found.shape != (len(rows), len(block)):
        raise ParameterError(
            f"the metric must give one distance for each of {len(rows)} x {len(block)} pairs of rows, got an array of "
            f"shape {found.shape}: metric(rows (n, d), matrix (m, d)) -> (n, m)"
        )
    return found


def _refute_identity(between: Floats, names: Rows, scale: float) -> None:
    own = np.diagonal(between)
    worst = int(np.argmax(own))
    if own[worst] > scale:
        raise ParameterError(
            f"this is no metric: row {names[worst]} lies {own[worst]:.6g} from itself, expected 0 (at most {scale:.1g})"
        )


def _refute_symmetry(between: Floats, names: Rows, scale: float) -> None:
    gap = np.abs(between - between.T)
    i, j = np.unravel_index(int(np.argmax(gap - TOLERANCE * between)), gap.shape)
    if gap[i, j] > scale + TOLERANCE * between[i, j]:
        raise ParameterError(
            f"this is no metric: {between[i, j]:.6g} from row {names[i]} to row {names[j]}, {between[j, i]:.6g} back"
        )


def _refute_triangles(between: Floats, names: Rows, scale: float) -> None:
    for middle in range(len(names)):
        around = between[:, middle, None] + between[middle]
        excess = between * (1 - TOLERANCE) - around
        i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
        if excess[i, j] > scale:
            raise ParameterError(
                f"this is no metric: {between[i, j]:.6g} from row {names[i]} to row {names[j]}, but "
                f"{around[i, j]:.6g} by way of row {names[middle]} (the triangle inequality)"
            )
