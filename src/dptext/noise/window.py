"""A number near the true one, from a window around it, or from outside: the piecewise mechanism on integers.

Derivation: docs/mechanisms/privunit.md#noise-window
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise.bits import SCALE, coins
from dptext.privacy.randomness import RandomBits

__all__ = ["Window", "chance_inside", "uniform_subsets", "window_moments", "window_within"]

Integers = npt.NDArray[np.int64]
Number = TypeVar("Number", float, npt.NDArray[np.float64])


@dataclass(frozen=True)
class Window:
    """Calibrated: n, w and T of the module's equations."""

    steps: int
    half: int
    threshold: int

    @property
    def epsilon(self) -> float:
        """Equation (window): what an output tells about the input."""
        inside, outside = self.threshold * 2 * self.steps, (SCALE - self.threshold) * (2 * self.half + 1)
        return math.log1p((inside - outside) / outside)

    @property
    def gain(self) -> float:
        """g: how much of i is left in the mean of o."""
        return self.threshold / SCALE - (1 - self.threshold / SCALE) * (2 * self.half + 1) / (2 * self.steps)

    @property
    def moments(self) -> tuple[float, float]:
        """(A, B) of equation (moments)."""
        return window_moments(self.steps, float(self.half), self.threshold / SCALE)

    @property
    def reach(self) -> int:
        """Outputs lie between minus this and this."""
        return self.steps + self.half

    def draw(self, bits: RandomBits, places: Integers) -> Integers:
        """(m,) int64 outputs o for (m,) int64 inputs i between -n and n. Exact."""
        size = 2 * self.half + 1
        outputs = np.empty(places.size, dtype=np.int64)
        inside = coins(bits, places.size, self.threshold)
        near, far = np.flatnonzero(inside), np.flatnonzero(~inside)
        outputs[near] = places[near] - self.half + _below(bits, near.size, size)
        # i + n integers lie below the window
        rank = _below(bits, far.size, 2 * self.steps)
        outputs[far] = rank - self.reach + (rank >= places[far] + self.steps) * size
        return outputs

    def distributions(self) -> npt.NDArray[np.float64]:
        """(2n + 1, 2(n + w) + 1) the probabilities that `draw` has: a row for each input, for small n."""
        places = np.arange(-self.steps, self.steps + 1)[:, None]
        outputs = np.arange(-self.reach, self.reach + 1)
        near = self.threshold / SCALE / (2 * self.half + 1)
        far = (SCALE - self.threshold) / SCALE / (2 * self.steps)
        return np.where(np.abs(outputs - places) <= self.half, near, far)


def chance_inside(steps: int, half: Number, epsilon: Number) -> Number:
    """T / 2^32 of equation (window), unrounded."""
    # 1 / (1 + e^-epsilon 2n / (2w + 1)), which overflows nowhere
    inside: Number = 1 / (1 + np.exp(-epsilon) * (2 * steps) / (2 * half + 1))
    return inside


def window_moments(steps: int, half: Number, chance: Number) -> tuple[Number, Number]:
    """(A, B) of equation (moments)."""
    outside = (1 - chance) / (2 * steps)
    gain = chance - outside * (2 * half + 1)
    reach = steps + half
    squares = reach * (reach + 1) * (2 * reach + 1) / 3
    return (outside * squares + gain * half * (half + 1) / 3) / (gain * steps) ** 2, 1 / gain


def window_within(epsilon: float, steps: int, half: int) -> Window:
    """The window of this size that leans most towards the input while its epsilon is at most ``epsilon``."""
    chance = float(chance_inside(steps, float(half), epsilon))
    window = Window(steps, half, min(math.floor(SCALE * chance) + 1, SCALE - 1))
    while window.epsilon > epsilon and window.threshold > 1:
        window = Window(steps, half, window.threshold - 1)
    if not min(epsilon, 1.0) / 2 < window.epsilon <= epsilon:
        raise ParameterError(
            f"a budget of {epsilon:.3g} for one number is less than a chance of 32 bits can tell from none: "
            "raise epsilon"
        )
    return window


def _below(bits: RandomBits, count: int, bound: int) -> Integers:
    return bits.below(np.full(count, bound, dtype=np.uint64)).astype(np.int64)


def uniform_subsets(bits: RandomBits, rows: int, *, of: int, size: int) -> npt.NDArray[np.int64]:
    """(rows, size) int64, each row a uniform subset of 0 .. of - 1, in no order that means anything."""
    chosen = np.empty((rows, size), dtype=np.int64)
    for place, last in enumerate(range(of - size, of)):
        drawn = bits.below(np.full(rows, last + 1, dtype=np.uint64)).astype(np.int64)
        taken = (chosen[:, :place] == drawn[:, None]).any(axis=1)
        chosen[:, place] = np.where(taken, last, drawn)
    return chosen
