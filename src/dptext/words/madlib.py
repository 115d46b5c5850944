"""Madlib, the multivariate Laplace mechanism on word vectors (Feyisetan, Balle, Drake and Diethe 2020)."""

from __future__ import annotations

from dptext.noise.laplace import l2_laplace
from dptext.privacy.guarantee import MetricDP
from dptext.privacy.randomness import RandomBits
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import Floats, NoisyVectors, UnknownWords

__all__ = ["Madlib"]


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

    def __init__(self, vectors: WordVectors, *, epsilon: float, unknown: UnknownWords = "unk") -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        self._freeze()

    def word_guarantee(self) -> MetricDP:
        """Metric DP with pairs counted up to the public diameter."""
        vectors = self.vectors
        return MetricDP(self.epsilon, self._metric("euclidean"), vectors.diameter_bound, vectors.fingerprint)

    def _noise(self, bits: RandomBits, count: int) -> Floats:
        return l2_laplace(bits, count, self.vectors.dimension, 1.0 / self.epsilon)
