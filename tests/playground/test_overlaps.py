"""Overlaps and rates of success, against enumeration."""

from functools import reduce
from math import comb

import numpy as np
import pytest

from dptext.methods.preview import (
    likeliest,
    log_densities,
    log_l2_laplace,
    overlap,
    overlap_of_draws,
    overlap_of_places,
    percent,
    right_in_draws,
)
from dptext.noise.discrete import l2_laplace
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.guarantee import best_guesses
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import Gaussian, L2Laplace
from dptext.representations.bounds import Domain
from dptext.representations.privunit import PrivUnit


def distributions(count, size, sharpness, seed):
    raw = np.exp(sharpness * RandomBits(seed).normal(count, size))
    return raw / raw.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("places", [1, 2, 3, 4])
def test_product_is_between_the_bounds(places, sharpness):
    rows = distributions(2 * places, 6, sharpness, 10 * places)
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    one, other = (reduce(np.multiply.outer, side) for side in zip(*pairs, strict=True))
    expected = np.minimum(one, other).sum()
    result = overlap_of_places(pairs)
    assert result.low - 1e-12 <= expected <= result.high + 1e-12
    assert result.high - result.low <= 0.003 * places


def test_bounds_hold_where_an_output_is_impossible():
    one, other = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5])
    result = overlap_of_places([(one, other)] * 2)
    assert result.low <= 0.25 <= result.high and result.high - result.low < 0.01


def test_many_places_are_told_apart():
    one, other = distributions(2, 50, 1.0, 3)
    assert overlap_of_places([(one, other)] * 60).high < 1e-3 < overlap(one, other).middle


@pytest.mark.parametrize("places", [12, 40])
def test_many_places_that_tell_little_are_bounded(places):
    """Bits that are turned: the number of turned ones tells all, so the exact overlap is one of two binomials."""
    pair = np.array([0.55, 0.45]), np.array([0.45, 0.55])
    counts = np.arange(places + 1)
    chances = np.array([comb(places, int(count)) for count in counts], dtype=float)
    one, other = (chances * share**counts * (1 - share) ** (places - counts) for share in (0.55, 0.45))
    result = overlap_of_places([pair] * places)
    assert result.low <= np.minimum(one, other).sum() <= result.high
    assert result.high - result.low < 0.2


def test_losses_beyond_the_grid_are_bounded():
    certain, other = np.array([1.0, 0.0]), np.array([1e-30, 1.0])
    result = overlap_of_places([(certain, other), (other, certain), (certain, other)])
    assert result.low <= 1e-30 <= result.high < 1e-3


def test_draws_find_the_exact_overlap_and_rate():
    """Of normal noise both are known, and of a finite mechanism; an interval of 95% is tripled here."""
    bits, distance, sigma = RandomBits(4), 1.3, 0.7
    pair = np.array([[0.0], [distance]])
    outputs = np.repeat(pair, 4000, axis=0) + sigma * bits.normal(8000, 1)
    logs = -np.square(outputs - pair.T) / (2 * sigma**2)
    exact = 1 - gaussian_delta(sigma, epsilon=0.0, sensitivity=distance)
    for result, expected in ((overlap_of_draws(logs), exact), (right_in_draws(logs), 1 - exact / 2)):
        half = (result.high - result.low) / 2
        assert abs(result.middle - expected) < 3 * half and half < 0.03
    wrong = -np.square(outputs - pair.T) / (2 * (1.5 * sigma) ** 2)
    assert abs(overlap_of_draws(wrong).middle - exact) > 0.05


@pytest.mark.parametrize("randomizer", [PrivUnit(epsilon=3.0), L2Laplace(epsilon=3.0, domain=Domain.SPHERE)])
@pytest.mark.parametrize("dimension", [2, 8])
def test_densities_are_those_that_are_drawn_from(randomizer, dimension):
    """E under one input of the ratio to another is 1; a ratio is never above e^epsilon. 20,000 draws: off by .1 at most
    (ratios are at most e^3), and 1.5 times too much epsilon in the density is seen.
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
    result = overlap_of_draws(log_densities(channel, outputs, vectors))
    assert result.middle == pytest.approx(1 - gaussian_delta(sigma, epsilon=0.0, sensitivity=distance), abs=0.03)


def test_density_of_noise_on_words():
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    outputs = points[:1] + l2_laplace(RandomBits(3), 20_000, 3, 0.5)
    logs = log_l2_laplace(outputs, points, 0.5)
    assert np.exp(logs[:, 1] - logs[:, 0]).mean() == pytest.approx(1.0, abs=0.1)


def test_likeliest_is_one_of_the_best_guesses():
    table = distributions(4, 7, 1.0, 9)
    expected = best_guesses([table], np.full(4, 0.25)).named
    assert likeliest(table.T, RandomBits(0)).tolist() == expected.tolist()
    draws = likeliest(np.ones((1000, 3)), RandomBits(0))
    assert sorted(set(draws.tolist())) == [0, 1, 2]


def test_no_share_is_called_certain_by_rounding():
    assert [percent(entry) for entry in (0.0, 1e-6, 0.5, 0.9999999, 1.0)] == ["0%", "<0.1%", "50%", ">99.9%", "100%"]
