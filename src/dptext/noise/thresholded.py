"""Noisy counts of keys that are not known in advance; only counts above a threshold are released.

Derivation: docs/mechanisms/cooccurrence.md#noise-thresholded
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

from dptext.errors import MissingExtraError
from dptext.validation import check_float, check_int

NoiseKind: TypeAlias = Literal["gaussian", "laplace"]
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of delta that the names may take, tried in turn
_MARGIN = 1 + 1e-9  # for the rounding of a tail


@dataclass(frozen=True)
class ThresholdedCounts:
    """Noise and threshold for (epsilon, delta); see `thresholded_counts`."""

    epsilon: float
    delta: float
    keys: int
    noise: NoiseKind
    scale: float
    threshold: int
    delta_of_names: float

    def release(self, counts: Mapping[int, int]) -> dict[int, int]:
        """The noisy counts that are large enough, in no particular order."""
        with _opendp() as opendp:
            measurement = _measurement(opendp, self.noise, self.scale, self.threshold)
        noisy: dict[int, int] = measurement(dict(counts))
        return {number: count for number, count in noisy.items() if count >= self.threshold}


def thresholded_counts(*, epsilon: float, delta: float, keys: int) -> ThresholdedCounts:
    """The noise with the lower threshold, Gaussian or Laplace: both follow from the arguments alone."""
    epsilon = check_float("epsilon", epsilon, minimum=1e-3, maximum=100)
    delta = check_float("delta", delta, minimum=1e-100, below=1)
    keys = check_int("the counts that a user may be in", keys, minimum=1, maximum=1 << 20)
    result = [_laplace(epsilon, delta, keys), *(_gaussian(epsilon, delta, keys, share) for share in _SHARES)]
    return min(result, key=lambda option: option.threshold)


def gaussian_tail(scale: float, cutoff: int) -> float:
    """At least P(Z >= cutoff) for the discrete Gaussian."""
    near = cutoff - 0.5
    if near < scale:
        return 1.0
    return _MARGIN * math.erfc(near / scale / math.sqrt(2)) / 2


def laplace_tail(scale: float, cutoff: int) -> float:
    """P(Z >= cutoff) for the discrete Laplace distribution, cutoff >= 1: q^cutoff / (1 + q), q = exp(-1 / scale)."""
    return _MARGIN * math.exp(-cutoff / scale) / (1 + math.exp(-1 / scale))


def _laplace(epsilon: float, delta: float, keys: int) -> ThresholdedCounts:
    scale = keys / epsilon
    with _opendp() as opendp:
        while _measurement(opendp, "laplace", scale, 2).map((keys, keys, 1))[0] > epsilon:
            scale *= 1 + 1e-12  # its map rounds upwards
    threshold = _threshold(lambda cutoff: laplace_tail(scale, cutoff), delta / keys)
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
    threshold = _threshold(lambda cutoff: gaussian_tail(high, cutoff), names / keys)
    return ThresholdedCounts(epsilon, delta, keys, "gaussian", high, threshold, names)


def _threshold(tail: Callable[[int], float], limit: float) -> int:
    """Return the smallest T with P(Z >= T - 1) <= limit.  (1)"""
    high = 1
    while tail(high) > limit:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tail(middle) <= limit else (middle, high)
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
