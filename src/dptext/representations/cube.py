"""Piecewise and hybrid mechanisms: send some coordinates of a vector of the cube, each near its true value.

Derivation: docs/mechanisms/additive-noise.md#representations-cube
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext.noise.discrete import (
    SCALE,
    asked_less_rounding,
    chance_inside,
    coins,
    flip_epsilon,
    flip_threshold,
    leaning_coins,
    round_at_random,
    round_up_epsilon,
    uniform_subsets,
    window_moments,
    window_within,
)
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.bounds import Domain, Floats
from dptext.representations.randomizer import Channel, Private, Randomizer, in_blocks

STEPS = 2**20
"""Numbers are rounded to multiples of 1 / STEPS; the variance of that is below 2^-42."""

_NUMBERS = 1 << 15  # per block
_NUMBERS_A_TASK = 1 << 18


class Plan(NamedTuple):
    """Number of coordinates to send, half-width of the window, and probability of using the window."""

    numbers: int
    half: int
    share: float


class CubeChannel(Channel):
    """A window, or one bit, for k of d coordinates."""

    domain = Domain.CUBE

    def __init__(self, name: str, epsilon: float, dimension: int, plan: Plan, *, steps: int = STEPS) -> None:
        self.name = name
        self.dimension = self.width = dimension
        self.numbers, self.windowed = plan.numbers, round(plan.share * SCALE)
        budget = asked_less_rounding(epsilon) / self.numbers
        self.window = window_within(budget, steps, plan.half) if self.windowed else None
        self.flip = flip_threshold(budget) if self.windowed < SCALE else None
        of_window = 0.0 if self.window is None else self.window.epsilon
        of_bit = 0.0 if self.flip is None else flip_epsilon(self.flip)
        # the coin does not depend on the number: the larger of the two counts
        self.guarantee = PureDP(round_up_epsilon(self.numbers * max(of_window, of_bit)))
        self._scale = dimension / self.numbers
        # A and B of one number, averaged over the choice between window and one bit
        share = self.windowed / SCALE
        constant, slope = (0.0, 0.0) if self.window is None else self.window.moments
        noise = 0.0 if self.flip is None else (1 - 2 * self.flip / SCALE) ** -2
        self._constant, self._slope = share * constant + (1 - share) * noise, share * slope
        rounding = 0.0 if self.window is None else self._slope / (4 * steps * steps)
        self.expected_squared_error = self._scale * (dimension * (self._constant + rounding) + self._slope) - 1

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        everything = self.numbers == self.dimension
        private = np.empty(vectors.shape, dtype=np.float32) if everything else np.zeros(vectors.shape, np.float32)

        def fill(rows: slice, stream: RandomBits) -> None:
            values, out = vectors[rows], private[rows]
            if everything:
                out[:] = self._noisy(values.reshape(-1), stream).reshape(values.shape)
                return
            places = uniform_subsets(stream, len(values), of=self.dimension, size=self.numbers)
            chosen = np.take_along_axis(values, places, axis=1)
            noisy = self._noisy(chosen.reshape(-1), stream).astype(np.float32)
            np.put_along_axis(out, places, noisy.reshape(chosen.shape), axis=1)

        rows = max(1, _NUMBERS // self.numbers)
        in_blocks(fill, len(vectors), bits, rows=rows, blocks=max(1, _NUMBERS_A_TASK // (rows * self.numbers)))
        return private

    def _noisy(self, numbers: Floats, bits: RandomBits) -> Floats:
        """Return (m,) unbiased noisy numbers, times d / k."""
        if self.window is None:
            return self._through_bit(numbers, bits)
        if self.flip is None:
            return self._through_window(numbers, bits)
        windowed = coins(bits, numbers.size, self.windowed)
        noisy = np.empty(numbers.size)
        noisy[windowed] = self._through_window(numbers[windowed], bits)
        noisy[~windowed] = self._through_bit(numbers[~windowed], bits)
        return noisy

    def _through_window(self, numbers: Floats, bits: RandomBits) -> Floats:
        assert self.window is not None
        places = round_at_random(bits, numbers * self.window.steps)
        outputs = self.window.draw(bits, places).astype(np.float64)
        outputs *= self._scale / (self.window.gain * self.window.steps)
        return outputs

    def _through_bit(self, numbers: Floats, bits: RandomBits) -> Floats:
        assert self.flip is not None
        sent = self._scale / (1 - 2 * self.flip / SCALE)
        return np.where(leaning_coins(bits, numbers, self.flip), sent, -sent)

    def debiased_second_moment(self, moment: Floats) -> Floats:
        """Correct pairs, sent with probability k (k - 1) / (d (d - 1)), and squares, of mean (d / k) (A + B x^2)."""
        d, k = self.dimension, self.numbers
        if not self._slope or (k == 1 and d > 1):
            return super().debiased_second_moment(moment)
        debiased = moment * (k * (d - 1) / (d * (k - 1)) if d > 1 else 1.0)
        np.fill_diagonal(debiased, (np.diag(moment) * k / d - self._constant) / self._slope)
        return debiased

    def parameters(self) -> dict[str, Parameter]:
        chosen: dict[str, Parameter] = {"numbers_sent": self.numbers}
        if self.window is not None:
            chosen |= {"steps": self.window.steps, "half_window": self.window.half}
            chosen |= {"window_threshold": self.window.threshold, "windowed_threshold": self.windowed}
        return chosen if self.flip is None else {**chosen, "flip_threshold": self.flip}


def _plan(epsilon: float, dimension: int, steps: int, *, hybrid: bool) -> Plan:
    numbers = np.arange(1, min(dimension, math.ceil(2 * epsilon) + 1) + 1, dtype=np.int64)
    epsilons = epsilon / numbers
    halves = np.unique(np.geomspace(1, 2 * steps, 400).astype(np.int64))
    best: tuple[float, Plan] | None = None
    for _ in range(2):  # coarsely, then finely around the best for each k
        grid = np.broadcast_to(halves, (numbers.size, halves.shape[-1])).astype(np.float64)
        errors, shares = _errors(numbers[:, None], epsilons[:, None], grid, dimension, steps, hybrid=hybrid)
        row, column = np.unravel_index(int(errors.argmin()), errors.shape)
        plan = Plan(int(numbers[row]), int(grid[row, column]), float(shares[row, column]))
        candidate = (float(errors[row, column]), plan)
        best = candidate if best is None else min(best, candidate, key=itemgetter(0))
        middle = grid[np.arange(numbers.size), errors.argmin(axis=1)]
        halves = np.clip(np.rint(middle[:, None] * np.geomspace(1 / 1.05, 1.05, 60)), 0, 2 * steps).astype(np.int64)
    assert best is not None
    return best[1]


def _errors(
    numbers: npt.NDArray[np.int64], epsilons: Floats, halves: Floats, dimension: int, steps: int, *, hybrid: bool
) -> tuple[Floats, Floats]:
    """Return (error, fraction of the window) for each k and w; the largest error for length 1 (in the cube)."""
    with np.errstate(all="ignore"):  # no plan exists for a tiny budget: `window_within` raises for it
        constant, slope = window_moments(steps, halves, chance_inside(steps, halves, epsilons))
        if not hybrid:
            return dimension / numbers * (dimension * constant + slope) - 1, np.ones_like(constant)
        of_bit = np.tanh(epsilons / 2) ** -2
        # the error is the same for every x if (d / k) share B = 1; if the window's A is larger, the window only harms
        share = np.where(constant < of_bit, numbers / (dimension * slope), 0.0)
        return dimension**2 / numbers * (share * constant + (1 - share) * of_bit), share


@dataclass(frozen=True, kw_only=True)
class Piecewise(Randomizer):
    """Some coordinates of a vector of the cube, each near its true value, in exactly discrete form. Unbiased.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, k times equation (window)
    of `dptext.noise.discrete`, from integers: at most ``epsilon``. Exact: no assumption about real numbers.

    Input: (n, d); each number is clipped to [-1, 1]. Output: (n, d) float32, 0 except for k coordinates.
    E||z - x||^2 is equation (error) of this module; k and the window minimise it for vectors of length 1.

    Raises:
        ParameterError: from `channel`: epsilon is too small to be represented by probabilities of 32 bits.

    Source: Wang et al. 2019 (ICDE), section III-B and Algorithm 4; the width as Zhao et al. 2021.

    >>> round(Piecewise(epsilon=2.5).expected_squared_error(1), 3)
    0.629
    """

    name: ClassVar[str] = "Piecewise"
    domains: ClassVar[tuple[Domain, ...]] = (Domain.CUBE,)

    def _calibrate(self, dimension: int) -> CubeChannel:
        return CubeChannel(self.name, self.epsilon, dimension, _plan(self.epsilon, dimension, STEPS, hybrid=False))


@dataclass(frozen=True, kw_only=True)
class Hybrid(Randomizer):
    """`Piecewise` for a fraction of the numbers and one bit for the others: the error is the same for all vectors.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, k times the larger of
    equation (window) of `dptext.noise.discrete` and equation (flip) of `dptext.noise.discrete`: at most ``epsilon``.
    Exact.

    Input, output: as for `Piecewise`. The fraction for the window is chosen so that equation (error) does not depend
    on the vector; it is 0 at small budgets, where one bit is better even at x = 0. Fraction, k and window minimise the
    largest error over the *whole cube*. For vectors of length 1, which are near its centre, `Piecewise` is better
    unless the budget is small.

    Source: Wang et al. 2019 (ICDE), section III-C, with another fraction and width.

    >>> round(Hybrid(epsilon=2.5).expected_squared_error(1), 3)
    0.578
    """

    name: ClassVar[str] = "Hybrid"
    domains: ClassVar[tuple[Domain, ...]] = (Domain.CUBE,)

    def _calibrate(self, dimension: int) -> CubeChannel:
        return CubeChannel(self.name, self.epsilon, dimension, _plan(self.epsilon, dimension, STEPS, hybrid=True))
