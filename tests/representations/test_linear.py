"""Linear weights from noisy vectors: known noise helps, public weights stay or go, covariances are debiased."""

import numpy as np

from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Domain
from dptext.representations.classifiers import (
    LinearPrior,
    covariance,
    fit_linear,
)
from dptext.representations.privunit import PrivUnit


def accuracy(model, vectors, labels):
    weights, intercepts = model
    return float(((vectors @ weights + intercepts).argmax(axis=1) == labels).mean())


def sent(channel, clean, seed):
    return channel.sample(clean, RandomBits(seed=seed)).astype(np.float64)


def masked(count, seed):
    """On the sphere: the label moves axis 0 a little, under a large nuisance that axis 1 shows alone.

    The classes differ in the difference of the two axes, which E[x t] alone does not determine.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    nuisance = rng.normal(scale=0.3, size=count)
    vectors = np.stack([nuisance + 0.1 * (2 * labels - 1), nuisance, np.ones(count), np.zeros(count)], axis=1)
    return Domain.SPHERE.bound(vectors), labels


def topics(count, seed, turn=0.0, dimension=24, classes=2):
    """Classes around directions of their own, the first two turned by an angle: another domain."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    means = np.eye(classes, dimension)
    means[0, classes], means[0, 0] = np.sin(turn), np.cos(turn)
    return Domain.SPHERE.bound(0.5 * means[labels] + 0.15 * rng.normal(size=(count, dimension))), labels


def test_debiased_moments_find_a_difference_that_the_naive_fit_misses():
    channel = PrivUnit(epsilon=8.0).channel(4)
    clean, labels = masked(140_000, 1)
    arrived, test = sent(channel, clean, 2), masked(4000, 3)
    assert accuracy(fit_linear(clean, labels, 2).clean, *test) > 0.99  # positive control
    naive = fit_linear(arrived[:100_000], labels[:100_000], 2)
    aware = fit_linear(arrived[:100_000], labels[:100_000], 2, channel=channel)
    assert accuracy(naive.clean, *test) < 0.9 < 0.97 < accuracy(aware.clean, *test)
    rest = arrived[100_000:], labels[100_000:]  # noisy vectors have a model of their own
    assert accuracy(aware.noisy, *rest) > accuracy(aware.clean, *rest) + 0.005
    assert abs(accuracy(aware.noisy, *rest) - accuracy(naive.noisy, *rest)) < 0.01


def test_public_weights_stay_if_noise_drowns_the_data_and_wrong_ones_go_with_enough_data():
    public, test = topics(2000, 1), topics(4000, 2)
    prior, alone = fit_linear(*public, 2).prior, accuracy(fit_linear(*public, 2).clean, *test)
    for epsilon in (0.5, 1.0, 2.0):
        channel = PrivUnit(epsilon=epsilon).channel(24)
        for seed in range(3):
            clean, labels = topics(400, 10 + seed)
            arrived = sent(channel, clean, seed)
            with_prior = accuracy(fit_linear(arrived, labels, 2, channel=channel, prior=prior).clean, *test)
            assert with_prior > alone - 0.03
            assert with_prior > accuracy(fit_linear(arrived, labels, 2, channel=channel).clean, *test)
    channel = PrivUnit(epsilon=8.0).channel(24)
    (clean, labels), test = topics(40_000, 5, turn=2.4), topics(4000, 4, turn=2.4)
    best = accuracy(fit_linear(clean, labels, 2).clean, *test)
    assert accuracy(fit_linear(*public, 2).clean, *test) < best - 0.05  # the public weights are wrong here
    fit = fit_linear(sent(channel, clean, 6), labels, 2, channel=channel, prior=prior)
    assert accuracy(fit.clean, *test) > best - 0.01
    (clean, labels), test = topics(9000, 7, classes=5), topics(2000, 9, classes=5)  # several classes
    fit = fit_linear(sent(channel, clean, 8), labels, 5, channel=channel)
    assert accuracy(fit.clean, *test) > accuracy(fit_linear(clean, labels, 5).clean, *test) - 0.02


def test_weights_are_the_posterior_mean():
    """Against the formula with a full matrix of noise, solved directly, at the estimated strength."""
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
