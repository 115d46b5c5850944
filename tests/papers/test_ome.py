"""papers/ome: its one-bit channel, its public projections and the printed tables."""

import math

import numpy as np
import pytest

from dptext.privacy.randomness import RandomBits

PAPERS = ("ome.perceptron", "ome.settings")
pytest.importorskip("torch")


@pytest.mark.parametrize(("epsilon", "refuted"), [(1.0, False), (1.5, True)])
def test_the_sign_keeps_its_epsilon_and_one_and_a_half_times_it_is_noticed(papers, epsilon, refuted):
    """10^5 draws, 5.5 standard errors: false alarm below 1e-7."""
    signs = papers.settings.Sign(epsilon).sample(np.ones((100_000, 1)), RandomBits(seed=3))[:, 0] > 0
    chance = 1 / (1 + math.exp(-1.0))
    assert (abs(signs.mean() - chance) > 5.5 * (chance * (1 - chance) / 100_000) ** 0.5) == refuted


def test_the_sign_is_unbiased_and_its_error_is_the_stated_one(papers):
    channel = papers.settings.Sign(2.0)
    draws = channel.sample(np.full((100_000, 1), -0.3), RandomBits(seed=4)).astype(float)
    assert abs(draws.mean() + 1) < 5.5 * draws.std() / 100_000**0.5
    assert np.mean((draws + 1) ** 2) == pytest.approx(channel.expected_squared_error, rel=0.05)


def test_the_first_supervised_axis_is_the_label_and_the_energy_is_shared(papers):
    rng = np.random.default_rng(5)
    labels = np.arange(1000) % 2
    vectors = rng.normal(size=(1000, 10)) * np.arange(10, 0, -1)
    vectors[:, 9] += 3.0 * labels
    result = papers.settings.supervised(vectors, labels, 4)
    mapped = (vectors - result.centre) @ result.axes
    assert np.abs(np.corrcoef(mapped[:, 0], labels)[0, 1]) > 0.7
    assert mapped[:, 0].var() == pytest.approx(1.0)
    assert mapped[:, 1:].var(axis=0).sum() == pytest.approx(1.0)
    assert np.abs(np.corrcoef(mapped.T)[0, 1:]).max() < 0.05
    np.testing.assert_allclose(np.linalg.norm(result(vectors), axis=1), 1.0)


def test_the_perceptron_learns_an_exclusive_or_and_repeats_under_a_seed(papers):
    rng = np.random.default_rng(1)
    clean = rng.choice([-1.0, 1.0], size=(1000, 2))
    labels = np.where(clean[:, 0] * clean[:, 1] > 0, "equal", "other")
    noisy = clean + rng.normal(scale=0.3, size=clean.shape)
    one, two, other = (papers.perceptron.Perceptron(32, 40, seed).fit(noisy, labels) for seed in (2, 2, 3))
    assert one.score(clean, labels) > 0.95
    np.testing.assert_array_equal(one.model_.layers[0][0], two.model_.layers[0][0])
    assert (one.model_.layers[0][0] != other.model_.layers[0][0]).any()
