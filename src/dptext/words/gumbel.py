"""The truncated Gumbel mechanism (Xu, Feyisetan, Aggarwal, Xu and Teissier 2021, FLAIRS 34): as published only."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.checks import number
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.guarantee import Guarantee, NoGuarantee
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.threads import for_each_block
from dptext.vectors.formats import VectorsLike
from dptext.vectors.search import ExactDistances, nearest_rows
from dptext.words.mechanism import Rows, UnknownWords, WordMechanism

_AT_A_TIME = 256
_WITNESS_ROWS = 16
_NO_PROOF = (
    "the truncated Gumbel mechanism has no proof that holds: only the k nearest words of a word can come out, k is "
    "seldom above 2 ln |W|, and which words these are jumps from a word to its neighbours"
)


class TruncatedGumbel(WordMechanism):
    """Draw k from a truncated Poisson law; of the k nearest words output the one whose noisy distance is smallest.

    The paper's algorithm: k is Poisson with mean ln |W|, truncated to 1 .. |W|; the k words nearest to w, itself
    first, get d(w, x) + G each, where G is Gumbel of scale b truncated to [-D, D], D the largest distance between two
    words; the smallest wins. The paper prints metric DP, P(x | w) <= exp(epsilon d(w, w')) P(x | w'), for
    epsilon > 2 (1 + ln |W|) / m, m the smallest distance, with b as in `published_scale` (formulas after the paper and
    a public re-implementation).

    **Guarantee**: none; published for comparison, with ``unsafe_as_published=True`` only. What is true:

    - The noise is not the trouble: with D as wide as the vocabulary every candidate may win, for every k.
    - The number of candidates is. x comes out of w only when k reaches the place r of x in the list of w, so
      P(x | w) <= P(k >= r), which falls like (ln |W|)^r / r!; but P(x | x) >= P(k = 1). So the pair loses at least

          ln P(k = 1) - ln P(k >= r),   about r ln r for r beyond 2 ln |W|,                                (witness)

      for every b, and the printed promise needs epsilon d(w, x) to be as much for *all* pairs. Places are no
      distances: r goes up to |W| while d stays below D. At 50,000 words the farthest pair loses at least 370,000 nats
      where an epsilon of 100 promises 1,300. And no sampler of 53 bits ever draws k above 80: what is farther never
      comes out, so the loss in practice is infinite.
    - The printed promise could hold only where epsilon d >= (witness) for all pairs: fewer than some dozens of words,
      or words on a line. No word vectors are like that, so nothing is left to implement soundly but what is here:
      with all words as candidates and Gumbel noise that is not truncated, added to -d, the largest is chosen with the
      odds of `SanText`; with the threshold of `TEM` it takes density into account.

    Args:
        epsilon: the paper's, nats a unit of distance; not what holds.
        scale: b itself, where epsilon is below what the paper's formula covers.
        unsafe_as_published: True, or the mechanism is refused.

    Raises:
        RefusedError: without ``unsafe_as_published=True``, with the reason.
        ParameterError: a number out of range; an epsilon for which the paper has no scale, and no ``scale``.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> mechanism = TruncatedGumbel(vectors, epsilon=20.0, unsafe_as_published=True)
    >>> mechanism.statement.epsilon, mechanism.statement.claimed_epsilon
    (inf, 20.0)
    """

    name = "TruncatedGumbel"

    def __init__(
        self,
        vectors: VectorsLike,
        *,
        epsilon: float,
        scale: float | None = None,
        unsafe_as_published: bool = False,
        unknown: UnknownWords = "unk",
    ) -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        vectors = self.vectors
        if not unsafe_as_published:
            raise RefusedError(
                f"{_NO_PROOF}; use TEM or SanText, or unsafe_as_published=True to compare (the statement then promises "
                "nothing)"
            )
        self.unsafe_as_published = True
        self._table = ExactDistances(vectors.matrix)
        self._right = self._table.columns(0, len(vectors))
        self._log_k = _log_poisson(math.log(len(vectors)), len(vectors))
        nearest, self.farthest = self._extremes()
        if scale is None:
            self.scale = published_scale(self.epsilon, len(vectors), nearest, self.farthest)
        else:
            self.scale = number("scale", scale, above=0)
        self._reason = self._witness()
        self._freeze()

    def word_guarantee(self) -> Guarantee:
        """None."""
        return NoGuarantee(self._reason)

    @property
    def claimed_epsilon(self) -> float:
        return self.epsilon

    def parameters(self) -> dict[str, Parameter]:
        own = {"scale": self.scale, "farthest": self.farthest, "unsafe_as_published": True}
        return {**own, **super().parameters()}

    def least_loss(self, word: str) -> npt.NDArray[np.float64]:
        """(V,) what the pairs of ``word`` with each word lose at least (witness); 0 for itself."""
        row = self.vectors.vocabulary.row(word)
        place = np.empty(len(self.vectors), dtype=np.int64)
        place[self._list_of(self._far(np.array([row]))[0], row, len(self.vectors))] = np.arange(len(self.vectors))
        at_least = np.logaddexp.accumulate(self._log_k[::-1])[::-1]
        losses: npt.NDArray[np.float64] = np.maximum(self._log_k[0] - at_least[place], 0.0)
        return losses

    def _witness(self) -> str:
        """The reason, with the pair among the first words whose least loss exceeds the printed one most."""
        words, best = self.vectors.words, (0.0, 0, 0, 0.0)
        for row in range(min(_WITNESS_ROWS, len(words))):
            losses = self.least_loss(words[row])
            printed = self.epsilon * self._far(np.array([row]))[0]
            other = int(np.argmax(losses - printed))
            best = max(best, (float(losses[other] - printed[other]), row, other, float(losses[other])))
        excess, row, other, loss = best
        if excess <= 0:
            return _NO_PROOF
        return (
            f"{_NO_PROOF}; {words[other]!r} comes out of itself and of {words[row]!r} with probabilities at least "
            f"{loss:.4g} nats apart, where the paper prints {loss - excess:.4g}"
        )

    def _far(self, rows: Rows) -> npt.NDArray[np.float64]:
        squared = self._table.squared(self._table.rows(rows), self._right)
        far: npt.NDArray[np.float64] = np.sqrt(squared) * self._table.step
        return far

    def _extremes(self) -> tuple[float, float]:
        """The smallest distance of two words at two points, and the largest."""
        found: list[tuple[float, float]] = []

        def look(start: int) -> None:
            far = self._far(np.arange(start, min(start + _AT_A_TIME, len(self.vectors))))
            found.append((float(far.min(initial=math.inf, where=far > 0)), float(far.max())))

        for_each_block(look, range(0, len(self.vectors), _AT_A_TIME))
        return min(each[0] for each in found), max(each[1] for each in found)

    @staticmethod
    def _list_of(far: npt.NDArray[np.float64], row: int, count: int) -> Rows:
        """The ``count`` nearest rows, itself first, by distance; ties in the order of rows."""
        far = far.copy()
        far[row] = -1.0
        nearest = nearest_rows(far, count)
        return nearest[np.lexsort((nearest, far[nearest]))]

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        cumulative = np.cumsum(np.exp(self._log_k))
        cumulative /= cumulative[-1]
        counts = 1 + np.searchsorted(cumulative, bits.uniform(rows.size))
        most = int(counts.max(initial=1))
        low, high = (math.exp(-math.exp(-end / self.scale)) for end in (-self.farthest, self.farthest))
        drawn = np.empty(rows.size, dtype=np.int64)
        distinct, which = np.unique(rows, return_inverse=True)
        order = np.argsort(which, kind="stable")
        edges = np.searchsorted(which[order], np.arange(distinct.size + 1))
        for start in range(0, distinct.size, _AT_A_TIME):
            part = distinct[start : start + _AT_A_TIME]
            for at, (row, far) in enumerate(zip(part, self._far(part), strict=True), start):
                here = order[edges[at] : edges[at + 1]]
                nearest = self._list_of(far, int(row), most)
                uniform = low + (high - low) * bits.uniform(here.size, most)
                noisy = far[nearest] - self.scale * np.log(-np.log(np.clip(uniform, 1e-300, 1 - 2.0**-53)))
                noisy[np.arange(most) >= counts[here, None]] = np.inf
                drawn[here] = nearest[np.argmin(noisy, axis=1)]
        return drawn


def published_scale(epsilon: float, size: int, nearest: float, farthest: float) -> float:
    """The paper's b = 2 D / min(W(2 a D), ln(a m)) with a = (epsilon - 2 (1 + ln |W|) / m) / 3, W that of Lambert."""
    a = (epsilon - 2 * (1 + math.log(size)) / nearest) / 3 if math.isfinite(nearest) else -1.0
    if a * nearest <= 1:
        least = (2 * (1 + math.log(size)) + 3) / nearest
        raise ParameterError(
            f"the paper has no scale for epsilon {epsilon:g} on these vectors: it must be above {least:.4g} (no two "
            f"words are nearer than {nearest:.3g}); give scale= for a smaller one"
        )
    return 2 * farthest / min(_lambert(2 * a * farthest), math.log(a * nearest))


def _lambert(x: float) -> float:
    """W(x) for x > 0: the w with w e^w = x (Newton's method)."""
    w = math.log1p(x)
    for _ in range(50):
        w -= (w - x * math.exp(-w)) / (1 + w)
    return w


def _log_poisson(mean: float, most: int) -> npt.NDArray[np.float64]:
    """(most,) logs of the probabilities of 1 .. most under a Poisson law truncated to them."""
    counts = np.arange(1, most + 1)
    logs = counts * math.log(mean) - np.cumsum(np.log(counts))
    normalised: npt.NDArray[np.float64] = logs - np.logaddexp.reduce(logs)
    return normalised
