"""Counts of things that nobody can list beforehand: those that are large, with noise, and the rest not at all.

Each user adds 1 to at most k counts. Noise is added to every count that is not 0, and what is below a threshold T is
left out together with its name. The noise is drawn by OpenDP, on integers, without rounding.

**Proof** of (epsilon, delta) under adding or removing a user (Korolova et al. 2009; Swanberg et al. 2023, who have the
Gaussian). Compare the data with and without them. The counts that are above 0 in both differ by at most 1 in at most k
places: noise on them is (epsilon, delta - delta_names)-DP, and to leave some out afterwards is post-processing. The
other counts, at most k, are 1 with them and 0 without. Each of them comes out with probability P(1 + Z >= T), so the
outputs differ for their sake with a probability of at most k P(Z >= T - 1) <= delta_names.             (1)

The part of (1) is computed here. OpenDP's own figure for it is the tail P(Z >= T), while it releases what is *equal* to
the threshold too: it is too small (observed in 0.14.0 to 0.16.0; reported as its issue 2922).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

from dptext.checks import number, whole
from dptext.errors import MissingExtraError

__all__ = ["NoiseKind", "ThresholdedCounts", "gaussian_tail", "laplace_tail", "thresholded_counts"]

NoiseKind: TypeAlias = Literal["gaussian", "laplace"]
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of delta that the names may take, tried in turn
_MARGIN = 1 + 1e-9  # for the rounding of a tail


@dataclass(frozen=True)
class ThresholdedCounts:
    """Noise and threshold for (epsilon, delta); see `thresholded_counts`.

    Attributes:
        epsilon, delta: what is promised for a user.
        keys: k, the counts that a user may be in.
        noise: ``"gaussian"`` (discrete, its parameter is the scale) or ``"laplace"`` (discrete).
        scale: its scale.
        threshold: T; a count comes out if it is at least this, noise included.
        delta_of_names: the part of delta that (1) takes.
    """

    epsilon: float
    delta: float
    keys: int
    noise: NoiseKind
    scale: float
    threshold: int
    delta_of_names: float

    def release(self, counts: Mapping[int, int]) -> dict[int, int]:
        """The noisy counts that are large enough, in no particular order.

        ``counts`` holds for each number of a thing how many users have it, at least 1. The numbers are those of things
        that some user has, and of no others.

        **Guarantee** (unit user, add/remove, central): (epsilon, delta)-DP, where each user is in at most ``keys``
        counts; the numbers count as names. OpenDP draws from the operating system; nothing can be repeated.
        """
        with _opendp() as opendp:
            measurement = _measurement(opendp, self.noise, self.scale, self.threshold)
        noisy: dict[int, int] = measurement(dict(counts))
        return {number: count for number, count in noisy.items() if count >= self.threshold}


def thresholded_counts(*, epsilon: float, delta: float, keys: int) -> ThresholdedCounts:
    """The noise with the lower threshold, Gaussian or Laplace: both follow from the arguments alone.

    Raises:
        MissingExtraError: OpenDP is not installed.
        ParameterError: an argument out of range.
    """
    epsilon = number("epsilon", epsilon, least=1e-3, most=100)
    delta = number("delta", delta, least=1e-100, below=1)
    keys = whole("the counts that a user may be in", keys, least=1, most=1 << 20)
    found = [_laplace(epsilon, delta, keys), *(_gaussian(epsilon, delta, keys, share) for share in _SHARES)]
    return min(found, key=lambda each: each.threshold)


def gaussian_tail(scale: float, least: int) -> float:
    """At least P(Z >= least) for the discrete Gaussian.

    Its weights exp(-z^2 / 2 s^2) are convex beyond s, so each is at most its integral over [z - 1/2, z + 1/2], and all
    weights together are at least the whole integral s sqrt(2 pi) (Poisson's summation formula).
    """
    near = least - 0.5
    if near < scale:
        return 1.0
    return _MARGIN * math.erfc(near / scale / math.sqrt(2)) / 2


def laplace_tail(scale: float, least: int) -> float:
    """P(Z >= least) for the discrete Laplace distribution, least >= 1: with q = exp(-1 / scale), q^least / (1 + q)."""
    return _MARGIN * math.exp(-least / scale) / (1 + math.exp(-1 / scale))


def _laplace(epsilon: float, delta: float, keys: int) -> ThresholdedCounts:
    scale = keys / epsilon
    with _opendp() as opendp:
        while _measurement(opendp, "laplace", scale, 2).map((keys, keys, 1))[0] > epsilon:
            scale *= 1 + 1e-12  # its map rounds upwards
    threshold = _threshold(lambda least: laplace_tail(scale, least), delta / keys)
    return ThresholdedCounts(epsilon, delta, keys, "laplace", scale, threshold, delta)


def _gaussian(epsilon: float, delta: float, keys: int, share: float) -> ThresholdedCounts:
    names = share * delta
    with _opendp() as opendp:

        def is_enough(scale: float) -> bool:
            zcdp = _measurement(opendp, "gaussian", scale, 2)
            profile = opendp.combinators.make_zCDP_to_approxDP(zcdp).map((keys, keys, 1))[0]
            return bool(profile.epsilon(delta - names) <= epsilon)

        high = math.sqrt(keys) / epsilon
        while not is_enough(high):
            high *= 2
        low = high / 2
        while is_enough(low):
            low, high = low / 2, low
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
    threshold = _threshold(lambda least: gaussian_tail(high, least), names / keys)
    return ThresholdedCounts(epsilon, delta, keys, "gaussian", high, threshold, names)


def _threshold(tail: Callable[[int], float], most: float) -> int:
    """The least T with P(Z >= T - 1) <= most.  (1)"""
    high = 1
    while tail(high) > most:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tail(middle) <= most else (middle, high)
    return high + 1


def _measurement(opendp: Any, noise: NoiseKind, scale: float, threshold: int) -> Any:
    domain = opendp.domains.map_domain(opendp.domains.atom_domain(T="i32"), opendp.domains.atom_domain(T="i64"))
    distance = opendp.metrics.absolute_distance(T="i64")
    if noise == "gaussian":
        metric = opendp.metrics.l02inf_distance(distance)
        return opendp.measurements.make_gaussian_threshold(domain, metric, scale=scale, threshold=threshold)
    metric = opendp.metrics.l01inf_distance(distance)
    return opendp.measurements.make_laplace_threshold(domain, metric, scale=scale, threshold=threshold)


@contextmanager
def _opendp() -> Iterator[Any]:
    """OpenDP with the feature that thresholds need; others in this process keep the features that they chose."""
    try:
        for part in ("combinators", "domains", "measurements", "metrics"):
            import_module(f"opendp.{part}")
        opendp = import_module("opendp")
        features = import_module("opendp.mod")
    except ImportError:
        raise MissingExtraError(
            "noisy counts of unknown words need the package 'opendp'; install it with: pip install \"dptext[opendp]\""
        ) from None
    had = "contrib" in features.GLOBAL_FEATURES
    features.enable_features("contrib")
    try:
        yield opendp
    finally:
        if not had:
            features.disable_features("contrib")
