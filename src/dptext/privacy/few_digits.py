"""Numbers in few digits, rounded to the side that keeps a promise.

Noise and epsilon are rounded up, clipping norms and sampling rates down, *before* they are used: the number that a
statement prints is then the very number that the mechanism used.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context

__all__ = ["rounded_down", "rounded_up"]


def rounded_down(value: float, digits: int) -> float:
    """The largest number of so many significant digits that is not above ``value``.

    >>> rounded_down(0.12349, 3), rounded_down(0.5, 3)
    (0.123, 0.5)
    """
    return _rounded(value, digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int) -> float:
    """The smallest number of so many significant digits that is not below ``value``.

    >>> rounded_up(1.0401, 3), rounded_up(2.5, 3)
    (1.05, 2.5)
    """
    return _rounded(value, digits, ROUND_CEILING)


def _rounded(value: float, digits: int, side: str) -> float:
    nearest = float(f"{value:.{digits}g}")
    if nearest == value:  # 0.1 is a little more than a tenth: exact decimals would round it up to 0.101
        return nearest
    return float(Context(prec=digits, rounding=side).create_decimal(value))
