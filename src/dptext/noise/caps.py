"""Spherical caps, and windows on the line: exact integer samplers.

Derivation: docs/mechanisms/privunit.md#noise-window
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise.discrete import SCALE, coins
from dptext.privacy.randomness import RandomBits

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tail:
    """P(T >= h), E[T; T >= h] and E[T^2; T >= h] of a symmetric T with variance 1/d."""

    mass: float
    first: float
    second: float


def sphere_tail(dimension: int, height: float) -> Tail:
    """The cap of a height of at least 0 and below 1 on the unit sphere in ``dimension`` >= 2 dimensions."""
    d = dimension
    log_constant = math.lgamma(d / 2) - math.lgamma((d - 1) / 2) - 0.5 * math.log(math.pi)
    first = math.exp(log_constant + (d - 1) / 2 * math.log((1 - height) * (1 + height))) / (d - 1)
    return Tail(_cap_mass(d, height), first, height * first + _cap_mass(d + 2, height) / d)


def gaussian_tail(dimension: int, height: float) -> Tail:
    """The same of a normal T with variance 1/d."""
    root = math.sqrt(dimension)
    mass = 0.5 * math.erfc(height * root / math.sqrt(2))
    first = math.exp(-(height**2) * dimension / 2) / math.sqrt(2 * math.pi) / root
    return Tail(mass, first, height * first + mass / dimension)


def _cap_mass(dimension: int, height: float) -> float:
    return 0.5 * regularised_beta((dimension - 1) / 2, 0.5, (1 - height) * (1 + height), height * height)


def regularised_beta(a: float, b: float, x: float, one_less_x: float) -> float:
    """I_x(a, b) by its continued fraction (NIST Digital Library of Mathematical Functions, 8.17.22), to 1e-12."""
    if x <= 0.0:
        return 0.0
    if one_less_x <= 0.0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - regularised_beta(b, a, one_less_x, x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(one_less_x)
    # modified Lentz: 1 / (1 + d_1 / (1 + d_2 / ...))
    fraction, numerator, denominator = 1.0, 1.0, 0.0
    for place in range(1, 10_000):
        m = place // 2
        if place % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        denominator = 1 / (1 + term * denominator)
        numerator = 1 + term / numerator
        fraction *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-15:
            break
    return math.exp(log_front) / a / fraction


def tail_heights(bits: RandomBits, count: int, dimension: int, height: float, *, sphere: bool) -> Floats:
    """(count,) independent draws of T given T >= height, by rejection under an exponential from the rim."""
    if sphere and dimension == 2:
        return np.cos(math.acos(height) * bits.uniform(count))
    power = (dimension - 3) / 2
    reach = 1.0 - height if sphere else math.inf
    rate = 2 * power * height / ((1 - height) * (1 + height)) if sphere else dimension * height
    draws = np.empty(count)
    todo = np.arange(count)
    while todo.size:
        above = _truncated_exponential(bits, todo.size, rate, reach, normal_scale=dimension**-0.5)
        t = height + above
        if sphere:
            with np.errstate(divide="ignore", invalid="ignore"):
                log_density = power * (np.log1p(-t) + np.log1p(t)) if power else np.zeros(todo.size)
            top = power * (math.log1p(-height) + math.log1p(height)) - rate * above
        elif rate == 0.0:
            log_density, top = np.zeros(todo.size), np.zeros(todo.size)  # the proposal is the half normal itself
        else:
            log_density, top = -dimension * t * t / 2, -dimension * height * height / 2 - rate * above
        kept = np.log(bits.uniform(todo.size)) <= log_density - top
        draws[todo[kept]] = t[kept]
        todo = todo[~kept]
    return draws


def _truncated_exponential(bits: RandomBits, count: int, rate: float, reach: float, *, normal_scale: float) -> Floats:
    """(count,) exponential of a rate, cut at ``reach``; at rate 0 uniform up to it, or half normal if it is endless."""
    if rate == 0.0 and math.isinf(reach):
        return np.abs(bits.normal(count)) * normal_scale
    if rate * reach < 1e-9:
        return reach * bits.uniform(count)
    # 1 - u (1 - e^(-rate reach)) runs from 1 down to e^(-rate reach)
    share = bits.uniform(count) * -math.expm1(-rate * reach)
    draws: Floats = -np.log1p(-share) / rate
    return np.minimum(draws, reach)


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
        draws = bits.below(np.full(rows, last + 1, dtype=np.uint64)).astype(np.int64)
        taken = (chosen[:, :place] == draws[:, None]).any(axis=1)
        chosen[:, place] = np.where(taken, last, draws)
    return chosen
