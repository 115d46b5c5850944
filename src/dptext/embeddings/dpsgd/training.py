"""The steps of a training, one after the other: sample, draw pairs, bound, add up, add noise, descend.

**Guarantee** of the tables after all steps: that of `dptext.embeddings.dpsgd.participation.Participation`. *Proof.*
Given the tables before a step, the step is a function of  sum of cells + N(0, sigma^2 I),  sigma = z `CELLS`, and of
public numbers: each unit takes part by a coin of its own (`dptext.embeddings.dpsgd.sampling`), its cells hang on its
own texts, a key of its own and the tables, and have length `CELLS` at most (`dptext.embeddings.dpsgd.gradients`,
exact); the noise is on all rows, and exact (`dptext.embeddings.dpsgd.noise`); the sum is multiplied by a public rate,
in which no count of units occurs. So each step is a Gaussian mechanism on a Poisson sample, of noise multiplier z, and
they compose. |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.clipping import Clipping
from dptext.embeddings.dpsgd.gradients import Scratch, add_units, follow_units
from dptext.embeddings.dpsgd.pairs import PairDrawing
from dptext.embeddings.dpsgd.participation import Participation
from dptext.embeddings.dpsgd.sampling import sampled_slots, sampled_users
from dptext.embeddings.dpsgd.tables import Tables
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.users.store import UserStore

__all__ = ["Training"]

Pairs = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]
"""(pairs, columns) rows of tables; (units,) where the pairs of each end."""

_TOGETHER = 1 << 14  # pairs that are drawn at once
_KEPT = 4  # of these parts
_WORD2VEC = 0.025  # its first learning rate, for a pair
_COINS, _KEYS, _LATE, _NOISE, _SETTLED = range(5)  # each use of randomness in a step has a stream of its own
_USES = 5


@dataclass(eq=False)
class Training:
    """One training on stored users.

    Args:
        store: the texts.
        participation: who takes part how often.
        drawing: how pairs are drawn.
        pairs: of a unit in a step, at most.
        clipping: None: none, for comparison: each unit's gradient is followed at once, as word2vec does.
        offsets: (2 V,) public, of contexts.
        single_pairs: the unit is a pair of words.
        tables: where it has come to.
        key: of its randomness.
        parameters: digest of all that is public.
        content: where the key comes from a seed, a digest of all else that the noise hangs on, first of all of the
            texts: with other ones it must not be repeated.
    """

    store: UserStore
    participation: Participation
    drawing: PairDrawing
    pairs: int
    clipping: Clipping | None
    offsets: npt.NDArray[np.float32]
    single_pairs: bool
    tables: Tables
    key: NoiseKey
    parameters: bytes
    content: bytes = b""

    def __post_init__(self) -> None:
        rows, dimension = self.tables.matrix.shape
        most = (1 if self.single_pairs else self.pairs) * self.drawing.columns
        self._scratch = Scratch(rows, most, dimension)
        self._thresholds = self.participation.thresholds

    def settled(self, steps: int) -> npt.NDArray[np.float32]:
        """The tables after so many steps, with all noise."""
        return self.tables.settled(steps, self._bits(steps, _SETTLED))

    def step(self, step: int) -> None:
        """One step, counted from 0."""
        sampled = self._sampled(step)
        keys = np.empty(len(sampled), dtype=np.uint64)
        self._bits(step, _KEYS).fill(keys)
        parts: Iterable[Pairs] = self._drawn(sampled, keys)
        if self.tables.lazy:
            touched = np.zeros(len(self.tables.matrix) + 1, dtype=np.bool_)  # the last one: no word
            kept: list[Pairs] = []
            for pairs, ends in parts:
                touched[pairs] = True
                if len(kept) < _KEPT:
                    kept.append((pairs, ends))
            # drawn again rather than kept, where they are many: a key gives the same pairs
            parts = kept if len(kept) < _KEPT else self._drawn(sampled, keys)
            self.tables.read(step, np.flatnonzero(touched[:-1]).astype(np.int32), self._bits(step, _LATE))
        for pairs, ends in parts:
            self._add(step, pairs, ends)
        self.tables.descend(step, self._bits(step, _NOISE))

    def _bits(self, step: int, use: int) -> RandomBits:
        return self.key.stream(self.parameters, _USES * step + use, self.content)

    def _sampled(self, step: int) -> npt.NDArray[np.int64]:
        """Users by number; or slots of pairs."""
        bits = self._bits(step, _COINS)
        if not self.single_pairs:
            return sampled_users(bits, self.store.levels, self._thresholds)
        [rate] = self.participation.rates.values()
        return sampled_slots(bits, len(self.store.rows) * 2 * self.drawing.window, rate)

    def _drawn(self, sampled: npt.NDArray[np.int64], keys: npt.NDArray[np.uint64]) -> Iterator[Pairs]:
        """Pairs of some units after the other; another iteration draws the same ones."""
        together = max(1, _TOGETHER // (1 if self.single_pairs else self.pairs))
        for start in range(0, len(sampled), together):
            some, their_keys = sampled[start : start + together], keys[start : start + together]
            if self.single_pairs:
                pairs = self.drawing.of_slots(self.store.rows, some, their_keys)
                yield pairs, np.arange(1, len(pairs) + 1)
            else:
                starts, stops = self.store.offsets[some], self.store.offsets[some + 1]
                yield self.drawing.of_users(self.store.rows, starts, stops, their_keys, self.pairs)

    def _add(self, step: int, pairs: npt.NDArray[np.int32], ends: npt.NDArray[np.int64]) -> None:
        tables, scratch = self.tables, self._scratch
        what = (tables.matrix, self.offsets, pairs, ends)
        room = (scratch.slots, scratch.touched, scratch.gradient)
        arguments: Any
        if self.clipping is None:
            arguments = (*what, _WORD2VEC * (1 - step / self.participation.steps), tables.both, *room)
            follow_units(*arguments)
        else:
            arguments = (*what, self.clipping.limits, tables.both, *room, tables.places, tables.sums)
            add_units(*arguments)
