"""Distances in the Poincare ball: 2 arsinh(sqrt(|x - y|^2 / ((1 - |x|^2) (1 - |y|^2)))).

Derivation: docs/mechanisms/sampler.md#vectors-poincare
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError
from dptext.vectors.search import ExactDistances, Factor, Floats, Rows, Tile

__all__ = ["PoincareBounds", "PoincareDistances", "conformal_factors"]

_LEAST = 2.0**-40  # of 1 - |x|^2: closer to the border the distances leave the range of float32
_TILE = 4096
_CACHED = 1 << 18  # bytes of a tile of float64 that stay near the core


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

    def distances(self, rows: Factor, columns: Factor, most: float, out: Tile | None = None) -> Tile:
        """(n, m) halves of distances, at most ``most``."""
        if out is None:
            out = np.empty((len(rows), columns.shape[1]), dtype=np.float32)
        height = max(1, _CACHED // (8 * columns.shape[1]))
        for start in range(0, len(rows), height):
            out[start : start + height] = _stretched_squares(rows[start : start + height], columns)
        return _arsinh_of_roots(out, most)


class PoincareBounds:
    """Poincare distances from exact distances of grid points, for bounds: quick, and coarse near the border."""

    step = 2.0
    units = 12.5  # conversion and factors 5 / 2, root 1, arsinh 8, second-order terms

    def __init__(
        self, matrix: npt.NDArray[np.float32], factors: Floats, *, dtype: type[np.floating[Any]] = np.float64
    ) -> None:
        self._grid = ExactDistances(matrix, dtype=dtype)
        self._factors = factors
        moved = self._grid.row_rounding + self._grid.rounding
        self.row_rounding = 2.0 * np.sqrt(factors * factors.max()) * moved * (1 + 1e-12) + 2.0**-60
        self.rounding = float(self.row_rounding.max(initial=0.0))

    def __len__(self) -> int:
        return len(self._grid)

    def columns(self, start: int, stop: int) -> Floats:
        """(d + 3, stop - start): the columns of the grid and, last, their factors."""
        factors = self._factors[start:stop]
        columns = self._grid.columns(start, stop)
        return np.concatenate([columns, factors[None].astype(columns.dtype)])

    def rows(self, rows: Rows) -> Floats:
        """(n, d + 3): the rows of the grid and, last, their factors, for squares in steps."""
        left = self._grid.rows(rows)
        factors = self._factors[rows] * self._grid.step**2
        return np.concatenate([left, factors[:, None].astype(left.dtype)], axis=1)

    def distances(self, rows: Factor, columns: Factor, most: float, out: Tile | None = None) -> Tile:
        """(n, m) halves of distances, at most ``most``."""
        place: Any = out if rows.dtype == np.float32 else None
        squared = self._grid.squared(rows[:, :-1], columns[:-1], place)
        stretched = squared.astype(np.float32, copy=False)
        stretched *= rows[:, -1:].astype(np.float32)
        stretched *= columns[-1].astype(np.float32)
        return _arsinh_of_roots(stretched, most)


def _stretched_squares(rows: Floats, columns: Floats) -> Floats:
    """(n, m) float64: |x - y|^2 / ((1 - |x|^2) (1 - |y|^2)), the coordinates in their order."""
    total: Floats = (rows[:, :1] - columns[0]) ** 2
    apart = np.empty_like(total)
    for k in range(1, len(columns) - 1):
        np.subtract(rows[:, k : k + 1], columns[k], out=apart)
        np.multiply(apart, apart, out=apart)
        total += apart
    total *= rows[:, -1:]
    total *= columns[-1]
    return total


def _arsinh_of_roots(squared: npt.NDArray[np.float32], most: float) -> npt.NDArray[np.float32]:
    np.sqrt(squared, out=squared)
    np.arcsinh(squared, out=squared)
    return np.minimum(squared, np.float32(most), out=squared)
