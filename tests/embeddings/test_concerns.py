"""Concerns predicted from synthetic labels: what drives some features is found, and the mean stands beside it."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from dptext import DataError, ParameterError, fit_concerns

WORRIED, OTHER = ["curtain", "lock", "whisper", "alone"], ["river", "bread", "song", "train", "blue", "stone"]


def volunteers(count, seed=3, drive=1.0):
    """Texts in which concern drives how often some words are used; without drive, it does not."""
    generator = np.random.default_rng(seed)
    concerns = generator.uniform(size=count)
    texts = []
    for concern in concerns:
        share = 0.1 + 0.4 * (drive * concern + (1 - drive) * generator.uniform())
        words = [generator.choice(WORRIED if generator.uniform() < share else OTHER) for _ in range(60)]
        texts.append(" ".join(words))
    return texts, concerns


@pytest.fixture(scope="module")
def found():
    return fit_concerns(*volunteers(300))


def test_concern_is_found_in_texts_and_the_mean_is_worse(found):
    """On held-out volunteers; a correlation of .5 among 200 by chance alone: below 1e-13."""
    texts, concerns = volunteers(200, seed=4)
    assert np.corrcoef(found.predict(texts), concerns)[0, 1] > 0.5
    assert found.error.of_mean < 0.85
    assert len(found.error.folds) == len(found.error.mean) == 5
    assert "by the mean), 5 folds" in str(found.error)


def test_where_there_is_nothing_to_find_the_error_says_so():
    assert fit_concerns(*volunteers(300, drive=0.0)).error.of_mean > 0.95


def test_numbers_and_any_regressor():
    from sklearn.ensemble import GradientBoostingRegressor

    generator = np.random.default_rng(1)
    features = generator.normal(size=(200, 3))
    concerns = 1 / (1 + np.exp(-features[:, 0]))
    for regressor in (None, GradientBoostingRegressor(random_state=0, n_estimators=30)):
        model = fit_concerns(features, concerns, regressor=regressor, folds=4)
        assert model.error.of_mean < 0.5
        assert model.predict(features[:7]).shape == (7,)
    same = fit_concerns(features, np.full(200, 0.5))
    assert same.error.of_mean == np.inf or same.error.of_mean >= 0


def test_a_hostile_text_raises_and_warns_of_nothing(found):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = found.predict([None, "", "curtain " * 100_000, "\0", "🜁" * 1000])
    assert np.isfinite(predicted).all()


def test_what_is_no_number_is_the_most_concern():
    class Odd:
        def predict(self, rows):
            warnings.warn("a row is odd", stacklevel=1)
            return np.array([np.nan, np.inf, -np.inf, 0.5])

    from dptext.embeddings.concerns import concerns_by

    assert concerns_by(Odd(), np.zeros((4, 1))).tolist() == [np.inf, np.inf, np.inf, 0.5]


@pytest.mark.parametrize(
    ("features", "concerns", "options", "error", "message"),
    [
        ([[1.0]] * 20, [0.5] * 19, {}, DataError, "one finite concern for each of the 20 rows"),
        ([[1.0]] * 20, [np.nan] * 20, {}, DataError, "one finite concern"),
        ([[1.0]] * 20, ["much"] * 20, {}, DataError, "must be numbers"),
        (3, [0.5], {}, DataError, "must have rows"),
        ([[1.0]] * 9, [0.5] * 9, {}, DataError, "two volunteers a fold, got 5 folds and 9 rows"),
        ([[1.0]] * 20, [0.5] * 20, {"folds": 1}, DataError, "2 folds or more"),
        ([[1.0]] * 20, [0.5] * 20, {"folds": 2.5}, ParameterError, "folds must be"),
        ([[1.0]] * 20, [0.5] * 20, {"regressor": "ridge"}, ParameterError, "fit and predict"),
    ],
)
def test_bad_arguments(features, concerns, options, error, message):
    with pytest.raises(error, match=message):
        fit_concerns(features, concerns, **options)


def test_without_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = sys.modules['sklearn.base'] = None\n"
        "import dptext\n"
        "try:\n"
        "    dptext.fit_concerns([[0.0]] * 20, [0.5] * 20)\n"
        "except dptext.MissingExtraError as error:\n"
        "    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith('pip install "dptext[sklearn]"')
