"""DPNR: its true epsilon, the law of its noise, and the one scalar that hides nothing."""

import math

import numpy as np
import pytest
from scipy import stats

from dptext.privacy.guarantee import NoGuarantee, PureDP
from dptext.representations.published import DPNR, min_max

FALSE_ALARM = 1e-6
SAFE = {"unsafe_as_published": True}
ONE = {"noise": "one scalar", **SAFE}


def test_true_epsilon_is_d_times_the_claim():
    for dimension, epsilon, true in [
        (64, 1.0, 64.0),
        (768, 0.05, 38.4),
        (768, 1.0, 768.0),
        (2, 0.3, 0.6),
        (3, 7.0, 21),
    ]:
        statement = DPNR(epsilon=epsilon, dimension=dimension, **SAFE).statement()
        assert statement.guarantee == PureDP(true)
        assert statement.claimed_epsilon == epsilon
    one = DPNR(epsilon=1.0, dimension=64, **ONE).statement()
    assert isinstance(one.guarantee, NoGuarantee) and one.parameters["witness_loss"] == "infinity"


@pytest.mark.parametrize(("dimension", "epsilon"), [(64, 1.0), (5, 0.2)])
def test_true_epsilon_is_attained_by_the_witness_and_never_exceeded(dimension, epsilon):
    """ln of the probabilities of all grid points within 30 scales, for a coordinate at 0 and at 1."""
    channel = DPNR(epsilon=epsilon, **SAFE).channel(dimension)
    scale, step = channel.parameters()["scale"], channel.step
    borders = (np.arange(-30 * 2**12, 30 * 2**12 + 1) - 0.5) * step

    def logs(x):
        """Exact in logarithms for cells that do not hold x; the one that does is as wide as the others."""
        low, high = (borders[:-1] - x) / scale, (borders[1:] - x) / scale
        nearest = np.maximum(np.maximum(low, -high), 0.0)
        result = -nearest + math.log(-math.expm1(-step / scale) / 2)
        inside = (low < 0) & (high > 0)
        result[inside] = np.log(1 - (np.exp(low[inside]) + np.exp(-high[inside])) / 2)
        return result

    worst = float(np.abs(logs(0.0) - logs(1.0)).max())
    expected = channel.guarantee.epsilon
    assert dimension * worst <= expected * (1 + 1e-9)
    assert dimension * worst >= expected * (1 - 1e-8)
    distance = np.abs(min_max(channel.witness[0][None]) - min_max(channel.witness[1][None])).sum()
    assert distance == dimension  # in L1, and no two vectors of [0, 1]^d are further apart
    assert channel.finding.attained == expected
    assert channel.finding.verdict == "false"


def test_noise_is_laplace_of_the_printed_scale_and_one_and_a_half_times_it_is_rejected():
    draws, x = 100_000, np.array([3.0, 5.0, 4.0])
    for epsilon in (0.1, 4.0):
        noise = DPNR(epsilon=epsilon, **SAFE).randomize(np.tile(x, (draws, 1)), seed=1).astype(float) - [0, 1, 0.5]
        for column in noise.T:
            assert stats.kstest(column, "laplace", (0, 1 / epsilon)).pvalue > FALSE_ALARM
            for wrong in (1.5, 1 / 1.5):
                assert stats.kstest(column, "laplace", (0, wrong / epsilon)).pvalue < FALSE_ALARM
        limit = stats.norm.isf(FALSE_ALARM / 6) / math.sqrt(draws)
        assert (np.abs(np.corrcoef(noise.T)[np.triu_indices(3, 1)]) < limit).all()
        error = (noise**2).sum(axis=1)
        target = DPNR(epsilon=epsilon, **SAFE).expected_squared_error(3)
        assert abs(error.mean() - target) < stats.norm.isf(FALSE_ALARM / 2) * error.std() / math.sqrt(draws)


def test_one_scalar_reveals_the_vector():
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(200, 64))
    target = min_max(vectors)
    one = DPNR(epsilon=1.0, **ONE).randomize(vectors, seed=1)
    left = one - one.min(axis=1, keepdims=True)
    assert np.abs(left - target).max() < 1e-5  # float32 of numbers below 20
    assert stats.kstest((one - target)[:, 0], "laplace").pvalue > FALSE_ALARM
    entry = DPNR(epsilon=1.0, **SAFE).randomize(vectors, seed=1)
    assert np.abs(entry - entry.min(axis=1, keepdims=True) - target).max() > 5
