"""How far the outputs of two inputs overlap, and how often a guess is right: exactly, bounded, or from draws.

The overlap is 1 minus the total variation: the sum over all outputs of the smaller of their two probabilities. Somebody
who holds both inputs for equally likely is right in 1 - overlap / 2 of the cases, and nobody is right more often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.calibration.outcomes import Floats, probability_interval

__all__ = ["Between", "mean_of_draws", "overlap", "overlap_of_draws", "overlap_of_places", "right_in_draws"]

_ERROR = 0.05
_STEP = 2.0**-9  # of the grid of losses, in nats
_MOST_LOSS = 32.0


@dataclass(frozen=True, slots=True)
class Between:
    """A number from 0 to 1, and what is known of it.

    Attributes:
        low, high: it lies between them: certainly; or, from draws, with probability 95%.
        draws: how many draws it took; None: it was computed.
        value: the estimate, where there were draws.
    """

    low: float
    high: float
    draws: int | None = None
    value: float | None = None

    @classmethod
    def exactly(cls, value: float) -> Between:
        """A number that was computed."""
        return cls(value, value)

    @property
    def middle(self) -> float:
        """The number itself, or the best guess of it."""
        return (self.low + self.high) / 2 if self.value is None else self.value

    @property
    def how(self) -> str:
        """How it is known, for a bracket."""
        if self.draws is not None:
            return f"from {self.draws:,} draws; between {self.low:.1%} and {self.high:.1%}"
        near = self.high - self.low < 5e-4
        return "computed exactly" if near else f"bounded: between {self.low:.1%} and {self.high:.1%}"


def overlap(one: Floats, other: Floats) -> Between:
    """Of two distributions over the same outputs.

    >>> overlap(np.array([0.5, 0.5]), np.array([0.75, 0.25])).middle
    0.75
    """
    return Between.exactly(min(1.0, float(np.minimum(one, other).sum())))


def overlap_of_places(places: Sequence[tuple[Floats, Floats]]) -> Between:
    """Of two products of distributions, such as the words of a text, each drawn by itself.

    One place is computed exactly. Of several, the losses ln P / Q add up: their distributions under P are rounded to a
    grid, down for the upper bound on E min(1, Q / P) and up for the lower one, and convolved.

    >>> fair, tilted = np.array([0.5, 0.5]), np.array([0.75, 0.25])
    >>> found = overlap_of_places([(fair, tilted)] * 2)
    >>> found.low <= 0.6875 <= found.high, found.high - found.low < 0.005
    (True, True)
    """
    if len(places) == 1:
        return overlap(*places[0])
    return Between(_summed(places, up=True), _summed(places, up=False))


def _summed(places: Sequence[tuple[Floats, Floats]], *, up: bool) -> float:
    """E under P of min(1, e^-L), L the sum of the losses, each rounded up (a lower bound) or down (an upper one).

    What lies beyond the end of the grid where rounding would leave it counts as 0 or as 1.
    """
    cells = round(_MOST_LOSS / _STEP)
    total, lowest, beyond = np.ones(1), 0, 0.0
    for one, other in places:
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.where(one > 0, np.log(one) - np.log(other), 0.0)
        at = (np.ceil if up else np.floor)(loss / _STEP)
        outside = at > cells if up else at < -cells
        beyond += 0.0 if up else float(one[outside].sum())
        mass = np.where(outside, 0.0, one)
        at = np.clip(at, -cells, cells)
        inside = np.flatnonzero(mass > 0)
        if not inside.size:
            return 0.0 if up else 1.0
        first = int(at[inside].min())
        histogram = np.zeros(int(at[inside].max()) - first + 1)
        np.add.at(histogram, at[inside].astype(np.int64) - first, mass[inside])
        total, lowest = _convolved(total, histogram), lowest + first
    losses = (np.arange(total.size) + lowest) * _STEP
    value = float((total * np.exp(-np.maximum(losses, 0.0))).sum())
    return max(0.0, value - _ROUNDING) if up else min(1.0, value + beyond + _ROUNDING)


_ROUNDING = 1e-9  # of the transforms


def _convolved(one: Floats, other: Floats) -> Floats:
    size = one.size + other.size - 1
    power = 1 << (size - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(one, power) * np.fft.rfft(other, power), power)[:size]
    found: Floats = np.maximum(product, 0.0)
    return found


# -- from draws ----------------------------------------------------------------------------------------------------


def mean_of_draws(values: Floats) -> Between:
    """The mean of a number from 0 to 1, from independent draws of it (the interval is Chernoff's)."""
    mean = min(float(values.mean()), 1.0)
    low, high = probability_interval(np.array([mean * values.size]), values.size, _ERROR)
    return Between(float(low[0]), float(high[0]), values.size, mean)


def overlap_of_draws(logs: npt.NDArray[np.float64]) -> Between:
    """From outputs of which as many were drawn for either input.

    E of 2 min(P, Q) / (P + Q) under (P + Q) / 2 is the overlap.

    Args:
        logs: (n, 2) the logarithm of the density of each output for both inputs.
    """
    return mean_of_draws(2.0 / (1.0 + np.exp(np.minimum(np.abs(logs[:, 0] - logs[:, 1]), 700.0))))


def right_in_draws(logs: npt.NDArray[np.float64]) -> Between:
    """How often the best attacker names the right one of k equally likely inputs.

    They are right with the probability of the input that is then most likely, whose mean over outputs is their rate of
    success (`dptext.privacy.vulnerability`).

    Args:
        logs: (n, k) the logarithm of the density of each output for each input; as many outputs were drawn for each.
    """
    return mean_of_draws(1.0 / np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1))
