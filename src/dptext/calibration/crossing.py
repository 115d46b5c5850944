"""The epsilon at which a quantity crosses its target."""

from __future__ import annotations

import math
from collections.abc import Callable

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits

__all__ = ["DIGITS", "UnreachableError", "crossing", "fresh_seed", "log_odds"]

DIGITS = 4
"""Of an epsilon that was searched for: one that a person can type."""
_DOUBLINGS = 24
_FLAT = 8  # doublings without any change: the curve has reached its end
_NARROW = 1e-4  # of ln epsilon
_STEPS = 40
_SMALLEST_SHARE = 1e-9


class UnreachableError(Exception):
    """No crossing was found: the last epsilon that could be looked at, and which way the search went."""

    def __init__(self, epsilon: float, upwards: bool) -> None:
        super().__init__(f"no crossing up to {epsilon:g}" if upwards else f"no crossing down to {epsilon:g}")
        self.epsilon, self.upwards = epsilon, upwards


def crossing(excess: Callable[[float], float], *, start: float, tolerance: float) -> float:
    """An epsilon with ``excess(epsilon) <= 0``, or within ``tolerance`` of 0, that has a positive excess above it."""
    low = high = start
    at_low = at_high = excess(start)
    if abs(at_low) <= tolerance:
        return start
    upwards = at_low < 0
    flat = 0
    for _ in range(_DOUBLINGS):
        if at_low <= 0 < at_high:
            break
        epsilon = high * 2 if upwards else low / 2
        try:
            value = excess(epsilon)
        except ParameterError:
            raise UnreachableError(high if upwards else low, upwards) from None
        before = at_high if upwards else at_low
        flat = flat + 1 if abs(value - before) < 1e-9 else 0
        if upwards:
            low, at_low, high, at_high = high, at_high, epsilon, value
        else:
            low, at_low, high, at_high = epsilon, value, low, at_low
        if flat == _FLAT:
            break
    if not at_low <= 0 < at_high:
        raise UnreachableError(high if upwards else low, upwards)
    return _refined(excess, (low, at_low), (high, at_high), tolerance)


def _refined(
    excess: Callable[[float], float], below: tuple[float, float], above: tuple[float, float], tolerance: float
) -> float:
    """False position (Illinois: an end that stays twice counts half), bisection where that does not move."""
    low, at_low = math.log(below[0]), below[1]
    high, at_high = math.log(above[0]), above[1]
    weight_low, weight_high = at_low, at_high
    side = 0
    for step in range(_STEPS):
        if abs(at_low) <= tolerance or high - low < _NARROW:
            break
        if at_high <= tolerance:
            return math.exp(high)
        middle = (low + high) / 2
        if step % 3 < 2:  # every third step halves, however crooked the curve
            share = weight_low / (weight_low - weight_high)
            middle = low + min(max(share, 0.02), 0.98) * (high - low)
        value = excess(math.exp(middle))
        if value <= 0:
            low = middle
            at_low = weight_low = value
            weight_high = weight_high / 2 if side < 0 else at_high
            side = -1
        else:
            high = middle
            at_high = weight_high = value
            weight_low = weight_low / 2 if side > 0 else at_low
            side = 1
    return math.exp(low)


def log_odds(share: float) -> float:
    """ln(p / (1 - p)), which runs nearly straight in ln epsilon; 0 and 1 are taken for the nearest finite ones."""
    share = min(max(share, _SMALLEST_SHARE), 1 - _SMALLEST_SHARE)
    return math.log(share / (1 - share))


def fresh_seed() -> int:
    """A seed of its own for draws that are to be repeated within one calculation."""
    return int.from_bytes(RandomBits().take(8), "little")
