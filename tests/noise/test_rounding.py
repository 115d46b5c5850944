"""Rounding at random: without bias, between the two neighbours, and integers as they are."""

import numpy as np
import pytest
from scipy import stats

from dptext.noise.bits import round_at_random
from dptext.privacy.randomness import RandomBits

FALSE_ALARM = 1e-6
DRAWS = 200_000


@pytest.mark.parametrize("number", [-3.75, -0.1, 0.5, 2.25, 1000.9])
def test_it_goes_up_as_often_as_the_number_is_near_what_is_above(number):
    rounded = round_at_random(RandomBits(1), np.full(DRAWS, number))
    below = int(np.floor(number))
    assert set(rounded.tolist()) == {below, below + 1}
    up = int((rounded == below + 1).sum())
    assert stats.binomtest(up, DRAWS, number - below).pvalue > FALSE_ALARM
    assert stats.binomtest(up, DRAWS, (number - below) / 1.5).pvalue < FALSE_ALARM


def test_integers_stay_as_far_out_as_it_is_asked_for():
    integers = np.array([-(2.0**20), -1.0, 0.0, 1.0, 2.0**20])
    assert (round_at_random(RandomBits(2), np.repeat(integers, 10_000)) == np.repeat(integers, 10_000)).all()
    just_below = np.nextafter(integers[1:], -np.inf)
    assert (round_at_random(RandomBits(2), np.tile(just_below, 10_000)) <= np.tile(integers[1:], 10_000)).all()
    assert round_at_random(RandomBits(2), np.empty(0)).size == 0
