"""Covariances of clean vectors from noisy ones: unbiased before the shrinking, nearer to the truth after it."""

import numpy as np
import pytest

from dptext.privacy.randomness import RandomBits
from dptext.representations.domains import Domain
from dptext.representations.linear import covariance, isotropic, positive, shrunk_mean
from dptext.representations.privunit import PrivUnit


def on_sphere(count, dimension, seed):
    """Directions that vary most along the first axes."""
    rng = np.random.default_rng(seed)
    return Domain.SPHERE.bound(rng.normal(size=(count, dimension)) / np.arange(1, dimension + 1))


@pytest.mark.parametrize("broken", [1.0, 1.5])
def test_debiased_moments_are_unbiased_and_a_wrong_constant_is_noticed(broken):
    """A mean of 160 independent estimates, 4 entries: false alarm below 1e-6 in all (5.3 standard errors each)."""
    channel = PrivUnit(epsilon=4.0).channel(6)
    vectors = on_sphere(1000, 6, 1)
    truth = vectors.T @ vectors / len(vectors)
    estimates = []
    for bits in RandomBits(seed=2).spawn(160):
        arrived = channel.sample(vectors, bits).astype(np.float64)
        estimates.append(channel.debiased_second_moment(arrived.T @ arrived / len(arrived) * broken))
    checked = np.stack([[each[0, 0], each[1, 1], each[5, 5], np.trace(each[:3, :3])] for each in estimates])
    wanted = np.array([truth[0, 0], truth[1, 1], truth[5, 5], np.trace(truth[:3, :3])])
    errors = np.abs(checked.mean(axis=0) - wanted) / (checked.std(axis=0, ddof=1) / len(checked) ** 0.5)
    assert (errors.max() > 5.3) == (broken != 1.0)


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 500), (8.0, 500), (8.0, 5000)])
def test_the_shrunk_covariance_is_nearer_than_what_it_is_made_of(epsilon, count):
    """In squared error over 20 releases, by the seeds below; the target alone may be a little nearer still."""
    channel = PrivUnit(epsilon=epsilon).channel(16)
    clean = on_sphere(count, 16, 3)
    centre = clean.mean(axis=0)
    truth = clean.T @ clean / count - np.outer(centre, centre)
    shrunk, alone = [], []
    for bits in RandomBits(seed=4).spawn(20):
        arrived = channel.sample(clean, bits).astype(np.float64)
        found = covariance(arrived, shrunk_mean(arrived, np.zeros(16)), debias=channel.debiased_second_moment)
        raw = channel.debiased_second_moment(arrived.T @ arrived / count) - np.outer(centre, centre)
        shrunk.append(np.sum((found.matrix - truth) ** 2))
        alone.append(np.sum((raw - truth) ** 2))
        assert np.linalg.eigvalsh(found.matrix).min() > -1e-12
        assert 0 <= found.intensity <= 1
    assert np.mean(shrunk) < np.mean(alone)
    assert np.mean(shrunk) < 1.5 * np.sum((isotropic(truth) - truth) ** 2)


def test_more_vectors_are_believed_more():
    channel = PrivUnit(epsilon=4.0).channel(8)
    clean = on_sphere(40_000, 8, 5)
    arrived = channel.sample(clean, RandomBits(seed=6)).astype(np.float64)
    found = [
        covariance(arrived[:count], np.zeros(8), debias=channel.debiased_second_moment) for count in (100, 2000, 40_000)
    ]
    assert found[0].intensity > found[1].intensity > found[2].intensity
    assert found[0].entry_error > found[1].entry_error > found[2].entry_error


def test_the_error_that_is_stated_is_the_error_that_is_there():
    """On average over 40 releases, within a factor of 2: it is a plug-in estimate."""
    channel = PrivUnit(epsilon=8.0).channel(8)
    clean = on_sphere(2000, 8, 7)
    truth = clean.T @ clean / len(clean)
    stated, met = [], []
    for bits in RandomBits(seed=8).spawn(40):
        found = covariance(
            channel.sample(clean, bits).astype(np.float64), np.zeros(8), debias=channel.debiased_second_moment
        )
        stated.append(found.entry_error)
        met.append(np.mean((found.matrix - truth) ** 2))
    assert 0.5 < np.mean(met) / np.mean(stated) < 2


def test_a_public_covariance_is_the_target():
    vectors = np.random.default_rng(9).normal(size=(30, 5))
    target = np.diag([5.0, 4.0, 3.0, 2.0, 1.0])
    loose = covariance(vectors, np.zeros(5), target=target)
    own = vectors.T @ vectors / 30
    assert np.linalg.norm(loose.matrix - target) < np.linalg.norm(own - target)
    single = covariance(vectors[:1], np.zeros(5), target=target)
    assert (single.matrix == target).all()
    assert single.intensity == 1


def test_positive_keeps_what_is_positive_and_drops_the_rest():
    matrix = np.array([[2.0, 1.0], [1.0, 2.0]])
    np.testing.assert_allclose(positive(matrix), matrix)
    np.testing.assert_allclose(positive(np.diag([1.0, -3.0])), np.diag([1.0, 0.0]), atol=1e-15)


def test_a_mean_drowned_in_noise_is_the_public_one():
    rng = np.random.default_rng(10)
    centre = np.full(50, 0.1)
    drowned = rng.normal(scale=30.0, size=(100, 50))
    clear = 1 + rng.normal(scale=0.01, size=(100, 50))
    assert np.linalg.norm(shrunk_mean(drowned, centre) - centre) < 0.5 * np.linalg.norm(drowned.mean(axis=0) - centre)
    np.testing.assert_allclose(shrunk_mean(clear, centre), clear.mean(axis=0), rtol=1e-4)
