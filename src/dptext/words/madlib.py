"""Madlib, the multivariate Laplace mechanism on word vectors (Feyisetan, Balle, Drake and Diethe 2020)."""

from __future__ import annotations

import math

import numpy as np

from dptext.errors import ParameterError
from dptext.noise.laplace import l2_laplace
from dptext.privacy.guarantee import MetricDP
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block
from dptext.vectors.search import NearestNeighbours
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import Rows, UnknownWords, WordMechanism

__all__ = ["Madlib"]

_BATCH = 2048  # occurrences a task
_MOST_NOISE = 1e9  # mean length of the noise, in diameters: float64 still sees the words
_GRID_BITS = 20  # noisy vectors are rounded to 2^-20 of the vocabulary's diameter before the search


class Madlib(WordMechanism):
    """Add noise of density proportional to exp(-epsilon ||z||) to the word's vector; output the nearest word.

    Algorithm 1 of paper 2107.07928, which states it for comparison.

    **Guarantee** (unit word, substitution, local). For all words w, w' and every output:
    P(x | w) <= exp(epsilon * ||v(w) - v(w')||) P(x | w') (Theorem 1: triangle inequality; the nearest neighbour is
    post-processing). Pairs are never farther apart than the public diameter of the vocabulary, so the pure
    epsilon is at most epsilon times that. Assumptions: public vocabulary and vectors; the double-precision noise is
    treated as real-valued (nothing but the nearest word of the noisy vector, rounded to a public grid, leaves).

    The neighbour search is exact.

    Args:
        vectors: public word vectors.
        epsilon: nats a unit of Euclidean distance. The noise has mean length d / epsilon.
        unknown: see `WordMechanism`.

    >>> from dptext import load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> Madlib(vectors, epsilon=100.0).sample(["tax"])
    ['tax']
    """

    name = "Madlib"

    def __init__(self, vectors: WordVectors, *, epsilon: float, unknown: UnknownWords = "unk") -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        self._neighbours = NearestNeighbours(vectors.matrix)
        self._step = 2.0 ** (math.ceil(math.log2(vectors.diameter_bound or 1.0)) - _GRID_BITS)
        if vectors.dimension / self.epsilon > _MOST_NOISE * max(vectors.diameter_bound, self._step):
            raise ParameterError(
                f"epsilon {self.epsilon:g} drowns the vocabulary: the noise is more than {_MOST_NOISE:.0e} times its "
                "diameter; use a larger epsilon"
            )
        self._freeze()

    def word_guarantee(self) -> MetricDP:
        """Metric DP with pairs counted up to the public diameter."""
        vectors = self.vectors
        return MetricDP(self.epsilon, self._metric("euclidean"), vectors.diameter_bound, vectors.fingerprint)

    def assumptions(self) -> tuple[str, ...]:
        """What the proof takes for granted, for the statement."""
        return (
            *super().assumptions(),
            "the noise, drawn in double precision with 53-bit tails, behaves like real-valued noise; only the "
            "nearest word of the noisy vector, rounded to a public grid, is released",
        )

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        drawn = np.empty(rows.size, dtype=np.int64)
        starts = range(0, rows.size, _BATCH)
        streams = bits.spawn(len(starts))

        def find(task: tuple[int, RandomBits]) -> None:
            start, stream = task
            part = rows[start : start + _BATCH]
            noisy = l2_laplace(stream, part.size, self.vectors.dimension, 1.0 / self.epsilon)
            noisy += self.vectors.matrix[part]
            noisy = np.rint(noisy / self._step) * self._step
            drawn[start : start + _BATCH] = self._neighbours.find(noisy)

        for_each_block(find, list(zip(starts, streams, strict=True)))
        return drawn
