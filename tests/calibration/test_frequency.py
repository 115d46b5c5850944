"""The public sample of words: unbiased, with an error that is what it is said to be."""

import numpy as np
import pytest

from dptext.calibration import deniability as frequency
from dptext.calibration.deniability import sample_words, zipf_weights


def test_a_sample_stands_for_all(glove):
    weights = zipf_weights(len(glove))
    sample = sample_words(weights, 100)
    assert len(sample.rows) <= 100
    assert sample.weights.sum() == pytest.approx(1.0)
    assert np.unique(sample.rows).size == sample.rows.size
    assert sample.rows[:5].tolist() == [0, 1, 2, 3, 4]
    assert sample.weights[0] == weights[0]  # so frequent that it is there for itself
    again = sample_words(weights, 100)
    assert again.rows.tolist() == sample.rows.tolist()
    assert sample_words(weights[:50], 100).is_everything


def test_means_are_unbiased_and_their_error_is_estimated_right(monkeypatch):
    weights = zipf_weights(5000)
    values = np.random.default_rng(1).random(5000) + np.linspace(0, 1, 5000)
    truth = weights @ values
    means, variances = [], []
    for seed in range(400):
        monkeypatch.setattr(frequency, "_PUBLIC_SEED", seed)
        sample = sample_words(weights, 80)
        means.append(sample.weights @ values[sample.rows])
        variances.append(sample.variance(values[sample.rows]))
        assert sample.variance((values > 1)[sample.rows].astype(float)) <= 2 * sample.largest_variance
    spread = np.std(means, ddof=1)
    assert np.mean(means) == pytest.approx(truth, abs=5 * spread / 20)
    assert np.sqrt(np.mean(variances)) == pytest.approx(spread, rel=0.2)  # 400 seeds: 3.5% standard error


def test_words_of_no_weight_are_never_drawn():
    weights = zipf_weights(1000)
    weights[::2] = 0
    sample = sample_words(weights / weights.sum(), 60)
    assert (sample.rows % 2 == 1).all()
    assert sample.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("most", [2, 3, 4, 5])
def test_tiny_samples_are_samples_too(most):
    sample = sample_words(zipf_weights(100), most)
    assert 1 <= len(sample.rows) <= most
    assert sample.weights.sum() == pytest.approx(1.0)
