"""Madlib, Mahalanobis and Vickrey: noise on the vector, then a nearest word."""

from __future__ import annotations

import math

import numpy as np

from dptext.checks import number
from dptext.errors import ParameterError, RefusedError
from dptext.noise.discrete import elliptical_laplace
from dptext.privacy.guarantee import Guarantee, MetricDP, NoGuarantee
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.vectors.formats import VectorsLike
from dptext.vectors.metrics import Ellipsoid
from dptext.words.mechanism import Floats, NoisyVectors, Rows, UnknownWords


class Madlib(NoisyVectors):
    """Add noise of density proportional to exp(-epsilon ||z||) to the word's vector; output the nearest word.

    Algorithm 1 of paper 2107.07928, which states it for comparison.

    **Guarantee** (unit word, substitution, local). For all words w, w' and every output:
    P(x | w) <= exp(epsilon * ||v(w) - v(w')||) P(x | w') (Theorem 1: triangle inequality; the nearest neighbour is
    post-processing). Pairs are never farther apart than the public diameter of the vocabulary, so the pure
    epsilon is at most epsilon times that. Assumptions: public vocabulary and vectors; the double-precision noise is
    treated as real-valued (nothing but the nearest word of the noisy vector, rounded to a public grid, leaves).

    The neighbour search is exact.

    Args:
        epsilon: nats a unit of Euclidean distance. The noise has mean length d / epsilon.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> Madlib(vectors, epsilon=100.0).sample(["tax"])
    ['tax']
    """

    name = "Madlib"

    def __init__(self, vectors: VectorsLike, *, epsilon: float, unknown: UnknownWords = "unk") -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        self._freeze()


class Mahalanobis(NoisyVectors):
    """Add noise of density proportional to exp(-epsilon ||z||_RM) to the word's vector; output the nearest word.

    ||z||_RM = sqrt(z^T A^-1 z) is the regularised Mahalanobis norm: A = lambda S + (1 - lambda) I, with S the
    covariance of the public vectors, scaled to mean variance 1. The noise is as long as Madlib's in the mean square,
    but longer where the words spread far and shorter where they do not; the nearest word is the Euclidean one.

    **Guarantee** (unit word, substitution, local). For all words w, w' and every output:
    P(x | w) <= exp(epsilon * ||v(w) - v(w')||_RM + slack) P(x | w') (triangle inequality in this norm; the nearest
    neighbour is post-processing). *This is a promise per unit of another metric than Madlib's*: per unit of
    Euclidean distance it is ``euclidean_epsilon`` = epsilon / sqrt(smallest eigenvalue of A), at most
    epsilon / sqrt(1 - lambda), which the statement carries as a parameter. Pairs are never farther apart than the
    public diameter in this norm. Assumptions: public vocabulary and vectors (S is computed from them); the
    double-precision noise is treated as real-valued. ``slack`` (about 1e-8) bounds what it adds that A and its root
    are computed in float64 (`dptext.vectors.metrics`).

    Args:
        epsilon: nats a unit of the regularised Mahalanobis distance.
        lambda_: between 0 (Madlib) and 1 (plain Mahalanobis), the weight of the covariance; the paper uses .2.

    Raises:
        ParameterError: a number out of range; a lambda of 1, or close to it, for vectors that do not spread in all
            directions.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> mechanism = Mahalanobis(vectors, epsilon=100.0)
    >>> mechanism.sample(["tax"])
    ['tax']
    >>> mechanism.word_guarantee().metric
    'regularized mahalanobis (lambda 0.2)'
    """

    name = "Mahalanobis"

    def __init__(
        self, vectors: VectorsLike, *, epsilon: float, lambda_: float = 0.2, unknown: UnknownWords = "unk"
    ) -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        vectors = self.vectors
        self._ellipsoid = Ellipsoid(vectors.matrix, lambda_)
        self.lambda_ = float(lambda_)
        self._freeze()

    @property
    def slack(self) -> float:
        """Nats that the float64 root of A may add to the loss of one word, proved."""
        ellipsoid = self._ellipsoid
        return self.epsilon * ellipsoid.diameter_bound * ellipsoid.error

    @property
    def euclidean_epsilon(self) -> float:
        """What is proved per unit of Euclidean distance, the slack aside."""
        return math.nextafter(self.epsilon / math.sqrt(self._ellipsoid.smallest), math.inf)

    def word_guarantee(self) -> MetricDP:
        """Metric DP with pairs counted up to the public diameter in the regularised Mahalanobis norm."""
        return MetricDP(
            self.epsilon,
            self._metric(f"regularized mahalanobis (lambda {self.lambda_!r})"),
            self._ellipsoid.diameter_bound,
            self.vectors.fingerprint,
        )

    def parameters(self) -> dict[str, Parameter]:
        own: dict[str, Parameter] = {"lambda": self.lambda_, "euclidean_epsilon": self.euclidean_epsilon}
        return {**super().parameters(), **own}

    def _noise(self, bits: RandomBits, count: int) -> Floats:
        return elliptical_laplace(bits, count, self._ellipsoid.root, 1.0 / self.epsilon)  # r A^(1/2) u


_REASON = (
    "the true word is never its own replacement, so a word that comes out was certainly not there: the word w has "
    "probability 0 under w and more than 0 under every other word, an infinite loss"
)


def first_share(first: Floats, second: Floats, t: float) -> Floats:
    """(n,) probability of the first neighbour, from the distances of both to the noisy vector."""
    weight = (1 - t) * second
    total = t * first + weight
    share: Floats = np.divide(weight, total, out=np.full(len(total), 1.0 - t), where=total > 0)
    return share


class Vickrey(NoisyVectors):
    """Add Madlib's noise to the word's vector; output the nearest word of the result or the second nearest.

    With v^ the noisy vector and d1 <= d2 the distances from it to its two nearest words, the nearest comes out with
    probability (1 - t) d2 / (t d1 + (1 - t) d2), else the second (arXiv:2104.11838). t = 0 is Madlib,
    t = 1 always takes the second. At small noise, where Madlib gives the true word back, this is what replaces it.

    **Guarantee** (unit word, substitution, local). That of Madlib: for all words w, w' and every output
    P(x | w) <= exp(epsilon * ||v(w) - v(w')||) P(x | w'). The choice depends on the noisy vector, public vectors and
    fresh bits only, so it is post-processing, *at every t*. t changes how often a word stays as it is; that is
    not more privacy in this sense. Assumptions: as for Madlib.

    **As published** (``unsafe_as_published=True``): the neighbours are sought among all words *but the true one*, so
    that a word never stays, which is the paper's motive (published code does so in more than one way). That looks at
    the word again after the noise, and the argument is gone: word w cannot come out for w, it can for any other. The
    statement then carries no guarantee, its reason, and the epsilon that is claimed.

    Args:
        epsilon: nats a unit of Euclidean distance. The noise has mean length d / epsilon.
        t: between 0 and 1, how much the second neighbour is preferred; at .5 the odds are d2 to d1.
        unsafe_as_published: the variant without a guarantee, for comparisons.

    Raises:
        ParameterError: a number out of range; fewer than three words for the published variant.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> sorted(set(Vickrey(vectors, epsilon=1000.0, t=1.0).sample(["cat"] * 9)))
    ['dog']
    """

    name = "Vickrey"
    _released = "first or the second nearest word"

    def __init__(
        self,
        vectors: VectorsLike,
        *,
        epsilon: float,
        t: float = 0.5,
        unknown: UnknownWords = "unk",
        unsafe_as_published: bool = False,
    ) -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        vectors = self.vectors
        if unsafe_as_published and len(vectors) < 3:
            raise ParameterError(f"the published variant needs two words beside the true one, got {len(vectors)} words")
        self.t = number("t", t, least=0, most=1)
        self.unsafe_as_published = bool(unsafe_as_published)
        self._wanted = 3 if unsafe_as_published else 2 if self.t > 0 else 1
        self._freeze()

    def word_guarantee(self) -> MetricDP:
        """Metric DP with pairs counted up to the public diameter.

        Raises:
            RefusedError: for the published variant, which promises nothing.
        """
        if self.unsafe_as_published:
            raise RefusedError(f"nothing is proved for Vickrey as published: {_REASON}")
        return super().word_guarantee()

    @property
    def claimed_epsilon(self) -> float | None:
        return self.epsilon if self.unsafe_as_published else None

    def _promise(self) -> Guarantee:
        return NoGuarantee(_REASON) if self.unsafe_as_published else self.word_guarantee()

    def document_guarantee(self, longest: int) -> Guarantee:
        return self._promise() if self.unsafe_as_published else super().document_guarantee(longest)

    def parameters(self) -> dict[str, Parameter]:
        own: dict[str, Parameter] = {"t": self.t}
        if self.unsafe_as_published:
            pair = " and ".join(map(repr, self.vectors.words[:2]))
            own |= {"unsafe_as_published": True, "witness": f"the inputs {pair}, and either of them as output"}
        return {**super().parameters(), **own}

    def _choose(self, near: Rows, noisy: Floats, rows: Rows, bits: RandomBits) -> Rows:
        if self.unsafe_as_published:
            near = _without(near, rows)
        elif self.t == 0:
            return super()._choose(near, noisy, rows, bits)
        first, second = (self._distances(noisy, near[:, each]) for each in (0, 1))
        takes_second = bits.uniform(len(noisy)) > first_share(first, second, self.t)
        chosen: Rows = np.where(takes_second, near[:, 1], near[:, 0])
        return chosen

    def _distances(self, noisy: Floats, rows: Rows) -> Floats:
        lengths: Floats = np.sqrt(((noisy - self.vectors.matrix[rows]) ** 2).sum(axis=1))
        return lengths


def _without(near: Rows, rows: Rows) -> Rows:
    """(n, 2) the first two of three neighbours that are not the word itself."""
    other = near != rows[:, None]
    other[other.all(axis=1), 2] = False
    kept: Rows = near[other].reshape(len(near), 2)
    return kept
