"""Public groups of neighbouring words: the same on every machine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.vectors.search import ExactDistances
from dptext.vectors.word_vectors import WordVectors

__all__ = ["nearest_rows", "neighbour_groups"]

Rows = npt.NDArray[np.int64]

_SEEDS_AT_A_TIME = 32


def neighbour_groups(vectors: WordVectors, size: int) -> list[Rows]:
    """Groups of ``size`` words (the last one of up to 2 size - 1): each word is in one of them."""
    table = ExactDistances(vectors.matrix)
    free = np.arange(len(vectors))
    right = table.columns(0, len(vectors))
    groups: list[Rows] = []
    while free.size >= 2 * size:
        # the distances of many founders at once; one that an earlier founder takes was computed in vain
        founders = np.arange(min(_SEEDS_AT_A_TIME, free.size))
        squared = table.squared(table.rows(free[founders]), right)
        taken = np.zeros(free.size, dtype=bool)
        left = free.size
        for founder in founders:
            if taken[founder] or left < 2 * size:
                continue
            far = squared[founder]
            far[taken] = np.inf
            chosen = nearest_rows(far, size)
            groups.append(np.sort(free[chosen]))
            taken[chosen] = True
            left -= size
        free, right = free[~taken], right[:, ~taken]
    return [*groups, free]


def nearest_rows(far: npt.NDArray[np.float64], count: int) -> Rows:
    """(count,) the places of the smallest distances; ties go to the lower place."""
    last = np.partition(far, count - 1)[count - 1]
    nearer, equal = np.flatnonzero(far < last), np.flatnonzero(far == last)
    return np.concatenate([nearer, equal[: count - nearer.size]])
