"""Settings of a training, sampling of users, and accounting. A plan needs no compiled code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise.discrete import SCALE
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.gaussian import SampledGaussian, greatest_sampling_rate, least_noise_multiplier
from dptext.privacy.guarantee import ApproxDP, Relation
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_choice, check_float, check_int, display_value, format_names

Unit: TypeAlias = Literal["user", "document", "pair"]
Floats: TypeAlias = npt.NDArray[np.float64]

CELLS = 2**18
"""The clipping norm C in the integer units of a step's sum."""
MOST = 2**30
"""Bound on every number of the sum, reached by 4096 units that agree on one coordinate."""

# An assumption of the proof, for statements.
IEEE = "arithmetic follows IEEE 754: each operation and square root is rounded to the nearest number"

_MOST = {"window": 100, "negatives": 100, "pairs": 10_000, "most_words": 10_000_000}
_FARTHEST = 1e20  # far from the limits of single precision, also for squares
_SHORTEST_CLIP, _LONGEST_CLIP = 1e-20, 1e20  # likewise: the cells of norm 1 must be finite
_MANDELBROT = 2.7


def public_frequencies(words: int) -> Floats:
    """Return (words,) p_r of equation (weights): the frequency of a word from its rank in a public list."""
    frequencies = 1.0 / (np.arange(1, words + 1) + _MANDELBROT)
    return np.asarray(frequencies / frequencies.sum())


def check_clip(clip: float) -> float:
    """Return a clipping norm C for which float32 can represent the number of cells of a vector of norm 1."""
    return check_float("clip", clip, minimum=_SHORTEST_CLIP, maximum=_LONGEST_CLIP)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Settings of a training step; see `dptext.SkipGram`."""

    unit: Unit
    pairs: int
    window: int
    negatives: int
    subsample: float
    clip: float
    distance: float
    most_words: int

    def __post_init__(self) -> None:
        check_choice("unit", self.unit, get_args(Unit))
        for name, maximum in _MOST.items():
            object.__setattr__(self, name, check_int(name, getattr(self, name), minimum=1, maximum=maximum))
        if self.unit == "pair":
            object.__setattr__(self, "pairs", 1)
        check_clip(self.clip)
        object.__setattr__(self, "distance", check_float("distance", self.distance, above=0, maximum=_FARTHEST))
        if isinstance(self.subsample, bool) or self.subsample != 0:  # 0 stays an int, because it is in the fingerprint
            object.__setattr__(self, "subsample", check_float("subsample", self.subsample, above=0))

    def rates(self, steps: int) -> Floats:
        """Return (steps,) learning rates, for a sum in units of C divided by the denominator."""
        falling = np.arange(steps, 0, -1, dtype=np.float64)
        return np.asarray(self.distance * falling / falling.sum())

    def kept(self, words: int) -> Floats:
        """Return (words,) probabilities of keeping a word, by public rank (as in word2vec.c)."""
        if self.subsample == 0:
            return np.ones(words)
        share = self.subsample / public_frequencies(words)
        return np.minimum(1.0, np.sqrt(share) + share)

    def contexts(self, words: int) -> tuple[Floats, Floats]:
        """Return (words,) frequencies of context words and of negative words, by public rank."""
        frequencies = public_frequencies(words)
        context, negative = frequencies * self.kept(words), frequencies**0.75
        return context / context.sum(), negative / negative.sum()

    def offsets(self, words: int) -> npt.NDArray[np.float32]:
        context, negative = self.contexts(words)
        return np.log(context / (self.negatives * negative)).astype(np.float32)


EVERYONE = "everyone"
"""The name of a single level."""

_AT_ONCE = 1 << 15
_BITS11 = np.uint64(11)


@dataclass(frozen=True, kw_only=True)
class Participation:
    """Noise, number of steps, and sampling rate per level."""

    noise_multiplier: float
    steps: int
    delta: float
    rates: Mapping[str, float]
    default: str = EVERYONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", check_float("delta", self.delta, above=0, below=1))
        rates: dict[str, float] = {}
        for level, rate in self.rates.items():
            # the checks of a SampledGaussian are valid without noise too, and its numbers are Python's
            checked = SampledGaussian(
                noise_multiplier=self.noise_multiplier or 1.0, sampling_rate=rate, steps=self.steps
            )
            rates[level] = checked.sampling_rate
            if threshold(rates[level]) < 1:
                raise ParameterError(f"the sampling rate of level {level!r} must be at least 2^-32")
            object.__setattr__(self, "steps", checked.steps)
            object.__setattr__(self, "noise_multiplier", checked.noise_multiplier if self.noise_multiplier else 0.0)
        object.__setattr__(self, "rates", MappingProxyType(rates))
        if self.default not in self.rates:
            raise ParameterError(
                f"default must be one of {format_names(self.rates)}, got {display_value(self.default)}"
            )

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, sampling_rate: float, steps: int) -> Participation:
        """Return one level with the smallest noise that satisfies epsilon."""
        result = least_noise_multiplier(epsilon=epsilon, delta=delta, sampling_rate=sampling_rate, steps=steps)
        return cls(
            noise_multiplier=result.noise_multiplier, steps=result.steps, delta=delta, rates={EVERYONE: sampling_rate}
        )

    def account(
        self, level: str | None = None, *, relation: Relation = Relation.ADD_REMOVE, steps: int | None = None
    ) -> SampledGaussian:
        """Return the accountant of a user of a level after a number of steps (None: all)."""
        return SampledGaussian(
            noise_multiplier=self.noise_multiplier,
            sampling_rate=self.rates[self.default if level is None else level],
            steps=self.steps if steps is None else steps,
            relation=relation,
        )

    def guarantee(self, level: str | None = None, *, relation: Relation = Relation.ADD_REMOVE) -> ApproxDP:
        """Return the guarantee of the whole training for a user of a level."""
        return self.account(level, relation=relation).guarantee(delta=self.delta)

    @property
    def thresholds(self) -> npt.NDArray[np.uint64]:
        """(levels,) sampling rates times 2^32, rounded down, in the order of `rates`."""
        return np.array([threshold(rate) for rate in self.rates.values()], dtype=np.uint64)

    def code(self, declared: Iterable[Any]) -> int:
        levels = list(self.rates)
        named = [self.default if entry is None else str(entry) for entry in declared] or [self.default]
        if not self.rates.keys() >= set(named):
            raise ParameterError(f"a level must be one of {format_names(levels)}, or None; got another")
        return levels.index(min(named, key=self.rates.__getitem__))


def personal_participation(
    levels: Mapping[str, float], *, delta: float, steps: int, sampling_rate: float, default: str | None = None
) -> Participation:
    """Return the noise of the largest epsilon, and for each level the largest sampling rate that satisfies its own."""
    budgets = PersonalBudgets(levels, delta=delta, default=default)
    noise = least_noise_multiplier(epsilon=budgets.cap, delta=delta, sampling_rate=sampling_rate, steps=steps)
    noise_multiplier = noise.noise_multiplier
    rates: dict[str, float] = {}
    for level, epsilon in budgets.levels.items():
        if epsilon == budgets.cap:
            rates[level] = sampling_rate
            continue
        result = greatest_sampling_rate(epsilon=epsilon, delta=delta, noise_multiplier=noise_multiplier, steps=steps)
        rates[level] = result.sampling_rate
    return Participation(
        noise_multiplier=noise_multiplier, steps=steps, delta=delta, rates=rates, default=budgets.default
    )


def threshold(rate: float) -> int:
    """Return the largest t with t / 2^32 at most ``rate``."""
    return math.floor(rate * SCALE)


def sampled_users(
    bits: RandomBits, levels: npt.NDArray[np.uint16], thresholds: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """Return the users who take part, in order."""
    words = np.empty(min(len(levels), _AT_ONCE), dtype=np.uint32)
    parts = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(levels), _AT_ONCE):
        some = levels[start : start + _AT_ONCE]
        word = words[: len(some)]
        bits.fill(word)
        parts.append(start + np.flatnonzero(word < thresholds[some]))
    return np.concatenate(parts)


def sampled_slots(bits: RandomBits, count: int, rate: float) -> npt.NDArray[np.int64]:
    if rate >= 1.0:
        return np.arange(count)
    logarithm = math.log1p(-rate * (1 - 2.0**-20))
    parts = [np.empty(0, dtype=np.int64)]
    position = -1
    while position < count:
        expected = max(1.0, (count - position) * rate)
        draws = np.empty(math.ceil(expected + 4 * math.sqrt(expected)), dtype=np.uint64)
        bits.fill(draws)
        uniform = ((draws >> _BITS11) + np.uint64(1)).astype(np.float64) * 2.0**-53
        gaps = np.minimum(np.floor(np.log(uniform) / logarithm), float(count)).astype(np.int64)
        places = position + np.cumsum(gaps + 1)
        position = int(places[-1])
        parts.append(places[places < count])
    return np.concatenate(parts)
