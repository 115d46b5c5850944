"""How far the outputs of two inputs overlap, and how often a guess is right: exactly, bounded, or from draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.calibration.outcomes import Floats, probability_interval
from dptext.privacy.randomness import RandomBits

_ERROR = 0.05
_MOST_LOSS = 32.0  # nats, at the ends of the grid
_ROUNDING = 1e-9  # of the transforms
_HARDLY = 1e-4
_SHOWN = 5e-4


@dataclass(frozen=True, slots=True)
class Between:
    """A number from 0 to 1, and what is known of it."""

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
        if self.high - self.low < _SHOWN:
            return "computed exactly" if self.low == self.high else "computed to the digits shown"
        return f"bounded: between {self.low:.1%} and {self.high:.1%}"


def overlap(one: Floats, other: Floats) -> Between:
    """Of two distributions over the same outputs."""
    return Between.exactly(min(1.0, float(np.minimum(one, other).sum())))


def overlap_of_places(places: Sequence[tuple[Floats, Floats]]) -> Between:
    """Of two products of distributions, such as the words of a text, each drawn by itself."""
    if len(places) == 1:
        return overlap(*places[0])
    ordered = sorted(places, key=lambda pair: float(np.minimum(*pair).sum()))
    step = 2.0 ** -(9 - min(2, (len(places) - 1) // 8))
    lower, upper = _Losses(step, up=True), _Losses(step, up=False)
    for one, other in ordered:
        upper.add(one, other)
        if upper.overlap() < _HARDLY:
            return Between(0.0, upper.overlap())
        lower.add(one, other)
    return Between(lower.overlap(), upper.overlap())


class _Losses:
    """The distribution under P of a sum of losses, each rounded up (for a lower bound) or down (for an upper one)."""

    def __init__(self, step: float, *, up: bool) -> None:
        self._step, self._up, self._cells = step, up, round(_MOST_LOSS / step)
        self._masses, self._lowest = np.ones(1), 0  # of losses from this multiple of the step on
        self._tells_nothing = 0.0

    def add(self, one: Floats, other: Floats) -> None:
        """One place more."""
        possible = one > 0
        with np.errstate(divide="ignore"):
            losses = np.log(one[possible]) - np.log(other[possible])
        at = (np.ceil if self._up else np.floor)(losses / self._step)
        limited = np.clip(at, -self._cells - 1, self._cells + 1).astype(np.int64)
        first = int(limited.min(initial=0))
        masses = np.asarray(np.bincount(limited - first, weights=one[possible]), dtype=np.float64)
        inside, low = self._cut(masses, first)
        whole, lowest = self._cut(_convolved(self._masses, inside), self._lowest + low)
        self._masses, self._lowest = whole, lowest

    def _cut(self, masses: Floats, first: int) -> tuple[Floats, int]:
        """Losses brought into the grid."""
        at = np.arange(masses.size) + first
        if self._up:  # beyond the upper end: one of the two alone; below the lower end: raised to it
            masses, at = np.where(at > self._cells, 0.0, masses), np.maximum(at, -self._cells)
        else:  # beyond the upper end: lowered to it; below the lower end: tells nothing, whatever is added
            self._tells_nothing += float(masses[at < -self._cells].sum())
            masses, at = np.where(at < -self._cells, 0.0, masses), np.minimum(at, self._cells)
        low = max(int(at[0]), -self._cells)
        kept = np.clip(at, low, self._cells)
        return np.asarray(np.bincount(kept - low, weights=masses), dtype=np.float64), low

    def overlap(self) -> float:
        """E of min(1, e^-L)."""
        losses = (np.arange(self._masses.size) + self._lowest) * self._step
        value = float((self._masses * np.exp(-np.maximum(losses, 0.0))).sum())
        if self._up:
            return max(0.0, value - _ROUNDING)
        return min(1.0, value + self._tells_nothing + _ROUNDING)


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
    """From outputs of which as many were drawn for either input."""
    return mean_of_draws(2.0 / (1.0 + np.exp(np.minimum(np.abs(logs[:, 0] - logs[:, 1]), 700.0))))


def right_in_draws(logs: npt.NDArray[np.float64]) -> Between:
    """How often the best attacker names the right one of k equally likely inputs."""
    return mean_of_draws(1.0 / np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1))


def likeliest(chances: Floats, bits: RandomBits) -> npt.NDArray[np.int64]:
    """(n,) the likeliest of k inputs for each of n outputs; of equally likely ones any."""
    tied = chances >= chances.max(axis=1, keepdims=True)
    places = bits.below(tied.sum(axis=1).astype(np.uint64)).astype(np.int64)
    found: npt.NDArray[np.int64] = (np.cumsum(tied, axis=1) > places[:, None]).argmax(axis=1)
    return found
