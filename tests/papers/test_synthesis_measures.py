"""Measures of corpus quality against numbers computed by hand or by another package."""

import numpy as np
import pytest
from papers.synthesis import quality

from dptext.evaluation.standard import frechet_distance

pytest.importorskip("sklearn")


def sample(count, *, seed, shift=0.0, scale=1.0, size=4):
    return shift + scale * np.random.default_rng(seed).normal(size=(count, size))


def test_the_auc_of_equal_samples_is_one_half_and_of_shifted_ones_that_of_normal_distributions():
    """Two normal distributions at a distance d have the AUC Phi(d / sqrt(2)): .921 for d = 2."""
    equal = [quality.two_sample_auc(sample(400, seed=n), sample(400, seed=100 + n), seed=n) for n in range(5)]
    assert np.mean(equal) == pytest.approx(0.5, abs=4 * 0.02 / np.sqrt(5))
    assert quality.two_sample_auc(sample(2000, seed=1), sample(2000, seed=2, shift=1.0), seed=1) == pytest.approx(
        0.921, abs=0.02
    )


def test_all_measures_stand_side_by_side():
    result = quality.compare(["a cat", "a dog"] * 20, sample(40, seed=1), sample(40, seed=2), seed=1)
    assert list(result) == [*quality.MEASURES]
    assert result["distinct-1"] == 3 / 80
    assert result["two-sample AUC"] == quality.two_sample_auc(sample(40, seed=1), sample(40, seed=2), seed=1)
    assert result["Fréchet distance"] == frechet_distance(sample(40, seed=1), sample(40, seed=2))
