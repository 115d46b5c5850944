"""Exact selection of a candidate with probability proportional to an integer weight, which falls with distance.

Derivation: docs/mechanisms/sampler.md#noise-selection
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.threads import available_cores, for_each_block

Rows: TypeAlias = npt.NDArray[np.int64]

_LEAST = 1024  # minimum number of rows in memory


class KeptRows:
    """Cache of arrays with one entry per row, in bounded memory."""

    def __init__(self, rows: int, *, most_bytes: int, **entries: tuple[tuple[int, ...], npt.DTypeLike]) -> None:
        size = sum(math.prod(shape) * np.dtype(kind).itemsize for shape, kind in entries.values())
        self._rows, self._entries = rows, entries
        self._capacity = min(rows, max(_LEAST, most_bytes // size))
        self._start()

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("_rows", "_entries", "_capacity")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._slots = np.full(self._rows, -1, dtype=np.int64)
        self._used = 0
        self._arrays = {name: np.empty((self._capacity, *shape), kind) for name, (shape, kind) in self._entries.items()}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return the array (capacity, ...) of this name, indexed by `slots`."""
        return self._arrays[name]

    def slots(self, rows: Rows) -> Rows:
        """Return the (n,) slots of (n,) rows; -1 for rows that are not in the cache."""
        return self._slots[rows]

    def parts(self, rows: Rows, find: Callable[[Rows, Rows], None]) -> Iterator[Rows]:
        """Yield positions in ``rows`` in parts, each position once; during a part, its rows are in the cache."""
        if self._process != os.getpid():  # a fork copies a lock that another thread may have held
            self._start()
        with self._lock:
            distinct, which = np.unique(rows, return_inverse=True)
            for first in range(0, distinct.size, self._capacity):
                part = distinct[first : first + self._capacity]
                self._remember(part, find)
                yield np.flatnonzero((which >= first) & (which < first + part.size))

    def _remember(self, rows: Rows, find: Callable[[Rows, Rows], None]) -> None:
        missing = rows[self._slots[rows] < 0]
        if self._used + missing.size > self._capacity:
            self._slots[:] = -1
            self._used = 0
            missing = rows
        if missing.size:
            slots = np.arange(self._used, self._used + missing.size)
            find(missing, slots)
            self._slots[missing] = slots
            self._used += missing.size


Floats: TypeAlias = npt.NDArray[np.float64]
Factor: TypeAlias = npt.NDArray[Any]
Tile: TypeAlias = npt.NDArray[np.float32]

_SCALE = np.float32(2.0**44)
_BLOCK = 512  # weights in a block: 512 * 2^44 = 2^53
_TILE = 4 * _BLOCK  # columns in a tile, so that a tile of _BATCH rows stays in the cache
_BATCH = 256
_ROWS_A_TASK = 256  # when drawing
_MOST_ROWS_A_TASK = 1024  # when summing
_OCCURRENCES_FOR_THREADS = 512
_CACHE_BYTES = 256 << 20
_MAX_SIZE = 2**20 - 2  # (2^20 - 2) * 2^44 (1 + 2^-23) < 2^64
_UNIT = 2.0**-24  # half a unit in the last place of float32
_MAX_INFLATION = 2.0  # above, too many draws would be repeated, so the bounds are the exact sums
_NORMAL = 2.0**-45  # squares of numbers between this and its inverse are normal float32 numbers
_MAX_FROM_GRID = 0.01
_MAX_THETA = 2.5e-4  # a slack of 1e-3 nats: above, the formula does not hold in the tail


class DistanceTable(Protocol):
    """Distances from rows to blocks of columns, for example `dptext.vectors.search.ExactDistances`."""

    step: float
    rounding: float
    row_rounding: Floats
    units: float

    def __len__(self) -> int: ...
    def rows(self, rows: Rows) -> Factor:
        """Return the left factor of the rows."""

    def columns(self, start: int, stop: int) -> Factor:
        """Return the right factor of the columns start .. stop - 1; start is a multiple of 512."""

    def distances(self, rows: Factor, columns: Factor, limit: float, out: Tile | None = None) -> Tile:
        """Return (n, m) min(distance, limit) in steps, for left and right factors; in ``out`` if it is given."""


def weight_error(exponent: float, units: float = 1.5) -> float:
    """Return theta for T = ``exponent``; infinite if the smallest weight is rounded to zero."""
    smallest = math.exp(45 * math.log(2) - exponent) - 2.0
    return (units + 2.5) * _UNIT * exponent + 9 * _UNIT + 1 / smallest if smallest > 0 else math.inf


def largest_exponent() -> float:
    """Return the largest T that the integers represent within a slack of 1e-3 nats (about 22.9)."""
    return math.log(_MAX_THETA * 2.0**45) - 0.1


class TruncatedExponential:
    """Exponential mechanism on truncated distances, exact on integer weights."""

    def __init__(
        self, distances: DistanceTable, *, rate: float, threshold: float, coarse: DistanceTable | None = None
    ) -> None:
        size = len(distances)
        if size > _MAX_SIZE:
            raise ParameterError(f"expected at most {_MAX_SIZE:,} candidates, got {size:,}. Use fewer words (limit=)")
        if size < 2:
            raise ParameterError(f"expected at least 2 candidates to choose from, got {size}")
        exponent = rate * threshold
        if exponent > largest_exponent():
            raise ParameterError(
                f"rate * threshold must be at most {largest_exponent():.4g} (the sampler cannot represent smaller "
                f"probabilities exactly), got {exponent:.4g}. Use a threshold of at most "
                f"{largest_exponent() / rate:.4g}"
            )
        steps = threshold / distances.step
        if threshold > 0 and not (_NORMAL < steps < 1 / _NORMAL and _NORMAL < rate * distances.step < 1 / _NORMAL):
            raise ParameterError(
                "the distances are too small or too large for this rate to be computed in float32: a threshold of "
                f"{threshold:.3g} is {steps:.3g} steps of the grid. Scale the vectors or the rate"
            )
        self._distances = distances
        self._most = steps
        self._factor = np.float32(-rate * distances.step)
        from_grid = 4 * rate * distances.rounding
        self.slack = 4 * weight_error(exponent, distances.units) + from_grid
        if from_grid > _MAX_FROM_GRID:
            raise ParameterError(
                f"the grid of the distances is too coarse for this rate (it would add {from_grid:.3g} nats): one row "
                "may be far from all others. Remove it, or lower the rate"
            )
        self._blocks = -(-size // _BLOCK)
        self._bounds = distances
        self._inflation = np.ones(size)
        if coarse is not None:
            shift = coarse.row_rounding + coarse.rounding + 2 * distances.rounding
            inflation = np.exp(np.minimum(rate * shift, 50.0)) * (1 + 2.0**-12)
            # with a margin for rounding up
            if inflation.max() <= _MAX_INFLATION and size * inflation.max() < 2.0**20 - 2:
                self._bounds, self._inflation = coarse, inflation
                self._coarse_most = threshold / coarse.step
                self._coarse_factor = np.float32(-rate * coarse.step)
        self._kept = KeptRows(size, most_bytes=_CACHE_BYTES, sums=((self._blocks,), np.uint64))

    def __len__(self) -> int:
        return len(self._distances)

    def weights(self, rows: Rows) -> npt.NDArray[np.uint64]:
        """Return (n, V) uint64 integers that `sample` draws from, for the given inputs."""
        weights = np.empty((rows.size, len(self)), dtype=np.uint64)

        def fill(tile: tuple[int, int]) -> None:
            columns = self._distances.columns(*tile)
            for first in range(0, rows.size, _BATCH):
                left = self._distances.rows(rows[first : first + _BATCH])
                weights[first : first + _BATCH, slice(*tile)] = self._weigh(left, columns)

        for_each_block(fill, self._tiles())
        return weights

    def sample(self, rows: Rows, bits: RandomBits) -> Rows:
        """Return (n,) int64 candidates, drawn independently for the (n,) inputs."""
        rows = np.asarray(rows, dtype=np.int64)
        draws = np.empty(rows.size, dtype=np.int64)
        for part in self._kept.parts(rows, self._find_bounds):
            rows_of_part = part
            while rows_of_part.size:
                draws[rows_of_part] = self._draw(rows[rows_of_part], bits)
                rows_of_part = rows_of_part[draws[rows_of_part] < 0]
        return draws

    def _weigh(self, rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Return integer weights, as float32, from the factors of the table."""
        weights = self._distances.distances(rows, columns, self._most)
        _exp_of_multiples(weights, self._factor)
        np.multiply(weights, _SCALE, out=weights)
        return np.rint(weights, out=weights)

    def _tiles(self) -> list[tuple[int, int]]:
        return [(start, min(start + _TILE, len(self))) for start in range(0, len(self), _TILE)]

    def _find_bounds(self, rows: Rows, slots: Rows) -> None:
        """Put the cumulative block bounds of these rows into the slots."""
        self._kept["sums"][slots] = np.cumsum(self._bounds_of(rows), axis=1, dtype=np.uint64)

    def _bounds_of(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Return the (n, blocks) `_block_bounds`, rounded up to float32."""
        bounds = np.empty((rows.size, self._blocks), dtype=np.float32)
        # many rows share the conversion of a tile of columns, but every core gets some rows
        rows_a_task = min(_MOST_ROWS_A_TASK, max(_BATCH, -(-rows.size // available_cores())))

        def fill(start: int) -> None:
            exact = self._block_bounds(rows[start : start + rows_a_task])
            near = exact.astype(np.float32)
            bounds[start : start + rows_a_task] = np.where(near < exact, np.nextafter(near, np.float32(np.inf)), near)

        for_each_block(fill, range(0, rows.size, rows_a_task))
        return bounds

    def _block_bounds(self, rows: Rows) -> Floats:
        """Return (n, blocks) upper bounds on the sum of weights of each block, as integers in float64."""
        table, exact = self._bounds, self._bounds is self._distances
        batches = [slice(start, start + _BATCH) for start in range(0, rows.size, _BATCH)]
        lefts = [table.rows(rows[batch]) for batch in batches]
        sums = np.empty((rows.size, self._blocks))
        tile = np.empty(_BATCH * _TILE, dtype=np.float32)
        for start, stop in self._tiles():
            columns = table.columns(start, stop)
            blocks = slice(start // _BLOCK, -(-stop // _BLOCK))
            for batch, left in zip(batches, lefts, strict=True):
                if exact:
                    weights: Any = self._weigh(left, columns).astype(np.float64)
                else:
                    out = tile[: len(left) * (stop - start)].reshape(len(left), -1)
                    weights = table.distances(left, columns, self._coarse_most, out)
                    _exp_of_multiples(weights, self._coarse_factor)
                sums[batch, blocks] = _block_sums(weights)
        if exact:
            return sums  # integers below 2^53: exact in any order
        sums *= (float(_SCALE) * self._inflation[rows])[:, None]
        return np.floor(sums) + 513.0  # (bound)

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        """Draw candidates in one round; -1 means that a draw must be repeated."""
        sums, slots = self._kept["sums"], self._kept.slots(rows)
        number = bits.below(sums[slots, -1])
        block = count_at_most(sums, slots, number)
        before = np.where(block > 0, sums[slots, np.maximum(block - 1, 0)], np.uint64(0))
        rest = (number - before).astype(np.float64)  # exact below 2^53, which no true sum exceeds
        # a draw needs the weights of one block of its row; each (block, row) is computed once
        pairs, pair = np.unique(block * len(self) + rows, return_inverse=True)
        order = np.argsort(pair, kind="stable")
        pair_block, pair_row = np.divmod(pairs, len(self))
        edges = np.flatnonzero(np.diff(pair_block, prepend=-1, append=-1))
        tasks = [
            (start, min(start + _ROWS_A_TASK, stop))
            for first, stop in pairwise(edges.tolist())
            for start in range(first, stop, _ROWS_A_TASK)
        ]
        sorted_pair = pair[order]
        draws = np.empty(rows.size, dtype=np.int64)

        def find(task: tuple[int, int]) -> None:
            start, stop = task
            first = int(pair_block[start]) * _BLOCK
            columns = self._distances.columns(first, min(first + _BLOCK, len(self)))
            weights = self._weigh(self._distances.rows(pair_row[start:stop]), columns)
            cumulative = np.cumsum(weights, axis=1, dtype=np.float64)
            rows_of_part = order[slice(*np.searchsorted(sorted_pair, (start, stop)))]
            place = count_at_most(cumulative, pair[rows_of_part] - start, rest[rows_of_part])
            draws[rows_of_part] = np.where(place < cumulative.shape[1], first + place, -1)

        # threads do not help for blocks with few draws
        groups = 1 if rows.size < _OCCURRENCES_FOR_THREADS * len(tasks) else 4 * available_cores()

        def find_all(group: list[tuple[int, int]]) -> None:
            for task in group:
                find(task)

        for_each_block(find_all, [tasks[index::groups] for index in range(groups)])
        return draws


def _exp_of_multiples(values: npt.NDArray[np.float32], factor: np.float32) -> None:
    """Replace values by exp(factor * values) in float32, in place."""
    np.multiply(values, factor, out=values)
    np.exp(values, out=values)


def _block_sums(weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return (n, blocks) sums of the blocks of each row, in an order that does not depend on other rows."""
    missing = -weights.shape[1] % _BLOCK
    if missing:
        weights = np.pad(weights, ((0, 0), (0, missing)))
    sums: npt.NDArray[Any] = np.einsum("ij->i", weights.reshape(-1, _BLOCK))
    return sums.reshape(len(weights), -1)


def count_at_most(cumulative: npt.NDArray[Any], rows: Rows, values: npt.NDArray[Any]) -> Rows:
    """Return (n,) numbers of entries of ``cumulative[rows[i]]`` (ascending) up to ``values[i]``, by bisection."""
    low = np.zeros(rows.size, dtype=np.int64)
    high = np.full(rows.size, cumulative.shape[1], dtype=np.int64)
    for _ in range(int(cumulative.shape[1]).bit_length()):
        middle = (low + high) // 2
        # low == high after the search; an index past the end is clipped, and its comparison is not used
        right = cumulative[rows, np.minimum(middle, cumulative.shape[1] - 1)] <= values
        right &= low < high
        low = np.where(right, middle + 1, low)
        high = np.where(right, high, middle)
    return low
