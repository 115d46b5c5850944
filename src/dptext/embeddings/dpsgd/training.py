"""The steps of a training, one after the other: sample, draw pairs, clip, add up, add noise, descend.

Derivation: docs/mechanisms/skip-gram.md#embeddings-dpsgd-training
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.clipping import Scratch, add_clipped, follow_unclipped
from dptext.embeddings.dpsgd.noise import CellNoise, move
from dptext.embeddings.dpsgd.pairs import PairDrawing
from dptext.embeddings.dpsgd.participation import Participation, sampled_slots, sampled_users
from dptext.embeddings.dpsgd.recipe import Recipe
from dptext.embeddings.dpsgd.sums import Sums
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.users.grouping import UserStore

__all__ = ["Tables", "Training"]

Rows = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Pairs = tuple[Rows, npt.NDArray[np.int64]]
"""(pairs, columns) rows of tables; (units,) where the pairs of each end."""

_TOGETHER = 1 << 14  # pairs that are drawn at once
_WORD2VEC = 0.025  # its first learning rate, for a pair
_COINS, _KEYS, _NOISE = 0, 1, 3  # each use of randomness in a step has a stream of its own
_USES = 5  # streams per step


class Tables:
    """The tables of a training."""

    def __init__(
        self,
        matrix: Singles,
        rates: Floats,
        noise: CellNoise | None,
        *,
        both: bool = True,
    ) -> None:
        self.matrix, self.both, self._rates, self._noise = matrix, both, rates, noise
        count, dimension = matrix.shape
        self._all = np.arange(0 if both else count // 2, count, dtype=np.int32)
        self.sums = Sums.of(count, len(self._all), dimension)

    def descend(self, step: int, bits: RandomBits) -> None:
        """Take the step with its noise, and empty the sum."""
        rate = float(self._rates[step])
        if self._noise is None:
            move(self.matrix, self.sums.touched, self.sums, rate)
        else:
            self._noise.descend(self.matrix, self._all, self.sums, rate, bits)
        self.sums.clear()


@dataclass(eq=False)
class Training:
    """One training on stored users."""

    store: UserStore
    recipe: Recipe
    participation: Participation
    tables: Tables
    unknown: int
    offsets: Singles
    clipped: bool
    key: NoiseKey
    parameters: bytes
    content: bytes = b""

    def __post_init__(self) -> None:
        recipe, (rows, dimension) = self.recipe, self.tables.matrix.shape
        words = rows // 2
        self._drawing = PairDrawing.of(
            recipe.kept(words),
            recipe.contexts(words)[1],
            unknown=self.unknown,
            window=recipe.window,
            negatives=recipe.negatives,
        )
        self._single_pairs = recipe.unit == "pair"
        self._scratch = Scratch.of(rows, recipe.pairs * self._drawing.columns, dimension)
        self._limits = recipe.clipping.limits
        self._thresholds = self.participation.thresholds

    def step(self, step: int) -> None:
        """One step, counted from 0."""
        sampled = self._sampled(step)
        keys = np.empty(len(sampled), dtype=np.uint64)
        self._bits(step, _KEYS).fill(keys)
        for pairs, ends in self._drawn(sampled, keys):
            self._add(step, pairs, ends)
        self.tables.descend(step, self._bits(step, _NOISE))

    def _bits(self, step: int, use: int) -> RandomBits:
        return self.key.stream(self.parameters, _USES * step + use, self.content)

    def _sampled(self, step: int) -> npt.NDArray[np.int64]:
        """Users by number; or slots of pairs."""
        bits = self._bits(step, _COINS)
        if not self._single_pairs:
            return sampled_users(bits, self.store.levels, self._thresholds)
        [rate] = self.participation.rates.values()
        return sampled_slots(bits, len(self.store.rows) * 2 * self.recipe.window, rate)

    def _drawn(self, sampled: npt.NDArray[np.int64], keys: npt.NDArray[np.uint64]) -> Iterator[Pairs]:
        """Yield the pairs of some units at a time."""
        together = max(1, _TOGETHER // self.recipe.pairs)
        for start in range(0, len(sampled), together):
            some, their_keys = sampled[start : start + together], keys[start : start + together]
            if self._single_pairs:
                pairs = self._drawing.of_slots(self.store.rows, some, their_keys)
                yield pairs, np.arange(1, len(pairs) + 1)
            else:
                starts, stops = self.store.offsets[some], self.store.offsets[some + 1]
                yield self._drawing.of_users(self.store.rows, starts, stops, their_keys, self.recipe.pairs)

    def _add(self, step: int, pairs: Rows, ends: npt.NDArray[np.int64]) -> None:
        tables, scratch = self.tables, self._scratch
        if self.clipped:
            limits, both = self._limits, tables.both
            add_clipped(tables.matrix, self.offsets, pairs, ends, limits, both, scratch, tables.sums)
        else:
            rate = _WORD2VEC * (1 - step / self.participation.steps)
            follow_unclipped(tables.matrix, self.offsets, pairs, ends, rate, tables.both, scratch)
