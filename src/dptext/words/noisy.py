"""What the mechanisms share that add noise to a word's vector and search the public words around the result."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block
from dptext.vectors.search import NearestNeighbours
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import Rows, UnknownWords, WordMechanism

__all__ = ["Floats", "NoisyVectors"]

Floats = npt.NDArray[np.float64]

_BATCH = 2048  # occurrences a task; each has a stream of its own, so another number would change seeded draws
_MOST_NOISE = 1e9  # mean length of the noise, in diameters: float64 still sees the words
_GRID_BITS = 20  # noisy vectors are rounded to 2^-20 of the vocabulary's diameter before the search


class NoisyVectors(WordMechanism):
    """Noise on the word's vector, then a choice among public words that sees the noisy vector and fresh bits only.

    The choice is post-processing, so a promise about the noisy vector is one about the word that comes out.

    Raises:
        ParameterError: noise so large that float64 no longer sees the words beside it.
    """

    def __init__(self, vectors: WordVectors, *, epsilon: float, unknown: UnknownWords = "unk") -> None:
        super().__init__(vectors, epsilon=epsilon, unknown=unknown)
        self._neighbours = NearestNeighbours(vectors.matrix)
        self._step = 2.0 ** (math.ceil(math.log2(vectors.diameter_bound or 1.0)) - _GRID_BITS)
        if vectors.dimension / self.epsilon > _MOST_NOISE * max(vectors.diameter_bound, self._step):
            raise ParameterError(
                f"epsilon {self.epsilon:g} drowns the vocabulary: the noise is more than {_MOST_NOISE:.0e} times its "
                "diameter; use a larger epsilon"
            )

    @abstractmethod
    def _noise(self, bits: RandomBits, count: int) -> Floats:
        """(count, d) independent noise vectors."""

    def _choose(self, noisy: Floats, _rows: Rows, _bits: RandomBits) -> Rows:
        """(n,) rows that come out for the (n, d) noisy vectors. A private mechanism does not look at ``_rows``."""
        return self._neighbours.find(noisy)

    def assumptions(self) -> tuple[str, ...]:
        """What the proof takes for granted, for the statement."""
        return (
            *super().assumptions(),
            "the noise, drawn in double precision with 53-bit tails, behaves like real-valued noise; only the "
            f"{self._released} of the noisy vector, rounded to a public grid, is released",
        )

    _released = "nearest word"

    def _draw(self, rows: Rows, bits: RandomBits) -> Rows:
        drawn = np.empty(rows.size, dtype=np.int64)
        starts = range(0, rows.size, _BATCH)
        streams = bits.spawn(len(starts))

        def choose(task: tuple[int, RandomBits]) -> None:
            start, stream = task
            part = rows[start : start + _BATCH]
            noisy = self._noise(stream, part.size)
            noisy += self.vectors.matrix[part]
            noisy = np.rint(noisy / self._step) * self._step
            drawn[start : start + _BATCH] = self._choose(noisy, part, stream)

        for_each_block(choose, list(zip(starts, streams, strict=True)))
        return drawn
