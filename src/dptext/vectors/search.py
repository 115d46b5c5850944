"""Exact distances, exact nearest neighbours and exact sets of them over a public matrix, in blocks.

**Distances.** The vectors are rounded to a public grid so fine that every squared distance, counted in squared grid
steps, is an integer below 2^53. A float64 matrix product then has no rounding at all: the same bits come out
for any block size, number of threads, BLAS and machine. The grid's price is known
(`ExactDistances.rounding`, about 1e-6 for GloVe) and enters the slack of the mechanism. On a coarse grid the integers
stay below 2^24, and a float32 product, twice as fast, is exact in the same way: good for bounds.

**Neighbours.** Scores in float32 with a proved error bound select candidates; float64 decides among them.

**Sets.** The same for the many rows of the largest scalar product, without an order, where rows and queries are in
whole units of 2^-15 and of length at most 1. A scalar product of two such vectors is a whole number of units of 2^-30;
so is every partial sum, of at most 2^30 units, by Cauchy and Schwarz. So float64 is exact in any order of adding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from threading import Lock, local
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.checks import shown, whole
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block

__all__ = ["ExactDistances", "NearestNeighbours", "NearestSets"]

Rows: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Factor: TypeAlias = npt.NDArray[Any]
"""What a table gives for some rows or columns, so that `distances` of both are quick: of any kind of number."""
Tile: TypeAlias = npt.NDArray[np.float32]
Mask: TypeAlias = npt.NDArray[np.bool_]
Places: TypeAlias = npt.NDArray[np.uint16]

_TILE = 4096
_NEAR_BLOCK = 128
_GROUPS = 32  # of blocks, in which the few largest maxima are sought
_SCRATCH = 2**23  # floats
_QUERIES = 2048  # a tile of scores, 1 MiB, stays in the cache between the product and its maxima
_UNIT32 = 2.0**-24

_STEPS = 2**15  # of a set's vectors, in a length of 1
_MOST_DIMENSIONS = 2**16
_TOGETHER = 1024  # queries and rows of a tile of scores
_SAMPLE_ROWS, _SAMPLE_FLOATS, _SAMPLE_SEED = 4096, 2**21, 15
_SCORES = 2**23  # float32 scores kept at once where all of a query are
_FOUND = 3 * 2**20  # candidates kept at once
_EXACT = 2**20  # float64 numbers of rows decided at once
_ALL_RANKS, _RANKS_A_DOUBLING = 128, 64


class ExactDistances:
    """Squared Euclidean distances between the rows of a matrix, exact on a public grid.

    Args:
        matrix: (V, d) finite; public.
        dtype: float64 (a fine grid) or float32 (a coarse one).

    Attributes: as `dptext.noise.selection.DistanceTable` has them. ``step`` is h, the grid step, a power of two;
    ``row_rounding`` and ``rounding`` bound the Euclidean distance of a row, or of any row, to its grid point.
    """

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

    def columns(self, start: int, stop: int) -> Floats:
        """(d + 2, stop - start); see `squared`."""
        block = np.empty((self._grid.shape[0] + 2, stop - start), dtype=self._dtype)
        block[:-2] = self._grid[:, start:stop]
        block[-2] = 1.0
        block[-1] = self._norms[start:stop]
        return block

    def rows(self, rows: Rows) -> Floats:
        """(n, d + 2); see `squared`."""
        block = np.empty((rows.size, self._grid.shape[0] + 2), dtype=self._dtype)
        block[:, :-2] = self._grid[:, rows].T
        block[:, :-2] *= -2.0
        block[:, -2] = self._norms[rows]
        block[:, -1] = 1.0
        return block

    @staticmethod
    def squared(rows: Floats, columns: Floats, out: Floats | None = None) -> Floats:
        """(n, m) squared distances in squared grid steps: exact integers."""
        return np.matmul(rows, columns, out=out)  # -2 x.y + |x|^2 + |y|^2

    def distances(self, rows: Factor, columns: Factor, most: float, out: Tile | None = None) -> Tile:
        """(n, m) distances in grid steps, at most ``most``."""
        # only a float32 product can be written to the place of the result
        place: Any = out if self._dtype is np.float32 else None
        squared = self.squared(rows, columns, place)
        # never negative; minimum() would take three times as long
        np.clip(squared, 0.0, self._dtype(most**2), out=squared)
        roots = squared.astype(np.float32, copy=False)
        return np.sqrt(roots, out=roots)


class NearestNeighbours:
    """The rows of a matrix nearest to a query (Euclidean), exact to float64; ties go to the lower row.

    The answer depends on the query and the public matrix alone, so it is post-processing; to the last bit, whatever
    other queries stand beside it.

    Args:
        matrix: (V, d) float32; public.

    Attributes:
        many: as many queries in one call keep its scratch memory below 32 MiB; fewer are slower, each by itself.
    """

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

    def find(self, queries: Floats) -> Rows:
        """(n,) int64 rows nearest to the (n, d) queries."""
        return self.find_several(queries, 1)[:, 0]

    def find_several(self, queries: Floats, count: int) -> Rows:
        """(n, count) int64 rows nearest to the (n, d) queries, the nearest first; ties go to the lower row.

        Raises:
            ParameterError: there are fewer rows than that.
        """
        count = whole("count", count, least=1, most=len(self))
        if len(queries) == 0:
            return np.empty((0, count), dtype=np.int64)
        queries = queries / self._unit
        rounded = np.ones((len(queries), queries.shape[1] + 1), dtype=np.float32)
        rounded[:, :-1] = queries
        return self._decide(queries, rounded, count)

    def _block_maxima(self, rounded: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """(blocks, n) largest float32 score of each block of rows."""
        # queries lie along the last axis: a maximum over words then is one pass over rows of a tile in the cache
        maxima = np.empty((len(self._factor) // _NEAR_BLOCK, len(rounded)), dtype=np.float32)
        room = np.empty(_NEAR_BLOCK * min(_QUERIES, len(rounded)), dtype=np.float32)
        for start in range(0, len(rounded), _QUERIES):
            columns = rounded[start : start + _QUERIES].T
            scores = room[: _NEAR_BLOCK * columns.shape[1]].reshape(_NEAR_BLOCK, -1)
            for block, into in enumerate(maxima[:, start : start + _QUERIES]):
                np.matmul(self._factor[block * _NEAR_BLOCK : (block + 1) * _NEAR_BLOCK], columns, out=scores)
                np.maximum.reduce(scores, axis=0, out=into)
        return maxima

    def _decide(self, queries: Floats, rounded: npt.NDArray[np.float32], count: int) -> Rows:
        # Every float32 score is within this of the true one, in whatever order it is summed: rounding of the inputs
        # and d + 1 terms, each at most |y| |q| + |y|^2 / 2 (Higham 2002, eq. 3.5). The last unit covers what float64
        # and the thresholds below may err by.
        lengths = np.sqrt((queries**2).sum(axis=1))
        error = (queries.shape[1] + 7) * _UNIT32 * self._largest * (lengths + self._largest / 2)
        # Maxima of disjoint groups of blocks belong to as many words, so the count-th best score is not far below the
        # count-th largest of them, and what lies farther below is none of the best. Groups are interleaved, because
        # frequent words stand side by side and are often near together.
        maxima = self._block_maxima(rounded)
        groups = np.stack([maxima[first::_GROUPS].max(axis=0) for first in range(min(_GROUPS, len(maxima)))])
        threshold = (_nth_largest(groups, count) - 2.0 * error).astype(np.float32)
        candidates = maxima >= threshold
        found = []
        for block in np.flatnonzero(candidates.any(axis=1)):
            rows = np.flatnonzero(candidates[block])
            first = block * _NEAR_BLOCK
            scores = rounded[rows] @ self._factor[first : min(first + _NEAR_BLOCK, len(self))].T
            which, place = np.nonzero(scores >= threshold[rows, None])
            found.append((rows[which], place + first))
        which, place = (np.concatenate(each) for each in zip(*found, strict=True))
        # how a product sums depends on the queries beside one; so it only proposes, and a sum in float64 in an order
        # of its own decides
        score = np.einsum("ij,ij->i", queries[which], self._matrix[place].astype(np.float64))
        score -= self._half_norms[place]
        order = np.lexsort((place, -score, which))  # the lower row in a tie
        starts = np.searchsorted(which[order], np.arange(len(queries)))
        best: Rows = place[order][starts[:, None] + np.arange(count)]
        return best


class NearestSets:
    """The rows of a matrix with the largest scalar product with a query, as a set: exact; ties go to the lower row.

    **Guarantee.** A query's set is a function of the query and the public matrix, to the last bit: not of the queries
    beside it, of the blocks, the threads or the library that multiplies. A mechanism that draws from the set needs
    this, not the exactness: any sets of `count` rows would do for its promise, but a set that moves with the texts
    beside a text would tell of them. *Proof.* Every float32 score, in whatever order it is summed, is within

        e = g |q| max |y|,    g = d u / (1 - d u),   u = 2^-24                        (Higham 2002, eq. 3.5)   (error)

    of the true one, for rows and queries are float32 numbers as they are. Let t be the count-th largest score. Then the
    count-th largest true score is within e of t, because none of them moves by more: rows scored above t + 2 e are
    surely in the set, rows scored below t - 2 e are surely not, and between them float64 decides, which is exact (see
    the module). |

    Args:
        matrix: (N, d) float32; public; each row of whole units of 2^-15 and of length at most 1, as `PublicFeatures`
            makes them. A memory map is neither copied nor transposed as a whole: scratch memory stays below 100 MiB.

    Raises:
        ParameterError: the matrix is none of that.

    >>> sets = NearestSets(np.array([[0.5, 0.5], [-0.5, 0.0], [0.5, 0.0], [0.25, 0.25]], dtype=np.float32))
    >>> sets.find(np.array([[1.0, 0.0], [0.0, 0.5]]), 2)
    array([[0, 2],
           [0, 3]])
    """

    def __init__(self, matrix: npt.NDArray[np.float32]) -> None:
        given = np.asarray(matrix)  # of a memory map too this is a view
        if given.ndim != 2 or given.dtype != np.float32 or not given.size or given.shape[1] > _MOST_DIMENSIONS:
            raise ParameterError(
                f"the matrix must be rows of float32 numbers, one of up to {_MOST_DIMENSIONS:,} each at least, got "
                f"{given.dtype} numbers of the shape {given.shape}"
            )
        self._matrix = given
        self._length = _largest_length(given, "the matrix")
        # public, and it only proposes: that it is drawn at random holds the chance down that it proposes badly
        size, dimension = given.shape
        wanted = max(1, min(_SAMPLE_ROWS, _SAMPLE_FLOATS // dimension))
        drawn = RandomBits(seed=_SAMPLE_SEED).below(np.full(min(wanted, size), size, dtype=np.uint64))
        self._sample = given[np.unique(drawn).astype(np.int64)]

    def __len__(self) -> int:
        return len(self._matrix)

    @property
    def dimension(self) -> int:
        """d."""
        return int(self._matrix.shape[1])

    def find(self, queries: npt.ArrayLike, count: int) -> Rows:
        """(n, count) int64: of each of the (n, d) queries the rows of the largest scalar products, in ascending order.

        Args:
            queries: whole units of 2^-15, of length at most 1 each.
            count: of rows, from 1 to N.

        Raises:
            ParameterError: a count out of range; queries of another dimension, finer or longer: they are not rounded.
        """
        count = whole("count", count, least=1, most=len(self))
        checked = self._checked(queries)
        found = np.empty((len(checked), count), dtype=np.int64)
        if count == len(self):
            found[:] = np.arange(count)
            return found
        still = self._by_sample(checked, found) if self._is_sparse(count) else np.arange(len(checked))
        self._by_all_scores(checked, found, still)
        return found

    def similarities(self, queries: npt.ArrayLike, rows: npt.ArrayLike) -> Floats:
        """(n, m) exact scalar products of each of the (n, d) queries with rows of its own, of the shape (n, m).

        Raises:
            ParameterError: queries as `find` refuses them; rows that are not there, or not n times m.
        """
        checked = self._checked(queries)
        places = np.asarray(rows)
        if places.ndim != 2 or len(places) != len(checked) or not np.issubdtype(places.dtype, np.integer):
            raise ParameterError(
                f"rows must be whole numbers of the shape ({len(checked)}, m), one row for each query, got "
                f"{places.dtype} numbers of the shape {places.shape}"
            )
        if places.size and not 0 <= places.min() <= places.max() < len(self):
            raise ParameterError(
                f"rows must be from 0 to {len(self) - 1}, got {shown(places.min())} to {shown(places.max())}"
            )
        found = np.empty(places.shape, dtype=np.float64)

        def score(place: int) -> None:
            found[place] = self._exact(checked[place], places[place])

        for_each_block(score, range(len(checked)))
        return found

    def profile(self, queries: npt.ArrayLike, leave_out: npt.ArrayLike | None = None) -> tuple[Rows, Floats]:
        """How similar the rows are by rank: mean over the queries of the sum of the r largest similarities.

        Exact, so the same on every machine.

        Args:
            queries: (n, d), at least one, as in `find`; public.
            leave_out: (n,) a row for each query that does not count for it: itself, where it is a row of the matrix.

        Returns:
            Ranks r, ascending (all up to 128, then 64 for each factor of two, and the last), and the mean sums.

        Raises:
            ParameterError: queries as `find` refuses them, or none; rows that are not there; no row is left.
        """
        checked = self._checked(queries)
        n, size = len(checked), len(self)
        omitted = None if leave_out is None else np.asarray(leave_out)
        if omitted is not None and (
            omitted.shape != (n,)
            or not np.issubdtype(omitted.dtype, np.integer)
            or (n and not 0 <= omitted.min() <= omitted.max() < size)
        ):
            raise ParameterError(f"leave_out must be one row from 0 to {size - 1} for each of the {n} queries")
        most = size - (omitted is not None)
        if not n or not most:
            raise ParameterError(
                f"a profile needs a query and a row that is not left out, got {n} queries of {size} rows"
            )
        ranks = _log_spaced(most)
        sums = [0] * len(ranks)  # whole numbers of any length
        lock = Lock()
        together = max(1, min(_TOGETHER, _SCORES * 2 // size))
        for first in range(0, n, together):
            part = checked[first : first + together].astype(np.float64)
            steps = np.empty((len(part), size), dtype=np.int32)

            def score(start: int, part: Floats = part, steps: npt.NDArray[np.int32] = steps) -> None:
                rows = self._matrix[start : start + _TOGETHER].astype(np.float64)
                np.multiply(part @ rows.T, _STEPS**2, out=steps[:, start : start + _TOGETHER], casting="unsafe")

            def add(place: int, first: int = first, steps: npt.NDArray[np.int32] = steps) -> None:
                mine = steps[place]
                if omitted is not None:
                    mine[omitted[first + place]] = mine[-1]
                    mine = mine[:-1]
                mine.sort()
                cumulative = np.cumsum(mine[::-1], dtype=np.int64)[ranks - 1].tolist()
                with lock:
                    sums[:] = map(int.__add__, sums, cumulative)

            for_each_block(score, range(0, size, _TOGETHER))
            for_each_block(add, range(len(part)))
        return ranks, np.array([each / (n * _STEPS**2) for each in sums])

    def _checked(self, queries: npt.ArrayLike) -> Tile:
        given = np.asarray(queries)
        if given.ndim != 2 or given.shape[1] != self.dimension or not np.issubdtype(given.dtype, np.floating):
            raise ParameterError(
                f"queries must be rows of {self.dimension} floating-point numbers, as the matrix has them, got "
                f"{given.dtype} numbers of the shape {given.shape}"
            )
        _largest_length(given, "the queries")
        return np.ascontiguousarray(given, dtype=np.float32)  # 16 bits a number: nothing is lost

    def _errors(self, queries: Tile) -> Floats:
        """(n,) equation (error); the last factor covers what float64 errs by here."""
        d = self.dimension
        return np.sqrt(_squared_norms(queries)) * (self._length * d * _UNIT32 / (1 - d * _UNIT32) * (1 + 2.0**-20))

    def _exact(self, query: Tile, rows: Rows) -> Floats:
        found = np.empty(len(rows), dtype=np.float64)
        wide = query.astype(np.float64)
        step = max(1, _EXACT // self.dimension)
        for start in range(0, len(rows), step):
            found[start : start + step] = self._matrix[rows[start : start + step]].astype(np.float64) @ wide
        return found

    # -- a few of many rows ------------------------------------------------------------------------------------

    def _is_sparse(self, count: int) -> bool:
        return len(self) >= 4 * len(self._sample) and count <= len(self) // 16

    def _rank_in_sample(self, count: int) -> int:
        """The sample's score of this rank is below the count-th best of all rows, but once in a thousand times."""
        expected = count * len(self._sample) / len(self)
        return min(len(self._sample), math.ceil(expected + 3.5 * math.sqrt(expected) + 2.5))

    def _by_sample(self, queries: Tile, found: Rows) -> Rows:
        """Fill in what candidates above a threshold of the sample decide; places of the queries that they do not."""
        count = found.shape[1]
        rank = self._rank_in_sample(count)
        expected = rank * len(self) / len(self._sample)
        together = max(16, min(_TOGETHER, int(_FOUND / expected)))
        errors = 2.0 * self._errors(queries)
        decided = np.zeros(len(queries), dtype=np.bool_)
        for first in range(0, len(queries), together):
            part = slice(first, first + together)
            candidates = _Candidates(self._matrix, queries[part], self._thresholds(queries[part], rank), _FOUND)
            for_each_block(candidates.collect, range(0, len(self), _TOGETHER))

            def decide(group: int, first: int = first, candidates: _Candidates = candidates) -> None:
                for place, rows, scores in candidates.of(group, group + 64):
                    at = first + place
                    chosen = self._decide(queries[at], rows, scores, errors[at], count, candidates.thresholds[place])
                    if chosen is not None:
                        found[at] = chosen
                        decided[at] = True

            for_each_block(decide, range(0, len(queries[part]), 64))
        return np.flatnonzero(~decided)

    def _thresholds(self, queries: Tile, rank: int) -> Tile:
        thresholds = np.empty(len(queries), dtype=np.float32)

        def fill(start: int) -> None:
            scores = queries[start : start + 128] @ self._sample.T
            scores.partition(len(self._sample) - rank, axis=1)
            thresholds[start : start + 128] = scores[:, len(self._sample) - rank]

        for_each_block(fill, range(0, len(queries), 128))
        return thresholds

    def _decide(
        self, query: Tile, rows: Rows | None, scores: Tile, error: float, count: int, least: float
    ) -> Rows | None:
        """The set, in ascending order; None where rows scored below ``least``, which are not given, may be in it.

        ``rows`` are ascending; None: all.
        """
        if len(scores) < count:
            return None
        middle = float(np.partition(scores, len(scores) - count)[len(scores) - count])
        # outwards, for a sum in float64 may become less in float32
        low = np.nextafter(np.float32(middle - error), np.float32(-np.inf))
        high = np.nextafter(np.float32(middle + error), np.float32(np.inf))
        if low < least:
            return None
        kept = np.flatnonzero(scores >= low)
        rows = kept if rows is None else rows[kept]
        if len(kept) > count:
            unsure = np.flatnonzero(scores[kept] <= high)
            leave = len(kept) - count
            # the worst of them leave; of equal ones the higher rows
            order = np.lexsort((-unsure, self._exact(query, rows[unsure])))
            rows = np.delete(rows, unsure[order[:leave]])
        return rows

    # -- any number of rows ------------------------------------------------------------------------------------

    def _by_all_scores(self, queries: Tile, found: Rows, places: Rows) -> None:
        """Fill in the sets of the queries at these places."""
        size, count = len(self), found.shape[1]
        together = max(1, min(_TOGETHER, _SCORES // size))
        errors = 2.0 * self._errors(queries)
        for first in range(0, len(places), together):
            mine = places[first : first + together]
            part = queries[mine]
            scores = np.empty((len(mine), size), dtype=np.float32)

            def score(start: int, part: Tile = part, scores: Tile = scores) -> None:
                np.matmul(part, self._matrix[start : start + _TOGETHER].T, out=scores[:, start : start + _TOGETHER])

            def decide(place: int, mine: Rows = mine, scores: Tile = scores) -> None:
                at = mine[place]
                chosen = self._decide(queries[at], None, scores[place], errors[at], count, -math.inf)
                if chosen is not None:  # with all scores it never is
                    found[at] = chosen

            for_each_block(score, range(0, size, _TOGETHER))
            for_each_block(decide, range(len(mine)))


class _Candidates:
    """Rows whose score for a query reaches its threshold, found tile by tile.

    Args:
        matrix: as of `NearestSets`.
        queries: (n, d).
        thresholds: (n,) one for each; infinite from where on too many rows reach it.
        most: about so many candidates are kept.
    """

    def __init__(self, matrix: Tile, queries: Tile, thresholds: Tile, most: int) -> None:
        self.thresholds = thresholds
        self._matrix, self._queries = matrix, queries
        self._most = 4 * max(1, most // len(queries))  # of one query
        self._kept = np.zeros(len(queries), dtype=np.int64)
        self._tiles: dict[int, tuple[Places, Places, Tile]] = {}
        self._lock = Lock()
        self._own = local()

    def collect(self, start: int) -> None:
        """Those of the tile of rows that begins there."""
        rows = self._matrix[start : start + _TOGETHER]
        scores, reached = self._room(len(rows))
        np.matmul(self._queries, rows.T, out=scores)
        np.greater_equal(scores, self.thresholds[:, None], out=reached)
        places = np.flatnonzero(reached)
        which, row = np.divmod(places, len(rows))
        with self._lock:
            self._tiles[start] = which.astype(np.uint16), row.astype(np.uint16), scores.ravel()[places]
            self._kept += np.bincount(which, minlength=len(self._kept))
            self.thresholds[self._kept > self._most] = np.inf

    def of(self, first: int, stop: int) -> Iterator[tuple[int, Rows, Tile]]:
        """Of each query between these: its place, the candidates in ascending order, their scores."""
        stop = min(stop, len(self._queries))
        which, rows, scores = [], [], []
        for start, (queries, row, score) in sorted(self._tiles.items()):
            mine = slice(*np.searchsorted(queries, (first, stop)))
            which.append(queries[mine])
            rows.append(row[mine].astype(np.int64) + start)
            scores.append(score[mine])
        order = np.argsort(np.concatenate(which), kind="stable")
        all_rows, all_scores = np.concatenate(rows)[order], np.concatenate(scores)[order]
        stops = np.cumsum(self._kept[first:stop])
        for place, begin, end in zip(range(first, stop), [0, *stops], stops, strict=False):
            if self._kept[place] <= self._most:
                yield place, all_rows[begin:end], all_scores[begin:end]

    def _room(self, rows: int) -> tuple[Tile, Mask]:
        """A tile of scores and of marks of this thread."""
        n = len(self._queries)
        if not hasattr(self._own, "scores"):
            self._own.scores = np.empty(n * _TOGETHER, dtype=np.float32)
            self._own.reached = np.empty(n * _TOGETHER, dtype=np.bool_)
        return self._own.scores[: n * rows].reshape(n, rows), self._own.reached[: n * rows].reshape(n, rows)


def _largest_length(vectors: npt.NDArray[Any], name: str) -> float:
    """Of (n, d) vectors, checked to be of whole units of 2^-15 and of length at most 1; slightly rounded up."""
    largest = [0.0]

    def check(start: int) -> None:
        steps = vectors[start : start + _TILE].astype(np.float64) * _STEPS
        squared = np.einsum("ij,ij->i", steps, steps).max(initial=0.0)
        # in this order: a comparison with what is no number is false
        if not (squared <= _STEPS**2 and (steps == np.rint(steps)).all()):
            raise ParameterError(
                f"{name} must be vectors of length at most 1 in whole units of 2^-15, as PublicFeatures makes them; "
                "got others: scale them, and round towards zero"
            )
        largest.append(float(squared))

    for_each_block(check, range(0, len(vectors), _TILE))
    return math.sqrt(max(largest)) / _STEPS * (1 + 2.0**-50)


def _log_spaced(most: int) -> Rows:
    """Ranks up to ``most``: all up to 128, then 64 for each factor of two, and the last."""
    doublings = max(0.0, math.log2(most / _ALL_RANKS))
    beyond = _ALL_RANKS * 2.0 ** (np.arange(math.ceil(doublings * _RANKS_A_DOUBLING)) / _RANKS_A_DOUBLING)
    ranks = np.concatenate([np.arange(1, min(most, _ALL_RANKS) + 1), np.rint(beyond), [most]]).astype(np.int64)
    return np.unique(ranks[ranks <= most])


def _nth_largest(values: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """(n,) the count-th largest entry of each column; minus infinity where there are fewer."""
    if len(values) < count:
        return np.full(values.shape[1], -np.inf, dtype=values.dtype)
    largest: npt.NDArray[Any] = np.partition(values, -count, axis=0)[-count]
    return largest


def _squared_norms(matrix: npt.NDArray[Any]) -> Floats:
    norms: Floats = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
    return norms
