"""FEDERATE's noise: normalised in L1, scaled to the two that opposite vectors are apart."""

import math

import numpy as np
import pytest
from scipy import stats

import dptext
from dptext.privacy.guarantee import PureDP
from dptext.representations.additive import NormalisedLaplace, onto_l1_sphere
from dptext.representations.registry import randomizer_from_parameters

FALSE_ALARM = 1e-6


def test_the_noise_is_laplace_of_scale_two_over_epsilon_and_half_of_it_is_rejected():
    x = np.array([3.0, -5.0, 2.0])
    for epsilon in (0.5, 8.0):
        noise = NormalisedLaplace(epsilon=epsilon).randomize(np.tile(x, (30_000, 1)), seed=1).astype(float) - x / 10
        for column in noise.T:
            assert stats.kstest(column, "laplace", (0, 2 / epsilon)).pvalue > FALSE_ALARM
            for wrong in (0.5, 1 / 1.5, 1.5):
                assert stats.kstest(column, "laplace", (0, wrong * 2 / epsilon)).pvalue < FALSE_ALARM
        error = (noise**2).sum(axis=1)
        target = NormalisedLaplace(epsilon=epsilon).expected_squared_error(3)
        assert abs(error.mean() - target) < stats.norm.isf(FALSE_ALARM / 2) * error.std() / math.sqrt(len(error))


def test_epsilon_is_attained_by_opposite_vectors_and_by_none_exceeded():
    epsilon, dimension = 3.0, 5
    channel = NormalisedLaplace(epsilon=epsilon).channel(dimension)
    scale = channel.parameters()["scale"]
    axis = np.eye(dimension)[0]
    ends = np.abs(channel.noiseless([axis]) - channel.noiseless([-axis])).sum()
    assert ends / scale == pytest.approx(epsilon, rel=1e-8)
    rng = np.random.default_rng(2)
    points = channel.noiseless(rng.normal(size=(200, dimension)) ** 3)
    distance = np.abs(points[:, None] - points[None]).sum(axis=2) / scale
    assert 0.8 * epsilon < distance.max() <= epsilon * (1 + 1e-9)


def test_length_does_not_matter():
    rows = np.random.default_rng(3).normal(size=(10, 8))
    np.testing.assert_allclose(onto_l1_sphere(rows), onto_l1_sphere(1e5 * rows))
    laplace = NormalisedLaplace(epsilon=4.0)
    np.testing.assert_allclose(laplace.randomize(rows, seed=5), laplace.randomize(1e30 * rows, seed=5), atol=1e-3)


def test_the_statement():
    statement = NormalisedLaplace(epsilon=2.0).statement(16)
    assert statement.guarantee == PureDP(2.0)
    assert dptext.PrivacyStatement.from_json(statement.to_json()) == statement
    repeated = randomizer_from_parameters(statement.mechanism, statement.parameters)
    assert repeated.statement(16) == statement
