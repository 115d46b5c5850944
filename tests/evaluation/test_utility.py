"""Utility: no leak between training and test, correct baselines, and a comparison of epsilons on public texts."""

import sys

import numpy as np
import pytest

import dptext
from dptext import Document
from dptext.errors import MissingExtraError, ParameterError
from dptext.evaluation.measures import Fold
from dptext.evaluation.utility import BagOfWords, VectorFeatures, compare_epsilons, predictions, utility, words_of
from dptext.representations.encoders import CallableEncoder

QUICK = {"resamples": 100, "seed": 1}


@pytest.fixture(scope="module")
def authors():
    """40 people with ten similar rows each, and a label per person that the rows do not contain."""
    generator = np.random.default_rng(1)
    people = np.repeat(np.arange(40), 10)
    vectors = 3 * generator.normal(size=(40, 30))[people] + 0.1 * generator.normal(size=(400, 30))
    return vectors, generator.permutation(np.arange(40) % 2)[people], people


def test_rows_of_a_person_never_train_and_test(authors):
    vectors, labels, people = authors
    assert utility(vectors, labels, **QUICK).score.value > 0.95  # the model recognises the person
    by_person = utility(vectors, labels, people=people, **QUICK)
    assert by_person.score.low < 0.5 < by_person.score.high and by_person.score.of == "people"
    assert not by_person.above_baseline
    assert np.sort(predictions(vectors, labels, people=people, seed=1).rows).tolist() == list(range(400))
    with pytest.raises(ParameterError, match="people in both parts"):
        utility(vectors, labels, people=people, folds=[Fold(np.arange(395), np.arange(395, 400))], **QUICK)


def test_features_are_fitted_on_training_rows_only(authors):
    vectors, labels, people = authors
    fitted = []

    class Watched(VectorFeatures):
        def fitted(self, train):
            fitted.append({tuple(row) for row in train})
            return super().fitted(train)

    result = predictions(vectors, labels, people=people, features=Watched(), folds=4, seed=1)
    for seen, rows in zip(fitted, np.split(result.rows, 4), strict=True):
        assert len(seen) == 300
        assert not seen & {tuple(row) for row in vectors[rows]}


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_signal_is_found_and_noise_is_not(model):
    generator = np.random.default_rng(2)
    noise = generator.normal(size=(200, 5))
    labels = np.array(["no", "yes"])[(noise[:, 0] + 0.3 * generator.normal(size=200) > 0).astype(int)]
    result = utility(noise, labels, model=model, **QUICK)
    assert result == utility(noise, labels, model=model, **QUICK)
    assert result.above_baseline and result.score.value > 0.8
    assert result.baseline == pytest.approx(max(np.mean(labels == "yes"), np.mean(labels == "no")))
    assert not utility(noise[:, 1:], labels, model=model, **QUICK).above_baseline
    predicted = predictions(noise, labels, model=model, seed=1)
    assert set(predicted.predicted) <= {"no", "yes"}
    assert predicted.score("macro-F1", **QUICK).baseline == 0.5
    # numbers
    ages = 30 + 8 * noise[:, 0] + 2 * generator.normal(size=200)
    result = utility(noise, ages, measure="RMSE", model=model, **QUICK)
    assert result.above_baseline and result.score.value < 4.2 < result.baseline
    assert result.baseline == pytest.approx(ages.std()) and "(mean)" in str(result)
    assert not utility(generator.normal(size=(200, 4)), ages, measure="MAE", model=model, **QUICK).above_baseline


def test_private_rows_train_and_either_form_tests():
    raw, private, labels = ["good film", "bad film"] * 30, ["fine movie", "poor film"] * 30, [1, 0] * 30
    same, other = utility(private, labels, **QUICK), utility(private, labels, test_rows=raw, **QUICK)
    assert (same.trained_on, same.tested_on, same.score.value) == ("private", "private", 1.0)
    assert (other.trained_on, other.tested_on, other.score.value) == ("private", "raw", 0.5)
    assert "trained on private, tested on raw" in str(other)
    fixed = utility(raw, labels, trained_on="x", folds=[Fold(np.arange(50), np.arange(50, 60))], **QUICK)
    assert (fixed.tested_on, fixed.rows, fixed.folds, fixed.score.value) == ("x", 10, 1, 1.0)
    texts = [Document("good film"), Document("bad film"), "good", "bad", None] * 8
    result = utility(texts, [1, 0, 1, 0, 0] * 8, **QUICK)
    assert (result.score.value, result.features) == (1.0, "bag of words (65,536 buckets, tf-idf)")


def test_bags_count_public_words_or_buckets():
    texts = ["Good, GOOD film 7!", None, "@me unknown"]
    assert BagOfWords(["good", "film"]).of(texts).toarray().tolist() == [[2, 1], [0, 0], [0, 0]]
    hashed = BagOfWords().of(texts)
    assert hashed.shape == (3, 1 << 16) and hashed.sum(axis=1).ravel().tolist() == [[3, 0, 1]]
    assert (hashed != BagOfWords().of(texts)).nnz == 0
    assert words_of("") == []
    with pytest.raises(ParameterError, match="vocabulary must contain"):
        BagOfWords([])


def test_features_and_models_of_the_caller_are_used():
    seeds = []

    class Counting:
        """Sum of log-odds of words."""

        def __init__(self, seed):
            seeds.append(seed)

        def fit(self, ids, labels):
            self.counts = np.ones((3, 2))
            for entry, label in zip(ids, labels, strict=True):
                np.add.at(self.counts[:, label], entry, 1)

        def predict(self, ids):
            logs = np.log(self.counts / self.counts.sum(axis=0))
            return np.array([logs[entry].sum(axis=0) for entry in ids]).argmax(axis=1)

    class WordIds:
        name = "word ids"

        def of(self, rows):
            ids = np.empty(len(rows), dtype=object)
            ids[:] = [np.array([("good", "bad", word).index(word) for word in words_of(text)]) for text in rows]
            return ids

        def fitted(self, train):
            return list

    options = {"features": WordIds(), "model": Counting, "folds": 4}
    result = utility(["good film", "bad film"] * 20, ["+", "-"] * 20, **options, **QUICK)
    assert (result.score.value, result.model, len(set(seeds))) == (1.0, "Counting", 4)


def test_unsuitable_inputs_and_answers_are_refused(monkeypatch):
    texts, labels = ["a"] * 20, [0, 1] * 10
    for rows, targets, options, message in [
        (texts, [0] * 20, {}, "targets must have at least two classes,"),
        (texts, [0, 1] * 9, {}, "targets must have one entry for each of 20 rows"),
        (texts, [0.0, float("nan")] * 10, {"measure": "RMSE"}, "targets must be finite numbers, row 1"),
        (texts, labels, {"people": [1]}, "people must have one entry for each of 20 rows"),
        (texts, labels, {"measure": "AUC"}, "measure must be one of"),
        (texts, labels, {"model": "forest"}, "model must be 'linear', 'mlp' or"),
        (texts, labels, {"test_rows": ["a"] * 19}, "test_rows must be the same rows"),
        ("a text", [0, 1], {}, "rows must be a list of texts"),
        (np.full((20, 2), np.nan), labels, {}, "rows must be finite vectors, row 0"),
        ([[1.0], [1.0, 2.0]] * 10, labels, {}, "rows must be texts, or vectors of equal length"),
        (np.ones(20), labels, {}, "one vector per row"),
        (
            texts,
            labels,
            {"folds": [Fold(np.arange(0, 10, 2), np.arange(1, 11, 2))]},
            "folds: the training rows must contain every",
        ),
    ]:
        with pytest.raises(ParameterError, match=message):
            utility(rows, targets, **QUICK | options)

    class Strange:
        def __init__(self, seed): ...

        def fit(self, features, targets): ...

        def predict(self, features):
            return self.answers[: features.shape[0]]

    for answers, message in [
        (np.full(20, np.nan), "finite predictions"),
        (np.zeros(1), "finite predictions"),
        (np.full(20, 7), "class codes from 0 to 1"),
        (np.full(20, 0.5), "class codes"),
    ]:
        Strange.answers = answers
        with pytest.raises(ParameterError, match=f"model must return .*{message}"):
            utility(texts, labels, model=Strange, **QUICK)
    for module in ("sklearn.linear_model", "sklearn.feature_extraction.text"):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError, match=r'pip install "dptext\[sklearn\]"'):
            utility(texts, labels, **QUICK)


# -- comparison of epsilons ----------------------------------------------------------------------------------------

TOPICS = np.arange(600) % 3
TEXTS = [f"{n} {topic}" for n, topic in enumerate(TOPICS)]


def compared(signal=2.0, **options):
    """Compare epsilons for a noisy encoder of three topics; return the result and the encoded texts."""
    encoded = []

    def encode(texts):
        encoded.extend(texts)
        numbers = np.array([int(text.split()[0]) if text else 0 for text in texts])
        noise = np.random.default_rng(0).normal(size=(len(TEXTS), 6))[numbers]
        return noise + signal * np.eye(6)[TOPICS[numbers]]

    epsilons, labels = options.pop("epsilons", [1.0, 12.0]), options.pop("labels", TOPICS.tolist())
    return compare_epsilons(CallableEncoder(encode, dimension=6), TEXTS, labels, epsilons, seed=1, **options), encoded


def test_texts_are_encoded_once_and_a_larger_epsilon_is_more_accurate():
    result, encoded = compared()
    assert sorted(encoded) == sorted(TEXTS)
    small, large = result.rows
    assert (small.epsilon, large.epsilon) == (1.0, 12.0)
    assert small.accuracy.high < large.accuracy.low and large.accuracy.value < result.clean.value
    # the server's model learns more from many noisy vectors than one noisy vector contains
    assert small.learned.low > small.accuracy.high and small.learned.value < result.clean.value
    assert result.chance == pytest.approx(1 / 3)
    assert (result.texts, result.trained_on) == (600, 480)
    assert large.error == dptext.PrivUnit(epsilon=12.0).expected_squared_error(large.dimension)
    assert "no noise" in str(result)
    other, _ = compared(randomizer=lambda epsilon: dptext.L2Laplace(epsilon=epsilon))
    assert other.rows[0].error > small.error


def test_vectors_without_signal_give_no_more_than_chance():
    """A classifier that had seen its test texts would do better."""
    result, _ = compared(signal=0.0)
    assert max(result.clean.value, result.rows[1].accuracy.value, result.rows[1].learned.value) < 0.45
    for options, message in [
        ({"epsilons": []}, "epsilons must be distinct, and at least"),
        ({"epsilons": [2.0, 2.0]}, "epsilons must be distinct, and at least"),
        ({"labels": [1] * 600}, "class"),
        ({"labels": [1, 2]}, "public labels"),
        ({"epsilons": [0.0]}, "epsilon must be a"),
    ]:
        with pytest.raises(ParameterError, match=message):
            compared(**options)
