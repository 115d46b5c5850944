"""Exact, unordered sets of the k rows of a public matrix with the largest scalar products with a query.

Derivation: docs/mechanisms/sentences.md#vectors-nearest-sets
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise.subset_selection import Profile
from dptext.threads import for_each_block
from dptext.validation import check_int

Rows: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Steps: TypeAlias = npt.NDArray[np.int32]
"""Scalar products in units of 2^-30."""
Tile: TypeAlias = npt.NDArray[np.float32]

_LENGTH = 2**15  # units in a vector of length 1
_STEPS = 2**30  # units in a scalar product of 1
_MOST_DIMENSIONS = 2**16
_UNIT32 = 2.0**-24

_SCORES = 2**24  # per batch of queries
_TILE_ROWS = 2**13
_CHECKED, _EXACT = 2**19, 2**18  # float64 numbers of rows per batch

_ALL_RANKS, _RANKS_A_DOUBLING = 128, 64


class NearestSets:
    """The rows of a matrix with the largest scalar products with a query, as a set; ties go to the lower row."""

    def __init__(self, matrix: npt.NDArray[np.float32]) -> None:
        values = np.asarray(matrix)  # a view of a memory map
        if values.ndim != 2 or values.dtype != np.float32 or not values.size or values.shape[1] > _MOST_DIMENSIONS:
            raise ParameterError(
                f"the matrix must have rows of float32 numbers, with at least 1 and at most {_MOST_DIMENSIONS:,} "
                f"columns, got {values.dtype} of shape {values.shape}"
            )
        self._matrix = values
        self._length = _largest_length(values, "the matrix")

    def __len__(self) -> int:
        return len(self._matrix)

    def find(self, queries: npt.ArrayLike, count: int) -> Rows:
        """Return (n, count) int64 rows with the largest scalar products with each of (n, d) queries, ascending."""
        count = check_int("count", count, minimum=1, maximum=len(self))
        checked = self._checked(queries)
        errors = self._errors(checked)
        result = np.empty((len(checked), count), dtype=np.int64)
        # where nothing is rounded, all scalar products are zero
        simple = (errors == 0.0) | (count == len(self))
        result[simple] = np.arange(count)
        for part in _parts(np.flatnonzero(~simple), _SCORES // len(self)):
            scores = self._scores(checked[part])

            def decide(index: int, part: Rows = part, scores: Tile = scores) -> None:
                place = part[index]
                result[place] = self._decide(checked[place], scores[index], errors[place], count)

            for_each_block(decide, range(len(part)))
        return result

    def similarities(self, queries: npt.ArrayLike, rows: npt.ArrayLike) -> Floats:
        """Return (n, m) exact scalar products of each of (n, d) queries with its own rows, (n, m) integers."""
        checked = self._checked(queries)
        places = np.asarray(rows)
        result = np.empty(places.shape, dtype=np.float64)

        def fill(place: int) -> None:
            result[place] = self._steps(checked[place], places[place])

        for_each_block(fill, range(len(checked)))
        result /= _STEPS
        return result

    def profile(self, queries: npt.ArrayLike, leave_out: npt.ArrayLike | None = None) -> Profile:
        """Return the mean similarity by rank over the queries: exact, so the same on every machine."""
        checked = self._checked(queries)
        n, size = len(checked), len(self)
        omitted = None if leave_out is None else np.asarray(leave_out)
        candidates = size - (omitted is not None)
        ranks = _log_spaced(candidates)
        sums = [0] * len(ranks)  # of integers of any length
        lock = Lock()

        def add(steps: Steps, first: int, index: int) -> None:
            selected = steps[index]
            if omitted is not None:
                selected[omitted[first + index]] = selected[-1]
            selected = selected[:candidates]
            selected.sort()
            largest = np.cumsum(selected[::-1], dtype=np.int64)[ranks - 1].tolist()
            with lock:
                sums[:] = map(int.__add__, sums, largest)

        for part in _parts(np.arange(n), _SCORES // size):
            for_each_block(partial(add, self._all_steps(checked[part]), part[0]), range(len(part)))
        return Profile(ranks, np.array([entry / (n * _STEPS) for entry in sums]), candidates=candidates)

    def _checked(self, queries: npt.ArrayLike) -> Tile:
        values = np.asarray(queries)
        _largest_length(values, "queries")
        return np.ascontiguousarray(values, dtype=np.float32)  # lossless: 16 bits are enough for a number

    def _errors(self, queries: Tile) -> Floats:
        """Return (n,) 2 e of equation (error); the last factor covers float64 rounding here and in `_decide`."""
        d = queries.shape[1]
        lengths: Floats = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
        lengths *= 2.0 * self._length * d * _UNIT32 / (1.0 - d * _UNIT32) * (1.0 + 2.0**-20)
        return lengths

    def _scores(self, queries: Tile) -> Tile:
        """Return (n, N) float32 scalar products."""
        scores = np.empty((len(queries), len(self)), dtype=np.float32)

        def fill(start: int) -> None:
            part = slice(start, start + _TILE_ROWS)
            np.matmul(queries, self._matrix[part].T, out=scores[:, part])

        for_each_block(fill, range(0, len(self), _TILE_ROWS))
        return scores

    def _steps(self, query: Tile, rows: Rows) -> Steps:
        """Return (m,) exact scalar products of one query with rows."""
        result = np.empty(len(rows), dtype=np.int32)
        wide = query.astype(np.float64) * _STEPS
        many = max(1, _EXACT // len(query))
        for start in range(0, len(rows), many):
            result[start : start + many] = self._matrix[rows[start : start + many]].astype(np.float64) @ wide
        return result

    def _all_steps(self, queries: Tile) -> Steps:
        """Return (n, N) exact scalar products."""
        result = np.empty((len(queries), len(self)), dtype=np.int32)
        wide = queries.astype(np.float64) * _STEPS
        many = max(1, _EXACT // queries.shape[1])

        def fill(start: int) -> None:
            result[:, start : start + many] = wide @ self._matrix[start : start + many].astype(np.float64).T

        for_each_block(fill, range(0, len(self), many))
        return result

    def _decide(self, query: Tile, scores: Tile, error: float, count: int) -> Rows:
        """Return (count,) rows with the largest scalar products, ascending; ``error`` is 2 e of equation (error)."""
        middle = float(np.partition(scores, len(scores) - count)[len(scores) - count])
        # rows below low are not in the set, rows above high are; rounded outwards to float32
        low = np.nextafter(np.float32(middle - error), np.float32(-np.inf))
        high = np.nextafter(np.float32(middle + error), np.float32(np.inf))
        kept = scores >= low
        over = int(np.count_nonzero(kept)) - count
        if over:
            unsure = np.flatnonzero(kept & (scores <= high))
            steps = self._steps(query, unsure)
            part = np.partition(steps, over - 1)[over - 1]
            smaller = np.flatnonzero(steps < part)
            equal = np.flatnonzero(steps == part)
            kept[unsure[smaller]] = False
            kept[unsure[equal[len(equal) - (over - len(smaller)) :]]] = False  # the higher rows
        return np.flatnonzero(kept)


def _parts(places: Rows, together: int) -> Iterator[Rows]:
    """Split ``places`` into parts of at most ``together`` entries, but at least one."""
    many = max(1, together)
    return (places[start : start + many] for start in range(0, len(places), many))


def _largest_length(vectors: npt.NDArray[Any], name: str) -> float:
    """Return the largest length of (n, d) vectors, slightly rounded up; check whole units of 2^-15 and length <= 1."""
    squares = [0.0]
    many = max(1, _CHECKED // max(1, vectors.shape[1]))

    def check(start: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            units = vectors[start : start + many].astype(np.float64) * _LENGTH
            largest = float(np.einsum("ij,ij->i", units, units).max())
            valid = largest <= _LENGTH**2 and bool((units == np.rint(units)).all())  # a NaN is not
        if not valid:
            raise ParameterError(
                f"{name} must be vectors of length at most 1 in whole units of 2^-15, as PublicFeatures returns them: "
                "scale them, and round towards zero"
            )
        squares.append(largest)

    for_each_block(check, range(0, len(vectors), many))
    return math.sqrt(max(squares)) / _LENGTH * (1.0 + 2.0**-50)


def _log_spaced(last: int) -> Rows:
    """Return ranks: all up to 128, then 64 for each factor of two, and the last."""
    doublings = max(0.0, math.log2(last / _ALL_RANKS))
    beyond = _ALL_RANKS * 2.0 ** (np.arange(math.ceil(doublings * _RANKS_A_DOUBLING)) / _RANKS_A_DOUBLING)
    ranks = np.concatenate([np.arange(1, min(last, _ALL_RANKS) + 1), np.rint(beyond), [last]]).astype(np.int64)
    return np.unique(ranks[ranks <= last])
