"""Who takes part in a training how often, and what that costs him.

One noise level for all; users of each public level take part in a step with a rate of their own (Boenisch et al. 2023,
"Have it your way: individualized privacy assignment for DP-SGD", method "Sample"). What a user loses depends on his own
rate alone, whatever the others do, so each level keeps its epsilon and nobody is ever dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.sampling import threshold
from dptext.errors import ParameterError
from dptext.privacy.accounting import checked_delta
from dptext.privacy.guarantee import ApproxDP
from dptext.privacy.sampled_gaussian import SampledGaussian, least_noise_multiplier
from dptext.privacy.unit import Relation

__all__ = ["EVERYONE", "Participation"]

EVERYONE = "everyone"
"""The level of all, where there is one only."""


@dataclass(frozen=True, kw_only=True)
class Participation:
    """A noise multiplier, a number of steps, and a sampling rate for each level: all public, fixed before the training.

    **Guarantee** (unit: whoever is sampled and clipped; add/remove; central). A user of level l: `guarantee` of l,
    which is that of `dptext.privacy.sampled_gaussian.SampledGaussian` at his own rate. *Proof.* With and without him,
    the sum of a step differs by his bounded vector, and only when his own coin says so; the coins, vectors and levels
    of the others are the same in both worlds, so the pair of worlds is that of one user sampled at his rate. |
    Assumptions: rates follow from the levels that are offered, not from who chose which; levels are declared without
    regard to texts.

    Attributes:
        noise_multiplier: z; 0: no noise, and no promise.
        steps: T.
        delta: of all levels.
        rates: by level, 2^-32 to 1.
        default: the level of who declared none.
    """

    noise_multiplier: float
    steps: int
    delta: float
    rates: Mapping[str, float]
    default: str = EVERYONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checked_delta(self.delta))
        rates: dict[str, float] = {}
        for level, rate in self.rates.items():
            # the checks of a SampledGaussian hold without noise too, and its numbers are Python's, whatever was given
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
            raise ParameterError("default must be one of the levels")

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, sampling_rate: float, steps: int) -> Participation:
        """One level, everybody's, with the least noise that keeps epsilon.

        Raises:
            ParameterError: an argument out of range.
            MissingExtraError: dp-accounting is not installed.

        >>> Participation.calibrated(epsilon=8.0, delta=1e-6, sampling_rate=0.05, steps=1000).noise_multiplier
        1.273
        """
        found = least_noise_multiplier(epsilon=epsilon, delta=delta, sampling_rate=sampling_rate, steps=steps)
        return cls(
            noise_multiplier=found.noise_multiplier, steps=found.steps, delta=delta, rates={EVERYONE: sampling_rate}
        )

    @classmethod
    def without_noise(cls, *, delta: float, sampling_rate: float, steps: int) -> Participation:
        """One level, and no promise: for comparison."""
        return cls(noise_multiplier=0.0, steps=steps, delta=delta, rates={EVERYONE: sampling_rate})

    def account(
        self, level: str | None = None, *, relation: Relation = Relation.ADD_REMOVE, steps: int | None = None
    ) -> SampledGaussian:
        """What a user of a level goes through in so many steps (None: all of them)."""
        return SampledGaussian(
            noise_multiplier=self.noise_multiplier,
            sampling_rate=self.rates[self.default if level is None else level],
            steps=self.steps if steps is None else steps,
            relation=relation,
        )

    def guarantee(self, level: str | None = None, *, relation: Relation = Relation.ADD_REMOVE) -> ApproxDP:
        """What the whole training promises to a user of a level.

        Raises:
            MissingExtraError: dp-accounting is not installed.
        """
        return self.account(level, relation=relation).guarantee(delta=self.delta)

    @property
    def most(self) -> str:
        """The level that takes part most often: what it is promised holds for everybody."""
        return max(self.rates, key=self.rates.__getitem__)

    @property
    def thresholds(self) -> npt.NDArray[np.uint64]:
        """(levels,) chances times 2^32, rounded down, in the order of `rates`."""
        return np.array([threshold(rate) for rate in self.rates.values()], dtype=np.uint64)

    def code(self, declared: Iterable[Any]) -> int:
        """The place in `rates` of a user who declared these levels: of several, the one with the smallest rate counts.

        Raises:
            ParameterError: one of them is none. (Levels are public, so this says nothing of a text.)
        """
        levels = list(self.rates)
        named = [self.default if each is None else str(each) for each in declared] or [self.default]
        if not self.rates.keys() >= set(named):
            raise ParameterError(f"a level must be one of the {len(levels)} that were given, or None; got another")
        return levels.index(min(named, key=self.rates.__getitem__))
