"""What noisy sums over random samples cost: the Poisson-subsampled Gaussian, over many steps.

Derivation: docs/understand/accounting.md#privacy-sampled-gaussian
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from dptext.checks import choice, number, whole
from dptext.errors import MissingExtraError, ParameterError
from dptext.privacy.accounting import GaussianRelease, l2_sensitivity
from dptext.privacy.guarantee import ApproxDP, rounded_down, rounded_up
from dptext.privacy.unit import Relation

__all__ = ["SampledGaussian", "greatest_sampling_rate", "least_noise_multiplier"]

_DIGITS = 4  # of a noise multiplier or a rate that a search returns
_MOST_LINES = 8  # steps by straight lines; what is not found then is found by halves
_KEPT_BACK = 1e-15  # of delta, a step
_MOST_STEPS = 10**6
_LEAST_NOISE = 0.1
_LEAST_RATE = 1e-9
_MOST_LOSS = 1_000.0  # nats, in the mean: beyond that nothing is promised and much memory needed
_NEIGHBOURS = {Relation.ADD_REMOVE: "ADD_OR_REMOVE_ONE", Relation.SUBSTITUTION: "REPLACE_ONE"}


@dataclass(frozen=True, kw_only=True)
class SampledGaussian:
    """T noisy sums over Poisson samples, as accounting sees them."""

    noise_multiplier: float
    sampling_rate: float
    steps: int
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        # less noise hides nobody
        object.__setattr__(
            self, "noise_multiplier", number("noise_multiplier", self.noise_multiplier, least=_LEAST_NOISE)
        )
        object.__setattr__(
            self, "sampling_rate", number("sampling_rate", self.sampling_rate, least=_LEAST_RATE, most=1)
        )
        object.__setattr__(self, "steps", whole("steps", self.steps, least=1, most=_MOST_STEPS))
        object.__setattr__(self, "relation", choice("relation", self.relation, Relation))

    def epsilon(self, *, delta: float) -> float:
        """The epsilon that is reported; infinite where the loss is in the thousands of nats."""
        return _epsilon(self, number("delta", delta, above=0, below=1))

    def guarantee(self, *, delta: float) -> ApproxDP:
        """What the steps promise together at this delta, under the relation."""
        return ApproxDP(self.epsilon(delta=delta), float(delta))


def least_noise_multiplier(
    *,
    epsilon: float,
    delta: float,
    sampling_rate: float,
    steps: int,
    relation: Relation = Relation.ADD_REMOVE,
) -> SampledGaussian:
    """The least noise whose reported epsilon is at most ``epsilon``: z is rounded up to four digits."""
    asked = SampledGaussian(noise_multiplier=1.0, sampling_rate=sampling_rate, steps=steps, relation=relation)
    epsilon, delta = number("epsilon", epsilon, above=0), number("delta", delta, above=0, below=1)

    def at(weakness: float) -> SampledGaussian:
        return replace(asked, noise_multiplier=rounded_up(1 / weakness, _DIGITS))

    # log1p(..) is 1 / z^2 in the central limit, mu = q sqrt(T (e^(1/z^2) - 1)) (Bu, Dong, Long and Su 2020): a guess
    guess = math.sqrt(math.log1p(_mu(epsilon, delta, asked.relation) ** 2 / (asked.sampling_rate**2 * asked.steps)))
    return _greatest(at, guess, (1e-9, 1 / _LEAST_NOISE), epsilon, delta)


def greatest_sampling_rate(
    *,
    epsilon: float,
    delta: float,
    noise_multiplier: float,
    steps: int,
    relation: Relation = Relation.ADD_REMOVE,
) -> SampledGaussian:
    """The greatest rate whose reported epsilon is at most ``epsilon``: q is rounded down to four digits."""
    everybody = SampledGaussian(noise_multiplier=noise_multiplier, sampling_rate=1.0, steps=steps, relation=relation)
    epsilon, delta = number("epsilon", epsilon, above=0), number("delta", delta, above=0, below=1)

    def at(rate: float) -> SampledGaussian:
        return replace(everybody, sampling_rate=rounded_down(min(1.0, rate), _DIGITS))

    # mu / q (Bu, Dong, Long and Su 2020)
    limit = math.sqrt(everybody.steps * math.expm1(1 / everybody.noise_multiplier**2))
    return _greatest(at, _mu(epsilon, delta, everybody.relation) / limit, (_LEAST_RATE, 1.0), epsilon, delta)


def _mu(epsilon: float, delta: float, relation: Relation) -> float:
    """The distance of means, in standard deviations, that (epsilon, delta) allows."""
    return 1 / GaussianRelease.calibrated(epsilon=epsilon, delta=delta, sensitivity=l2_sensitivity(1.0, relation)).sigma


def _greatest(
    at: Callable[[float], SampledGaussian], guess: float, between: tuple[float, float], epsilon: float, delta: float
) -> SampledGaussian:
    """The least private of a family that keeps epsilon; ``at`` rounds to the safe side."""
    least, most = between
    coarse = epsilon >= 0.5  # below, the coarse grid sees nothing but itself

    def searched(start: float, target: float, factor: float) -> float:
        def excess(value: float) -> float:
            return math.log(max(_epsilon(at(value), delta, coarse), 1e-300) / target)

        low = high = min(most, max(least, start))
        under = over = excess(low)
        if under <= 0:
            while high < most and over <= 0:
                low, under = high, over
                high, factor = min(most, high * factor), factor**2
                over = excess(high)
            if over <= 0:
                return most
        else:
            while low > least and under > 0:
                high, over = low, under
                low, factor = max(least, low / factor), factor**2
                under = excess(low)
        width, turn = 10.0**-_DIGITS / 2, 0
        while high / low > 1 + width:
            across, turn = math.log(high / low), turn + 1
            share = 0.5
            if turn <= _MOST_LINES and under < over < math.inf:  # where a straight line between logarithms leads ...
                aside = (0.4 if turn % 2 == 0 else -0.4) * width  # ... and a little aside: both ends shall come near
                nearest = 0.2 * width / across
                share = min(max(-under / (over - under) + aside / across, nearest), 1 - nearest)
            middle = low * math.exp(share * across)
            found = excess(middle)
            if found <= 0:
                low, under = middle, found
            else:
                high, over = middle, found
        return low

    value = searched(guess, epsilon, factor=1.05)
    exaggerated = _epsilon(at(value), delta, coarse) - _epsilon(at(value), delta)
    if exaggerated > 0:
        value = searched(value, epsilon + exaggerated, factor=1.0005)
    retreat = 10.0**-_DIGITS
    while value >= least:
        found = at(value)
        if _epsilon(found, delta) <= epsilon:
            return found
        value, retreat = value * (1 - retreat), min(0.5, 1.5 * retreat)
    raise ParameterError(
        f"no noise multiplier or sampling rate was found that keeps epsilon {epsilon:g} at delta {delta:g}: "
        "take fewer steps, or a larger budget"
    )


@lru_cache(maxsize=256)  # of public numbers; the searches ask the same again
def _epsilon(account: SampledGaussian, delta: float, coarse: bool = False) -> float:
    steps, noise, rate = account.steps, account.noise_multiplier, account.sampling_rate
    if rate == 1.0:  # nobody is left out: one Gaussian vector, exactly (Dong, Roth and Su 2022, Corollary 3.3)
        moved = l2_sensitivity(1.0, account.relation) * math.sqrt(steps) * (1 + 1e-15)
        return GaussianRelease(sigma=noise, sensitivity=moved).epsilon(delta=delta)
    left = delta - _KEPT_BACK * steps
    if left < delta / 2:
        raise ParameterError(
            f"delta must be at least {2 * _KEPT_BACK * steps:g} for {steps:,} steps, got {delta:g}: "
            "sums of losses are not computed more exactly than that"
        )
    if steps * rate / (2 * noise**2) > _MOST_LOSS:
        return math.inf
    distribution = _library().pld.privacy_loss_distribution.from_gaussian_mechanism(
        standard_deviation=noise,
        value_discretization_interval=_grid(account) * (10 if coarse else 1),
        sampling_prob=rate,
        pessimistic_estimate=True,
        neighboring_relation=getattr(_library().NeighboringRelation, _NEIGHBOURS[account.relation]),
    )
    if steps > 1:
        distribution = distribution.self_compose(steps)
    return float(distribution.get_epsilon_for_delta(left))


def _grid(account: SampledGaussian) -> float:
    """1e-4, or 1e-5 where the loss of one step is so small that the grid would exaggerate it."""
    spread = account.sampling_rate * math.sqrt(math.expm1(1 / account.noise_multiplier**2))  # of that loss, about
    return 1e-4 if spread >= 1e-4 else 1e-5


def _library() -> Any:
    try:
        return import_module("dp_accounting")
    except ImportError:
        raise MissingExtraError(
            "accounting of Poisson samples needs the package 'dp-accounting'; install it with: "
            'pip install "dptext[accounting]"'
        ) from None
