"""Public groups of neighbouring words, and public orders of words along one line: the same on every machine."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.vectors.search import ExactDistances
from dptext.vectors.word_vectors import WordVectors

__all__ = ["nearest_rows", "neighbour_groups", "principal_order", "walk_order"]

Rows = npt.NDArray[np.int64]

_SEEDS_AT_A_TIME = 32


def neighbour_groups(vectors: WordVectors, size: int) -> list[Rows]:
    """Groups of ``size`` words (the last one of up to 2 size - 1): each word is in one of them.

    The most frequent word that is in no group yet founds one, with the size - 1 words nearest to it (Euclidean) that
    are in none; ties go to the lower row. When fewer than 2 size words are left, they are the last group.
    Squared distances are exact integers on the public grid of `ExactDistances`, so nothing here is rounded and
    whoever has the vectors gets the same groups. Work: V^2 / size distances.
    """
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


_STOP_SIZE = 20  # words at each stop of a walk
_DIRECTION_BITS = 12
_POINT_BITS = 24


def principal_order(vectors: WordVectors) -> npt.NDArray[np.int64]:
    """(V,) rows in the order of their coordinate along the first principal component; ties in the order of rows.

    The direction is rounded to multiples of 2^-12 and the points to 24 bits, so that coordinates are exact integers:
    linear algebra of another machine, which differs in the last digits, gives the same order (but for a direction that
    lies within those digits of the middle between two multiples, or two components of equal size).
    """
    matrix = vectors.matrix.astype(np.float64)
    largest = float(np.abs(matrix).max())
    if largest > 0:
        matrix = matrix * 2.0 ** (_POINT_BITS - math.ceil(math.log2(largest)))
    centred = matrix - matrix.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    direction = np.rint(directions[:, -1] * 2.0**_DIRECTION_BITS)
    # an eigenvector has no sign of its own
    direction *= np.sign(direction[np.argmax(np.abs(direction))])
    order: npt.NDArray[np.int64] = np.argsort(np.rint(matrix) @ direction, kind="stable")
    return order


def walk_order(vectors: WordVectors) -> npt.NDArray[np.int64]:
    """(V,) rows in the order of a walk that goes on to the nearest words it has not seen yet.

    A walk word by word takes V^2 distances, so this one goes from group to group (`neighbour_groups` of 20): from a
    founder to the nearest founder not seen, ties to the lower row; the words of a group stand in the order of their
    distance from its founder. All distances are exact integers.
    """
    groups = neighbour_groups(vectors, _STOP_SIZE)
    table = ExactDistances(vectors.matrix)
    # the founder of a group is its most frequent word, that is its first row; the words left over last have none
    founders = np.array([group[0] for group in groups])
    left, right = table.rows(founders), table.columns(0, len(vectors))
    between = right[:, founders]
    unseen = np.ones(len(groups), dtype=bool)
    order, at = [], 0
    for _ in range(len(groups)):
        unseen[at] = False
        group = groups[at]
        far = table.squared(left[at : at + 1], right[:, group])[0]
        order.append(group[np.argsort(far, kind="stable")])
        at = int(np.argmin(np.where(unseen, table.squared(left[at : at + 1], between)[0], np.inf)))
    return np.concatenate(order)
