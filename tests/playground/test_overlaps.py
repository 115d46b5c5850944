"""Overlaps and success rates, compared with exact values."""

import numpy as np
import pytest

from dptext.methods.preview import (
    largest,
    log_densities,
    log_l2_laplace,
    overlap,
    percent,
    sampled_overlap,
    sampled_success,
)
from dptext.noise.discrete import l2_laplace
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian, L2Laplace
from dptext.representations.bounds import Domain
from dptext.representations.privunit import PrivUnit


def test_overlap_is_one_minus_the_total_variation():
    assert overlap(np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5])).value == 0.5


def test_largest_values_come_first_and_ties_keep_their_order():
    assert largest(np.array([0.1, 0.4, 0.4, 0.0, 0.2]), 3) == [1, 2, 4]
    assert largest(np.array([0.1, 0.2]), 9) == [1, 0]


def log_ratio(logs):
    return logs[:, 0] - logs[:, 1]


def test_draws_estimate_the_exact_overlap_and_rate():
    """For Gaussian noise both are known. The 95% interval is tripled here."""
    bits, distance, sigma = RandomBits(4), 1.3, 0.7
    pair = np.array([[0.0], [distance]])
    outputs = np.repeat(pair, 4000, axis=0) + sigma * bits.normal(8000, 1)
    logs = -np.square(outputs - pair.T) / (2 * sigma**2)
    exact = 1 - gaussian_delta(sigma, epsilon=0.0, sensitivity=distance)
    for result, expected in ((sampled_overlap(log_ratio(logs)), exact), (sampled_success(logs), 1 - exact / 2)):
        half = (result.high - result.low) / 2
        assert abs(result.value - expected) < 3 * half and half < 0.03
    wrong = -np.square(outputs - pair.T) / (2 * (1.5 * sigma) ** 2)
    assert abs(sampled_overlap(log_ratio(wrong)).value - exact) > 0.05


@pytest.mark.parametrize("randomizer", [PrivUnit(epsilon=3.0), L2Laplace(epsilon=3.0, domain=Domain.SPHERE)])
@pytest.mark.parametrize("dimension", [2, 8])
def test_densities_are_those_of_the_draws(randomizer, dimension):
    """The mean likelihood ratio is 1, and no ratio exceeds e^epsilon. With 20,000 draws the mean is off by at most .1
    (ratios are at most e^3), and a density with 1.5 times the epsilon is detected.
    """
    channel = randomizer.channel(dimension)
    vectors = channel.domain.bound(RandomBits(1).normal(2, dimension))
    outputs = np.asarray(channel.sample(np.repeat(vectors[:1], 20_000, axis=0), RandomBits(2)), dtype=np.float64)
    logs = log_densities(channel, outputs, vectors)
    losses = logs[:, 0] - logs[:, 1]
    assert np.abs(losses).max() <= 3.0 + 1e-6
    assert np.exp(-losses).mean() == pytest.approx(1.0, abs=0.1)
    assert abs(np.exp(-1.5 * losses).mean() - 1.0) > 0.1


def test_density_of_normal_noise():
    channel = Gaussian(epsilon=3.0, delta=1e-5, domain=Domain.SPHERE).channel(3)
    vectors = channel.domain.bound(RandomBits(1).normal(2, 3))
    outputs = np.asarray(channel.sample(np.repeat(vectors, 4000, axis=0), RandomBits(2)), dtype=np.float64)
    distance = float(np.linalg.norm(vectors[0] - vectors[1]))
    sigma = channel.parameters()["sigma"]
    result = sampled_overlap(log_ratio(log_densities(channel, outputs, vectors)))
    assert result.value == pytest.approx(1 - gaussian_delta(sigma, epsilon=0.0, sensitivity=distance), abs=0.03)


def test_density_of_noise_on_words():
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    outputs = points[:1] + l2_laplace(RandomBits(3), 20_000, 3, 0.5)
    logs = log_l2_laplace(outputs, points, 0.5)
    assert np.exp(logs[:, 1] - logs[:, 0]).mean() == pytest.approx(1.0, abs=0.1)


def test_no_share_is_called_certain_by_rounding():
    assert [percent(entry) for entry in (0.0, 1e-6, 0.5, 0.9999999, 1.0)] == ["0%", "<0.1%", "50%", ">99.9%", "100%"]
