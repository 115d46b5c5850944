"""L2-Laplace noise: radius Gamma(d, scale), direction uniform."""

import numpy as np
import pytest
from scipy import stats

from dptext.noise.discrete import l2_laplace, uniform_directions
from dptext.privacy.randomness import RandomBits

FALSE_ALARM = 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize(("dimension", "scale"), [(1, 1.0), (2, 0.5), (50, 0.1), (300, 0.2)])
def test_radius_is_gamma_and_a_wrong_scale_is_rejected(dimension, scale):
    noise = l2_laplace(RandomBits(1), 60_000, dimension, scale)
    radius = np.sqrt((noise**2).sum(axis=1))
    assert stats.kstest(radius, stats.gamma(dimension, scale=scale).cdf).pvalue > FALSE_ALARM
    for wrong in (1.5 * scale, scale / 1.5):
        assert stats.kstest(radius, stats.gamma(dimension, scale=wrong).cdf).pvalue < FALSE_ALARM
    assert radius.mean() == pytest.approx(dimension * scale, rel=0.02)
    assert (radius**2).mean() == pytest.approx(dimension * (dimension + 1) * scale**2, rel=0.05)


def test_in_one_dimension_it_is_the_laplace_distribution():
    noise = l2_laplace(RandomBits(2), 60_000, 1, 2.0)[:, 0]
    assert stats.kstest(noise, stats.laplace(scale=2.0).cdf).pvalue > FALSE_ALARM


def test_directions_are_uniform():
    directions = uniform_directions(RandomBits(3), 60_000, 5)
    np.testing.assert_allclose((directions**2).sum(axis=1), 1.0, rtol=1e-12)
    # a coordinate of a uniform direction: (x + 1) / 2 is Beta((d - 1) / 2, (d - 1) / 2)
    for axis in range(5):
        coordinate = (directions[:, axis] + 1) / 2
        assert stats.kstest(coordinate, stats.beta(2, 2).cdf).pvalue > FALSE_ALARM
    # normalised *uniform* cube points are the classic mistake, and are rejected
    cube = 2 * RandomBits(4).uniform(60_000, 5) - 1
    cube /= np.sqrt((cube**2).sum(axis=1, keepdims=True))
    assert stats.kstest((cube[:, 0] + 1) / 2, stats.beta(2, 2).cdf).pvalue < FALSE_ALARM


def test_direction_and_radius_are_independent():
    noise = l2_laplace(RandomBits(5), 60_000, 3, 1.0)
    radius = np.sqrt((noise**2).sum(axis=1))
    for axis in range(3):
        assert abs(stats.spearmanr(radius, noise[:, axis] / radius).statistic) < 5 / np.sqrt(60_000)
