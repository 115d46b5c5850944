"""Accounting of Gaussian noise: one release, and many steps over random samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist

from dptext.errors import ParameterError, RefusedError, extra
from dptext.privacy.guarantee import ZCDP, ApproxDP, Relation, product_upwards, rounded_down, rounded_up
from dptext.validation import check_choice, check_float, check_int

_MARGIN = 1e-6  # relative margin of delta, which is computed to 1e-8


def gaussian_delta(sigma: float, *, epsilon: float, sensitivity: float) -> float:
    """Return the delta of noise with standard deviation ``sigma``, rounded up; the relative error is below 1e-6."""
    return min(1.0, math.exp(_log_delta(sigma / sensitivity, epsilon)) * (1 + _MARGIN))


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the smallest (epsilon, delta)-DP sigma, rounded up by a factor below 1 + 1e-5; infinite beyond 2^200."""
    target = math.log(delta) - _MARGIN
    high = 1.0
    while _log_delta(high, epsilon) > target:
        high *= 2
        if high > 2.0**200:
            return math.inf
    low = high / 2
    while _log_delta(low, epsilon) <= target:
        low, high = low / 2, low
    return least(low, high, lambda sigma: _log_delta(sigma, epsilon) <= target) * sensitivity


def gaussian_epsilon(sigma: float, *, delta: float, sensitivity: float) -> float:
    """Return the smallest epsilon at which ``sigma`` is (epsilon, delta)-DP, rounded up; infinite on overflow."""
    target = math.log(delta) - _MARGIN
    multiplier = sigma / sensitivity
    if multiplier == 0.0:
        return math.inf
    if _log_delta(multiplier, 0.0) <= target:
        return 0.0
    high = 1.0
    while _log_delta(multiplier, high) > target:
        high *= 2
        if math.isinf(high):
            return math.inf
    return least(high / 2 if high > 1.0 else 0.0, high, lambda epsilon: _log_delta(multiplier, epsilon) <= target)


def least(low: float, high: float, is_enough: Callable[[float], bool]) -> float:
    """Return the smallest number from ``low`` to ``high`` that is enough, by bisection, slightly rounded up."""
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high * (1 + 1e-12)


def _log_delta(sigma: float, epsilon: float) -> float:
    """Return ln delta at sensitivity 1, slightly rounded up."""
    a, b = 1 / (2 * sigma), epsilon * sigma
    near = b - a
    if near < -8:
        return 0.0
    if near > 50:
        return -near * near / 2  # because R < 1
    if a < 1e-4:
        # R is convex, so the difference is at most 2 a times the slope at its near end: -R'(x) = 1 - x R(x)
        slope = 1 - near * _mills(near) if near < 10 else 1 / (near * near + 1)
        difference = 2 * a * slope
    else:
        difference = _mills(near) - _mills(b + a)
    return -near * near / 2 - math.log(2 * math.pi) / 2 + math.log(difference)  # Theorem 8


def _mills(x: float) -> float:
    """Return the Mills ratio R(x) for x >= -8."""
    if x < 10:
        return math.sqrt(math.pi / 2) * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))
    fraction = x
    for place in range(60, 0, -1):  # 1 / (x + 1 / (x + 2 / (x + 3 / ...))) (Laplace 1805)
        fraction = x + place / fraction
    return 1 / fraction


def gaussian_power(mu: float, rate: float) -> float:
    """Return the largest true-positive rate at a false-positive rate under mu-GDP (Dong, Roth and Su 2022)."""
    return NormalDist().cdf(NormalDist().inv_cdf(rate) + mu)


_FARTHEST = 2.0**500  # up to this ratio, its square is a float of full precision
_UP = 1 + 1e-15  # covers the rounding of a few float operations


def l2_sensitivity(norm: float, relation: Relation) -> float:
    """Return the L2 sensitivity of a sum of one vector per unit, each with norm at most ``norm``."""
    norm = check_float("norm", norm, above=0)
    return norm if check_choice("relation", relation, Relation) is Relation.ADD_REMOVE else 2 * norm


@dataclass(frozen=True, kw_only=True)
class GaussianRelease:
    """Gaussian release f(data) + N(0, sigma^2 I), or several composed into one; f has L2 ``sensitivity``.

    **Guarantee** (unit and trust as for the bound of f; the given relation): for every delta, `epsilon` is the
    smallest possible epsilon (Balle and Wang 2018, Theorem 8). Assumption: the noise is normal. A sampler of finite
    precision states the additional loss itself.
    """

    sigma: float
    sensitivity: float = 1.0
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, check_float(name, getattr(self, name), above=0))
        object.__setattr__(self, "relation", check_choice("relation", self.relation, Relation))
        if not _FARTHEST**-1 < self.sensitivity / self.sigma < _FARTHEST:
            raise ParameterError("the ratio of sensitivity and sigma exceeds the range of floats")

    @classmethod
    def calibrated(
        cls, *, epsilon: float, delta: float, sensitivity: float = 1.0, relation: Relation = Relation.ADD_REMOVE
    ) -> GaussianRelease:
        """Return the (epsilon, delta)-DP release with the smallest noise; sigma is rounded up by at most 1e-5."""
        epsilon, delta = check_float("epsilon", epsilon, above=0), check_float("delta", delta, above=0, below=1)
        sensitivity = check_float("sensitivity", sensitivity, above=0)
        sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        if not 0 < sigma < 2.0**1000:
            raise ParameterError(
                f"the noise for epsilon {epsilon:g}, delta {delta:g} and sensitivity {sensitivity:g} exceeds the "
                "range of floats. Use a larger budget, or scale the data"
            )
        # slightly more noise, so that the rounded epsilon does not exceed the requested one
        return cls(sigma=sigma * (1 + 1e-9), sensitivity=sensitivity, relation=relation)

    @property
    def mu(self) -> float:
        """Sensitivity in standard deviations of the noise: the release is mu-GDP (Dong, Roth and Su 2022)."""
        return self.sensitivity / self.sigma

    def epsilon(self, *, delta: float) -> float:
        """Return the smallest epsilon at this delta, rounded up."""
        return gaussian_epsilon(
            self.sigma, delta=check_float("delta", delta, above=0, below=1), sensitivity=self.sensitivity
        )

    def delta(self, *, epsilon: float) -> float:
        """Return the smallest delta at this epsilon, rounded up."""
        if epsilon != 0:
            epsilon = check_float("epsilon", epsilon, above=0)
        return gaussian_delta(self.sigma, epsilon=float(epsilon), sensitivity=self.sensitivity)

    def guarantee(self, *, delta: float) -> ApproxDP:
        """Return the guarantee at this delta."""
        return ApproxDP(self.epsilon(delta=delta), float(delta))

    @property
    def zcdp(self) -> ZCDP:
        """The zCDP of the release, rho = sensitivity^2 / (2 sigma^2) (Bun and Steinke 2016, Proposition 6)."""
        return ZCDP(product_upwards(self.mu, self.mu, _UP, 0.5))

    def split(self, shares: Sequence[float]) -> tuple[GaussianRelease, ...]:
        """Split the privacy loss into one release per share of mu^2; the shares are public and sum to at most 1."""
        values = [check_float("a share", share, above=0) for share in shares]
        if not values or math.fsum(values) > 1 + 1e-12:  # rounding: thirds sum to slightly more than 1
            raise ParameterError("shares must contain at least one number above 0 and sum to at most 1")
        whole = max(1.0, math.fsum(values))
        return tuple(replace(self, sigma=self.sigma / math.sqrt(share / whole) * _UP) for share in values)


def compose_gaussians(*releases: GaussianRelease) -> GaussianRelease:
    """Compose adaptive releases about the same units into one (Dong, Roth and Su 2022, Corollary 3.3)."""
    if not releases:
        raise ParameterError("compose_gaussians needs at least one release, got none")
    relations = {release.relation for release in releases}
    if len(relations) > 1:
        raise RefusedError(
            "composition needs one relation, got add/remove and substitution. State every sensitivity for the same one"
        )
    mu = math.hypot(*(release.mu for release in releases)) * _UP
    if not _FARTHEST**-1 < mu < _FARTHEST:
        raise ParameterError("the noise of these releases exceeds the range of floats. Scale sigma and sensitivity")
    return GaussianRelease(sigma=1 / (mu * _UP), relation=relations.pop())


_DIGITS = 4  # significant digits of the noise multiplier or sampling rate that a search returns
_MOST_LINES = 8  # secant steps before bisection
_KEPT_BACK = 1e-15  # reserved from delta per step, for rounding
_MOST_STEPS = 10**6
_LEAST_NOISE = 0.1  # smaller noise does not protect
_LEAST_RATE = 1e-9
_MOST_LOSS = 1_000.0  # mean loss in nats; above it the epsilon is reported as infinite
_NEIGHBOURS = {Relation.ADD_REMOVE: "ADD_OR_REMOVE_ONE", Relation.SUBSTITUTION: "REPLACE_ONE"}


@dataclass(frozen=True, kw_only=True)
class SampledGaussian:
    """Accounting of T noisy sums over Poisson samples."""

    noise_multiplier: float
    sampling_rate: float
    steps: int
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        checked = {
            "noise_multiplier": check_float("noise_multiplier", self.noise_multiplier, minimum=_LEAST_NOISE),
            "sampling_rate": check_float("sampling_rate", self.sampling_rate, minimum=_LEAST_RATE, maximum=1),
            "steps": check_int("steps", self.steps, minimum=1, maximum=_MOST_STEPS),
            "relation": check_choice("relation", self.relation, Relation),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def epsilon(self, *, delta: float) -> float:
        """Return the reported epsilon; infinite if the loss is in the thousands of nats."""
        return _epsilon(self, check_float("delta", delta, above=0, below=1))

    def guarantee(self, *, delta: float) -> ApproxDP:
        """Return the guarantee of all steps at this delta."""
        return ApproxDP(self.epsilon(delta=delta), float(delta))


def least_noise_multiplier(
    *, epsilon: float, delta: float, sampling_rate: float, steps: int, relation: Relation = Relation.ADD_REMOVE
) -> SampledGaussian:
    """Return the smallest noise with a reported epsilon of at most ``epsilon``: z is rounded up to four digits."""
    gaussian = SampledGaussian(noise_multiplier=1.0, sampling_rate=sampling_rate, steps=steps, relation=relation)
    epsilon, delta = check_float("epsilon", epsilon, above=0), check_float("delta", delta, above=0, below=1)

    def release_for(weakness: float) -> SampledGaussian:
        return replace(gaussian, noise_multiplier=rounded_up(1 / weakness, _DIGITS))

    # a guess: in the central limit mu = q sqrt(T (e^(1/z^2) - 1)) (Bu, Dong, Long and Su 2020), so 1 / z^2 = log1p(...)
    guess = math.sqrt(
        math.log1p(_mu(epsilon, delta, gaussian.relation) ** 2 / (gaussian.sampling_rate**2 * gaussian.steps))
    )
    return _greatest(release_for, guess, (1e-9, 1 / _LEAST_NOISE), epsilon, delta)


def greatest_sampling_rate(
    *, epsilon: float, delta: float, noise_multiplier: float, steps: int, relation: Relation = Relation.ADD_REMOVE
) -> SampledGaussian:
    """Return the largest rate with a reported epsilon of at most ``epsilon``: q is rounded down to four digits."""
    everybody = SampledGaussian(noise_multiplier=noise_multiplier, sampling_rate=1.0, steps=steps, relation=relation)
    epsilon, delta = check_float("epsilon", epsilon, above=0), check_float("delta", delta, above=0, below=1)

    def release_for(rate: float) -> SampledGaussian:
        return replace(everybody, sampling_rate=rounded_down(min(1.0, rate), _DIGITS))

    # mu / q (Bu, Dong, Long and Su 2020)
    limit = math.sqrt(everybody.steps * math.expm1(1 / everybody.noise_multiplier**2))
    return _greatest(release_for, _mu(epsilon, delta, everybody.relation) / limit, (_LEAST_RATE, 1.0), epsilon, delta)


def _mu(epsilon: float, delta: float, relation: Relation) -> float:
    """Return the distance between means, in standard deviations, that (epsilon, delta) allows."""
    return 1 / GaussianRelease.calibrated(epsilon=epsilon, delta=delta, sensitivity=l2_sensitivity(1.0, relation)).sigma


def _greatest(
    release_for: Callable[[float], SampledGaussian],
    guess: float,
    between: tuple[float, float],
    epsilon: float,
    delta: float,
) -> SampledGaussian:
    """Return the release with the largest parameter that keeps epsilon; ``release_for`` rounds to the safe side."""
    minimum, maximum = between
    coarse = epsilon >= 0.5  # for a smaller epsilon, the error of the coarse grid dominates

    def searched(start: float, target: float, factor: float) -> float:
        def excess(value: float) -> float:
            return math.log(max(_epsilon(release_for(value), delta, coarse), 1e-300) / target)

        low = high = min(maximum, max(minimum, start))
        under = over = excess(low)
        if under <= 0:
            while high < maximum and over <= 0:
                low, under = high, over
                high, factor = min(maximum, high * factor), factor**2
                over = excess(high)
            if over <= 0:
                return maximum
        else:
            while low > minimum and under > 0:
                high, over = low, under
                low, factor = max(minimum, low / factor), factor**2
                under = excess(low)
        width, turn = 10.0**-_DIGITS / 2, 0
        while high / low > 1 + width:
            across, turn = math.log(high / low), turn + 1
            share = 0.5
            if turn <= _MOST_LINES and under < over < math.inf:  # a secant step between logarithms ...
                aside = (0.4 if turn % 2 == 0 else -0.4) * width  # ... shifted, so that both ends approach the root
                nearest = 0.2 * width / across
                share = min(max(-under / (over - under) + aside / across, nearest), 1 - nearest)
            middle = low * math.exp(share * across)
            result = excess(middle)
            if result <= 0:
                low, under = middle, result
            else:
                high, over = middle, result
        return low

    value = searched(guess, epsilon, factor=1.05)
    exaggerated = _epsilon(release_for(value), delta, coarse) - _epsilon(release_for(value), delta)
    if exaggerated > 0:
        value = searched(value, epsilon + exaggerated, factor=1.0005)
    retreat = 10.0**-_DIGITS
    while value >= minimum:
        result = release_for(value)
        if _epsilon(result, delta) <= epsilon:
            return result
        value, retreat = value * (1 - retreat), min(0.5, 1.5 * retreat)
    raise ParameterError(
        f"no noise multiplier or sampling rate was found that keeps epsilon {epsilon:g} at delta {delta:g}. "
        "Use fewer steps, or a larger budget"
    )


@lru_cache(maxsize=256)  # public numbers only; the searches repeat their calls
def _epsilon(account: SampledGaussian, delta: float, coarse: bool = False) -> float:
    steps, noise, rate = account.steps, account.noise_multiplier, account.sampling_rate
    if rate == 1.0:  # every unit takes part: exactly one Gaussian vector (Dong, Roth and Su 2022, Corollary 3.3)
        moved = l2_sensitivity(1.0, account.relation) * math.sqrt(steps) * (1 + 1e-15)
        return GaussianRelease(sigma=noise, sensitivity=moved).epsilon(delta=delta)
    left = delta - _KEPT_BACK * steps
    if left < delta / 2:
        raise ParameterError(
            f"delta must be at least {2 * _KEPT_BACK * steps:g} for {steps:,} steps, the precision of the "
            f"accounting, got {delta:g}"
        )
    if steps * rate / (2 * noise**2) > _MOST_LOSS:
        return math.inf
    library = extra("dp_accounting", "accounting", "accounting of Poisson samples")
    # a coarser grid would overestimate the loss of steps below about this size
    grid = 1e-4 if rate * math.sqrt(math.expm1(1 / noise**2)) >= 1e-4 else 1e-5
    distribution = library.pld.privacy_loss_distribution.from_gaussian_mechanism(
        standard_deviation=noise,
        value_discretization_interval=grid * (10 if coarse else 1),
        sampling_prob=rate,
        pessimistic_estimate=True,
        neighboring_relation=getattr(library.NeighboringRelation, _NEIGHBOURS[account.relation]),
    )
    if steps > 1:
        distribution = distribution.self_compose(steps)
    return float(distribution.get_epsilon_for_delta(left))
