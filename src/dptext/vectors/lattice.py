"""Manhattan and Chebyshev distances between the rows of a matrix, exact on a public grid."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.vectors.search import Factor, Floats, Rows, Tile

__all__ = ["LatticeDistances"]

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

    def distances(self, rows: Factor, columns: Factor, most: float, out: Tile | None = None) -> Tile:
        """(n, m) float32 distances in grid steps, at most ``most``."""
        if out is None:
            out = np.empty((len(rows), columns.shape[1]), dtype=np.float32)
        height = max(1, _CACHED // (columns.shape[1] * self._dtype(0).itemsize))
        measure = _manhattan if self._kind == "manhattan" else _chebyshev
        for start in range(0, len(rows), height):
            np.copyto(out[start : start + height], measure(rows[start : start + height], columns), casting="same_kind")
        return np.minimum(out, np.float32(most), out=out)


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
    apart = np.empty_like(farthest)
    for k in range(1, len(columns) - 1):
        np.subtract(rows[:, k : k + 1], columns[k], out=apart)
        np.abs(apart, out=apart)
        np.maximum(farthest, apart, out=farthest)
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
