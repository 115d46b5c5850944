"""The discrete window: its law, its moments as sums over the law, and its exact epsilon."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dptext.audits.losses import exact_loss
from dptext.noise.discrete import SCALE, uniform_subsets, window_within
from dptext.privacy.randomness import RandomBits

FALSE_ALARM = 1e-6
DRAWS = 200_000
WINDOWS = [(1, 0), (4, 0), (4, 1), (4, 5), (7, 3)]


@pytest.mark.parametrize(("steps", "half"), WINDOWS)
@pytest.mark.parametrize("epsilon", [0.1, 12.0])
def test_the_loss_of_all_pairs_is_the_stated_epsilon(steps, half, epsilon):
    window = window_within(epsilon, steps, half)
    result = exact_loss(np.log(window.distributions()), allowed=epsilon)
    assert result.largest == pytest.approx(window.epsilon, abs=1e-11)
    assert 0.99 * epsilon < window.epsilon <= epsilon


def test_a_window_with_its_true_value_twice_as_likely_is_refuted():
    window = window_within(1.0, 4, 1)
    table = window.distributions()
    inside = window.threshold / SCALE
    for row in range(9):
        table[row, row : row + 3] = inside * np.array([0.25, 0.5, 0.25])
    assert exact_loss(np.log(table), allowed=1.0).excess > 0.3


@pytest.mark.parametrize(("steps", "half"), WINDOWS)
def test_the_moments_are_the_sums_over_the_law(steps, half):
    window = window_within(2.0, steps, half)
    outputs = np.arange(-window.reach, window.reach + 1) / (window.gain * steps)
    places = np.arange(-steps, steps + 1) / steps
    constant, slope = window.moments
    np.testing.assert_allclose(window.distributions() @ outputs, places, atol=1e-12)
    np.testing.assert_allclose(window.distributions() @ outputs**2, constant + slope * places**2, rtol=1e-12)


@pytest.mark.parametrize("place", [-4, 0, 3])
def test_draws_follow_the_law_and_that_of_another_epsilon_is_rejected(place):
    window = window_within(1.5, 4, 2)
    counts = np.bincount(window.draw(RandomBits(1), np.full(DRAWS, place)) + window.reach, minlength=13)
    law = window.distributions()[place + 4]
    assert stats.chisquare(counts, law * DRAWS).pvalue > FALSE_ALARM
    for epsilon in (1.0, 2.25):
        other = window_within(epsilon, 4, 2).distributions()[place + 4]
        assert stats.chisquare(counts, other * DRAWS).pvalue < FALSE_ALARM


# -- subsets -------------------------------------------------------------------------------------------------------


FALSE_ALARM = 1e-6
ROWS = 60_000


@pytest.mark.parametrize(("of", "size"), [(5, 1), (5, 2), (6, 3), (4, 4), (7, 6)])
def test_every_subset_is_as_likely(of, size):
    subsets = np.sort(uniform_subsets(RandomBits(1), ROWS, of=of, size=size), axis=1)
    every = list(combinations(range(of), size))
    counts = np.array([(subsets == entry).all(axis=1).sum() for entry in every])
    assert counts.sum() == ROWS
    if len(every) > 1:
        assert stats.chisquare(counts).pvalue > FALSE_ALARM
