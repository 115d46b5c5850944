"""Measures of corpus quality against numbers computed by hand or by another package."""

from importlib.util import find_spec

import numpy as np
import pytest
from papers.synthesis import quality

pytest.importorskip("sklearn")


def sample(count, *, seed, shift=0.0, scale=1.0, size=4):
    return shift + scale * np.random.default_rng(seed).normal(size=(count, size))


def test_precision_and_recall_of_points_on_a_line():
    """Real texts at 0, 1, 3 have radii 1, 1, 2 for one neighbour; the corpus at 4, 5.5, 9 has radii 1.5, 1.5, 3.5."""
    real, corpus = [[0.0], [1.0], [3.0]], [[4.0], [5.5], [9.0]]
    assert quality.precision_recall(corpus, real, neighbours=1) == (1 / 3, 1 / 3)
    assert quality.precision_recall(real, corpus, neighbours=1) == (1 / 3, 1 / 3)
    assert quality.precision_recall(real, real, neighbours=1) == (1.0, 1.0)


def test_frechet_distance_agrees_with_the_matrix_square_root_of_scipy():
    linalg = pytest.importorskip("scipy.linalg")
    one, other = sample(50, seed=1), sample(40, seed=2, shift=0.5, scale=2.0) @ np.array([[1, 2, 0, 0]] * 4 + np.eye(4))
    first, second = np.cov(one.T), np.cov(other.T)
    root = np.real(linalg.sqrtm(first @ second))
    expected = np.square(one.mean(0) - other.mean(0)).sum() + np.trace(first + second - 2 * root)
    assert quality.frechet_distance(one, other) == pytest.approx(expected)
    assert quality.frechet_distance(other, one) == pytest.approx(expected)
    assert quality.frechet_distance(one, one) == pytest.approx(0.0, abs=1e-9)
    assert quality.frechet_distance(one, one + 3.0) == pytest.approx(4 * 9.0)


def test_the_auc_of_equal_samples_is_one_half_and_of_shifted_ones_that_of_normal_distributions():
    """Two normal distributions at a distance d have the AUC Phi(d / sqrt(2)): .921 for d = 2."""
    equal = [quality.two_sample_auc(sample(400, seed=n), sample(400, seed=100 + n), seed=n) for n in range(5)]
    assert np.mean(equal) == pytest.approx(0.5, abs=4 * 0.02 / np.sqrt(5))
    assert quality.two_sample_auc(sample(2000, seed=1), sample(2000, seed=2, shift=1.0), seed=1) == pytest.approx(
        0.921, abs=0.02
    )


def test_all_measures_stand_side_by_side_and_mauve_only_if_it_is_installed():
    result = quality.compare(["a cat", "a dog"] * 20, sample(40, seed=1), sample(40, seed=2), seed=1)
    assert list(result) == [*quality.MEASURES][: 7 if find_spec("mauve") else 6]
    assert result["distinct-1"] == 3 / 80
    assert result["two-sample AUC"] == quality.two_sample_auc(sample(40, seed=1), sample(40, seed=2), seed=1)
    assert result["Fréchet distance"] == quality.frechet_distance(sample(40, seed=1), sample(40, seed=2))
