"""Angles between the rows of a matrix, in radians, accurate at 0 and at pi.

Derivation: docs/mechanisms/sampler.md#vectors-angular
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.vectors.search import ExactDistances, Factor, Floats, Rows, Tile

__all__ = ["ANGULAR_DIAMETER", "AngularDistances", "directions"]

ANGULAR_DIAMETER = math.nextafter(math.pi, 4.0)
"""No angle is larger: the next float64 above pi."""

_TILE = 4096


def directions(matrix: npt.ArrayLike) -> Floats:
    """(V, d) float64 unit vectors along the rows; a row of zeros gets the first axis, so that it has a place too."""
    values = np.asarray(matrix)
    found = np.empty(values.shape, dtype=np.float64)
    for start in range(0, len(values), _TILE):
        part = values[start : start + _TILE].astype(np.float64)
        part[~part.any(axis=1), 0] = 1.0
        # to length 1 at the largest entry first: the square of a small number could vanish
        part /= np.abs(part).max(axis=1, keepdims=True)
        found[start : start + _TILE] = part / np.sqrt((part**2).sum(axis=1, keepdims=True))
    return found


class AngularDistances:
    """Angles between directions on a public grid, within ``rounding`` of those of the given directions."""

    step = 2.0
    units = 11.5  # roots and quotient 3, arctan2 8, second-order terms

    def __init__(self, unit_vectors: Floats, *, dtype: type[np.floating[Any]] = np.float64) -> None:
        self._grid = ExactDistances(unit_vectors, dtype=dtype)
        moved = self._grid.row_rounding + (unit_vectors.shape[1] + 6) * 2.0**-53  # normalising in float64
        self.row_rounding = math.sqrt(2) * moved * (1 + 4 * moved.max(initial=0.0) ** 2) * (1 + 1e-12)
        self.rounding = 2.0 * float(self.row_rounding.max(initial=0.0))

    def __len__(self) -> int:
        return len(self._grid)

    def columns(self, start: int, stop: int) -> Floats:
        """(d + 2, stop - start), as those of the grid."""
        return self._grid.columns(start, stop)

    def rows(self, rows: Rows) -> Floats:
        """(n, d + 2), as those of the grid."""
        return self._grid.rows(rows)

    def distances(self, rows: Factor, columns: Factor, most: float, out: Tile | None = None) -> Tile:
        """(n, m) halves of angles, at most ``most``."""
        place: Any = out if rows.dtype == np.float32 else None
        apart = self._grid.squared(rows, columns, place)  # |p - q|^2
        together = 2.0 * rows[:, -2:-1] - apart
        together += 2.0 * columns[-1:]  # |p + q|^2, an integer below 2^53 (2^24) too
        halves = apart.astype(np.float32, copy=False)
        sums = together.astype(np.float32, copy=False)
        np.sqrt(halves, out=halves)
        np.sqrt(sums, out=sums)
        np.arctan2(halves, sums, out=halves)
        return np.minimum(halves, np.float32(most), out=halves)
