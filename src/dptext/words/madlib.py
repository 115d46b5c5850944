"""Madlib, the multivariate Laplace mechanism on word vectors (Feyisetan, Balle, Drake and Diethe 2020)."""

from __future__ import annotations

from dptext.vectors.formats import VectorsLike
from dptext.words.mechanism import NoisyVectors, UnknownWords

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

    def __init__(self, vectors: VectorsLike, *, epsilon: float, unknown: UnknownWords = "unk") -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        self._freeze()
