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
from dptext.vectors.search import ExactDistances, nearest_rows
from dptext.words.mechanism import Floats, Rows, ShownMechanism

Similarity: TypeAlias = Literal["cosine", "euclidean"]

_BLOCK = 512
_TILE = 4 * _BLOCK  # columns in a tile, which stays in the cache
_BATCH = 64  # words whose sets are computed together
_PROBED = 8192  # words that give the first bound
_CACHE_BYTES = 256 << 20
_PAIRS = 256  # (word, block) pairs whose distances are computed together
_SPREAD_SAMPLE = 1024  # points from which the spread is estimated
_FINE = 1 / 32  # of the typical length
_PROFILED = 32  # words in the profile of similarities by rank
_RANKS = 256


class SubsetSelection(ShownMechanism):
    """Replace a word by each of its k most similar words with probability a / T, by any other word with b / T.

    a / b is e^epsilon, rounded down to whole numbers, and T = k a + (N - k) b (`dptext.noise.subset_selection`).

    **Guarantee** (unit word, substitution, local). For *any* two words w, w' and every output x:
    P(x | w) <= e^epsilon P(x | w'). It is pure, holds for all pairs of words alike, and has no slack: weights are whole
    numbers, T is the same for every word, and a word's set depends on the word and the public vectors alone.
    Assumptions: public vocabulary and vectors.

    **Documents.** A document of n words spends n times epsilon; with ``max_words`` n no document spends more, because
    later words become ``"<unk>"`` without being read. To spend E on n words, use epsilon = E / n.

    **k.** A word stays with probability 1 / (k + (N - k) e^-epsilon). By default k maximises the expected similarity of
    a draw (`dptext.noise.subset_selection.best_size`): at 50,000 words of GloVe 5,504 at epsilon 3, 184 at 8, 5 at 12.

    Args:
        epsilon: privacy budget per word in nats, for any two words.
        size: k, including the word itself; None: the best k for this epsilon on a public sample of the vectors, in
            which frequent words are more likely.
        similarity: ``"cosine"``, or ``"euclidean"`` (nearer words are more similar).
        max_words: maximum number of words read per document.

    Raises:
        ParameterError: a number is out of range (epsilon up to about 36 - ln k).

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
    ) -> None:
        super().__init__(vectors, epsilon=epsilon)
        vectors = self.vectors
        self.similarity: Similarity = check_choice("similarity", similarity, get_args(Similarity))
        if max_words is not None:
            self.max_words = check_int("max_words", max_words, minimum=1)
            self.document_epsilon = product_upwards(self.max_words, self.epsilon)
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
        """k, the number of words in a word's set."""
        return self._selection.size

    def word_guarantee(self) -> Guarantee:
        """Return pure DP, for any two words."""
        return PureDP(self.epsilon)

    def document_guarantee(self, longest: int) -> Guarantee:
        return super().document_guarantee(longest if self.max_words is None else min(longest, self.max_words))

    def parameters(self) -> dict[str, Parameter]:
        limit: dict[str, Parameter] = {}
        if self.max_words is not None:
            limit = {"max_words": self.max_words, "beyond": "unk"}
        return {"size": self.size, "similarity": self.similarity, **limit, **super().parameters()}

    @classmethod
    def arguments_in(cls, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
        limit = ("max_words",) if "max_words" in parameters else ()
        return {name: parameters[name] for name in ("epsilon", "size", "similarity", *limit)}

    def _shares(self, rows: Rows) -> Floats:
        inside, outside = self._selection.probabilities
        return np.where(self._sets.members(rows), inside, outside)

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        draws, places = self._selection.choose(bits, rows.size)
        inside = np.flatnonzero(places >= 0)
        draws[inside] = self._sets.member(rows[inside], places[inside])
        return draws


def _grid(points: Floats) -> ExactDistances:
    """Return distances on a coarse grid if it is fine enough for the spread of the points, else on a fine one."""
    coarse = ExactDistances(points, dtype=np.float32)
    some = points[:: -(-len(points) // _SPREAD_SAMPLE)]
    typical = np.median(np.sqrt(((some - np.median(some, axis=0)) ** 2).sum(axis=1)))
    return coarse if coarse.rounding <= _FINE * typical else ExactDistances(points)


def _profile(table: ExactDistances, similarity: Any) -> Profile:
    """Return the mean similarity by rank, over words of running text (rank r with weight 1 / r)."""
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


class _Sets:
    """The k nearest rows of each row of a table, itself among them."""

    def __init__(self, table: ExactDistances, size: int) -> None:
        self._table, self._size = table, size
        self._blocks = -(-len(table) // _BLOCK)
        self._kept = KeptRows(
            len(table),
            most_bytes=_CACHE_BYTES,
            sums=((self._blocks,), np.uint32),
            farthest=((), np.float64),
            last=((), np.int64),
        )

    def member(self, rows: Rows, places: Rows) -> Rows:
        """Return (n,) members of the sets of (n,) rows, by index in the set (from 0, in the order of rows)."""
        result = np.empty(rows.size, dtype=np.int64)
        for part in self._kept.parts(rows, self._find_all):
            result[part] = self._members_at(rows[part], places[part])
        return result

    def members(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return (n, V) masks of the sets of (n,) rows."""
        result = np.empty((rows.size, len(self._table)), dtype=np.bool_)
        for part in self._kept.parts(rows, self._find_all):
            left = self._table.rows(rows[part])
            for start in range(0, len(self._table), _TILE):
                stop = min(start + _TILE, len(self._table))
                result[part, start:stop] = self._is_member(rows[part], left, start, stop)
        return result

    def _is_member(self, rows: Rows, left: Any, start: int, stop: int) -> npt.NDArray[np.bool_]:
        distance, slots = self._squared_distances(rows, left, start, stop), self._kept.slots(rows)
        farthest, last = self._kept["farthest"][slots, None], self._kept["last"][slots, None]
        inside: npt.NDArray[np.bool_] = distance < farthest
        inside |= (distance == farthest) & (np.arange(start, stop) <= last)
        return inside

    def _squared_distances(self, rows: Rows, left: Any, start: int, stop: int) -> npt.NDArray[Any]:
        """Return (n, stop - start) squared distances in squared steps; a row's own is -1, below all others."""
        distance = self._table.squared(left, self._table.columns(start, stop))
        inside = np.flatnonzero((rows >= start) & (rows < stop))
        distance[inside, rows[inside] - start] = -1.0
        return distance

    def _find_all(self, rows: Rows, slots: Rows) -> None:
        parts = [slice(start, start + _BATCH) for start in range(0, rows.size, _BATCH)]
        for_each_block(lambda part: self._find(rows[part], slots[part]), parts)

    def _find(self, rows: Rows, slots: Rows) -> None:
        """Find where the sets of some rows end, and count the members up to the end of each block."""
        left, size = self._table.rows(rows), len(self._table)
        distance = np.empty((rows.size, size), dtype=left.dtype)
        for start in range(0, size, _TILE):
            stop = min(start + _TILE, size)
            distance[:, start:stop] = self._squared_distances(rows, left, start, stop)
        for slot, far in zip(slots, distance, strict=True):
            # bound from some of the words; the set very likely lies below it
            some = far[:: -(-size // _PROBED)]
            rank = math.ceil(self._size * some.size / size * 1.2 + 8)
            near = np.flatnonzero(far <= np.partition(some, rank)[rank]) if rank < some.size else np.arange(size)
            if near.size < self._size:
                near = np.arange(size)
            members = near[nearest_rows(far[near], self._size)]
            self._kept["farthest"][slot] = farthest = far[members].max()
            self._kept["last"][slot] = members[far[members] == farthest].max()
            self._kept["sums"][slot] = np.cumsum(np.bincount(members // _BLOCK, minlength=self._blocks))

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
