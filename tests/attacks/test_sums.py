"""Users in a sum are found without noise, and with noise at most at the rate of the bound."""

import numpy as np
import pytest

from dptext.attacks.membership import gaussian_ceiling, sum_membership
from dptext.privacy.gaussian import gaussian_delta

PEOPLE, NUMBERS = 400, 1000


@pytest.fixture(scope="module")
def people():
    """Vectors of length 1 that have much in common, of whom the first half are members."""
    vectors = np.random.default_rng(1).normal(size=(PEOPLE, NUMBERS)) + 1.0
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.arange(PEOPLE) < PEOPLE // 2


def released(people, sigma, seed=2):
    vectors, members = people
    return vectors[members].sum(axis=0) + np.random.default_rng(seed).normal(size=NUMBERS) * sigma


def test_all_are_found_without_noise():
    """The positive control: orthogonal people, so that the rest of the sum says nothing of anybody."""
    members = np.arange(40) % 2 == 0
    result = sum_membership(members * 1.0, np.eye(40), members)
    assert result.auc.score.value == result.accuracy.score.value == 1.0


def test_where_the_rest_is_known_the_ceiling_is_reached_and_not_exceeded():
    """Orthogonal people, so that each is a test of its own; 2,000 of them, five standard errors of an AUC: .05."""
    members = np.arange(2000) < 1000
    for sigma in (0.5, 1.0, 3.0):
        noisy = members + np.random.default_rng(3).normal(size=2000) * sigma
        result = sum_membership(noisy, np.eye(2000), members)
        assert abs(result.auc.score.value - gaussian_ceiling(sigma).auc) < 0.06
        assert abs(result.accuracy.score.value - gaussian_ceiling(sigma).accuracy) < 0.06


def test_who_guesses_the_rest_finds_more(people):
    vectors, members = people
    noisy = released(people, 0.05)
    blind = sum_membership(noisy, vectors, members)
    guessing = sum_membership(noisy, vectors, members, guess=vectors[~members].sum(axis=0))
    assert blind.auc.score.value < 0.75 < 0.9 < guessing.auc.score.value


def test_the_ceiling_is_the_trade_off_of_the_promise():
    """At every epsilon, members found less e^epsilon times others accused is at most delta (Balle and Wang 2018)."""
    sigma = 1.3
    ceiling = gaussian_ceiling(sigma)
    for epsilon in (0.0, 0.5, 1.0, 3.0):
        delta = gaussian_delta(sigma, epsilon=epsilon, sensitivity=1.0)
        for result, accused in ((ceiling.at_1_percent, 0.01), (ceiling.at_01_percent, 0.001)):
            assert result - np.exp(epsilon) * accused <= delta
    assert ceiling.accuracy == pytest.approx((1 + gaussian_delta(sigma, epsilon=0.0, sensitivity=1.0)) / 2, abs=1e-6)
