"""DPText's noise: exponential, so that an output rules out every larger input, and without guarantee."""

import math

import numpy as np
import pytest
from scipy import stats

from dptext.privacy.randomness import RandomBits
from dptext.representations.published import DPText

FALSE_ALARM = 1e-6
SAFE = {"unsafe_as_published": True}


@pytest.mark.parametrize(("epsilon", "dimension"), [(0.1, 64), (4.0, 3)])
def test_noise_is_exponential_of_the_printed_scale_and_another_scale_is_rejected(epsilon, dimension):
    values, x = DPText(epsilon=epsilon, **SAFE), np.linspace(-1, 1, dimension)
    scale = 2 * dimension / epsilon
    noise = values.randomize(np.tile(x, (30_000, 1)), seed=1).astype(float) - x
    assert (noise > -1e-6).all()
    for column in noise.T[:3]:
        assert stats.kstest(column, "expon", (0, scale)).pvalue > FALSE_ALARM
        for wrong in (1.5, 1 / 1.5):
            assert stats.kstest(column, "expon", (0, wrong * scale)).pvalue < FALSE_ALARM
    error = (noise**2).sum(axis=1)
    target = values.expected_squared_error(dimension)
    assert abs(error.mean() - target) < stats.norm.isf(FALSE_ALARM / 2) * error.std() / math.sqrt(len(error))


def test_output_rules_out_the_other_witness_with_the_documented_chance():
    for epsilon, dimension in ((0.1, 64), (3.0, 10)):
        channel = DPText(epsilon=epsilon, **SAFE).channel(dimension)
        draws = 30_000
        for one, other in (channel.witness, channel.witness[::-1]):
            sent = channel.sample(np.tile(one, (draws, 1)), RandomBits(3))
            ruled_out = (sent < other).any(axis=1).mean()
            target = -math.expm1(-epsilon / 2)
            spread = math.sqrt(target * (1 - target) / draws)
            assert abs(ruled_out - target) < stats.norm.isf(FALSE_ALARM / 2) * spread
            assert not (sent < one).any()


def test_noise_is_finite_at_the_border_of_its_draws():
    class Borders:
        def uniform(self, *shape):
            return np.ones(shape)

    sent = DPText(epsilon=1.0, **SAFE).channel(2).sample([[0.0, 0.0]], Borders())
    assert sent.tolist() == [[pytest.approx(4 * 53 * math.log(2))] * 2]
