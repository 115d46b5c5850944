"""Poisson sampling: who takes part in a step, by a coin of his own, secret and thrown anew for each step."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.noise.bits import SCALE
from dptext.privacy.randomness import RandomBits

__all__ = ["sampled_slots", "sampled_users", "threshold"]

_AT_ONCE = 1 << 15
_BITS11 = np.uint64(11)


def threshold(rate: float) -> int:
    """t of a chance t / 2^32, the greatest that is not above ``rate``."""
    return math.floor(rate * SCALE)


def sampled_users(
    bits: RandomBits, levels: npt.NDArray[np.uint16], thresholds: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """Which users take part, in order.

    **Guarantee.** User u takes part with a chance of exactly thresholds[levels[u]] / 2^32, independently of all others.

    Args:
        bits: of this step.
        levels: (n,) of each user.
        thresholds: of each level, 0 to 2^32.
    """
    words = np.empty(min(len(levels), _AT_ONCE), dtype=np.uint32)
    parts = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(levels), _AT_ONCE):
        some = levels[start : start + _AT_ONCE]
        drawn = words[: len(some)]
        bits.fill(drawn)
        parts.append(start + np.flatnonzero(drawn < thresholds[some]))
    return np.concatenate(parts)


def sampled_slots(bits: RandomBits, count: int, rate: float) -> npt.NDArray[np.int64]:
    """Which of ``count`` slots take part, in order: for many slots and small rates, in time that grows with the sample.

    The gaps between those that take part are geometric: P(gap >= k) = (1 - rate)^k, as floor(ln U / ln(1 - rate)).

    **Guarantee.** Each takes part with a chance of at most ``rate``, independently of all others, as far as double
    precision tells: the rate is lowered by 2^-20 of itself, where a uniform number of 53 bits is off by 2^-53.
    """
    if rate >= 1.0:
        return np.arange(count)
    logarithm = math.log1p(-rate * (1 - 2.0**-20))
    parts = [np.empty(0, dtype=np.int64)]
    at = -1
    while at < count:
        expected = max(1.0, (count - at) * rate)
        drawn = np.empty(math.ceil(expected + 4 * math.sqrt(expected)), dtype=np.uint64)
        bits.fill(drawn)
        uniform = ((drawn >> _BITS11) + np.uint64(1)).astype(np.float64) * 2.0**-53
        gaps = np.minimum(np.floor(np.log(uniform) / logarithm), float(count)).astype(np.int64)
        places = at + np.cumsum(gaps + 1)
        at = int(places[-1])
        parts.append(places[places < count])
    return np.concatenate(parts)
