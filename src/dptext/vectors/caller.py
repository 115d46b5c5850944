"""Distances that the caller computes: a function, checked on a sample, taken as it is.

Nothing can be proved about a function from outside; that it is a metric is an assumption, and a statement says so.
What can be done is to refute it: on a public sample of rows identity, symmetry and every triangle are looked at.

The function is always asked for one row and one block of 512 rows of the matrix, whoever asks: what it sums in an
order of its own (a matrix product) so gives the same bits whatever stands beside a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.vectors.search import Floats, Rows

__all__ = ["TOLERANCE", "CallerDistances", "Distance", "refute_metric"]

Distance: TypeAlias = Callable[[Floats, Floats], npt.ArrayLike]
"""((n, d), (m, d)) float64 points -> (n, m) distances."""

TOLERANCE = 1e-6
"""How far, in units of the largest distance that counts, a function may be from a metric: rounding is not refuted."""

_BLOCK = 512
_SAMPLE = 48
_WITH_NEIGHBOUR = 16


class CallerDistances:
    """Distances of a caller's function, cut at a largest one.

    A number that is none counts as infinitely far, a negative one as 0: a private word never ends in an error.

    Args:
        matrix: (V, d); public.
        function: see `Distance`. It must give the same values each time, and bear being called from several threads.
        most: distances count up to here.

    Attributes: as `dptext.noise.selection.DistanceTable` has them; the cut distances are taken to be within
    `TOLERANCE` times ``most`` of a metric.
    """

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
        """(d, stop - start) right factor for the columns start .. stop - 1."""
        return self._matrix[start:stop].astype(np.float64).T

    def rows(self, rows: Rows) -> Floats:
        """(n, d) left factor for the given rows."""
        return self._matrix[rows].astype(np.float64)

    def distances(
        self,
        rows: npt.NDArray[Any],
        columns: npt.NDArray[Any],
        most: float,
        out: npt.NDArray[np.float32] | None = None,
    ) -> npt.NDArray[np.float32]:
        """(n, m) float32 distances, at most ``most``."""
        if out is None:
            out = np.empty((len(rows), columns.shape[1]), dtype=np.float32)
        for first in range(0, columns.shape[1], _BLOCK):
            block = np.ascontiguousarray(columns[:, first : first + _BLOCK].T)
            for place in range(len(rows)):
                found = _ask(self._function, rows[place : place + 1], block)
                out[place, first : first + _BLOCK] = np.clip(np.nan_to_num(found[0], nan=most), 0.0, most)
        return out


def refute_metric(matrix: npt.NDArray[np.float32], function: Distance, *, unknown: int, most: float) -> tuple[int, str]:
    """Look for a violation of the axioms on a public sample: how many triples held, and a fingerprint of the values.

    The sample is the same for the same matrix: evenly spaced rows, the ``unknown`` one, and near neighbours.

    Raises:
        ParameterError: values that are no distances, or an axiom that fails, with the rows.
    """
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
