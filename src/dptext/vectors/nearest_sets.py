"""Of each query the set of the k rows of a public matrix with the largest scalar product, exact, and in no order.

Derivation: docs/mechanisms/sentences.md#vectors-nearest-sets
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from threading import Lock, local
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise.subset_selection import Profile
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block
from dptext.validation import check_int

Rows: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Steps: TypeAlias = npt.NDArray[np.int32]
"""Scalar products in units of 2^-30."""
Tile: TypeAlias = npt.NDArray[np.float32]
Mask: TypeAlias = npt.NDArray[np.bool_]
Places: TypeAlias = npt.NDArray[np.uint16]

_LENGTH = 2**15  # of a vector, in units
_STEPS = 2**30  # of a scalar product
_MOST_DIMENSIONS = 2**16
_UNIT32 = 2.0**-24

_QUERIES = 1024  # per batch
_TILE_SCORES, _LEAST_TILE_ROWS, _TILE_ROWS = 2**20, 2**10, 2**13
_CHECKED, _EXACT = 2**19, 2**18  # float64 numbers of rows per batch
_ALL_SCORES = 2**23  # per batch, if all scores of a query are kept
_BETWEEN, _SPARE, _BITS = 3 * 2**20, 2**10, 2**27  # kept per batch, if few are kept; more for each query
_DECIDED = 2**17  # of those, by one thread

_SEED = 15
_SAMPLE_SHARE, _LEAST_SAMPLE, _SAMPLE, _SAMPLE_FLOATS = 32, 128, 2**13, 2**22
_DEVIATIONS, _MORE = 3.5, 1.5  # a rank is off by more less than once in a thousand times
_NO_BITS = 16  # the upper threshold pays where the set has more than one row of so many

_ALL_RANKS, _RANKS_A_DOUBLING = 128, 64


class NearestSets:
    """The rows of a matrix with the largest scalar products with a query, as a set; ties go to the lower row."""

    def __init__(self, matrix: npt.NDArray[np.float32]) -> None:
        values = np.asarray(matrix)  # of a memory map a view
        if values.ndim != 2 or values.dtype != np.float32 or not values.size or values.shape[1] > _MOST_DIMENSIONS:
            raise ParameterError(
                f"the matrix must have rows of float32 numbers, at least one of at most {_MOST_DIMENSIONS:,}, got "
                f"{values.dtype} numbers of the shape {values.shape}"
            )
        self._matrix = values
        self._length = _largest_length(values, "the matrix")
        # Public: it only proposes. Because it is random, it suits every query, however the rows are sorted.
        size, dimension = values.shape
        target = min(_SAMPLE, size // _SAMPLE_SHARE, _SAMPLE_FLOATS // dimension)
        draws = RandomBits(seed=_SEED).below(np.full(target, size, dtype=np.uint64))
        self._sample = values[np.unique(draws).astype(np.int64)]

    def __len__(self) -> int:
        return len(self._matrix)

    @property
    def dimension(self) -> int:
        """d."""
        return int(self._matrix.shape[1])

    def find(self, queries: npt.ArrayLike, count: int) -> Rows:
        """(n, count) int64: for each of the (n, d) queries the rows of the largest scalar products, ascending."""
        count = check_int("count", count, minimum=1, maximum=len(self))
        checked = self._checked(queries)
        errors = self._errors(checked)
        result = np.empty((len(checked), count), dtype=np.int64)
        # where nothing is rounded, all scalar products are zero
        simple = (errors == 0.0) | (count == len(self))
        result[simple] = np.arange(count)
        places = np.flatnonzero(~simple)
        if len(self._sample) >= _LEAST_SAMPLE:
            ranks = self._ranks_in_sample(count)
            together = min(_BETWEEN // self._expected(ranks), _BITS // len(self) if ranks[1] else _QUERIES)
            parts = _parts(places, max(16, together))
            left = [self._find_by_sample(checked[part], errors[part], result, part, ranks) for part in parts]
            places = np.concatenate([places[:0], *left])
        for part in _parts(places, _ALL_SCORES // len(self)):
            self._find_by_all_scores(checked[part], errors[part], result, part)
        return result

    def similarities(self, queries: npt.ArrayLike, rows: npt.ArrayLike) -> Floats:
        """(n, m) exact scalar products of the (n, d) queries with rows of their own, given as (n, m) integers."""
        checked = self._checked(queries)
        places = self._rows_of("rows", rows, (len(checked), *(np.shape(rows)[1:2] or (0,))))
        result = np.empty(places.shape, dtype=np.float64)

        def fill(place: int) -> None:
            result[place] = self._steps(checked[place], places[place])

        for_each_block(fill, range(len(checked)))
        result /= _STEPS
        return result

    def profile(self, queries: npt.ArrayLike, leave_out: npt.ArrayLike | None = None) -> Profile:
        """How similar the rows of each rank are, in the mean over the queries: exact, so the same on every machine."""
        checked = self._checked(queries)
        n, size = len(checked), len(self)
        omitted = None if leave_out is None else self._rows_of("leave_out", leave_out, (n,))
        candidates = size - (omitted is not None)
        if n < 1 or candidates < 2:
            raise ParameterError(f"a profile needs a query and two rows that count, got {n} and {candidates}")
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

        for part in _parts(np.arange(n), 2 * _ALL_SCORES // size):
            for_each_block(partial(add, self._all_steps(checked[part]), part[0]), range(len(part)))
        return Profile(ranks, np.array([entry / (n * _STEPS) for entry in sums]), candidates=candidates)

    def _rows_of(self, name: str, rows: npt.ArrayLike, shape: tuple[int, ...]) -> Rows:
        values = np.asarray(rows)
        if values.shape != shape or not np.issubdtype(values.dtype, np.integer):
            raise ParameterError(f"{name} must be integers of the shape {shape}, got {values.dtype} {values.shape}")
        if values.size and not 0 <= values.min() <= values.max() < len(self):
            raise ParameterError(f"{name} must be from 0 to {len(self) - 1}, got {values.min()} to {values.max()}")
        return values

    def _checked(self, queries: npt.ArrayLike) -> Tile:
        values = np.asarray(queries)
        if values.ndim != 2 or values.shape[1] != self.dimension or not np.issubdtype(values.dtype, np.floating):
            raise ParameterError(
                f"queries must be rows of {self.dimension} floating-point numbers, as the matrix has them, got "
                f"{values.dtype} numbers of the shape {values.shape}"
            )
        _largest_length(values, "queries")
        return np.ascontiguousarray(values, dtype=np.float32)  # nothing is lost: 16 bits are enough for a number

    def _errors(self, queries: Tile) -> Floats:
        """(n,) twice e of equation (error); the last factor is for the rounding of float64 here and in `_border`."""
        d = self.dimension
        lengths: Floats = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
        lengths *= 2.0 * self._length * d * _UNIT32 / (1.0 - d * _UNIT32) * (1.0 + 2.0**-20)
        return lengths

    def _steps(self, query: Tile, rows: Rows) -> Steps:
        """(m,) exact scalar products of one query with rows."""
        result = np.empty(len(rows), dtype=np.int32)
        wide = query.astype(np.float64) * _STEPS
        many = max(1, _EXACT // self.dimension)
        for start in range(0, len(rows), many):
            result[start : start + many] = self._matrix[rows[start : start + many]].astype(np.float64) @ wide
        return result

    def _all_steps(self, queries: Tile) -> Steps:
        """(n, N) exact scalar products."""
        result = np.empty((len(queries), len(self)), dtype=np.int32)
        wide = queries.astype(np.float64) * _STEPS
        many = max(1, _EXACT // self.dimension)

        def fill(start: int) -> None:
            result[:, start : start + many] = wide @ self._matrix[start : start + many].astype(np.float64).T

        for_each_block(fill, range(0, len(self), many))
        return result

    def _decide(
        self, query: Tile, rows: Rows | None, scores: Tile, count: int, border: tuple[np.float32, np.float32]
    ) -> Rows:
        """``count`` rows of the largest scalar products, ascending, of rows that are ascending (None: of all)."""
        low, high = border
        kept = scores >= low
        over = int(np.count_nonzero(kept)) - count
        if over:
            unsure = np.flatnonzero(kept & (scores <= high))
            steps = self._steps(query, unsure if rows is None else rows[unsure])
            part = np.partition(steps, over - 1)[over - 1]
            smaller = np.flatnonzero(steps < part)
            equal = np.flatnonzero(steps == part)
            kept[unsure[smaller]] = False
            kept[unsure[equal[len(equal) - (over - len(smaller)) :]]] = False  # the higher rows
        return np.flatnonzero(kept) if rows is None else rows[kept]

    def _find_by_all_scores(self, queries: Tile, errors: Floats, found_rows: Rows, places: Rows) -> None:
        """Fill in the sets of these queries at these places."""
        count = found_rows.shape[1]
        scores = np.empty((len(queries), len(self)), dtype=np.float32)
        many = _rows_of_a_tile(len(queries))

        def score(start: int) -> None:
            np.matmul(queries, self._matrix[start : start + many].T, out=scores[:, start : start + many])

        def decide(index: int) -> None:
            border = _border(scores[index], errors[index], count)
            found_rows[places[index]] = self._decide(queries[index], None, scores[index], count, border)

        for_each_block(score, range(0, len(self), many))
        for_each_block(decide, range(len(queries)))

    def _find_by_sample(
        self, queries: Tile, errors: Floats, found_rows: Rows, places: Rows, ranks: tuple[int, int]
    ) -> Rows:
        """The same by what lies between thresholds; returns the places of the queries that it does not decide."""
        count = found_rows.shape[1]
        maximum = 2 * self._expected(ranks) + _SPARE
        between = _Between(self._matrix, queries, *self._thresholds(queries, *ranks), maximum)
        for_each_block(between.collect, between.tiles)
        undecided = np.zeros(len(queries), dtype=np.bool_)

        def decide(group: range) -> None:
            for position, (above, rows, scores, minimum, maximum) in zip(group, between.found(group), strict=True):
                left = count if above is None else count - int(np.count_nonzero(above))
                border = _border(scores, errors[position], left) if 0 < left <= len(rows) else None
                if border is None or border[0] < minimum or border[1] > maximum:
                    undecided[position] = True
                    continue
                chosen = self._decide(queries[position], rows, scores, left, border)
                if above is not None:
                    above[chosen] = True
                    chosen = np.flatnonzero(above)
                found_rows[places[position]] = chosen

        many = max(1, min(64, _DECIDED // self._expected(ranks)))
        for_each_block(decide, (range(len(queries))[start : start + many] for start in range(0, len(queries), many)))
        return places[undecided]

    def _expected(self, ranks: tuple[int, int]) -> int:
        """Return the expected number of rows between the thresholds."""
        return (ranks[0] - ranks[1]) * len(self) // len(self._sample) + 1

    def _ranks_in_sample(self, count: int) -> tuple[int, int]:
        """Between the scores of these ranks in the sample lies t, very likely; 0 stands for no upper threshold."""
        share = count / len(self)
        expected = share * len(self._sample)
        off = _DEVIATIONS * math.sqrt(expected * (1.0 - share)) + _MORE
        high = math.floor(expected - off) if count > len(self) // _NO_BITS else 0
        return min(math.ceil(expected + off), len(self._sample)), max(high, 0)

    def _thresholds(self, queries: Tile, low: int, high: int) -> tuple[Tile, Tile]:
        """(n,) lower and (n,) upper ones by ranks in the sample; infinite where the rank is no threshold."""
        size = len(self._sample)
        lows = np.full(len(queries), -np.inf, dtype=np.float32)
        highs = np.full(len(queries), np.inf, dtype=np.float32)

        def fill(start: int) -> None:
            part = slice(start, start + 128)
            scores = queries[part] @ self._sample.T
            scores.partition([size - low, size - max(1, high)], axis=1)
            if low < size:
                lows[part] = scores[:, size - low]
            if high > 0:
                highs[part] = scores[:, size - high]

        for_each_block(fill, range(0, len(queries), 128))
        return lows, highs


def _border(scores: Tile, error: float, count: int) -> tuple[np.float32, np.float32]:
    """Return scores around the count-th largest: rows below the first are in no set, rows above the second are in it.

    ``error`` is 2 e of equation (error).
    """
    middle = float(np.partition(scores, len(scores) - count)[len(scores) - count])
    # outwards: what becomes float32 can become larger or smaller
    low = np.nextafter(np.float32(middle - error), np.float32(-np.inf))
    return low, np.nextafter(np.float32(middle + error), np.float32(np.inf))


class _Between:
    """Of each query the rows whose scores lie between two thresholds, with their scores, and bits for those above."""

    def __init__(self, matrix: Tile, queries: Tile, lows: Tile, highs: Tile, limit: int) -> None:
        self._matrix, self._queries, self._lows, self._highs = matrix, queries, lows, highs
        self.tiles = range(0, len(matrix), _rows_of_a_tile(len(queries)))
        self._most = limit
        self._counts = np.zeros(len(queries), dtype=np.int64)
        self._kept: dict[int, tuple[Places, Places, Tile]] = {}
        self._bits: npt.NDArray[np.uint8] | None = None
        if np.isfinite(highs).all():
            self._bits = np.empty((len(queries), -(-len(matrix) // 8)), dtype=np.uint8)
        self._lock = Lock()
        self._rooms = local()

    def collect(self, start: int) -> None:
        """Collect the scores of the tile of rows that begins at ``start``."""
        rows = self._matrix[start : start + self.tiles.step]
        scores = self._room("scores", np.float32, len(rows))
        marks = self._room("marks", np.bool_, len(rows))
        np.matmul(self._queries, rows.T, out=scores)
        np.greater_equal(scores, self._lows[:, None], out=marks)
        if self._bits is not None:
            above = self._room("above", np.bool_, len(rows))
            np.greater(scores, self._highs[:, None], out=above)
            np.greater(marks, above, out=marks)  # the one and not the other
            self._bits[:, start // 8 : (start + len(rows) + 7) // 8] = np.packbits(above, axis=1)
        places = np.flatnonzero(marks).astype(np.int32)
        which, row = np.divmod(places, np.int32(len(rows)))
        with self._lock:
            self._kept[start] = which.astype(np.uint16), row.astype(np.uint16), scores.ravel()[places]
            self._counts += np.bincount(which, minlength=len(self._counts))
            self._lows[self._counts > self._most] = np.inf

    def found(self, group: range) -> Iterator[tuple[Mask | None, Rows, Tile, float, float]]:
        """For each of these queries: marks of the rows above; those between, ascending; their scores; thresholds."""
        which, rows, scores = [], [], []
        for first, (queries, row, score) in sorted(self._kept.items()):
            selected = slice(*np.searchsorted(queries, (group.start, group.stop)))
            which.append(queries[selected])
            rows.append(row[selected].astype(np.int64) + first)
            scores.append(score[selected])
        order = np.argsort(np.concatenate(which), kind="stable")
        bounds = np.cumsum(self._counts[group.start : group.stop])[:-1]
        for place, its_rows, its_scores in zip(
            group,
            np.split(np.concatenate(rows)[order], bounds),
            np.split(np.concatenate(scores)[order], bounds),
            strict=True,
        ):
            above = None
            if self._bits is not None:
                above = np.unpackbits(self._bits[place], count=len(self._matrix)).view(np.bool_)
            yield above, its_rows, its_scores, float(self._lows[place]), float(self._highs[place])

    def _room(self, name: str, dtype: type[np.generic], rows: int) -> npt.NDArray[Any]:
        """(n, rows) scratch memory of this thread."""
        n = len(self._queries)
        if not hasattr(self._rooms, name):
            setattr(self._rooms, name, np.empty(n * self.tiles.step, dtype=dtype))
        return getattr(self._rooms, name)[: n * rows].reshape(n, rows)  # type: ignore[no-any-return]


def _parts(places: Rows, together: int) -> Iterator[Rows]:
    """Yield parts of at most ``together`` places, at least one and no more than fill a tile of scores."""
    many = max(1, min(_QUERIES, together))
    return (places[start : start + many] for start in range(0, len(places), many))


def _rows_of_a_tile(queries: int) -> int:
    """More for few queries; a multiple of 8, for bits to fill bytes."""
    return max(_LEAST_TILE_ROWS, min(_TILE_ROWS, _TILE_SCORES // queries // 8 * 8))


def _largest_length(vectors: npt.NDArray[Any], name: str) -> float:
    """Of (n, d) vectors, checked to be in whole units of 2^-15 and of length at most 1; hardly rounded up."""
    squares = [0.0]
    many = max(1, _CHECKED // max(1, vectors.shape[1]))

    def check(start: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            units = vectors[start : start + many].astype(np.float64) * _LENGTH
            largest = float(np.einsum("ij,ij->i", units, units).max())
            valid = largest <= _LENGTH**2 and bool((units == np.rint(units)).all())  # a NaN is not
        if not valid:
            raise ParameterError(
                f"{name} must be vectors of length at most 1 in whole units of 2^-15, as PublicFeatures makes them, "
                "got others: scale them, and round towards zero"
            )
        squares.append(largest)

    for_each_block(check, range(0, len(vectors), many))
    return math.sqrt(max(squares)) / _LENGTH * (1.0 + 2.0**-50)


def _log_spaced(last: int) -> Rows:
    """Ranks: all up to 128, then 64 for each factor of two, and the last."""
    doublings = max(0.0, math.log2(last / _ALL_RANKS))
    beyond = _ALL_RANKS * 2.0 ** (np.arange(math.ceil(doublings * _RANKS_A_DOUBLING)) / _RANKS_A_DOUBLING)
    ranks = np.concatenate([np.arange(1, min(last, _ALL_RANKS) + 1), np.rint(beyond), [last]]).astype(np.int64)
    return np.unique(ranks[ranks <= last])
