"""The height of a random direction above a cap's rim: masses, moments and exact draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits

__all__ = ["Tail", "gaussian_tail", "regularised_beta", "sphere_tail", "tail_heights"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tail:
    """P(T >= h), E[T; T >= h] and E[T^2; T >= h] of a symmetric T with variance 1/d."""

    mass: float
    first: float
    second: float


def sphere_tail(dimension: int, height: float) -> Tail:
    """The cap of a height from 0 to below 1 on the unit sphere in ``dimension`` >= 2 dimensions."""
    d = dimension
    log_constant = math.lgamma(d / 2) - math.lgamma((d - 1) / 2) - 0.5 * math.log(math.pi)
    first = math.exp(log_constant + (d - 1) / 2 * math.log((1 - height) * (1 + height))) / (d - 1)
    return Tail(_cap_mass(d, height), first, height * first + _cap_mass(d + 2, height) / d)


def gaussian_tail(dimension: int, height: float) -> Tail:
    """The same of a normal T with variance 1/d."""
    root = math.sqrt(dimension)
    mass = 0.5 * math.erfc(height * root / math.sqrt(2))
    first = math.exp(-(height**2) * dimension / 2) / math.sqrt(2 * math.pi) / root
    return Tail(mass, first, height * first + mass / dimension)


def _cap_mass(dimension: int, height: float) -> float:
    return 0.5 * regularised_beta((dimension - 1) / 2, 0.5, (1 - height) * (1 + height), height * height)


def regularised_beta(a: float, b: float, x: float, one_less_x: float) -> float:
    """I_x(a, b) by its continued fraction (NIST Digital Library of Mathematical Functions, 8.17.22), to 1e-12."""
    if x <= 0.0:
        return 0.0
    if one_less_x <= 0.0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - regularised_beta(b, a, one_less_x, x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(one_less_x)
    # modified Lentz: 1 / (1 + d_1 / (1 + d_2 / ...))
    fraction, numerator, denominator = 1.0, 1.0, 0.0
    for place in range(1, 10_000):
        m = place // 2
        if place % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        denominator = 1 / (1 + term * denominator)
        numerator = 1 + term / numerator
        fraction *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-15:
            break
    return math.exp(log_front) / a / fraction


def tail_heights(bits: RandomBits, count: int, dimension: int, height: float, *, sphere: bool) -> Floats:
    """(count,) independent draws of T given T >= height, by rejection under an exponential from the rim."""
    if sphere and dimension == 2:
        return np.cos(math.acos(height) * bits.uniform(count))
    power = (dimension - 3) / 2
    reach = 1.0 - height if sphere else math.inf
    rate = 2 * power * height / ((1 - height) * (1 + height)) if sphere else dimension * height
    drawn = np.empty(count)
    todo = np.arange(count)
    while todo.size:
        above = _truncated_exponential(bits, todo.size, rate, reach, normal_scale=dimension**-0.5)
        t = height + above
        if sphere:
            with np.errstate(divide="ignore", invalid="ignore"):
                log_density = power * (np.log1p(-t) + np.log1p(t)) if power else np.zeros(todo.size)
            top = power * (math.log1p(-height) + math.log1p(height)) - rate * above
        elif rate == 0.0:
            log_density, top = np.zeros(todo.size), np.zeros(todo.size)  # the proposal is the half normal itself
        else:
            log_density, top = -dimension * t * t / 2, -dimension * height * height / 2 - rate * above
        kept = np.log(bits.uniform(todo.size)) <= log_density - top
        drawn[todo[kept]] = t[kept]
        todo = todo[~kept]
    return drawn


def _truncated_exponential(bits: RandomBits, count: int, rate: float, reach: float, *, normal_scale: float) -> Floats:
    """(count,) exponential of a rate, cut at ``reach``; at rate 0 uniform up to it, or half normal if it is endless."""
    if rate == 0.0 and math.isinf(reach):
        return np.abs(bits.normal(count)) * normal_scale
    if rate * reach < 1e-9:
        return reach * bits.uniform(count)
    # 1 - u (1 - e^(-rate reach)) runs from 1 down to e^(-rate reach)
    share = bits.uniform(count) * -math.expm1(-rate * reach)
    drawn: Floats = -np.log1p(-share) / rate
    return np.minimum(drawn, reach)
