"""Which of the coordinates of a vector are sent: uniform subsets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits

__all__ = ["uniform_subsets"]


def uniform_subsets(bits: RandomBits, rows: int, *, of: int, size: int) -> npt.NDArray[np.int64]:
    """(rows, size) int64, each row a uniform subset of 0 .. of - 1, in no order that means anything.

    Floyd's algorithm (Bentley and Floyd 1987): for j = of - size .. of - 1 take a uniform number up to j, or j itself
    where that one was taken already.
    """
    chosen = np.empty((rows, size), dtype=np.int64)
    for place, last in enumerate(range(of - size, of)):
        drawn = bits.below(np.full(rows, last + 1, dtype=np.uint64)).astype(np.int64)
        taken = (chosen[:, :place] == drawn[:, None]).any(axis=1)
        chosen[:, place] = np.where(taken, last, drawn)
    return chosen
