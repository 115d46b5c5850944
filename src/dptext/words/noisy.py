"""What the mechanisms share that add noise to a word's vector and search the public words around the result."""

from __future__ import annotations

import math
from abc import abstractmethod
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.threads import available_cores, for_each_block
from dptext.vectors.search import NearestNeighbours
from dptext.vectors.word_vectors import WordVectors
from dptext.words.mechanism import Rows, UnknownWords, WordMechanism

__all__ = ["Floats", "NoisyVectors"]

Floats = npt.NDArray[np.float64]

_BATCH = 2048  # occurrences a task; each has a stream of its own, so another number would change seeded draws
_MOST_BATCHES = 4  # searched together
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

    _wanted = 1
    """How many neighbours of the noisy vector `_choose` chooses among."""

    def _choose(self, near: Rows, _noisy: Floats, _rows: Rows, _bits: RandomBits) -> Rows:
        """(n,) rows that come out, of the (n, wanted) nearest. A private mechanism does not look at ``_rows``."""
        nearest: Rows = near[:, 0]
        return nearest

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
        batches = [slice(start, min(start + _BATCH, rows.size)) for start in range(0, rows.size, _BATCH)]
        streams = bits.spawn(len(batches))

        def draw(task: range) -> None:
            noisy = np.concatenate([self._noisy(rows[batches[each]], streams[each]) for each in task])
            near = self._neighbours.find_several(noisy, self._wanted)
            for place, each in enumerate(task):
                part = slice(place * _BATCH, place * _BATCH + rows[batches[each]].size)
                drawn[batches[each]] = self._choose(near[part], noisy[part], rows[batches[each]], streams[each])

        for_each_block(draw, self._tasks(len(batches)))
        return drawn

    def _noisy(self, rows: Rows, bits: RandomBits) -> Floats:
        noisy = self._noise(bits, rows.size)
        noisy += self.vectors.matrix[rows]
        noisy /= self._step
        np.rint(noisy, out=noisy)
        noisy *= self._step
        return noisy

    def _tasks(self, batches: int) -> list[range]:
        """Runs of batches that are searched together: long ones cost less, but every core wants its share."""
        longest = max(1, min(_MOST_BATCHES, self._neighbours.many // _BATCH))
        cores = available_cores()
        count = min(batches, -(-batches // (longest * cores)) * cores)
        cuts = [batches * each // count for each in range(count + 1)] if count else [0]
        return [range(*pair) for pair in pairwise(cuts)]
