"""The chances with which unary encodings send their bits, as printed (paper: equations (1) to (3) and figure 3).

p is the chance that a 1 is sent as 1, q the chance that a 0 is. All take numbers or arrays of them.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["oue_chances", "p1", "p2", "q", "sue_chances"]

Numbers: TypeAlias = float | npt.NDArray[np.float64]


def p1(lambda_: Numbers) -> Numbers:
    """OME's p for even bits, lambda / (1 + lambda): equation (2).

    >>> round(p1(100.0), 4)
    0.9901
    """
    return lambda_ / (1 + lambda_)


def p2(lambda_: Numbers) -> Numbers:
    """OME's p for odd bits, 1 / (1 + lambda^3): equation (2).

    >>> p2(1.0)
    0.5
    """
    return 1 / (1 + lambda_**3)


def q(epsilon: Numbers, lambda_: Numbers, bits: int) -> Numbers:
    """OME's q, 1 / (1 + lambda e^(epsilon / rl)): equation (3).

    Args:
        epsilon: as printed.
        lambda_: the randomisation factor.
        bits: rl, how many are sent.

    >>> [round(float(q(epsilon, 100.0, 500)), 6) for epsilon in (0.5, 10.0)]
    [0.009891, 0.009707]
    """
    chance: Numbers = 1 / (1 + lambda_ * np.exp(epsilon / bits))
    return chance


def sue_chances(epsilon: Numbers, sensitivity: float) -> tuple[Numbers, Numbers]:
    """p and q of symmetric unary encoding: e^(epsilon / D) / (1 + e^(epsilon / D)), and 1 less that.

    >>> [round(float(each), 4) for each in sue_chances(1.0, 100.0)]
    [0.5025, 0.4975]
    """
    chance = 1 / (1 + np.exp(epsilon / sensitivity))
    return 1 - chance, chance


def oue_chances(epsilon: Numbers, sensitivity: float) -> tuple[Numbers, Numbers]:
    """p and q of optimised unary encoding: 1/2, and 1 / (1 + e^(epsilon / D)).

    >>> [round(float(each), 4) for each in oue_chances(1.0, 100.0)]
    [0.5, 0.4975]
    """
    chance = 1 / (1 + np.exp(epsilon / sensitivity))
    return chance * 0 + 0.5, chance
