"""`fit_concerns`: concerns are learned from texts and numbers, with the error of the mean for comparison."""

import numpy as np
import pytest
from papers.dpugc.concerns import fit_concerns

from dptext.errors import DataError, ParameterError

WORRIED, OTHER = ["curtain", "lock", "whisper", "alone"], ["river", "bread", "song", "train", "blue", "stone"]


def volunteers(count, seed=3, drive=1.0):
    """Return texts in which the concern determines the frequency of some words, as far as ``drive`` says."""
    generator = np.random.default_rng(seed)
    concerns = generator.uniform(size=count)
    texts = []
    for concern in concerns:
        share = 0.1 + 0.4 * (drive * concern + (1 - drive) * generator.uniform())
        words = [generator.choice(WORRIED if generator.uniform() < share else OTHER) for _ in range(60)]
        texts.append(" ".join(words))
    return texts, concerns


def test_concerns_are_found_in_texts_and_numbers():
    """A correlation of .5 among 200 held-out volunteers by chance: probability below 1e-13."""
    model = fit_concerns(*volunteers(300))
    texts, concerns = volunteers(200, seed=4)
    assert np.corrcoef(model.predict(texts), concerns)[0, 1] > 0.5
    assert model.error.relative_to_mean < 0.85
    assert "by the mean), 5 folds" in str(model.error)
    assert np.isfinite(model.predict([None, "", "curtain " * 100_000, "\0", "🜁" * 1000])).all()
    assert fit_concerns(*volunteers(300, drive=0.0)).error.relative_to_mean > 0.95
    features = np.random.default_rng(1).normal(size=(200, 3))
    model = fit_concerns(features, 1 / (1 + np.exp(-features[:, 0])), folds=4)
    assert model.error.relative_to_mean < 0.5
    assert model.predict(features[:7]).shape == (7,)


def test_invalid_features_and_concerns_are_refused():
    for features, concerns, options, error, part in [
        ([[1.0]] * 20, [0.5] * 19, {}, DataError, "one finite concern for each of the 20 rows"),
        ([[1.0]] * 20, [np.nan] * 20, {}, DataError, "one finite concern"),
        ([[1.0]] * 9, [0.5] * 9, {}, DataError, "two volunteers a fold, got 5 folds and 9 rows"),
        ([[1.0]] * 20, [0.5] * 20, {"folds": 2.5}, ParameterError, "folds must be"),
        ([[1.0]] * 20, [0.5] * 20, {"regressor": "ridge"}, ParameterError, "fit and predict"),
    ]:
        with pytest.raises(error, match=part):
            fit_concerns(features, concerns, **options)
