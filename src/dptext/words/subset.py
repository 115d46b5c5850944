"""SubsetSelection: replace a word by one of its k most similar words, or by any other, with pure DP.

Derivation: docs/mechanisms/subset-selection.md#words-subset
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise import subset_selection
from dptext.noise.selection import KeptRows, count_at_most
from dptext.noise.subset_selection import Profile, best_size
from dptext.privacy.guarantee import Guarantee, PureDP, product_upwards
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.threads import for_each_block
from dptext.validation import check_choice, check_int
from dptext.vectors.formats import VectorsLike
from dptext.vectors.metrics import directions
from dptext.vectors.search import ExactDistances
from dptext.words.mechanism import BeyondWords, Floats, Rows, ShownMechanism, UnknownWords

Similarity: TypeAlias = Literal["cosine", "euclidean"]

_BLOCK = 512
_TILE = 4 * _BLOCK  # columns in a tile, which stays in the cache
_BATCH = 256  # words whose sets are sought together
_ENTRIES = 2**22  # distances kept meanwhile, at most: more (words on one point, say), and they are sought in two parts
_PROBED = 8192  # rows that give the first bound
_CACHE_BYTES = 256 << 20
_PAIRS = 256  # (word, block) of which distances are computed together
_SPREAD_SAMPLE = 1024  # points from which the spread is estimated
_FINE = 1 / 32  # of the typical length
_PROFILED = 32  # words in the profile of similarities by rank
_RANKS = 256


class SubsetSelection(ShownMechanism):
    """Replace a word by one of the k words most like it with probability a / T each, by any other with b / T each.

    a / b is e^epsilon, rounded down to whole numbers, and T = k a + (N - k) b (`dptext.noise.subset_selection`).

    **Guarantee** (unit word, substitution, local). For *any* two words w, w' and every output x:
    P(x | w) <= e^epsilon P(x | w'). It is pure, holds for all pairs of words alike, and has no slack: weights are whole
    numbers, T is the same for every word, and a word's set depends on the word and the public vectors alone.
    Assumptions: public vocabulary and vectors.

    **A document** of n words costs n epsilon; with ``max_words`` n no document costs more, for words after the n-th
    become ``"<unk>"`` unread, or the document ends there (``beyond="drop"``). To spend E on n words,
    use epsilon = E / n.

    **k.** A word stays with probability 1 / (k + (N - k) e^-epsilon). By default k maximises the expected similarity of
    a draw (`dptext.noise.subset_selection.best_size`): at 50,000 words of GloVe 5,504 at epsilon 3, 184 at 8, 5 at 12.

    Args:
        epsilon: nats for a word, for any two words.
        size: k, the word itself included; None: the best one for this epsilon by a public sample of the vectors,
            frequent words more often.
        similarity: ``"cosine"``, or ``"euclidean"`` (the nearer, the more alike).
        max_words: how many words of a document are looked at.
        beyond: what becomes of the words after these, ``"unk"`` or ``"drop"``.

    Raises:
        ParameterError: a number out of range (epsilon up to about 36 - ln k); ``beyond`` without ``max_words``.

    Source: Wang et al. 2016 (arXiv:1607.08025), Ye and Barg 2018 (arXiv:1702.00610).

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax", "fee"], [[1.0, 5.0], [2.0, 5.0], [9.0, 1.0], [9.0, 0.0]]))
    >>> mechanism = SubsetSelection(vectors, epsilon=2.0, size=2)
    >>> mechanism.probabilities("cat").round(3)
    array([0.416, 0.416, 0.056, 0.056, 0.056])
    >>> print(mechanism.statement.guarantee, "for", mechanism.statement.neighbours)
    2-differential privacy (pure) for any two words that ...
    """

    name = "SubsetSelection"

    def __init__(
        self,
        vectors: VectorsLike,
        *,
        epsilon: float,
        size: int | None = None,
        similarity: Similarity = "cosine",
        max_words: int | None = None,
        beyond: BeyondWords = "unk",
        unknown: UnknownWords = "unk",
    ) -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        vectors = self.vectors
        self.similarity: Similarity = check_choice("similarity", similarity, get_args(Similarity))
        if max_words is not None:
            self.max_words = check_int("max_words", max_words, minimum=1)
            self.document_epsilon = product_upwards(self.max_words, self.epsilon)
        self.beyond = check_choice("beyond", beyond, get_args(BeyondWords))
        if self.beyond != "unk" and max_words is None:
            raise ParameterError("beyond says what becomes of the words after max_words: give both, or leave it out")
        cosine = self.similarity == "cosine"
        points = directions(vectors.matrix) if cosine else vectors.matrix.astype(np.float64)
        table = _grid(points)
        if size is None:
            similarity_of = (lambda distances: 1.0 - distances**2 / 2.0) if cosine else np.negative
            size = best_size(self.epsilon, _profile(table, similarity_of))
        self._selection = subset_selection.SubsetSelection(len(vectors), size, self.epsilon)
        self._sets = _Sets(table, self.size)
        self._freeze()

    @property
    def size(self) -> int:
        """k, how many words a word's set has."""
        return self._selection.size

    def word_guarantee(self) -> Guarantee:
        """Pure, for any two words."""
        return PureDP(self.epsilon)

    def document_guarantee(self, longest: int) -> Guarantee:
        return super().document_guarantee(longest if self.max_words is None else min(longest, self.max_words))

    def parameters(self) -> dict[str, Parameter]:
        limited = self.max_words is not None
        limit: dict[str, Parameter] = {"max_words": self.max_words, "beyond": self.beyond} if limited else {}
        return {"size": self.size, "similarity": self.similarity, **limit, **super().parameters()}

    @classmethod
    def arguments_in(cls, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
        limit = ("max_words", "beyond") if "max_words" in parameters else ()
        return {name: parameters[name] for name in ("epsilon", "unknown", "size", "similarity", *limit)}

    def _shares(self, rows: Rows) -> Floats:
        inside, outside = self._selection.probabilities
        return np.where(self._sets.members(rows), inside, outside)

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        draws, places = self._selection.choose(bits, rows.size)
        inside = np.flatnonzero(places >= 0)
        draws[inside] = self._sets.member(rows[inside], places[inside])
        return draws


def _grid(points: Floats) -> ExactDistances:
    """Return distances on a coarse grid if it is fine enough for how far the points lie apart, else on a fine one."""
    coarse = ExactDistances(points, dtype=np.float32)
    some = points[:: -(-len(points) // _SPREAD_SAMPLE)]
    typical = np.median(np.sqrt(((some - np.median(some, axis=0)) ** 2).sum(axis=1)))
    return coarse if coarse.rounding <= _FINE * typical else ExactDistances(points)


def _profile(table: ExactDistances, similarity: Any) -> Profile:
    """Mean similarity by rank, over words of running text (rank r with weight 1 / r)."""
    size = len(table)
    ranks = np.unique(np.geomspace(1, size - 1, min(size - 1, _RANKS)).astype(np.int64))
    ranks = np.append(ranks, size)
    words = np.unique(np.geomspace(1, size, _PROFILED).astype(np.int64)) - 1
    cumulative = np.empty((words.size, ranks.size))

    def look(place: int) -> None:
        left = table.rows(words[place : place + 1])
        squared = np.empty(size, dtype=left.dtype)
        for start in range(0, size, _TILE):
            stop = min(start + _TILE, size)
            squared[start:stop] = table.squared(left, table.columns(start, stop))[0]
        squared.sort()
        cumulative[place] = np.cumsum(similarity(np.sqrt(squared, dtype=np.float64) * table.step))[ranks - 1]

    for_each_block(look, range(words.size))
    return Profile(ranks, cumulative.mean(axis=0), candidates=size)


def _everything(left: Any) -> tuple[Any, Any]:
    shape = (len(left), 1)
    return np.full(shape, -2.0, dtype=left.dtype), np.full(shape, np.inf, dtype=left.dtype)


def _where(mask: npt.NDArray[np.bool_]) -> Rows:
    """`np.flatnonzero` of a contiguous mask with few true entries and a multiple of 8 of them, in half the time."""
    words = mask.reshape(-1).view(np.uint64)
    some = np.flatnonzero(words != 0)
    within = np.flatnonzero(words[some].view(np.bool_))
    result: Rows = some[within // 8] * 8 + within % 8
    return result


def _block_counts(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """(n, blocks) how many of each block are true; eight of them in one word, of which no sum is above 64."""
    words = mask.view(np.uint64).reshape(len(mask), -1, _BLOCK // 8).sum(axis=2, dtype=np.uint64)
    counts: npt.NDArray[np.int64] = words.view(np.uint8).reshape(len(mask), -1, 8).sum(axis=2, dtype=np.int64)
    return counts


class _Sets:
    """The k nearest rows of each row of a table, itself among them; see the module's docstring."""

    def __init__(self, table: ExactDistances, size: int) -> None:
        self._table, self._size = table, size
        self._blocks = -(-len(table) // _BLOCK)
        self._probes = table.columns(0, len(table), -(-len(table) // _PROBED))
        self._kept = KeptRows(
            len(table),
            most_bytes=_CACHE_BYTES,
            sums=((self._blocks,), np.uint32),
            farthest=((), np.float64),
            last=((), np.int64),
        )

    def member(self, rows: Rows, places: Rows) -> Rows:
        """(n,) the members with the given numbers (from 0, in the order of rows) of the sets of (n,) rows."""
        result = np.empty(rows.size, dtype=np.int64)
        for part in self._kept.parts(rows, self._find_all):
            result[part] = self._members_at(rows[part], places[part])
        return result

    def members(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """(n, V) whether each row is in the sets of (n,) rows."""
        result = np.empty((rows.size, len(self._table)), dtype=np.bool_)
        for part in self._kept.parts(rows, self._find_all):
            left = self._table.rows(rows[part])
            for start in range(0, len(self._table), _TILE):
                stop = min(start + _TILE, len(self._table))
                result[part, start:stop] = self._is_member(rows[part], left, start, stop)
        return result

    def _is_member(self, rows: Rows, left: Any, start: int, stop: int) -> npt.NDArray[np.bool_]:
        distance = self._squared_distances(rows, left, start, stop)
        slots = self._kept.slots(rows)
        farthest, last = self._kept["farthest"][slots, None], self._kept["last"][slots, None]
        # distances are whole numbers, so before the last row a set ends at its farthest, after it one step below
        inside: npt.NDArray[np.bool_] = distance <= (farthest - (last < start)).astype(distance.dtype)
        part = np.flatnonzero((last >= start) & (last < stop - 1))
        inside[part] &= (distance[part] < farthest[part]) | (np.arange(start, stop) <= last[part])
        return inside

    def _squared_distances(self, rows: Rows, left: Any, start: int, stop: int, room: Any = None) -> npt.NDArray[Any]:
        """(n, stop - start) squared distances in squared steps; a row's own is -1, before all others."""
        out = None if room is None else room.reshape(rows.size, stop - start)
        distance = self._table.squared(left, self._table.columns(start, stop), out)
        candidates = np.flatnonzero((rows >= start) & (rows < stop))
        distance[candidates, rows[candidates] - start] = -1.0
        return distance

    def _find_all(self, rows: Rows, slots: Rows) -> None:
        parts = [slice(start, start + _BATCH) for start in range(0, rows.size, _BATCH)]
        for_each_block(lambda part: self._find(rows[part], slots[part]), parts)

    def _find(self, rows: Rows, slots: Rows, *, bounded: bool = True) -> None:
        """Where the sets of some rows end, and how many members lie up to the end of each block."""
        left = self._table.rows(rows)
        low, high = self._bounds(left) if bounded else _everything(left)
        room = np.empty((rows.size, _TILE), dtype=left.dtype)
        below, between = np.zeros((2, rows.size, _TILE), dtype=np.bool_)
        counts = np.empty((rows.size, self._blocks), dtype=np.int64)
        result, entries = [], 0
        for start in range(0, len(self._table), _TILE):
            stop = min(start + _TILE, len(self._table))
            width = stop - start
            distance = self._squared_distances(rows, left, start, stop, room.reshape(-1)[: rows.size * width])
            for mask, bound in ((below, low), (between, high)):
                np.less_equal(distance, bound, out=mask[:, :width])
                mask[:, width:] = False
            between ^= below
            blocks = slice(start // _BLOCK, -(-stop // _BLOCK))
            counts[:, blocks] = _block_counts(below)[:, : blocks.stop - blocks.start]
            flat = _where(between)
            which, column = flat // _TILE, flat % _TILE
            distances = distance.reshape(-1)[which * width + column]
            result.append((which.astype(np.uint16), (column + start).astype(np.int32), distances))
            entries += flat.size
            if entries > _ENTRIES and rows.size > 1:
                for part in (slice(rows.size // 2), slice(rows.size // 2, None)):
                    self._find(rows[part], slots[part], bounded=bounded)
                return
        which, columns, distance = (np.concatenate(entry) for entry in zip(*result, strict=True))
        order = np.argsort(which, kind="stable")  # by row; columns stay in order
        which, columns, distance = which[order], columns[order], distance[order]
        ends = np.searchsorted(which, np.arange(rows.size + 1))
        target = self._size - counts.sum(axis=1)  # of those between the bounds
        farthest, last = np.full(rows.size, -np.inf, dtype=distance.dtype), np.full(rows.size, -1)
        sound = (target > 0) & (target <= np.diff(ends))
        for position in np.flatnonzero(sound):
            candidates = distance[ends[position] : ends[position + 1]]
            farthest[position] = np.partition(candidates, target[position] - 1)[target[position] - 1]
            ties = np.flatnonzero(candidates == farthest[position])
            last[position] = columns[
                ends[position] + ties[target[position] - np.count_nonzero(candidates < farthest[position]) - 1]
            ]
        edge = farthest[which]
        inside = (distance < edge) | ((distance == edge) & (columns <= last[which]))
        cells = which[inside].astype(np.int64) * self._blocks + columns[inside] // _BLOCK
        counts += np.bincount(cells, minlength=counts.size).reshape(counts.shape)
        self._kept["sums"][slots] = np.cumsum(counts, axis=1)
        self._kept["farthest"][slots], self._kept["last"][slots] = farthest, last
        if not sound.all():
            self._find(rows[~sound], slots[~sound], bounded=False)

    def _bounds(self, left: Any) -> tuple[Any, Any]:
        """(n, 1) distances each between which the set most likely ends, estimated from the probed rows."""
        low, high = _everything(left)
        probed = self._probes.shape[1]
        expected = self._size * probed / len(self._table)
        spread = 3.0 * math.sqrt(expected) + 3.0
        ranks = [rank for rank in (math.floor(expected - spread), math.ceil(expected + spread)) if 0 <= rank < probed]
        if ranks:
            distance = self._table.squared(left, self._probes)
            for rank in reversed(ranks):  # separately: two ranks in one call take numpy eight times as long
                distance = np.partition(distance[:, : ranks[-1] + 1] if rank < ranks[-1] else distance, rank, axis=1)
                if rank < expected:
                    low = distance[:, rank, None]
                else:
                    high = distance[:, rank, None]
        return low, high

    def _members_at(self, rows: Rows, places: Rows) -> Rows:
        sums, slots = self._kept["sums"], self._kept.slots(rows)
        block = count_at_most(sums, slots, places)
        before = np.where(block > 0, sums[slots, np.maximum(block - 1, 0)], 0).astype(np.int64)
        rest = places - before
        # each (block, row) is computed once, and a block's columns are gathered once for many rows
        pairs, pair = np.unique(block * len(self._table) + rows, return_inverse=True)
        pair_block, pair_row = np.divmod(pairs, len(self._table))
        order = np.argsort(pair, kind="stable")
        sorted_pair = pair[order]
        edges = np.flatnonzero(np.diff(pair_block, prepend=-1, append=-1)).tolist()
        tasks = [(s, min(s + _PAIRS, stop)) for first, stop in pairwise(edges) for s in range(first, stop, _PAIRS)]
        result = np.empty(rows.size, dtype=np.int64)

        def find(task: tuple[int, int]) -> None:
            start, stop = task
            first = int(pair_block[start]) * _BLOCK
            candidates = pair_row[start:stop]
            left = self._table.rows(candidates)
            inside = self._is_member(candidates, left, first, min(first + _BLOCK, len(self._table)))
            members = np.flatnonzero(inside)
            begins = np.searchsorted(members, np.arange(len(inside)) * inside.shape[1])
            part = order[slice(*np.searchsorted(sorted_pair, (start, stop)))]
            result[part] = first + members[begins[pair[part] - start] + rest[part]] % inside.shape[1]

        for_each_block(find, tasks)
        return result
