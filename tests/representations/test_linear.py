"""Linear weights from noisy vectors: known noise helps, public weights stay or go, covariances are debiased."""

import numpy as np
import pytest

from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Domain
from dptext.representations.classifiers import (
    LinearPrior,
    covariance,
    fit_linear,
    isotropic,
    linear_prior,
    positive,
    shrunk_mean,
)
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


def test_debiased_moments_find_a_difference_that_the_naive_fit_misses():
    channel = PrivUnit(epsilon=8.0).channel(4)
    clean, labels = masked(100_000, 1)
    arrived = channel.sample(clean, RandomBits(seed=2)).astype(np.float64)
    test, test_labels = masked(4000, 3)
    assert accuracy(fit_linear(clean, labels, 2).clean, test, test_labels) > 0.99  # positive control: it can be learnt
    naive = accuracy(fit_linear(arrived, labels, 2).clean, test, test_labels)
    aware = accuracy(fit_linear(arrived, labels, 2, channel=channel).clean, test, test_labels)
    assert naive < 0.9
    assert aware > 0.97


def test_noisy_vectors_have_a_model_of_their_own():
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
def test_public_weights_stay_if_noise_drowns_the_data(epsilon):
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


def test_wrong_public_weights_go_with_enough_data():
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


def test_fit_takes_several_classes():
    channel = PrivUnit(epsilon=8.0).channel(24)
    clean, labels = topics(9000, 7, classes=5)
    fit = fit_linear(channel.sample(clean, RandomBits(seed=8)).astype(np.float64), labels, 5, channel=channel)
    test = topics(2000, 9, classes=5)
    assert accuracy(fit.clean, *test) > accuracy(fit_linear(clean, labels, 5).clean, *test) - 0.02
    assert fit.clean[0].shape == (24, 5)


def test_weights_are_the_posterior_mean():
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


def test_fit_takes_constant_coordinates_and_equal_vectors():
    labels = np.arange(40) % 2
    for vectors in (np.ones((40, 3)), np.zeros((40, 3)), np.tile([[-1.0]], (40, 1))):
        fit = fit_linear(vectors, labels, 2, channel=PrivUnit(epsilon=1.0).channel(3) if vectors.shape[1] > 1 else None)
        for weights, intercepts in (fit.clean, fit.noisy):
            assert np.isfinite(weights).all()
            assert np.isfinite(intercepts).all()


class Silent(Channel):
    """A channel that adds nothing and does not determine second moments."""

    name, domain, dimension, width = "Silent", Domain.BALL, 3, 3

    def _sample(self, vectors, bits):
        return vectors


def test_channel_without_moments_leaves_the_public_covariance_or_the_identity():
    vectors, labels = topics(200, 11, dimension=3)
    prior = linear_prior(vectors, labels, 2)
    fit = fit_linear(vectors, labels, 2, channel=Silent(), prior=prior)
    np.testing.assert_array_equal(fit.prior.covariance, prior.covariance)
    bare = fit_linear(vectors, labels, 2, channel=Silent())
    np.testing.assert_allclose(bare.prior.covariance, np.eye(3) / 3)


# -- covariances ---------------------------------------------------------------------------------------------------


def on_sphere(count, dimension, seed):
    """Directions that vary most along the first axes."""
    rng = np.random.default_rng(seed)
    return Domain.SPHERE.bound(rng.normal(size=(count, dimension)) / np.arange(1, dimension + 1))


@pytest.mark.parametrize("broken", [1.0, 1.5])
def test_debiased_moments_are_unbiased_and_a_wrong_constant_is_detected(broken):
    """A mean of 160 independent estimates, 4 entries: false alarm below 1e-6 in all (5.3 standard errors each)."""
    channel = PrivUnit(epsilon=4.0).channel(6)
    vectors = on_sphere(1000, 6, 1)
    truth = vectors.T @ vectors / len(vectors)
    estimates = []
    for bits in RandomBits(seed=2).spawn(160):
        arrived = channel.sample(vectors, bits).astype(np.float64)
        estimates.append(channel.debiased_second_moment(arrived.T @ arrived / len(arrived) * broken))
    checked = np.stack(
        [[estimate[0, 0], estimate[1, 1], estimate[5, 5], np.trace(estimate[:3, :3])] for estimate in estimates]
    )
    target = np.array([truth[0, 0], truth[1, 1], truth[5, 5], np.trace(truth[:3, :3])])
    errors = np.abs(checked.mean(axis=0) - target) / (checked.std(axis=0, ddof=1) / len(checked) ** 0.5)
    assert (errors.max() > 5.3) == (broken != 1.0)


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 500), (8.0, 500), (8.0, 5000)])
def test_shrunk_covariance_is_nearer_than_the_raw_one(epsilon, count):
    """In squared error over 20 releases, by the seeds below; the target alone may be a little nearer still."""
    channel = PrivUnit(epsilon=epsilon).channel(16)
    clean = on_sphere(count, 16, 3)
    centre = clean.mean(axis=0)
    truth = clean.T @ clean / count - np.outer(centre, centre)
    shrunk, alone = [], []
    for bits in RandomBits(seed=4).spawn(20):
        arrived = channel.sample(clean, bits).astype(np.float64)
        result = covariance(arrived, shrunk_mean(arrived, np.zeros(16)), debias=channel.debiased_second_moment)
        raw = channel.debiased_second_moment(arrived.T @ arrived / count) - np.outer(centre, centre)
        shrunk.append(np.sum((result.matrix - truth) ** 2))
        alone.append(np.sum((raw - truth) ** 2))
        assert np.linalg.eigvalsh(result.matrix).min() > -1e-12
        assert 0 <= result.intensity <= 1
    assert np.mean(shrunk) < np.mean(alone)
    assert np.mean(shrunk) < 1.5 * np.sum((isotropic(truth) - truth) ** 2)


def test_covariance_entry_error_is_the_actual_error():
    """On average over 40 releases, within a factor of 2: it is a plug-in estimate."""
    channel = PrivUnit(epsilon=8.0).channel(8)
    clean = on_sphere(2000, 8, 7)
    truth = clean.T @ clean / len(clean)
    expected, met = [], []
    for bits in RandomBits(seed=8).spawn(40):
        result = covariance(
            channel.sample(clean, bits).astype(np.float64), np.zeros(8), debias=channel.debiased_second_moment
        )
        expected.append(result.entry_error)
        met.append(np.mean((result.matrix - truth) ** 2))
    assert 0.5 < np.mean(met) / np.mean(expected) < 2


def test_covariance_shrinks_towards_a_public_one_less_with_more_vectors():
    channel = PrivUnit(epsilon=4.0).channel(8)
    arrived = channel.sample(on_sphere(40_000, 8, 5), RandomBits(seed=6)).astype(np.float64)
    results = [
        covariance(arrived[:count], np.zeros(8), debias=channel.debiased_second_moment) for count in (100, 2000, 40_000)
    ]
    assert results[0].intensity > results[1].intensity > results[2].intensity
    assert results[0].entry_error > results[1].entry_error > results[2].entry_error
    vectors, target = np.random.default_rng(9).normal(size=(30, 5)), np.diag([5.0, 4.0, 3.0, 2.0, 1.0])
    loose, single = (covariance(rows, np.zeros(5), target=target) for rows in (vectors, vectors[:1]))
    assert np.linalg.norm(loose.matrix - target) < np.linalg.norm(vectors.T @ vectors / 30 - target)
    assert (single.matrix == target).all() and single.intensity == 1


def test_positive_drops_negative_eigenvalues_and_shrunk_mean_follows_the_noise():
    matrix = np.array([[2.0, 1.0], [1.0, 2.0]])
    np.testing.assert_allclose(positive(matrix), matrix)
    np.testing.assert_allclose(positive(np.diag([1.0, -3.0])), np.diag([1.0, 0.0]), atol=1e-15)
    rng, centre = np.random.default_rng(10), np.full(50, 0.1)
    drowned = rng.normal(scale=30.0, size=(100, 50))
    clear = 1 + rng.normal(scale=0.01, size=(100, 50))
    assert np.linalg.norm(shrunk_mean(drowned, centre) - centre) < 0.5 * np.linalg.norm(drowned.mean(axis=0) - centre)
    np.testing.assert_allclose(shrunk_mean(clear, centre), clear.mean(axis=0), rtol=1e-4)
