"""Masses, moments and draws of caps, beside scipy; sampled tests are wrong at most once in 10^6 (DKW)."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import integrate, special, stats

from dptext.noise.discrete import regularised_beta, sphere_tail, tail_heights
from dptext.privacy.randomness import RandomBits

COUNT = 100_000
FURTHEST = math.sqrt(math.log(2 / 1e-6) / 2 / COUNT)  # Dvoretzky, Kiefer and Wolfowitz; Massart 1990


def test_the_incomplete_beta_function_is_that_of_scipy():
    for a, b, x in product((0.5, 4.5, 400.0), (0.5, 3.0), (1e-12, 0.3, 0.999, 1.0)):
        assert regularised_beta(a, b, x, 1 - x) == pytest.approx(special.betainc(a, b, x), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("dimension", [2, 3, 768])
@pytest.mark.parametrize("height", [0.0, 0.2, 0.99])
def test_the_moments_of_a_cap_are_its_integrals(dimension, height):
    tail = sphere_tail(dimension, height)
    # t = cos(angle): the density of the angle has no pole
    constant = math.exp(math.lgamma(dimension / 2) - math.lgamma((dimension - 1) / 2)) / math.sqrt(math.pi)
    for power, result in enumerate((tail.mass, tail.first, tail.second)):
        value, _ = integrate.quad(
            lambda angle, power=power: math.cos(angle) ** power * math.sin(angle) ** (dimension - 2) * constant,
            0,
            math.acos(height),
            epsabs=0,
            epsrel=1e-11,
        )
        assert result == pytest.approx(value, rel=1e-9, abs=1e-250)


def _furthest(values, chance_up_to):
    ordered = np.sort(values)
    ideal = chance_up_to(ordered)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return max(np.abs(ideal - steps[1:]).max(), np.abs(ideal - steps[:-1]).max())


def _cap_law(dimension, height):
    a = (dimension - 1) / 2
    low = special.betainc(a, a, (1 + height) / 2)
    return lambda t: (special.betainc(a, a, (1 + t) / 2) - low) / (1 - low)


@pytest.mark.parametrize(("dimension", "height"), [(2, 0.0), (3, 0.4), (64, 0.0), (64, 0.4)])
def test_heights_follow_the_law_of_the_cap(dimension, height):
    draws = tail_heights(RandomBits(1), COUNT, dimension, height, sphere=True)
    assert draws.min() >= height
    assert _furthest(draws, _cap_law(dimension, height)) < FURTHEST


@pytest.mark.parametrize("height", [0.0, 0.4])
def test_heights_follow_the_normal_tail(height):
    draws = tail_heights(RandomBits(1), COUNT, 64, height, sphere=False)
    ideal = stats.norm(scale=1 / 8)
    assert _furthest(draws, lambda t: 1 - ideal.sf(t) / ideal.sf(height)) < FURTHEST


def test_a_law_of_one_dimension_more_is_told_apart():
    draws = tail_heights(RandomBits(1), COUNT, 65, 0.05, sphere=True)
    assert _furthest(draws, _cap_law(60, 0.05)) > FURTHEST
