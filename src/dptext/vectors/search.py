"""Nearest neighbours, exact; public groups of neighbouring words."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.validation import check_int
from dptext.vectors.word_vectors import WordVectors

Rows: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Factor: TypeAlias = npt.NDArray[Any]
"""Rows or columns of a table, precomputed for fast `distances`, of any number type."""
Tile: TypeAlias = npt.NDArray[np.float32]

_TILE = 4096
_NEAR_BLOCK = 128
_GROUPS = 32  # groups of blocks, in which the few largest maxima are sought
_SCRATCH = 2**23  # floats
_QUERIES = 2048  # a tile of scores, 1 MiB, stays in the cache between the product and its maxima
_UNIT32 = 2.0**-24


class ExactDistances:
    """Squared Euclidean distances between the rows of a matrix, exact on a public grid."""

    units = 1.5  # a conversion to float32, halved by the square root, and the square root

    def __init__(self, matrix: npt.ArrayLike, *, dtype: type[np.floating[Any]] = np.float64) -> None:
        self._dtype = dtype
        values = np.asarray(matrix)
        size, dimension = values.shape
        largest = math.sqrt(_squared_norms(values).max(initial=0.0))
        # (|x| + |y|)^2 <= 2^53 (2^24) in grid steps bounds every partial sum of |x|^2 + |y|^2 - 2 x.y
        room = max(1.0, 2.0 ** (np.finfo(dtype).nmant / 2 - 0.5) - math.sqrt(dimension) - 1.0)
        self.step = 2.0 ** math.ceil(math.log2(largest / room)) if largest > 0.0 else 1.0
        self._grid = np.empty((dimension, size), dtype=np.int32)
        self._norms = np.empty(size, dtype=dtype)
        self.row_rounding = np.empty(size, dtype=np.float64)
        for start in range(0, size, _TILE):
            part = values[start : start + _TILE].astype(np.float64) / self.step
            points = np.rint(part)
            error = np.sqrt(((part - points) ** 2).sum(axis=1))
            self.row_rounding[start : start + _TILE] = error * self.step * (1 + 1e-12)
            self._grid[:, start : start + _TILE] = points.T
            self._norms[start : start + _TILE] = (points**2).sum(axis=1)
        self.rounding = float(self.row_rounding.max(initial=0.0))

    def __len__(self) -> int:
        return int(self._norms.size)

    def columns(self, start: int, stop: int, step: int = 1) -> Floats:
        """Return (d + 2, stop - start) columns, or every ``step``-th of them; see `squared`."""
        norms = self._norms[start:stop:step]
        block = np.empty((self._grid.shape[0] + 2, norms.size), dtype=self._dtype)
        block[:-2] = self._grid[:, start:stop:step]
        block[-2] = 1.0
        block[-1] = norms
        return block

    def rows(self, rows: Rows) -> Floats:
        """Return (n, d + 2) rows; see `squared`."""
        block = np.empty((rows.size, self._grid.shape[0] + 2), dtype=self._dtype)
        block[:, :-2] = self._grid[:, rows].T
        block[:, :-2] *= -2.0
        block[:, -2] = self._norms[rows]
        block[:, -1] = 1.0
        return block

    @staticmethod
    def squared(rows: Floats, columns: Floats, out: Floats | None = None) -> Floats:
        """Return (n, m) squared distances in squared grid steps: exact integers."""
        return np.matmul(rows, columns, out=out)  # -2 x.y + |x|^2 + |y|^2

    def distances(self, rows: Factor, columns: Factor, limit: float, out: Tile | None = None) -> Tile:
        """Return (n, m) distances in grid steps, at most ``limit``."""
        # only a float32 product can be written into the result
        place: Any = out if self._dtype is np.float32 else None
        squared = self.squared(rows, columns, place)
        # never negative; minimum() would take three times as long
        np.clip(squared, 0.0, self._dtype(limit**2), out=squared)
        roots = squared.astype(np.float32, copy=False)
        return np.sqrt(roots, out=roots)


class NearestNeighbours:
    """The rows of a matrix nearest to a query (Euclidean), exact to float64; ties go to the lower row."""

    def __init__(self, matrix: npt.NDArray[np.float32]) -> None:
        self._size = len(matrix)
        # in units of a power of two near the largest length, so that no float32 score overflows
        longest = math.sqrt(_squared_norms(matrix).max(initial=0.0))
        self._unit = 2.0 ** math.ceil(math.log2(longest)) if longest > 0.0 else 1.0
        # score = y.q - |y|^2 / 2 is largest where |y - q| is smallest; the padding can never win
        padded = -(-self._size // _NEAR_BLOCK) * _NEAR_BLOCK
        self._factor = np.zeros((padded, matrix.shape[1] + 1), dtype=np.float32)
        self._matrix = self._factor[: self._size, :-1]
        np.divide(matrix, self._unit, out=self._matrix, casting="same_kind")
        self._half_norms = _squared_norms(self._matrix) / 2.0
        self._largest = math.sqrt(2.0 * self._half_norms.max(initial=0.0))
        self._factor[: self._size, -1] = -self._half_norms
        self._factor[self._size :, -1] = -np.finfo(np.float32).max / 2
        self.many = _SCRATCH // (padded // _NEAR_BLOCK)

    def __len__(self) -> int:
        return self._size

    def find_several(self, queries: Floats, count: int) -> Rows:
        """Return (n, count) int64 rows nearest to the (n, d) queries, nearest first; ties go to the lower row."""
        count = check_int("count", count, minimum=1, maximum=len(self))
        if len(queries) == 0:
            return np.empty((0, count), dtype=np.int64)
        queries = queries / self._unit
        rounded = np.ones((len(queries), queries.shape[1] + 1), dtype=np.float32)
        rounded[:, :-1] = queries
        # Every float32 score is within this of the true one, in any order of summation: rounding of the inputs
        # and d + 1 terms, each at most |y| |q| + |y|^2 / 2 (Higham 2002, eq. 3.5). The last unit covers the errors
        # of float64 and of the thresholds below.
        lengths = np.sqrt((queries**2).sum(axis=1))
        error = (queries.shape[1] + 7) * _UNIT32 * self._largest * (lengths + self._largest / 2)
        # Maxima of disjoint groups of blocks belong to as many words, so the count-th best score is not far below the
        # count-th largest of them, and no score farther below is among the best. Groups are interleaved, because
        # frequent words are adjacent and often similar.
        maxima = self._block_maxima(rounded)
        groups = np.stack([maxima[first::_GROUPS].max(axis=0) for first in range(min(_GROUPS, len(maxima)))])
        lowest = np.full(len(queries), -np.inf, dtype=np.float32)  # where there are fewer groups
        bound = np.partition(groups, -count, axis=0)[-count] if len(groups) >= count else lowest
        threshold = (bound - 2.0 * error).astype(np.float32)
        candidates = maxima >= threshold
        result = []
        for block in np.flatnonzero(candidates.any(axis=1)):
            rows = np.flatnonzero(candidates[block])
            first = block * _NEAR_BLOCK
            scores = rounded[rows] @ self._factor[first : min(first + _NEAR_BLOCK, len(self))].T
            which, place = np.nonzero(scores >= threshold[rows, None])
            result.append((rows[which], place + first))
        which, place = (np.concatenate(entry) for entry in zip(*result, strict=True))
        # the order of summation in a product depends on the other queries; so it only proposes candidates, and a
        # float64 sum in a fixed order decides
        score = np.einsum("ij,ij->i", queries[which], self._matrix[place].astype(np.float64))
        score -= self._half_norms[place]
        order = np.lexsort((place, -score, which))  # the lower row in a tie
        starts = np.searchsorted(which[order], np.arange(len(queries)))
        return np.asarray(place[order][starts[:, None] + np.arange(count)])

    def _block_maxima(self, rounded: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return (blocks, n) largest float32 scores of each block of rows."""
        # queries are the last axis, so that a maximum over words is one pass over rows of a tile in the cache
        maxima = np.empty((len(self._factor) // _NEAR_BLOCK, len(rounded)), dtype=np.float32)
        room = np.empty(_NEAR_BLOCK * min(_QUERIES, len(rounded)), dtype=np.float32)
        for start in range(0, len(rounded), _QUERIES):
            columns = rounded[start : start + _QUERIES].T
            scores = room[: _NEAR_BLOCK * columns.shape[1]].reshape(_NEAR_BLOCK, -1)
            for block, into in enumerate(maxima[:, start : start + _QUERIES]):
                np.matmul(self._factor[block * _NEAR_BLOCK : (block + 1) * _NEAR_BLOCK], columns, out=scores)
                np.maximum.reduce(scores, axis=0, out=into)
        return maxima


def _squared_norms(matrix: npt.NDArray[Any]) -> Floats:
    norms: Floats = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
    return norms


_SEEDS_AT_A_TIME = 32


def neighbour_groups(vectors: WordVectors, size: int) -> list[Rows]:
    """Divide the words into groups of ``size`` words (the last one has up to 2 size - 1)."""
    table = ExactDistances(vectors.matrix)
    free = np.arange(len(vectors))
    right = table.columns(0, len(vectors))
    groups: list[Rows] = []
    while free.size >= 2 * size:
        # distances of a batch of founders; a founder that an earlier one takes is skipped
        founders = np.arange(min(_SEEDS_AT_A_TIME, free.size))
        squared = table.squared(table.rows(free[founders]), right)
        taken = np.zeros(free.size, dtype=bool)
        left = free.size
        for founder in founders:
            if taken[founder] or left < 2 * size:
                continue
            far = squared[founder]
            far[taken] = np.inf
            chosen = nearest_rows(far, size)
            groups.append(np.sort(free[chosen]))
            taken[chosen] = True
            left -= size
        free, right = free[~taken], right[:, ~taken]
    return [*groups, free]


def nearest_rows(far: npt.NDArray[np.float64], count: int) -> Rows:
    """Return (count,) indices of the smallest distances; ties go to the lower index."""
    last = np.partition(far, count - 1)[count - 1]
    nearer, equal = np.flatnonzero(far < last), np.flatnonzero(far == last)
    return np.concatenate([nearer, equal[: count - nearer.size]])
