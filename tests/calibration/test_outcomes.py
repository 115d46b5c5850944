"""Intervals from draws: they hold what they are said to hold."""

import numpy as np
import pytest
from scipy import stats

from dptext.calibration.deniability import _outcome_from_draws, probability_interval, smallest_support


def test_intervals_of_a_share_cover_it_and_hold_clopper_pearson():
    n = 60
    successes = np.arange(n + 1)
    low, high = probability_interval(successes, n, 0.05)
    exact_low = np.nan_to_num(stats.beta.ppf(0.025, successes, n - successes + 1))
    exact_high = np.nan_to_num(stats.beta.ppf(0.975, successes + 1, n - successes), nan=1.0)
    assert (low <= exact_low + 1e-9).all()
    assert (high >= exact_high - 1e-9).all()
    assert ((low >= 0) & (low <= successes / n) & (successes / n <= high) & (high <= 1)).all()
    for share in np.linspace(0.01, 0.99, 50):
        missed = stats.binom.pmf(successes, n, share)[(share < low) | (share > high)].sum()
        assert missed <= 0.05


@pytest.mark.parametrize("size", [5, 60, 2000])
def test_the_support_lies_between_its_bounds(size):
    """5% a side is allowed; the bounds are cautious, so 40 repetitions should show next to nothing."""
    generator = np.random.default_rng(size)
    shares = generator.dirichlet(np.full(size, 0.3))
    truth = smallest_support(shares, 0.05)
    distance = generator.random(size).astype(np.float32)
    misses = 0
    for _ in range(40):
        result = _outcome_from_draws(generator.choice(size, 1600, p=shares), distance, 0, eta=0.05, neighbours=1)
        misses += not result["support_low"] <= truth <= result["support_high"]
    assert misses <= 4
    if size < 100:
        assert result["support_high"] < 2 * size  # not empty words: a bound that follows the draws


def test_the_smallest_support():
    shares = np.array([0.1, 0.6, 0.25, 0.05])
    assert [smallest_support(shares, eta) for eta in (0.5, 0.4, 0.39, 0.15, 0.05, 0.01)] == [1, 1, 2, 2, 3, 4]
