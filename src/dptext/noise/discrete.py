"""Samplers: flipped bits, randomised response, windows on the line, spherical caps, and L2-Laplace noise.

Derivation: docs/mechanisms/bits.md#noise-bits
Derivation: docs/mechanisms/privunit.md#noise-window
Derivation: docs/mechanisms/bits.md#noise-categories
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block
from dptext.validation import check_float, check_int

SCALE = 2**32
"""Probabilities are multiples of 1 / SCALE."""

Thresholds = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_ROUNDING = 2.0**-40  # above the rounding error of a float64 sum of 2^20 logarithms
_COINS = 1 << 16  # per block of 256 KiB, which fits into the cache
_COINS_A_TASK = 1 << 20


def asked_less_rounding(epsilon: float) -> float:
    """Return the largest budget whose rounded-up epsilon does not exceed ``epsilon``."""
    return epsilon * (1 - 2 * _ROUNDING)


def round_up_epsilon(epsilon: float) -> float:
    """Round a computed epsilon up by more than its rounding error."""
    return epsilon * (1 + _ROUNDING)


def flip_epsilon(threshold: int) -> float:
    """Return ln((2^32 - t) / t), equation (flip): the epsilon of a bit flipped with probability t / 2^32."""
    return math.log1p((SCALE - 2 * threshold) / threshold)


def flip_threshold(epsilon: float) -> int:
    """Return the smallest t whose `flip_epsilon` is at most ``epsilon``."""
    threshold = max(1, math.floor(SCALE / (1 + math.exp(min(epsilon, 700.0)))) - 1)
    while flip_epsilon(threshold) > epsilon and threshold < SCALE // 2:
        threshold += 1
    if threshold >= SCALE // 2:
        raise ParameterError(
            f"an epsilon of {epsilon:.3g} per bit is too small for a probability of 32 bits. Raise epsilon, or "
            "send fewer bits"
        )
    return threshold


def coins(bits: RandomBits, count: int, threshold: int) -> Booleans:
    """Return (count,) bools, each True with probability threshold / 2^32."""
    heads = np.empty(count, dtype=np.bool_)
    for start in range(0, count, _COINS):
        block = heads[start : start + _COINS]
        np.less(_words(bits, block.size), np.uint32(threshold), out=block)
    return heads


def leaning_coins(bits: RandomBits, numbers: Floats, threshold: int) -> Booleans:
    """Return (m,) bools for (m,) numbers x from -1 to 1, each True with probability 1/2 + x (1/2 - t / 2^32)."""
    half = SCALE // 2
    chances = np.rint(half + numbers * (half - threshold)).astype(np.uint32)
    return _words(bits, numbers.size) < chances


def packed_coins(bits: RandomBits, rows: int, thresholds: Thresholds) -> Bytes:
    """Return (rows, ceil(k / 8)) uint8: bit j is 1 with probability thresholds[j] / 2^32, independently."""
    width = thresholds.size
    packed = np.empty((rows, -(-width // 8)), dtype=np.uint8)
    if not rows or not width:
        return packed
    threshold = thresholds[0] if (thresholds == thresholds[0]).all() else thresholds
    step = max(1, _COINS // width)
    rows_a_task = step * max(1, _COINS_A_TASK // (step * width))
    starts = range(0, rows, rows_a_task)

    def fill(task: tuple[int, RandomBits]) -> None:
        first, stream = task
        last = min(first + rows_a_task, rows)
        for start in range(first, last, step):
            block = packed[start : min(start + step, last)]
            heads = _words(stream, len(block) * width).reshape(len(block), width) < threshold
            if width % 8 == 0:  # rows end at byte boundaries: one long row is packed faster than many
                block.reshape(-1)[:] = np.packbits(heads.reshape(-1))
            else:
                block[:] = np.packbits(heads, axis=1)

    for_each_block(fill, zip(starts, bits.spawn(len(starts)), strict=True))
    return packed


def flip_codes(codes: npt.NDArray[np.uint16], thresholds: list[int], bits: RandomBits) -> None:
    """Flip bit j (bit 0 is the lowest) of (m,) contiguous codes with probability thresholds[j] / 2^32, in place."""
    plane = np.empty(min(codes.size, _COINS), dtype=np.uint16)
    for start in range(0, codes.size, _COINS):
        block = codes[start : start + _COINS]
        shifted = plane[: block.size]
        for place, threshold in enumerate(thresholds):
            heads = _words(bits, block.size) < np.uint32(threshold)
            np.left_shift(heads.view(np.uint8), place, out=shifted, dtype=np.uint16)
            np.bitwise_xor(block, shifted, out=block)


def _words(bits: RandomBits, count: int) -> Thresholds:
    """Return (count,) uint32, uniform over all 32-bit integers."""
    return np.frombuffer(bits.take(4 * count), dtype="<u4")


FINE_SCALE = 2**64
"""Probabilities of randomised response and uneven bits are multiples of 1 / FINE_SCALE."""

FineThresholds = npt.NDArray[np.uint64]

_COARSE = np.uint64(48)  # number of bits below the 16 that are drawn for every coin
_LEAST = 2**20  # a probability of at least 2^-44, so that its relative rounding error is below 1e-6


def fine_threshold(chance: float) -> int:
    """Return the threshold that is nearest to a probability."""
    threshold = round(chance * 2.0**64) if 0 < chance < 1 else 0
    if not _LEAST <= threshold <= FINE_SCALE - _LEAST:
        raise ParameterError(
            f"a bit would be sent with probability {chance:.3g}: probabilities must be between 5.7e-14 and 1 - 5.7e-14"
        )
    return threshold


def log_ratio(above: int, below: int) -> float:
    """Return ln(above / below) of two thresholds with a relative error of 2^-52, also if they are nearly equal."""
    if above < below:
        return -log_ratio(below, above)
    return math.log1p((above - below) / below)


def losses_of_a_bit(one: int, zero: int) -> tuple[float, float]:
    """Return the largest privacy losses of a bit that is sent as 1 and as 0."""
    sent, withheld = log_ratio(one, zero), log_ratio(FINE_SCALE - one, FINE_SCALE - zero)
    return max(sent, withheld), max(-sent, -withheld)


def uneven_bits(bits: RandomBits, values: Bytes, one: FineThresholds, zero: FineThresholds) -> Bytes:
    rows, width = len(values), one.size
    words = np.frombuffer(bits.take(2 * rows * width), dtype="<u2").reshape(rows, width)
    coarse = [(entry >> _COARSE).astype(np.uint16) for entry in (one, zero)]
    heads = [words < entry for entry in coarse]
    tied = words == coarse[0]
    tied |= words == coarse[1]
    places = np.flatnonzero(tied)
    columns = places % width
    draws = (words.reshape(-1)[places].astype(np.uint64) << _COARSE) | (bits.integers(places.size) >> np.uint64(16))
    for entry, thresholds in zip(heads, (one, zero), strict=True):
        entry.reshape(-1)[places] = draws < thresholds[columns]
    # a 1 and a 0 share one coin, because only one of them is used
    if_one, if_zero = (np.packbits(head, axis=1) for head in heads)
    return (values & if_one) | (~values & if_zero)


def round_at_random(bits: RandomBits, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return (m,) int64 floor(x + U), U uniform over multiples of 2^-32 in [0, 1); the mean is x to within 2^-33."""
    uniform = np.frombuffer(bits.take(4 * numbers.size), dtype="<u4") * 2.0**-32
    uniform += numbers
    return np.floor(uniform, out=uniform).astype(np.int64)


_MOST_CATEGORIES = 10_000
_MOST_EPSILON = 20.0  # above, fewer than one answer in a billion differs from the truth
_EXP_ROUNDING = 2.0**-48  # above the relative error of the arithmetic below


@dataclass(frozen=True)
class RandomizedResponse:
    """Randomised response for k categories."""

    categories: int
    epsilon: float

    def __post_init__(self) -> None:
        categories = check_int("categories", self.categories, minimum=1, maximum=_MOST_CATEGORIES)
        epsilon = check_float("epsilon", self.epsilon, above=0, maximum=_MOST_EPSILON)
        for name, value in (("categories", categories), ("epsilon", epsilon)):
            object.__setattr__(self, name, value)

    @cached_property
    def threshold(self) -> int:
        """t: the truth is sent if a random 64-bit integer is below t."""
        # 1 - tau = k / (e^epsilon + k - 1), rounded up: the complement is precise if tau is almost 1
        rest = FINE_SCALE * self.categories / (math.exp(self.epsilon) + self.categories - 1)
        return max(0, FINE_SCALE - math.ceil(rest * (1 + _EXP_ROUNDING)))

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """(k, k) exact probabilities, one row per true category and one column per answer."""
        other = (FINE_SCALE - self.threshold) / (FINE_SCALE * self.categories)
        table = np.full((self.categories, self.categories), other)
        np.fill_diagonal(table, other + self.threshold / FINE_SCALE)
        return table

    def draw(self, bits: RandomBits, truth: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return (n,) answers to (n,) true categories 0 .. k - 1. The number of drawn bits is independent of both."""
        uniform = bits.below(np.full(len(truth), self.categories, dtype=np.uint64)).astype(np.int64)
        return np.where(bits.integers(len(truth)) < np.uint64(self.threshold), truth, uniform)


def uniform_directions(bits: RandomBits, count: int, dimension: int) -> npt.NDArray[np.float64]:
    """Return (count, dimension) float64, rows uniform on the unit sphere: normalised normal vectors (Muller 1959)."""
    directions = bits.normal(count, dimension)
    lengths = np.sqrt((directions**2).sum(axis=1, keepdims=True))
    # If all coordinates are zero (probability below 2^-53), use a fixed direction instead of raising an error.
    directions[lengths[:, 0] == 0.0, 0] = 1.0
    lengths[lengths == 0.0] = 1.0
    directions /= lengths
    return directions


def l2_laplace(bits: RandomBits, count: int, dimension: int, scale: float) -> npt.NDArray[np.float64]:
    """Return (count, dimension) float64, rows with density proportional to exp(-||z|| / scale)."""
    # A gamma variable of integer shape d is the sum of d exponentials, with all 53-bit tails.
    radius = scale * bits.exponential(count, dimension).sum(axis=1, keepdims=True)
    noise = uniform_directions(bits, count, dimension)
    noise *= radius
    return noise


def elliptical_laplace(
    bits: RandomBits, count: int, root: npt.NDArray[np.float64], scale: float
) -> npt.NDArray[np.float64]:
    """Return (count, dimension) float64, rows with density proportional to exp(-||root^-1 z|| / scale)."""
    return l2_laplace(bits, count, len(root), scale) @ root.T


@dataclass(frozen=True)
class Tail:
    """P(T >= h), E[T; T >= h] and E[T^2; T >= h] of a symmetric T with variance 1/d."""

    mass: float
    first: float
    second: float


def sphere_tail(dimension: int, height: float) -> Tail:
    """Return the tail of a cap with a height from 0 to below 1 on the unit sphere in ``dimension`` >= 2 dimensions."""
    d = dimension
    log_constant = math.lgamma(d / 2) - math.lgamma((d - 1) / 2) - 0.5 * math.log(math.pi)
    first = math.exp(log_constant + (d - 1) / 2 * math.log((1 - height) * (1 + height))) / (d - 1)
    return Tail(_cap_mass(d, height), first, height * first + _cap_mass(d + 2, height) / d)


def gaussian_tail(dimension: int, height: float) -> Tail:
    """Return the tail of a normal T with variance 1/d."""
    root = math.sqrt(dimension)
    mass = 0.5 * math.erfc(height * root / math.sqrt(2))
    first = math.exp(-(height**2) * dimension / 2) / math.sqrt(2 * math.pi) / root
    return Tail(mass, first, height * first + mass / dimension)


def _cap_mass(dimension: int, height: float) -> float:
    return 0.5 * regularised_beta((dimension - 1) / 2, 0.5, (1 - height) * (1 + height), height * height)


def regularised_beta(a: float, b: float, x: float, one_less_x: float) -> float:
    """Return I_x(a, b) to 1e-12 by its continued fraction (NIST Digital Library of Mathematical Functions, 8.17.22)."""
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
    """Return (count,) independent draws of T given T >= height, by rejection under an exponential from ``height``."""
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
            log_density, top = np.zeros(todo.size), np.zeros(todo.size)  # the proposal is the half-normal target
        else:
            log_density, top = -dimension * t * t / 2, -dimension * height * height / 2 - rate * above
        kept = np.log(bits.uniform(todo.size)) <= log_density - top
        draws[todo[kept]] = t[kept]
        todo = todo[~kept]
    return draws


def _truncated_exponential(bits: RandomBits, count: int, rate: float, reach: float, *, normal_scale: float) -> Floats:
    """Return (count,) exponentials truncated at ``reach``; at rate 0 uniform, or half-normal for infinite reach."""
    if rate == 0.0 and math.isinf(reach):
        return np.abs(bits.normal(count)) * normal_scale
    if rate * reach < 1e-9:
        return reach * bits.uniform(count)
    # 1 - u (1 - e^(-rate reach)) decreases from 1 to e^(-rate reach)
    share = bits.uniform(count) * -math.expm1(-rate * reach)
    draws: Floats = -np.log1p(-share) / rate
    return np.minimum(draws, reach)


Integers = npt.NDArray[np.int64]
Number = TypeVar("Number", float, npt.NDArray[np.float64])


@dataclass(frozen=True)
class Window:
    """Calibrated window: n, w and T of equation (window)."""

    steps: int
    half: int
    threshold: int

    @property
    def epsilon(self) -> float:
        """Epsilon of one output, equation (window)."""
        inside, outside = self.threshold * 2 * self.steps, (SCALE - self.threshold) * (2 * self.half + 1)
        return math.log1p((inside - outside) / outside)

    @property
    def gain(self) -> float:
        """g, the factor of i in the mean of o."""
        return self.threshold / SCALE - (1 - self.threshold / SCALE) * (2 * self.half + 1) / (2 * self.steps)

    @property
    def moments(self) -> tuple[float, float]:
        """(A, B) of equation (moments)."""
        return window_moments(self.steps, float(self.half), self.threshold / SCALE)

    @property
    def reach(self) -> int:
        """Outputs are between ``-reach`` and ``reach``."""
        return self.steps + self.half

    def draw(self, bits: RandomBits, places: Integers) -> Integers:
        """Return (m,) int64 outputs o for (m,) int64 inputs i between -n and n, exactly."""
        size = 2 * self.half + 1
        outputs = np.empty(places.size, dtype=np.int64)
        inside = coins(bits, places.size, self.threshold)
        near, far = np.flatnonzero(inside), np.flatnonzero(~inside)
        outputs[near] = (
            places[near] - self.half + bits.below(np.full(near.size, size, dtype=np.uint64)).astype(np.int64)
        )  # i + n integers are below the window
        rank = bits.below(np.full(far.size, 2 * self.steps, dtype=np.uint64)).astype(np.int64)
        outputs[far] = rank - self.reach + (rank >= places[far] + self.steps) * size
        return outputs

    def distributions(self) -> npt.NDArray[np.float64]:
        """Return (2n + 1, 2(n + w) + 1) exact probabilities of `draw`, one row per input, for small n."""
        places = np.arange(-self.steps, self.steps + 1)[:, None]
        outputs = np.arange(-self.reach, self.reach + 1)
        near = self.threshold / SCALE / (2 * self.half + 1)
        far = (SCALE - self.threshold) / SCALE / (2 * self.steps)
        return np.where(np.abs(outputs - places) <= self.half, near, far)


def chance_inside(steps: int, half: Number, epsilon: Number) -> Number:
    """Return T / 2^32 of equation (window), unrounded."""
    # 1 / (1 + e^-epsilon 2n / (2w + 1)), which never overflows
    inside: Number = 1 / (1 + np.exp(-epsilon) * (2 * steps) / (2 * half + 1))
    return inside


def window_moments(steps: int, half: Number, chance: Number) -> tuple[Number, Number]:
    """Return (A, B) of equation (moments)."""
    outside = (1 - chance) / (2 * steps)
    gain = chance - outside * (2 * half + 1)
    reach = steps + half
    squares = reach * (reach + 1) * (2 * reach + 1) / 3
    return (outside * squares + gain * half * (half + 1) / 3) / (gain * steps) ** 2, 1 / gain


def window_within(epsilon: float, steps: int, half: int) -> Window:
    """Return the window of this size with the largest threshold whose epsilon is at most ``epsilon``."""
    chance = float(chance_inside(steps, float(half), epsilon))
    window = Window(steps, half, min(math.floor(SCALE * chance) + 1, SCALE - 1))
    while window.epsilon > epsilon and window.threshold > 1:
        window = Window(steps, half, window.threshold - 1)
    if not min(epsilon, 1.0) / 2 < window.epsilon <= epsilon:
        raise ParameterError(
            f"an epsilon of {epsilon:.3g} per number is too small for a probability of 32 bits. Raise epsilon"
        )
    return window


def uniform_subsets(bits: RandomBits, rows: int, *, of: int, size: int) -> npt.NDArray[np.int64]:
    """Return (rows, size) int64, each row a uniform subset of 0 .. of - 1, in arbitrary order."""
    chosen = np.empty((rows, size), dtype=np.int64)
    for place, last in enumerate(range(of - size, of)):
        draws = bits.below(np.full(rows, last + 1, dtype=np.uint64)).astype(np.int64)
        taken = (chosen[:, :place] == draws[:, None]).any(axis=1)
        chosen[:, place] = np.where(taken, last, draws)
    return chosen
