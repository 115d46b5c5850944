"""Skip-gram without noise and clipping, as word2vec trains it: the gold model of the experiments."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import numpy.typing as npt

from dptext.embeddings.noise import compiled
from dptext.embeddings.skipgram import SkipGramPlan
from dptext.embeddings.training import Scratch, Training, unit_gradient
from dptext.privacy.randomness import NoiseKey
from dptext.users.grouping import UserStore

Rows = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]

_LEARNING_RATE = 0.025  # word2vec's first learning rate, for a pair


class UnclippedPlan(SkipGramPlan):
    """The plan of a training with mode="clipped", without its clipping."""

    @classmethod
    def of(cls, plan: SkipGramPlan) -> UnclippedPlan:
        return cls(**{field.name: getattr(plan, field.name) for field in fields(plan)} | {"mode": "plain"})

    def training(self, store: UserStore, tables: Singles, key: NoiseKey) -> Training:
        training = super().training(store, tables, key)
        return _Unclipped(**{field.name: getattr(training, field.name) for field in fields(training)})


class _Unclipped(Training):
    def _add(self, step: int, pairs: Rows, ends: npt.NDArray[np.int64]) -> None:
        rate = _LEARNING_RATE * (1 - step / self.participation.steps)
        follow_unclipped(self.tables.matrix, self.offsets, pairs, ends, rate, self.tables.both, self._scratch)


@compiled
def follow_unclipped(
    tables: Singles,
    offsets: Singles,
    pairs: Rows,
    ends: npt.NDArray[np.int64],
    rate: float,
    both: bool,
    scratch: Scratch,
) -> None:
    """Subtract rate * gradient of one unit after the other, without a bound, as word2vec does."""
    slots, touched, gradient = scratch
    first = 0
    for number in range(len(ends)):
        count = unit_gradient(tables, offsets, pairs, first, ends[number], both, scratch)
        first = ends[number]
        for slot in range(count):
            row = touched[slot]
            slots[row] = -1
            into, part = tables[row], gradient[slot]
            for axis in range(len(part)):
                into[axis] -= np.float32(part[axis] * rate)
