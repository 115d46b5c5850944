"""Two-sided geometric noise on the integers, exact: every coin is an integer below an integer.

Z has P(Z = z) = (1 - a) / (1 + a) a^|z| with a = e^-rate, the rate a multiple of 2^-40. Nothing is rounded: a coin of
probability e^-g, 0 <= g <= 1, is an alternating series of coins of rational probability, and X with P(X = x)
proportional to e^(-x / t) is a uniform remainder U below t = 2^40, kept with probability e^(-U / t), plus t times the
number of coins of probability 1 / e in a row. floor(X / s) is then geometric with rate s / t (Canonne, Kamath and
Steinke 2020, Algorithms 1 and 2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits

__all__ = ["LARGEST_RATE", "STEPS", "two_sided_geometric"]

STEPS = 2**40
"""Rates are multiples of 1 / STEPS."""
LARGEST_RATE = 2**62
"""In steps; beyond, no noise is ever seen."""

Integers = npt.NDArray[np.uint64]


def two_sided_geometric(bits: RandomBits, count: int, *, rate: int, most: int) -> npt.NDArray[np.int64]:
    """(count,) int64 independent draws of max(-most, min(Z, most)).

    **Guarantee.** x + Z of an integer x is metric DP with epsilon = rate / STEPS a step, exactly:
    | |o - x| - |o - x'| | <= |x - x'|. Clamping is post-processing.

    ``rate`` is in units of 1 / STEPS, from 1 to `LARGEST_RATE`.
    """
    drawn = np.empty(count, dtype=np.int64)
    todo = np.arange(count)
    while todo.size:
        length = np.minimum(_exponential(bits, todo.size) // np.uint64(rate), np.uint64(most)).astype(np.int64)
        negative = bits.below(np.full(todo.size, 2, dtype=np.uint64)) == 1
        # zero must not come twice as often: it has one sign
        kept = ~(negative & (length == 0))
        drawn[todo[kept]] = np.where(negative, -length, length)[kept]
        todo = todo[~kept]
    return drawn


def _exponential(bits: RandomBits, count: int) -> Integers:
    """(count,) X with P(X = x) proportional to e^(-x / STEPS)."""
    rest = np.empty(count, dtype=np.uint64)
    todo = np.arange(count)
    while todo.size:
        uniform = bits.below(np.full(todo.size, STEPS, dtype=np.uint64))
        kept = _coins(bits, uniform)
        rest[todo[kept]] = uniform[kept]
        todo = todo[~kept]
    whole = np.zeros(count, dtype=np.uint64)
    todo = np.arange(count)
    while todo.size:  # more than 2^24 heads in a row, where this would overflow, have probability e^-(2^24)
        todo = todo[_coins(bits, np.full(todo.size, STEPS, dtype=np.uint64))]
        whole[todo] += np.uint64(STEPS)
    return whole + rest


def _coins(bits: RandomBits, numerators: Integers) -> npt.NDArray[np.bool_]:
    """(n,) True with probability e^(-numerator / STEPS), for numerators from 0 to STEPS.

    With g = numerator / STEPS, coin k of a row of coins shows heads with probability g / k; the first tails is coin K
    with P(K > k) = g^k / k!, so K is odd with probability 1 - g + g^2 / 2 - ... = e^-g.
    """
    odd = np.zeros(numerators.size, dtype=bool)
    todo, place = np.arange(numerators.size), 1
    while todo.size:
        heads = bits.below(np.full(todo.size, STEPS * place, dtype=np.uint64)) < numerators[todo]
        odd[todo[~heads]] = place % 2 == 1
        todo = todo[heads]
        place += 1
    return odd
