"""Counts of unknown things: tails by enumeration, rates by sampling, and variants with too little are rejected."""

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom, chi2

from dptext.users import private_vocabulary
from dptext.users.private_vocabulary import gaussian_tail, laplace_tail, thresholded_counts

FALSE_ALARM = 1e-7  # of each statistical check
DRAWS = 20_000
GRID = [
    *((epsilon, delta, 7) for epsilon in (0.1, 1.0, 100.0) for delta in (1e-9, 1e-6, 0.3)),
    *((epsilon, 1e-6, keys) for epsilon in (0.1, 8.0) for keys in (1, 100)),
]


@cache
def mechanism_for(epsilon, delta, keys):
    return thresholded_counts(epsilon=epsilon, delta=delta, keys=keys)


def exact_tail(noise, scale, minimum):
    """P(Z >= minimum), term by term."""
    reach = np.arange(-math.ceil(60 * scale) - 60, math.ceil(60 * scale) + 61)
    weights = np.exp(-np.abs(reach) / scale if noise == "laplace" else -(reach.astype(float) ** 2) / (2 * scale**2))
    return math.fsum(weights[reach >= minimum]) / math.fsum(weights)


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 2.5, 10.0, 47.3])
def test_the_tails_bound_the_exact_ones_from_above_and_closely(scale):
    for minimum in {1, 2, 3, 5, *(math.ceil(factor * scale) for factor in (1, 1.6, 3, 5, 6))}:
        exact = exact_tail("laplace", scale, minimum)
        assert exact <= laplace_tail(scale, minimum) <= exact * (1 + 1e-8) + 1e-300
        exact, bound = exact_tail("gaussian", scale, minimum), gaussian_tail(scale, minimum)
        assert bound >= exact
        if minimum - 0.5 >= scale >= 10:
            assert bound <= 1.1 * exact


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "keys"), GRID)
def test_what_only_one_user_has_comes_out_with_less_than_delta(epsilon, delta, keys):
    mechanism = mechanism_for(epsilon, delta, keys)
    assert mechanism.threshold >= 2
    if mechanism.scale < 2000:
        alone = exact_tail(mechanism.noise, mechanism.scale, mechanism.threshold - 1)  # (1)
        assert keys * alone <= mechanism.delta_of_names <= delta
        if mechanism.noise == "laplace":  # and the threshold is no higher than it has to be
            assert keys * exact_tail("laplace", mechanism.scale, mechanism.threshold - 2) > delta


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "keys"), [entry for entry in GRID if entry[1] < 0.1])
def test_the_noise_covers_epsilon(epsilon, delta, keys):
    """Against other formulas than the ones of the search: pure for Laplace, zCDP's old conversion for Gaussian."""
    mechanism = mechanism_for(epsilon, delta, keys)
    if mechanism.noise == "laplace":
        assert keys / mechanism.scale <= epsilon * (1 + 1e-9)
        return
    left = delta - mechanism.delta_of_names
    rho = keys / (2 * mechanism.scale**2)
    # Canonne, Kamath and Steinke 2020, Proposition 12, minimised over a grid: never below the search's own minimum
    orders = 1 + np.logspace(-3, 6, 20_000)
    logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    assert logs.min() <= math.log(left) + 1e-3
    assert rho + 2 * math.sqrt(rho * math.log(1 / left)) >= epsilon * 0.9  # and is not far too much


# -- the draws -------------------------------------------------------------------------------------

NOISES = {
    "laplace": lambda: private_vocabulary._laplace(1.0, 0.2, 1),
    "gaussian": lambda: private_vocabulary._gaussian(3.0, 0.1, 1, 0.5),
}


def too_many(mechanism, allowed):
    """Whether names that one user alone has come out more often than ``allowed``."""
    out = len(mechanism.release(dict.fromkeys(range(DRAWS), 1)))
    return out > binom.isf(FALSE_ALARM, DRAWS, allowed)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", NOISES)
def test_names_of_one_user_come_out_as_seldom_as_promised_and_a_lower_threshold_is_caught(noise):
    mechanism = NOISES[noise]()
    assert mechanism.noise == noise
    assert not too_many(mechanism, mechanism.delta_of_names)
    assert too_many(replace(mechanism, threshold=mechanism.threshold - 1), mechanism.delta_of_names)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", NOISES)
def test_the_noise_has_the_announced_scale_and_a_smaller_one_is_caught(noise):
    mechanism = NOISES[noise]()

    def is_noise(other, scale):
        draws = np.array(list(other.release(dict.fromkeys(range(DRAWS), 1000)).values())) - 1000
        assert draws.size == DRAWS
        reach = np.arange(-400, 401)
        weights = np.exp(-np.abs(reach) / scale if noise == "laplace" else -(reach**2) / (2 * scale**2))
        edges = [reach[0] - 1, -2, -1, 0, 1, 2, reach[-1]]
        cells = [slice(*np.searchsorted(reach, [low + 1, high + 1])) for low, high in pairwise(edges)]
        expected = DRAWS * np.array([weights[cell].sum() for cell in cells]) / weights.sum()
        seen = np.histogram(draws, bins=np.array(edges) + 0.5)[0]
        return ((seen - expected) ** 2 / expected).sum() < chi2.isf(FALSE_ALARM, len(expected) - 1)

    assert is_noise(mechanism, mechanism.scale)
    assert not is_noise(replace(mechanism, scale=mechanism.scale / 1.5), mechanism.scale)


def test_large_counts_always_come_out_and_nothing_gives_nothing():
    mechanism = thresholded_counts(epsilon=1.0, delta=1e-6, keys=50)
    assert mechanism.release({}) == {}
    assert mechanism.release({7: 10**6, 9: 10**6}).keys() == {7, 9}  # 1e4 standard deviations away
