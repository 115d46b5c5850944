"""Gaussian noise, epsilon and delta: any two give the third, exactly.

N(0, sigma^2 I) on a vector that moves by at most D in Euclidean length is (epsilon, delta)-DP if and only if

    delta >= F(a - b) - e^epsilon F(-a - b),   a = D / (2 sigma),   b = epsilon sigma / D,                (Theorem 8)

F the normal distribution function (Balle and Wang 2018, Theorem 8). Since e^epsilon f(a + b) = f(a - b) for the normal
density f, the right side is f(a - b) (R(b - a) - R(b + a)) with Mills' ratio R(x) = F(-x) / f(x), which no large
epsilon or small delta takes out of range. (The classical sigma = D sqrt(2 ln(1.25 / delta)) / epsilon is proved for
epsilon < 1 only, and false for large ones.)
"""

from __future__ import annotations

import math

__all__ = ["gaussian_delta", "gaussian_epsilon", "gaussian_sigma"]

_MARGIN = 1e-6  # of delta, kept back: it is computed to 1e-8


def gaussian_delta(sigma: float, *, epsilon: float, sensitivity: float) -> float:
    """The delta that noise of standard deviation ``sigma`` has at ``epsilon``; relative error below 1e-6, upwards.

    >>> f"{gaussian_delta(1.0, epsilon=1.0, sensitivity=1.0):.4f}"
    '0.1269'
    """
    return min(1.0, math.exp(_log_delta(sigma / sensitivity, epsilon)) * (1 + _MARGIN))


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float) -> float:
    """The least sigma that is (epsilon, delta)-DP, rounded up by less than 1e-5 of it; infinite if beyond 2^200.

    >>> round(gaussian_sigma(epsilon=4.0, delta=1e-5, sensitivity=2.0), 4)
    2.1623
    """
    target = math.log(delta) - _MARGIN
    high = 1.0
    while _log_delta(high, epsilon) > target:
        high *= 2
        if high > 2.0**200:
            return math.inf
    low = high / 2
    while _log_delta(low, epsilon) <= target:
        low, high = low / 2, low
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _log_delta(middle, epsilon) <= target else (middle, high)
    return high * (1 + 1e-12) * sensitivity


def gaussian_epsilon(sigma: float, *, delta: float, sensitivity: float) -> float:
    """The least epsilon at which ``sigma`` is (epsilon, delta)-DP, rounded up; infinite if no float holds it.

    Noise so strong that delta alone covers it has epsilon 0.

    >>> round(gaussian_epsilon(1.0, delta=1e-6, sensitivity=1.0), 3)
    4.887
    """
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
    low = high / 2 if high > 1.0 else 0.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _log_delta(multiplier, middle) <= target else (middle, high)
    return high * (1 + 1e-12)


def _log_delta(sigma: float, epsilon: float) -> float:
    """ln delta at sensitivity 1, or a little more."""
    a, b = 1 / (2 * sigma), epsilon * sigma
    near = b - a
    if near < -8:
        return 0.0
    if near > 50:
        return -near * near / 2  # R < 1 there
    if a < 1e-4:
        # R is convex, so the difference is at most 2 a times the slope at its near end: -R'(x) = 1 - x R(x)
        slope = 1 - near * _mills(near) if near < 10 else 1 / (near * near + 1)
        difference = 2 * a * slope
    else:
        difference = _mills(near) - _mills(b + a)
    return -near * near / 2 - math.log(2 * math.pi) / 2 + math.log(difference)  # Theorem 8


def _mills(x: float) -> float:
    """R(x) for x >= -8."""
    if x < 10:
        return math.sqrt(math.pi / 2) * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))
    fraction = x
    for place in range(60, 0, -1):  # 1 / (x + 1 / (x + 2 / (x + 3 / ...))) (Laplace 1805)
        fraction = x + place / fraction
    return 1 / fraction
