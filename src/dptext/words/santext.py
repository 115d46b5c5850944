"""SanText, and SanText+, which keeps frequent words more often."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise.selection import TruncatedExponential, count_at_most, largest_exponent
from dptext.privacy.guarantee import Guarantee, MetricDP, NoGuarantee, PureDP
from dptext.privacy.neighbours import OneGroup, Requirement
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.threads import for_each_block
from dptext.validation import check_float, check_int
from dptext.vectors.formats import VectorsLike
from dptext.vectors.metrics import metric_space
from dptext.vectors.search import ExactDistances, nearest_rows, neighbour_groups
from dptext.words.mechanism import Rows, SelectingMechanism, ShownMechanism

_BELOW_LARGEST = 1e-6  # nats, so that rate * reach stays below the largest exponent however it is rounded


class SanText(SelectingMechanism):
    """Replace a word by x with probability proportional to exp(-(epsilon / 2) d(w, x)), d Euclidean.

    Section 4.2 of the paper: f(x, y) = C_x exp(-(epsilon / 2) d(x, y)), over the whole vocabulary, with no threshold.

    **Guarantee** (unit word, substitution, local). For all words w, w' and x:
    P(x | w) <= exp(epsilon * d(w, w') + slack) P(x | w') (Theorem 1). Proof: by the triangle inequality the weight of
    x changes by a factor of at most exp((epsilon / 2) d(w, w')), and so does the sum over all x that divides it.
    Assumptions: public vocabulary and vectors.

    **Reach.** Weights are integers (`dptext.noise.selection`) that represent (epsilon / 2) d up to 22.8. Words beyond
    the `reach` = 45.6 / epsilon count as if at that distance: the weights are exp(-(epsilon / 2) min(d, reach)). min(d,
    reach) obeys the triangle inequality too, so the guarantee holds as printed, and no loss is larger than epsilon *
    reach. Words beyond the reach gain at most |W| e^-22.8 of the probability in total (6e-6 at 50,000 words).

    Args:
        epsilon: nats per unit of Euclidean distance.

    Raises:
        ParameterError: a number is out of range; there are more words than the sampler supports (2^20 - 2).

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> mechanism = SanText(vectors, epsilon=2.0)
    >>> mechanism.probabilities("cat").round(6)
    array([7.25077e-01, 2.66741e-01, 2.00000e-06, 8.18000e-03])
    >>> mechanism.reach == vectors.diameter_bound
    True
    """

    name = "SanText"

    def __init__(self, vectors: VectorsLike, *, epsilon: float) -> None:
        super().__init__(vectors, epsilon=epsilon)
        self._set_up(self.largest_reach())
        self._freeze()

    def largest_reach(self) -> float:
        """Return the diameter of the vocabulary, or the range of the integer weights if it is smaller."""
        representable = (largest_exponent() - _BELOW_LARGEST) / (self.epsilon / 2)
        # if all words are at one point, any reach works, but the sampler requires one above 0
        is_spread = (self.vectors.matrix != self.vectors.matrix[0]).any()
        return min(self.vectors.diameter_bound, representable) if is_spread else representable

    def _set_up(self, reach: float) -> None:
        self.reach = reach
        rate = check_float("epsilon / 2", self.epsilon / 2, above=0)
        self._space = metric_space(self.vectors, "euclidean", threshold=reach)
        self._selection = TruncatedExponential(self._space.exact, rate=rate, threshold=reach, coarse=self._space.coarse)

    def word_guarantee(self) -> Guarantee:
        """Return metric DP with distances capped at the reach, or at the diameter if it is smaller."""
        return MetricDP(self.epsilon, "euclidean", self.reach, self._space.space)

    def parameters(self) -> dict[str, Parameter]:
        return {"metric": "euclidean", "reach": self.reach, **super().parameters()}


_EXACT_UP_TO = 4_096  # words: all their weights take about a second
_AT_A_TIME = 256
_COIN = 2**53


class SanTextPlus(SanText):
    """Apply SanText to each sensitive word, and to any other word with probability p; otherwise keep the word.

    Section 4.3 of the paper. The sensitive words are public: the rarest fraction ``sensitive`` of the vocabulary (which
    is sorted by frequency), and ``"<unk>"``. With Q(x | w) for SanText's probabilities:

        P(x | w) = Q(x | w)                                  for a sensitive w,
        P(x | w) = p Q(x | w) + (1 - p) [x = w]              for any other w.

    **Guarantee** (unit word, substitution, local): pure differential privacy with the epsilon of the statement, far
    above the argument ``epsilon``, which is per unit of distance and holds for pairs of sensitive words only.
    With W the integer weights of `dptext.noise.selection`, theta their proved accuracy,

        loss of every pair <= ln(1 / p) + T + ln |W| + theta,   T = (epsilon / 2) reach.                    (bound)

    Proof: P(x | w) <= 1. P(x | w') >= p Q(x | w') = p W(w', x) / sum_y W(w', y), where all weights are
    between 2^44 exp(-T - theta) and 2^44. Up to 4,096 words the epsilon is exact instead: the largest ratio of
    two probabilities of one output (rounded up to a thousandth). A shorter ``reach`` lowers T, and with it epsilon.
    Assumptions: public vocabulary, order and vectors; the order must not come from the protected texts.
    ``claimed_epsilon`` is the paper's, which does not cover words that stay (docs/mechanisms/santext.md).

    Args:
        epsilon: SanText's epsilon, in nats per unit of Euclidean distance.
        sensitive: the fraction of the vocabulary, rarest words first, to which SanText is always applied.
        p: the probability of applying SanText to any other word (a multiple of 2^-53).
        reach: distances are capped here; None: at the largest distance that the sampler distinguishes.

    Raises:
        ParameterError: a number is out of range.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> mechanism = SanTextPlus(vectors, epsilon=2.0, sensitive=0.5, p=0.25, reach=3.0)
    >>> print(mechanism.statement.guarantee)
    4.631-differential privacy (pure)
    """

    name = "SanText+"

    def __init__(
        self,
        vectors: VectorsLike,
        *,
        epsilon: float,
        sensitive: float = 0.9,
        p: float = 0.2,
        reach: float | None = None,
    ) -> None:
        super(SanText, self).__init__(vectors, epsilon=epsilon)
        vectors = self.vectors
        self.sensitive = check_float("sensitive", sensitive, above=0, maximum=1)
        self._heads = max(1, round(check_float("p", p, above=0, maximum=1) * _COIN))
        self.p = self._heads / _COIN
        if reach is not None and check_float("reach", reach, above=0) > self.largest_reach():
            raise ParameterError(
                f"reach must be at most {self.largest_reach():.4g}, the largest distance that the sampler "
                f"distinguishes, got {reach}"
            )
        self._set_up(self.largest_reach() if reach is None else float(reach))
        size = len(vectors)
        self._may_stay = np.arange(size) < size - round(self.sensitive * size)
        self._may_stay[vectors.vocabulary.unknown_row] = False
        epsilon = self._exact_epsilon() if size <= _EXACT_UP_TO else self.epsilon_bound()
        # to a thousandth, so that logarithms of other machines give the same number
        self._pure_epsilon_of_all = math.ceil((epsilon + 1e-9) * 1000) / 1000
        self.claimed_epsilon = self.epsilon
        self._freeze()

    @property
    def slack(self) -> float:
        """Always 0: the epsilon of the statement already includes the rounding of the integers."""
        return 0.0

    def epsilon_bound(self) -> float:
        """Return the pure epsilon in closed form (bound)."""
        theta = super().slack / 4
        return math.log(1 / self.p) + self.epsilon / 2 * self.reach + math.log(len(self.vectors)) + theta

    def word_guarantee(self) -> PureDP:
        """Return pure DP: no metric bound holds for words that may stay."""
        return PureDP(self._pure_epsilon_of_all)

    def exposes(self) -> tuple[str, ...]:
        count = int(np.count_nonzero(self._may_stay))
        if count == 0:
            return ()
        return (
            f"frequent words: each of the {count:,} most frequent public words stays with probability at least "
            f"{1 - self.p:.4g}, so a frequent word in the output is probably a word of the text "
            "(this is within the epsilon of the statement)",
        )

    def parameters(self) -> dict[str, Parameter]:
        return {"sensitive": self.sensitive, "p": self.p, **super().parameters()}

    def assumptions(self) -> tuple[str, ...]:
        return (*super().assumptions(), "the list of frequent words is public: it was not counted in protected texts")

    def _exact_epsilon(self) -> float:
        size = len(self.vectors)
        maximum, minimum = np.zeros(size), np.ones(size)
        for start in range(0, size, _AT_A_TIME):
            shares = self._shares(np.arange(start, min(start + _AT_A_TIME, size)))
            np.maximum(maximum, shares.max(axis=0), out=maximum)
            np.minimum(minimum, shares.min(axis=0), out=minimum)
        return float(np.log(maximum / minimum).max())

    def _shares(self, rows: Rows) -> npt.NDArray[np.float64]:
        shares = super()._shares(rows)
        stays = np.flatnonzero(self._may_stay[rows])
        shares[stays] *= self.p
        shares[stays, rows[stays]] += 1 - self.p
        return shares

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        draws = rows.copy()
        coin = bits.below(np.full(rows.size, _COIN, dtype=np.uint64))
        through = np.flatnonzero(~self._may_stay[rows] | (coin < np.uint64(self._heads)))
        draws[through] = super()._draw(rows[through], bits)
        return draws


_LARGEST_SIZE = 512
_MARGIN = 1 + 2.0**-40  # far above the float64 error of one exponential


class CusText(ShownMechanism):
    """Replace a word by a member y of its group with probability proportional to exp((epsilon / 2) u(w, y)).

    u is the paper's score with the Euclidean distance: scaled for each word so that its nearest member (itself) has 0
    and its farthest -1, u(w, y) = -d(w, y) / max_z d(w, z); so Delta u = 1 (Section 4.2).

    **Guarantee** (unit word, substitution *inside a group*, local). The public vocabulary is divided into groups of
    ``size`` neighbouring words (`dptext.vectors.search`: greedy, exact, the same on every machine; the paper's
    conservative mapping). For all words w, w' of one group and every output y: P(y | w) <= e^epsilon P(y | w').
    Proof: both draw among the same words with integer weights between m = ceil(2^b e^(-epsilon / 2)) and 2^b, so the
    weight of y and its normalising sum change by a factor of at most 2^b / m <= e^(epsilon / 2) each. Rounding
    is inside these two limits: there is no slack, and no assumption on float arithmetic.
    Words of different groups are distinguished with certainty (condition and ``exposed`` of the statement).
    Assumptions: public vocabulary and vectors.

    **As published** (``unsafe_as_published=True``): the output set of a word is the ``size`` words nearest to it. A
    word in only one of two sets distinguishes them with certainty: the true epsilon is infinite, and the statement
    has a witness instead of a guarantee.

    Args:
        epsilon: nats, for any two words of one group.
        size: number of words per group, 2 to 512; the last group has up to 2 size - 1.
        unsafe_as_published: use the paper's sets of nearest words, without a guarantee.

    Raises:
        ParameterError: a number is out of range; all published sets are equal.

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
        self, vectors: VectorsLike, *, epsilon: float, size: int = 20, unsafe_as_published: bool = False
    ) -> None:
        super().__init__(vectors, epsilon=epsilon)
        vectors = self.vectors
        self.size = check_int("size", size, minimum=2, maximum=_LARGEST_SIZE)
        if unsafe_as_published and size >= len(vectors):
            raise ParameterError(f"{size} nearest words of {len(vectors)} are all words: omit unsafe_as_published")
        self.unsafe_as_published = bool(unsafe_as_published)
        self.claimed_epsilon = self.epsilon if unsafe_as_published else None
        self._members, self._sizes = self._nearest() if unsafe_as_published else self._grouped()
        self._sums = self._cumulative_weights()
        for array in (self._members, self._sizes, self._sums):
            array.setflags(write=False)
        self._reason = self._witness() if unsafe_as_published else None
        self._freeze()

    def _grouped(self) -> tuple[Rows, Rows]:
        """Return (V, widest) rows of each word's group, padded, and (V,) their number."""
        groups = neighbour_groups(self.vectors, self.size)
        members = np.zeros((len(self.vectors), max(map(len, groups))), dtype=np.int64)
        sizes = np.empty(len(self.vectors), dtype=np.int64)
        labels = np.empty(len(self.vectors), dtype=np.int64)
        for label, group in enumerate(groups):
            members[group, : group.size] = group
            sizes[group], labels[group] = group.size, label
        labels.setflags(write=False)
        self.labels = labels
        return members, sizes

    def _nearest(self) -> tuple[Rows, Rows]:
        table, size = ExactDistances(self.vectors.matrix), len(self.vectors)
        everything = table.columns(0, size)
        members = np.empty((size, self.size), dtype=np.int64)

        def find(start: int) -> None:
            rows = np.arange(start, min(start + _AT_A_TIME, size))
            for row, far in zip(rows, table.squared(table.rows(rows), everything), strict=True):
                far[row] = -1.0  # the word itself, even if others are at the same point
                members[row] = np.sort(nearest_rows(far, self.size))

        for_each_block(find, range(0, size, _AT_A_TIME))
        return members, np.full(size, self.size)

    def _cumulative_weights(self) -> npt.NDArray[np.uint64]:
        """Return (V, widest) running sums of the integer weights; padding adds nothing."""
        widest = self._members.shape[1]
        scale = 2.0 ** (62 - widest.bit_length())
        minimum = min(scale, max(1.0, math.ceil(scale * math.exp(-self.epsilon / 2) * _MARGIN)))
        matrix = self.vectors.matrix.astype(np.float64)
        sums = np.empty(self._members.shape, dtype=np.uint64)
        for start in range(0, len(matrix), _AT_A_TIME):
            part = slice(start, start + _AT_A_TIME)
            distance = matrix[self._members[part]] - matrix[part, None]
            far = np.sqrt(np.einsum("ijk,ijk->ij", distance, distance))
            present = np.arange(widest) < self._sizes[part, None]
            farthest = np.where(present, far, 0.0).max(axis=1, keepdims=True)
            score = np.divide(far, farthest, out=np.zeros_like(far), where=farthest > 0)  # -u, from 0 to 1
            weights = np.clip(np.rint(scale * np.exp(-self.epsilon / 2 * score)), minimum, scale)
            sums[part] = np.cumsum(np.where(present, weights, 0.0).astype(np.uint64), axis=1)
        return sums

    def word_guarantee(self) -> Guarantee:
        """Return pure DP inside a group; no guarantee as published."""
        return PureDP(self.epsilon) if self._reason is None else NoGuarantee(self._reason)

    def exposes(self) -> tuple[str, ...]:
        if self._reason is not None:
            return ()
        return (
            f"the group of each word: {self._groups_in_words()} divide the public vocabulary, a word becomes a word of "
            "its own group, so words of different groups are distinguished with certainty",
        )

    def _groups_in_words(self) -> str:
        assert self.labels is not None
        sizes = np.bincount(self.labels)
        largest = "" if sizes.min() == sizes.max() else f" to {sizes.max()}"
        return f"{sizes.size:,} groups of {sizes.min()}{largest} words"

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
        one, other = next((0, row) for row, entry in enumerate(sets) if entry != sets[0])
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
        return self._members[rows, place]
