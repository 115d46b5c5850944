"""Madlib, Mahalanobis and Vickrey: noise on the vector, then a nearest word."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, RefusedError
from dptext.noise.discrete import elliptical_laplace
from dptext.privacy.guarantee import Guarantee, MetricDP, NoGuarantee
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.threads import for_each_block
from dptext.validation import check_float
from dptext.vectors.formats import VectorsLike
from dptext.vectors.metrics import Ellipsoid
from dptext.vectors.search import ExactDistances, nearest_rows
from dptext.words.mechanism import Floats, NoisyVectors, Rows, WordMechanism


class Madlib(NoisyVectors):
    """Add noise of density proportional to exp(-epsilon ||z||) to the word's vector; output the nearest word.

    Algorithm 1 of paper 2107.07928, which states it for comparison.

    **Guarantee** (unit word, substitution, local). For all words w, w' and every output:
    P(x | w) <= exp(epsilon * ||v(w) - v(w')||) P(x | w') (Theorem 1: triangle inequality; the nearest neighbour is
    post-processing). No pair is farther apart than the public diameter of the vocabulary, so the pure epsilon is at
    most epsilon times this diameter. Assumptions: public vocabulary and vectors; the double-precision noise is treated
    as real-valued (only the nearest word of the noisy vector, rounded to a public grid, is released).

    The neighbour search is exact.

    Args:
        epsilon: nats per unit of Euclidean distance. The noise has mean length d / epsilon.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> Madlib(vectors, epsilon=100.0).sample(["tax"])
    ['tax']
    """

    name = "Madlib"

    def __init__(self, vectors: VectorsLike, *, epsilon: float) -> None:
        super().__init__(vectors, epsilon=epsilon)
        self._freeze()


class Mahalanobis(NoisyVectors):
    """Add noise of density proportional to exp(-epsilon ||z||_RM) to the word's vector; output the nearest word.

    ||z||_RM = sqrt(z^T A^-1 z) is the regularised Mahalanobis norm: A = lambda S + (1 - lambda) I, with S the
    covariance of the public vectors, scaled to mean variance 1. The mean squared length of the noise equals Madlib's,
    but it is longer in directions in which the words vary more; the nearest word is the Euclidean one.

    **Guarantee** (unit word, substitution, local). For all words w, w' and every output:
    P(x | w) <= exp(epsilon * ||v(w) - v(w')||_RM + slack) P(x | w') (triangle inequality in this norm; the nearest
    neighbour is post-processing). *The unit of this guarantee differs from Madlib's*: per unit of
    Euclidean distance epsilon is ``euclidean_epsilon`` = epsilon / sqrt(smallest eigenvalue of A), at most
    epsilon / sqrt(1 - lambda), which the statement carries as a parameter. ``slack`` (about 1e-8) bounds the loss from
    computing A and its root in float64 (`dptext.vectors.metrics`). Assumptions: as for Madlib.

    Args:
        epsilon: nats per unit of the regularised Mahalanobis distance.
        lambda_: between 0 (Madlib) and 1 (plain Mahalanobis), the weight of the covariance; the paper uses .2.

    Raises:
        ParameterError: a number is out of range; lambda is 1, or close to it, for vectors that do not vary in all
            directions.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> mechanism = Mahalanobis(vectors, epsilon=100.0)
    >>> mechanism.sample(["tax"]), mechanism.word_guarantee().metric
    (['tax'], 'regularized mahalanobis (lambda 0.2)')
    """

    name = "Mahalanobis"

    def __init__(self, vectors: VectorsLike, *, epsilon: float, lambda_: float = 0.2) -> None:
        super().__init__(vectors, epsilon=epsilon)
        self._ellipsoid = Ellipsoid(self.vectors.matrix, lambda_)
        self.lambda_ = float(lambda_)
        self._freeze()

    @property
    def slack(self) -> float:
        """Proved upper bound, in nats, on the loss per word that the float64 root of A adds."""
        return self.epsilon * self._ellipsoid.diameter_bound * self._ellipsoid.error

    @property
    def euclidean_epsilon(self) -> float:
        """Proved epsilon per unit of Euclidean distance, without slack."""
        return math.nextafter(self.epsilon / math.sqrt(self._ellipsoid.smallest), math.inf)

    def word_guarantee(self) -> MetricDP:
        """Return metric DP with distances capped at the public diameter in the regularised Mahalanobis norm."""
        return MetricDP(
            self.epsilon,
            f"regularized mahalanobis (lambda {self.lambda_!r})",
            self._ellipsoid.diameter_bound,
            self.vectors.fingerprint,
        )

    def parameters(self) -> dict[str, Parameter]:
        options: dict[str, Parameter] = {"lambda": self.lambda_, "euclidean_epsilon": self.euclidean_epsilon}
        return {**super().parameters(), **options}

    def _noise(self, bits: RandomBits, count: int) -> Floats:
        return elliptical_laplace(bits, count, self._ellipsoid.root, 1.0 / self.epsilon)  # r A^(1/2) u


_REASON = (
    "the true word is never its own replacement, so a word that comes out was certainly not there: the word w has "
    "probability 0 under w and more than 0 under every other word, an infinite loss"
)


def first_share(first: Floats, second: Floats, t: float) -> Floats:
    """Return (n,) probabilities of the first neighbour, from the distances of both to the noisy vector."""
    weight = (1 - t) * second
    total = t * first + weight
    share: Floats = np.divide(weight, total, out=np.full(len(total), 1.0 - t), where=total > 0)
    return share


class Vickrey(NoisyVectors):
    """Add Madlib's noise to the word's vector; output the nearest word of the result or the second nearest.

    With v^ the noisy vector and d1 <= d2 the distances from it to its two nearest words, the nearest is output with
    probability (1 - t) d2 / (t d1 + (1 - t) d2), else the second (arXiv:2104.11838). t = 0 is Madlib,
    t = 1 always outputs the second. With little noise, Madlib returns the true word; Vickrey can still replace it.

    **Guarantee** (unit word, substitution, local). The same as Madlib's: for all words w, w' and every output
    P(x | w) <= exp(epsilon * ||v(w) - v(w')||) P(x | w'). The choice depends on the noisy vector, public vectors and
    fresh bits only, so it is post-processing *at every t*. Assumptions: as for Madlib.

    **As published** (``unsafe_as_published=True``): the neighbours are sought among all words *except the true one*,
    so that a word never stays. This uses the true word again after the noise: w is never the output for w, but can be
    for any other word. The statement then has no guarantee, but the reason for this and the claimed epsilon.

    Args:
        epsilon: nats per unit of Euclidean distance. The noise has mean length d / epsilon.
        t: between 0 and 1, the weight of the second neighbour; at .5 the odds of the first are d2 to d1.
        unsafe_as_published: use the variant without a guarantee, for comparisons.

    Raises:
        ParameterError: a number is out of range; the published variant has fewer than three words.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> sorted(set(Vickrey(vectors, epsilon=1000.0, t=1.0).sample(["cat"] * 9)))
    ['dog']
    """

    name = "Vickrey"
    _released = "first or the second nearest word"

    def __init__(
        self, vectors: VectorsLike, *, epsilon: float, t: float = 0.5, unsafe_as_published: bool = False
    ) -> None:
        super().__init__(vectors, epsilon=epsilon)
        count = len(self.vectors)
        if unsafe_as_published and count < 3:
            raise ParameterError(f"the published variant needs two words besides the true one, got {count} words")
        self.t = check_float("t", t, minimum=0, maximum=1)
        self.unsafe_as_published = bool(unsafe_as_published)
        self.claimed_epsilon = self.epsilon if unsafe_as_published else None
        self._wanted = 3 if unsafe_as_published else 2 if self.t > 0 else 1
        self._freeze()

    def word_guarantee(self) -> Guarantee:  # type: ignore[override]  # as published there is none
        """Return metric DP with distances capped at the public diameter; no guarantee as published."""
        return NoGuarantee(_REASON) if self.unsafe_as_published else super().word_guarantee()

    def parameters(self) -> dict[str, Parameter]:
        options: dict[str, Parameter] = {"t": self.t}
        if self.unsafe_as_published:
            pair = " and ".join(map(repr, self.vectors.words[:2]))
            options |= {"unsafe_as_published": True, "witness": f"the inputs {pair}, and either of them as output"}
        return {**super().parameters(), **options}

    def _choose(self, near: Rows, noisy: Floats, rows: Rows, bits: RandomBits) -> Rows:
        if self.unsafe_as_published:  # the first two that are not the word itself
            other = near != rows[:, None]
            other[other.all(axis=1), 2] = False
            near = near[other].reshape(len(near), 2)
        elif self.t == 0:
            return super()._choose(near, noisy, rows, bits)
        points = self.vectors.matrix
        first, second = (np.sqrt(((noisy - points[near[:, entry]]) ** 2).sum(axis=1)) for entry in (0, 1))
        takes_second = bits.uniform(len(noisy)) > first_share(first, second, self.t)
        return np.where(takes_second, near[:, 1], near[:, 0])


_AT_A_TIME = 256
_WITNESS_ROWS = 16
_NO_PROOF = (
    "the truncated Gumbel mechanism has no proof that holds: only the k nearest words of a word can come out, k is "
    "seldom above 2 ln |W|, and which words these are jumps from a word to its neighbours"
)


class TruncatedGumbel(WordMechanism):
    """Draw k from a truncated Poisson distribution; output the word with the least noisy distance of the k nearest.

    The paper's algorithm: k is Poisson with mean ln |W|, truncated to 1 .. |W|; each of the k words nearest to w,
    itself included, gets d(w, x) + G, where G is Gumbel of scale b truncated to [-D, D], D the largest distance between
    two words; the smallest wins. The paper prints metric DP, P(x | w) <= exp(epsilon d(w, w')) P(x | w'), for
    epsilon > 2 (1 + ln |W|) / m, m the smallest distance, with b as in `published_scale` (formulas after the paper and
    a public re-implementation).

    **Guarantee**: none; for comparison, with ``unsafe_as_published=True`` only. The output for w is x only if k is at
    least the rank r of x by distance from w, so P(x | w) <= P(k >= r), but P(x | x) >= P(k = 1). The pair loses

        ln P(k = 1) - ln P(k >= r),   about r ln r for r beyond 2 ln |W|,                                (witness)

    for every b, and the printed guarantee requires epsilon d(w, x) to be as large for *all* pairs. With 50,000 words,
    the loss of the farthest pair is at least 370,000 nats where an epsilon of 100 allows 1,300; a sampler of 53 bits
    never draws k above 80, so in practice the loss is infinite. Sound alternatives are `SanText` and `TEM`
    (docs/mechanisms/truncated-gumbel.md).

    Args:
        epsilon: the paper's epsilon in nats per unit of distance; it does not hold.
        scale: the noise scale b, for an epsilon below the range of the paper's formula.
        unsafe_as_published: must be True; otherwise the mechanism is refused.

    Raises:
        RefusedError: without ``unsafe_as_published=True``, with the reason.
        ParameterError: a number is out of range; the paper has no scale for this epsilon, and ``scale`` is not set.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> mechanism = TruncatedGumbel(vectors, epsilon=20.0, unsafe_as_published=True)
    >>> mechanism.statement.epsilon, mechanism.statement.claimed_epsilon
    (inf, 20.0)
    """

    name = "TruncatedGumbel"

    def __init__(
        self, vectors: VectorsLike, *, epsilon: float, scale: float | None = None, unsafe_as_published: bool = False
    ) -> None:
        super().__init__(vectors, epsilon=epsilon)
        vectors = self.vectors
        if not unsafe_as_published:
            raise RefusedError(
                f"{_NO_PROOF}; use TEM or SanText, or unsafe_as_published=True to compare (the statement then has "
                "no guarantee)"
            )
        self.unsafe_as_published, self.claimed_epsilon = True, self.epsilon
        self._table = ExactDistances(vectors.matrix)
        self._right = self._table.columns(0, len(vectors))
        counts = np.arange(1, len(vectors) + 1)
        logs = counts * math.log(math.log(len(vectors))) - np.cumsum(np.log(counts))
        self._log_k = logs - np.logaddexp.reduce(logs)  # log-probabilities of the truncated Poisson distribution
        extremes: list[tuple[float, float]] = []

        def add(start: int) -> None:
            far = self._far(np.arange(start, min(start + _AT_A_TIME, len(vectors))))
            extremes.append((float(far.min(initial=math.inf, where=far > 0)), float(far.max())))

        for_each_block(add, range(0, len(vectors), _AT_A_TIME))
        nearest = min(low for low, _ in extremes)
        self.farthest = max(high for _, high in extremes)
        if scale is None:
            self.scale = published_scale(self.epsilon, len(vectors), nearest, self.farthest)
        else:
            self.scale = check_float("scale", scale, above=0)
        self._reason = self._witness()
        self._freeze()

    def word_guarantee(self) -> Guarantee:
        return NoGuarantee(self._reason)

    def parameters(self) -> dict[str, Parameter]:
        options = {"scale": self.scale, "farthest": self.farthest, "unsafe_as_published": True}
        return {**options, **super().parameters()}

    def least_loss(self, word: str) -> npt.NDArray[np.float64]:
        """Return (V,) lower bounds on the loss of ``word`` paired with each word (witness); 0 for itself."""
        row = self.vectors.vocabulary.row(word)
        place = np.empty(len(self.vectors), dtype=np.int64)
        place[self._list_of(self._far(np.array([row]))[0], row, len(self.vectors))] = np.arange(len(self.vectors))
        at_least = np.logaddexp.accumulate(self._log_k[::-1])[::-1]
        return np.asarray(np.maximum(self._log_k[0] - at_least[place], 0.0))

    def _witness(self) -> str:
        """Return the reason, with the pair of the first words whose least loss exceeds the printed one most."""
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
        return np.sqrt(squared) * self._table.step

    @staticmethod
    def _list_of(far: npt.NDArray[np.float64], row: int, count: int) -> Rows:
        """Return the ``count`` nearest rows by distance, the row itself first; ties in the order of rows."""
        far = far.copy()
        far[row] = -1.0
        nearest = nearest_rows(far, count)
        return nearest[np.lexsort((nearest, far[nearest]))]

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        cumulative = np.cumsum(np.exp(self._log_k))
        cumulative /= cumulative[-1]
        counts = 1 + np.searchsorted(cumulative, bits.uniform(rows.size))
        maximum = int(counts.max(initial=1))
        low, high = (math.exp(-math.exp(-end / self.scale)) for end in (-self.farthest, self.farthest))
        draws = np.empty(rows.size, dtype=np.int64)
        distinct, which = np.unique(rows, return_inverse=True)
        order = np.argsort(which, kind="stable")
        edges = np.searchsorted(which[order], np.arange(distinct.size + 1))
        for start in range(0, distinct.size, _AT_A_TIME):
            part = distinct[start : start + _AT_A_TIME]
            for position, (row, far) in enumerate(zip(part, self._far(part), strict=True), start):
                rows_of_block = order[edges[position] : edges[position + 1]]
                nearest = self._list_of(far, int(row), maximum)
                uniform = low + (high - low) * bits.uniform(rows_of_block.size, maximum)
                noisy = far[nearest] - self.scale * np.log(-np.log(np.clip(uniform, 1e-300, 1 - 2.0**-53)))
                noisy[np.arange(maximum) >= counts[rows_of_block, None]] = np.inf
                draws[rows_of_block] = nearest[np.argmin(noisy, axis=1)]
        return draws


def published_scale(epsilon: float, size: int, nearest: float, farthest: float) -> float:
    """Return b = 2 D / min(W(2 a D), ln(a m)) with a = (epsilon - 2 (1 + ln |W|) / m) / 3, W Lambert's function."""
    a = (epsilon - 2 * (1 + math.log(size)) / nearest) / 3 if math.isfinite(nearest) else -1.0
    if a * nearest <= 1:
        minimum = (2 * (1 + math.log(size)) + 3) / nearest
        raise ParameterError(
            f"the paper has no scale for epsilon {epsilon:g} on these vectors: it must be above {minimum:.4g} (no two "
            f"words are nearer than {nearest:.3g}). For a smaller epsilon, pass scale="
        )
    x = 2 * a * farthest
    w = math.log1p(x)
    for _ in range(50):  # Newton's method for w e^w = x
        w -= (w - x * math.exp(-w)) / (1 + w)
    return 2 * farthest / min(w, math.log(a * nearest))
