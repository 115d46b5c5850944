"""Mahalanobis: elliptical noise (Xu, Aggarwal, Feyisetan and Teissier 2020, arXiv:2010.11947)."""

from __future__ import annotations

import math

from dptext.noise.laplace import elliptical_laplace
from dptext.privacy.guarantee import MetricDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.vectors.ellipsoid import Ellipsoid
from dptext.vectors.formats import VectorsLike
from dptext.words.mechanism import Floats, NoisyVectors, UnknownWords

__all__ = ["Mahalanobis"]


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
    are computed in float64 (`dptext.vectors.ellipsoid`).

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
        """The public parameters, for the statement."""
        own: dict[str, Parameter] = {"lambda": self.lambda_, "euclidean_epsilon": self.euclidean_epsilon}
        return {**super().parameters(), **own}

    def _noise(self, bits: RandomBits, count: int) -> Floats:
        return elliptical_laplace(bits, count, self._ellipsoid.root, 1.0 / self.epsilon)  # r A^(1/2) u
