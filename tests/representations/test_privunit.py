"""PrivUnit2 and PrivUnitG: the guarantee by masses of scipy, draws against their law, errors of the table.

Sampled tests are wrong at most once in 10^6: means beyond 5 standard errors of a mean of 200,000 draws.
"""

import math

import numpy as np
import pytest
from scipy import special, stats

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.representations.privunit import PrivUnit, PrivUnitG

COUNT = 200_000
BOTH = pytest.mark.parametrize("randomizer", [PrivUnit, PrivUnitG])


def _mass(channel):
    if channel.name == "PrivUnit":
        return 0.5 * special.betainc((channel.dimension - 1) / 2, 0.5, (1 - channel.height) * (1 + channel.height))
    return stats.norm.sf(channel.height * math.sqrt(channel.dimension))


def true_epsilon(channel):
    p, m = channel.chance, _mass(channel)
    return math.log(p) + math.log1p(-m) - math.log(m) - math.log1p(-p)


@BOTH
def test_cap_epsilon_is_kept_and_used(randomizer):
    """At more than 40 nats, doubles cannot use up the budget."""
    for epsilon in (1.1e-8, 0.01, 8.0, 30.0, 499.0):
        for dimension in (2, 3, 64, 768):
            channel = randomizer(epsilon=epsilon).channel(dimension)
            assert channel.shrinkage > 0
            assert 0 < true_epsilon(channel) <= epsilon
            if 0.01 <= epsilon <= 30:
                assert true_epsilon(channel) == pytest.approx(epsilon, abs=1e-6)
    # at epsilon 1e-10 the cap would be avoided, which is a larger loss: 1e-9 nats are kept back for arithmetic
    for epsilon in (1e-300, 1e-10, 9e-9):
        with pytest.raises(ParameterError, match="below the sampler's precision"):
            randomizer(epsilon=epsilon).channel(3)
    with pytest.raises(ParameterError, match="dimension"):
        randomizer(epsilon=1.0).channel(1)


def test_errors_are_those_of_the_table_and_no_other_cap_height_has_less():
    for dimension, epsilon, error in ((50, 4.0, 21.06), (64, 8.0, 7.95), (768, 8.0, 101.5)):
        channel = PrivUnit(epsilon=epsilon).channel(dimension)
        assert channel.expected_squared_error == pytest.approx(error, rel=1e-3)
        for height in np.linspace(0.001, 0.95, 100) if dimension < 100 else ():
            assert channel.expected_squared_error <= channel._error(height, epsilon) * (1 + 1e-9)


def _draws(randomizer, dimension, epsilon, seed=1):
    x = np.random.default_rng(seed).normal(size=dimension)
    x /= np.sqrt((x**2).sum())
    channel = randomizer(epsilon=epsilon).channel(dimension)
    return x, channel, channel.sample(np.tile(x, (COUNT, 1)), RandomBits(seed)).astype(np.float64)


def _is_mean(values, expected, errors=5.0):
    return abs(values.mean() - expected) <= errors * values.std() / math.sqrt(len(values))


@pytest.mark.statistical
@BOTH
@pytest.mark.parametrize(("dimension", "epsilon"), [(2, 2.0), (3, 2.0), (50, 4.0), (64, 8.0)])
def test_draws_are_unbiased_with_the_stated_error(randomizer, dimension, epsilon):
    x, channel, private = _draws(randomizer, dimension, epsilon)
    across = np.linalg.qr(np.column_stack([x, np.eye(dimension)[:, 0] + 0.1]))[0][:, 1]
    assert _is_mean(private @ x, 1.0)
    assert _is_mean(private @ across, 0.0)
    errors = ((private - x) ** 2).sum(axis=1)
    assert _is_mean(errors, channel.expected_squared_error)
    assert errors.mean() <= 1.02 * channel.expected_squared_error
    assert not _is_mean(private @ x * 1.5, 1.0)


@pytest.mark.statistical
@BOTH
def test_outputs_lie_in_the_cap_with_the_stated_chance(randomizer):
    x, channel, private = _draws(randomizer, 64, 8.0)
    inside = private @ x * channel.shrinkage >= channel.height
    # snapping moves a height by less than 64 * 2^-21; so few draws lie that near the rim
    assert abs(inside.mean() - channel.chance) <= 5 * math.sqrt(channel.chance * (1 - channel.chance) / COUNT) + 1e-3
    other = -private @ x * channel.shrinkage >= channel.height
    assert other.mean() <= 2 * math.exp(-8.0) * channel.chance  # the guarantee for the opposite vector
    assert other.sum() > 20  # the test has power


def test_outputs_lie_on_the_public_grid():
    channel = PrivUnit(epsilon=4.0).channel(16)
    private = channel.sample(np.ones((100, 16)), RandomBits(1)).astype(np.float64) * channel.shrinkage * 2**20
    assert np.abs(private - np.rint(private)).max() < 0.2
