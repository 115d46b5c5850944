"""Weights from noisy vectors: the noise that is known makes the difference where it must, and nowhere does it harm."""

import numpy as np
import pytest

from dptext.privacy.randomness import RandomBits
from dptext.representations.domains import Domain
from dptext.representations.linear import LinearPrior, covariance, fit_linear, linear_prior
from dptext.representations.privunit import PrivUnit
from dptext.representations.randomizer import Channel


def accuracy(model, vectors, labels):
    weights, intercepts = model
    return float(((vectors @ weights + intercepts).argmax(axis=1) == labels).mean())


def masked(count, seed):
    """On the sphere: the label moves axis 0 a little, under a large nuisance that axis 1 shows alone.

    Telling the classes apart takes the difference of the two axes, which E[x t] alone does not say.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    nuisance = rng.normal(scale=0.3, size=count)
    vectors = np.stack([nuisance + 0.1 * (2 * labels - 1), nuisance, np.ones(count), np.zeros(count)], axis=1)
    return Domain.SPHERE.bound(vectors), labels


def test_debiased_moments_find_what_noise_hides_and_what_the_naive_fit_misses():
    channel = PrivUnit(epsilon=8.0).channel(4)
    clean, labels = masked(100_000, 1)
    arrived = channel.sample(clean, RandomBits(seed=2)).astype(np.float64)
    test, test_labels = masked(4000, 3)
    assert accuracy(fit_linear(clean, labels, 2).clean, test, test_labels) > 0.99  # positive control: it can be learnt
    naive = accuracy(fit_linear(arrived, labels, 2).clean, test, test_labels)
    aware = accuracy(fit_linear(arrived, labels, 2, channel=channel).clean, test, test_labels)
    assert naive < 0.9
    assert aware > 0.97


def test_vectors_that_arrive_noisy_have_a_model_of_their_own():
    channel = PrivUnit(epsilon=8.0).channel(4)
    clean, labels = masked(100_000, 4)
    arrived = channel.sample(clean, RandomBits(seed=5)).astype(np.float64)
    fit = fit_linear(arrived[:60_000], labels[:60_000], 2, channel=channel)
    naive = fit_linear(arrived[:60_000], labels[:60_000], 2)
    rest, rest_labels = arrived[60_000:], labels[60_000:]
    assert accuracy(fit.noisy, rest, rest_labels) > accuracy(fit.clean, rest, rest_labels) + 0.005
    assert abs(accuracy(fit.noisy, rest, rest_labels) - accuracy(naive.noisy, rest, rest_labels)) < 0.01


def topics(count, seed, turn=0.0, dimension=24, classes=2):
    """Classes around directions of their own, the first two turned by an angle: another domain."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    means = np.eye(classes, dimension)
    means[0, classes], means[0, 0] = np.sin(turn), np.cos(turn)
    return Domain.SPHERE.bound(0.5 * means[labels] + 0.15 * rng.normal(size=(count, dimension))), labels


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_where_noise_drowns_the_data_the_public_weights_stay(epsilon):
    channel = PrivUnit(epsilon=epsilon).channel(24)
    public, test = topics(2000, 1), topics(4000, 2)
    prior = linear_prior(*public, 2)
    alone = accuracy(fit_linear(*public, 2).clean, *test)
    for seed in range(3):
        clean, labels = topics(400, 10 + seed)
        arrived = channel.sample(clean, RandomBits(seed=seed)).astype(np.float64)
        with_prior = accuracy(fit_linear(arrived, labels, 2, channel=channel, prior=prior).clean, *test)
        without = accuracy(fit_linear(arrived, labels, 2, channel=channel).clean, *test)
        assert with_prior > alone - 0.03
        assert with_prior > without


def test_where_the_data_speak_wrong_public_weights_go():
    channel = PrivUnit(epsilon=8.0).channel(24)
    public, test = topics(2000, 3), topics(4000, 4, turn=2.4)
    clean, labels = topics(40_000, 5, turn=2.4)
    arrived = channel.sample(clean, RandomBits(seed=6)).astype(np.float64)
    alone = accuracy(fit_linear(*public, 2).clean, *test)
    fit = fit_linear(arrived, labels, 2, channel=channel, prior=linear_prior(*public, 2))
    best = accuracy(fit_linear(clean, labels, 2).clean, *test)
    assert alone < best - 0.05  # positive control: the public weights are wrong here
    assert accuracy(fit.clean, *test) > best - 0.01
    assert fit.strength > 0


def test_several_classes():
    channel = PrivUnit(epsilon=8.0).channel(24)
    clean, labels = topics(9000, 7, classes=5)
    arrived = channel.sample(clean, RandomBits(seed=8)).astype(np.float64)
    fit = fit_linear(arrived, labels, 5, channel=channel)
    test = topics(2000, 9, classes=5)
    assert accuracy(fit.clean, *test) > accuracy(fit_linear(clean, labels, 5).clean, *test) - 0.02
    assert fit.clean[0].shape == (24, 5)


def test_the_weights_are_the_posterior_mean():
    """Against the formula with a full matrix of noise, solved as it stands, at the strength that was found."""
    vectors, labels = topics(300, 10, dimension=6)
    prior = LinearPrior(np.arange(12.0).reshape(6, 2) / 10, np.full(6, 0.1), np.eye(6))
    fit = fit_linear(vectors, labels, 2, prior=prior)
    s, centred = fit.prior.covariance, np.eye(2)[labels] - 0.5
    error = covariance(vectors, vectors.mean(axis=0)).entry_error
    for column in range(2):
        noise = s / 300 * 0.25 + error * (prior.weights[:, column] ** 2).sum() * np.eye(6)
        seen = vectors.T @ centred[:, column] / 300 - s @ prior.weights[:, column]
        total = fit.strength * (s @ s + 6 * error * np.eye(6)) + noise
        dense = prior.weights[:, column] + fit.strength * s @ np.linalg.solve(total, seen)
        np.testing.assert_allclose(fit.clean[0][:, column], dense, rtol=1e-6, atol=1e-9)


def test_constant_coordinates_and_equal_vectors_are_no_error():
    labels = np.arange(40) % 2
    for vectors in (np.ones((40, 3)), np.zeros((40, 3)), np.tile([[-1.0]], (40, 1))):
        fit = fit_linear(vectors, labels, 2, channel=PrivUnit(epsilon=1.0).channel(3) if vectors.shape[1] > 1 else None)
        for weights, intercepts in (fit.clean, fit.noisy):
            assert np.isfinite(weights).all()
            assert np.isfinite(intercepts).all()


class Silent(Channel):
    """A channel that adds nothing and does not tell second moments."""

    name, domain, dimension, width = "Silent", Domain.BALL, 3, 3

    def _sample(self, vectors, bits):
        return vectors


def test_a_channel_that_does_not_tell_moments_leaves_the_public_covariance_or_the_identity():
    vectors, labels = topics(200, 11, dimension=3)
    prior = linear_prior(vectors, labels, 2)
    told = fit_linear(vectors, labels, 2, channel=Silent(), prior=prior)
    np.testing.assert_array_equal(told.prior.covariance, prior.covariance)
    bare = fit_linear(vectors, labels, 2, channel=Silent())
    np.testing.assert_allclose(bare.prior.covariance, np.eye(3) / 3)
    assert bare.intensity == 1
