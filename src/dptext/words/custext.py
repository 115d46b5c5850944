"""CusText: a word becomes one of its own small output set (Chen et al. 2023, arXiv:2207.01193)."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt

from dptext.checks import whole
from dptext.errors import ParameterError
from dptext.noise.selection import count_at_most
from dptext.privacy.condition import OneGroup, Requirement
from dptext.privacy.guarantee import Guarantee, NoGuarantee, PureDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.threads import for_each_block
from dptext.vectors.formats import VectorsLike
from dptext.vectors.search import ExactDistances, nearest_rows, neighbour_groups
from dptext.words.mechanism import Rows, ShownMechanism, UnknownWords

_LARGEST_SIZE = 512
_AT_A_TIME = 256
_MARGIN = 1 + 2.0**-40  # far above what float64 may err by in one exponential


class CusText(ShownMechanism):
    """Replace a word by a member y of its group with probability proportional to exp((epsilon / 2) u(w, y)).

    u is the paper's score with the Euclidean distance: scaled for each word so that its nearest member (itself) has 0
    and its farthest -1, u(w, y) = -d(w, y) / max_z d(w, z); so Delta u = 1 (Section 4.2).

    **Guarantee** (unit word, substitution *inside a group*, local). The public vocabulary is divided into groups of
    ``size`` neighbouring words (`dptext.vectors.search`: greedy, exact, the same on every machine; the paper's
    conservative mapping). For all words w, w' of one group and every output y: P(y | w) <= e^epsilon P(y | w').
    Proof: both draw among the same words with integer weights between m = ceil(2^b e^(-epsilon / 2)) and 2^b, so the
    weight of y and the sum that divides it change by a factor of at most 2^b / m <= e^(epsilon / 2) each. Rounding
    is inside these two limits: there is no slack, and no assumption on float arithmetic.
    Words of two groups are told apart with certainty: the output shows the group of each word. The statement says so
    twice, in its condition and in ``exposed``. Assumptions: public vocabulary and vectors.

    **As published** (``unsafe_as_published=True``): the output set of a word is the ``size`` words nearest to it. Two
    words have the same set only by accident, and a word that stands in one of two sets tells them apart with
    certainty: the true epsilon is infinite; the statement carries no guarantee, and a witness.
    There is a promise for pairs with equal sets only, of which no vocabulary has many.

    Args:
        epsilon: nats, for any two words of one group.
        size: words in a group, 2 to 512; the last group has up to 2 size - 1.
        unsafe_as_published: the paper's sets of nearest words, without a guarantee.
        unknown: ``"unk"``. Under ``"uniform"`` an unknown word would leave its group, so that is refused.

    Raises:
        ParameterError: a number out of range; the policy ``"uniform"``; sets as published that are all equal.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax", "fee"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]]))
    >>> mechanism = CusText(vectors, epsilon=2.0, size=2)
    >>> mechanism.probabilities("cat").round(3)
    array([0.731, 0.269, 0.   , 0.   , 0.   ])
    >>> print(mechanism.statement.guarantee, "for", mechanism.statement.neighbours)
    2-differential privacy (pure) for any two words of one group of the public partition (2 groups of 2 to 3 words)
    """

    name = "CusText"

    def __init__(
        self,
        vectors: VectorsLike,
        *,
        epsilon: float,
        size: int = 20,
        unsafe_as_published: bool = False,
        unknown: UnknownWords = "unk",
    ) -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        vectors = self.vectors
        if unknown == "uniform":
            raise ParameterError(
                "unknown must be 'unk' for CusText: a uniformly drawn word comes from any group, and would tell an "
                "unknown word from the members of its group with certainty"
            )
        self.size = whole("size", size, least=2, most=_LARGEST_SIZE)
        if unsafe_as_published and size >= len(vectors):
            raise ParameterError(
                f"{size} nearest words of {len(vectors)} are all of them: leave unsafe_as_published out"
            )
        self.unsafe_as_published = bool(unsafe_as_published)
        self.groups: Rows | None = None
        self._members, self._sizes = self._nearest() if unsafe_as_published else self._grouped()
        self._sums = self._cumulative_weights()
        for array in (self._members, self._sizes, self._sums):
            array.setflags(write=False)
        self._reason = self._witness() if unsafe_as_published else None
        self._freeze()

    def _grouped(self) -> tuple[Rows, Rows]:
        """(V, widest) the rows of each word's group, padded, and (V,) how many they are."""
        groups = neighbour_groups(self.vectors, self.size)
        members = np.zeros((len(self.vectors), max(map(len, groups))), dtype=np.int64)
        sizes = np.empty(len(self.vectors), dtype=np.int64)
        labels = np.empty(len(self.vectors), dtype=np.int64)
        for label, group in enumerate(groups):
            members[group, : group.size] = group
            sizes[group], labels[group] = group.size, label
        labels.setflags(write=False)
        self.groups = labels
        return members, sizes

    def _nearest(self) -> tuple[Rows, Rows]:
        table, size = ExactDistances(self.vectors.matrix), len(self.vectors)
        everything = table.columns(0, size)
        members = np.empty((size, self.size), dtype=np.int64)

        def find(start: int) -> None:
            rows = np.arange(start, min(start + _AT_A_TIME, size))
            for row, far in zip(rows, table.squared(table.rows(rows), everything), strict=True):
                far[row] = -1.0  # itself, also where others lie at the same point
                members[row] = np.sort(nearest_rows(far, self.size))

        for_each_block(find, range(0, size, _AT_A_TIME))
        return members, np.full(size, self.size)

    def _cumulative_weights(self) -> npt.NDArray[np.uint64]:
        """(V, widest) running sums of the integer weights; what is padded adds nothing."""
        widest = self._members.shape[1]
        scale = 2.0 ** (62 - widest.bit_length())
        least = min(scale, max(1.0, math.ceil(scale * math.exp(-self.epsilon / 2) * _MARGIN)))
        matrix = self.vectors.matrix.astype(np.float64)
        sums = np.empty(self._members.shape, dtype=np.uint64)
        for start in range(0, len(matrix), _AT_A_TIME):
            part = slice(start, start + _AT_A_TIME)
            apart = matrix[self._members[part]] - matrix[part, None]
            far = np.sqrt(np.einsum("ijk,ijk->ij", apart, apart))
            there = np.arange(widest) < self._sizes[part, None]
            farthest = np.where(there, far, 0.0).max(axis=1, keepdims=True)
            score = np.divide(far, farthest, out=np.zeros_like(far), where=farthest > 0)  # -u, from 0 to 1
            weights = np.clip(np.rint(scale * np.exp(-self.epsilon / 2 * score)), least, scale)
            sums[part] = np.cumsum(np.where(there, weights, 0.0).astype(np.uint64), axis=1)
        return sums

    def word_guarantee(self) -> Guarantee:
        """Pure inside a group; none as published."""
        return PureDP(self.epsilon) if self._reason is None else NoGuarantee(self._reason)

    @property
    def labels(self) -> Rows | None:
        return self.groups

    @property
    def claimed_epsilon(self) -> float | None:
        return None if self._reason is None else self.epsilon

    def exposes(self) -> tuple[str, ...]:
        if self._reason is not None:
            return ()
        return (
            f"the group of each word: {self._groups_in_words()} divide the public vocabulary, a word becomes a word of "
            "its own group, and words of two groups are told apart with certainty",
        )

    def _groups_in_words(self) -> str:
        assert self.groups is not None
        sizes = np.bincount(self.groups)
        if sizes.min() == sizes.max():
            return f"{sizes.size:,} groups of {sizes[0]} words"
        return f"{sizes.size:,} groups of {sizes.min()} to {sizes.max()} words"

    def requirements(self) -> tuple[Requirement, ...]:
        return () if self._reason is not None else (OneGroup(self._groups_in_words()),)

    def parameters(self) -> dict[str, Parameter]:
        digest = hashlib.sha256(np.ascontiguousarray(self._members, dtype="<i8").tobytes()).hexdigest()
        return {
            "size": self.size,
            "unsafe_as_published": self.unsafe_as_published,
            "output_sets_sha256": digest,
            **super().parameters(),
        }

    def _witness(self) -> str:
        words = self.vectors.words
        sets = [frozenset(row.tolist()) for row in self._members[: self.size + 1]]
        # one of the first size + 1 words is outside the set of the first: not all of their sets are equal
        one, other = next((0, row) for row, each in enumerate(sets) if each != sets[0])
        output = min(sets[one] - sets[other])
        share = self.probabilities(words[one])[output]
        return (
            f"the words that may come out differ from word to word: {words[one]!r} becomes {words[output]!r} with "
            f"probability {share:.3g}, {words[other]!r} never does"
        )

    def _shares(self, rows: Rows) -> npt.NDArray[np.float64]:
        shares = np.zeros((rows.size, len(self.vectors)))
        sums = self._sums[rows]
        weights = np.diff(sums, axis=1, prepend=np.uint64(0)) / sums[:, -1:]
        np.add.at(shares, (np.arange(rows.size)[:, None], self._members[rows]), weights)
        return shares

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        place = count_at_most(self._sums, rows, bits.below(self._sums[rows, -1]))
        drawn: Rows = self._members[rows, place]
        return drawn
