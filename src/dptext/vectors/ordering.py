"""A public order of words along one line, the same on every machine."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.vectors.partition import neighbour_groups
from dptext.vectors.search import ExactDistances
from dptext.vectors.word_vectors import WordVectors

__all__ = ["principal_order", "walk_order"]

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
