"""Numbers to integers at random, without bias: what a mechanism on integers does to its input first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits

__all__ = ["round_at_random"]


def round_at_random(bits: RandomBits, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """(m,) int64 floor(x + U) with U uniform over the multiples of 2^-32 in [0, 1): x on average, to 2^-33.

    Integers stay as they are. With f the distance to the integer below, the variance is f (1 - f), at most 1/4. It is
    done to the private input before any noise, so no promise rests on it.

    Args:
        bits: the stream of random bits.
        numbers: (m,), at most 2^20 in absolute value, so that a float64 holds the sum.
    """
    uniform = np.frombuffer(bits.take(4 * numbers.size), dtype="<u4") * 2.0**-32
    uniform += numbers
    return np.floor(uniform, out=uniform).astype(np.int64)
