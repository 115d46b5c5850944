"""How far the outputs of two inputs overlap: 1 minus their total variation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dptext.calibration.outcomes import Floats

__all__ = ["overlap", "overlap_of_places"]


def overlap(one: Floats, other: Floats) -> float:
    """The sum over all outputs of the smaller of their two probabilities.

    >>> overlap(np.array([0.5, 0.5]), np.array([0.75, 0.25]))
    0.75
    """
    return float(np.minimum(one, other).sum())


def overlap_of_places(places: Sequence[tuple[Floats, Floats]]) -> tuple[float, float]:
    """(low, high) between which the overlap of two products of distributions lies; both are it, for one place.

    It is no smaller than the product of the overlaps (draw each place from a maximal coupling) and no larger than the
    smallest of them (to look at one place is post-processing).
    """
    each = [overlap(one, other) for one, other in places]
    return math.prod(each), min(each)
