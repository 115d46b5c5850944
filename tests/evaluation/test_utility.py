"""Utility: no leak between training and test, correct baselines, and a comparison of epsilons on public texts."""

import sys

import numpy as np
import pytest

import dptext
from dptext import Document
from dptext.errors import MissingExtraError, ParameterError
from dptext.evaluation.utility import compare_epsilons, predictions, utility
from dptext.representations.encoders import CallableEncoder

QUICK = {"seed": 1}


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


def test_weights_and_scales_are_those_of_the_training_rows(monkeypatch):
    """Test rows far from the training rows keep their distance, and a word of the test rows alone has no weight."""
    vectors, labels = np.random.default_rng(3).normal(size=(40, 2)), np.arange(40) % 2
    vectors[:, 0] += 5 * labels
    shifted = vectors + 100.0
    assert len(set(predictions(vectors, labels, test_rows=shifted, seed=1).predicted.tolist())) == 1
    texts = ["good film", "bad film"] * 20
    assert utility(texts, labels, test_rows=["new words"] * 40, **QUICK).score.value == 0.5


def test_signal_is_found_and_noise_is_not():
    generator = np.random.default_rng(2)
    noise = generator.normal(size=(200, 5))
    labels = np.array(["no", "yes"])[(noise[:, 0] + 0.3 * generator.normal(size=200) > 0).astype(int)]
    result = utility(noise, labels, **QUICK)
    assert result == utility(noise, labels, **QUICK)
    assert result.above_baseline and result.score.value > 0.8
    assert result.baseline == pytest.approx(max(np.mean(labels == "yes"), np.mean(labels == "no")))
    assert not utility(noise[:, 1:], labels, **QUICK).above_baseline
    predicted = predictions(noise, labels, seed=1)
    assert set(predicted.predicted) <= {"no", "yes"}
    assert predicted.score("macro-F1").baseline == 0.5


def test_private_rows_train_and_either_form_tests():
    raw, private, labels = ["good film", "bad film"] * 30, ["fine movie", "poor film"] * 30, [1, 0] * 30
    same, other = utility(private, labels, **QUICK), utility(private, labels, test_rows=raw, **QUICK)
    assert (same.trained_on, same.tested_on, same.score.value) == ("private", "private", 1.0)
    assert (other.trained_on, other.tested_on, other.score.value) == ("private", "raw", 0.5)
    assert "trained on private, tested on raw" in str(other)
    named = utility(raw, labels, trained_on="x", folds=3, **QUICK)
    assert (named.tested_on, named.rows, named.folds, named.score.value) == ("x", 60, 3, 1.0)
    texts = [Document("good film"), Document("bad film"), "good", "bad", None] * 8
    result = utility(texts, [1, 0, 1, 0, 0] * 8, **QUICK)
    assert (result.score.value, result.features) == (1.0, "bag of words (65,536 buckets, tf-idf)")


def test_unsuitable_inputs_and_answers_are_refused(monkeypatch):
    texts, labels = ["a"] * 20, [0, 1] * 10
    for rows, targets, options, message in [
        (texts, [0] * 20, {}, "targets must have at least two classes,"),
        (texts, [0, 1] * 9, {}, "targets must have one entry for each of 20 rows"),
        (texts, labels, {"people": [1]}, "people must have one entry for each of 20 rows"),
        (texts, labels, {"measure": "AUC"}, "measure must be one of"),
        (texts, labels, {"test_rows": ["a"] * 19}, "test_rows must be the same rows"),
        ("a text", [0, 1], {}, "rows must be a list of texts"),
        (np.full((20, 2), np.nan), labels, {}, "rows must be finite vectors, row 0"),
        ([[1.0], [1.0, 2.0]] * 10, labels, {}, "rows must be texts, or vectors of equal length"),
        (np.ones(20), labels, {}, "one vector per row"),
    ]:
        with pytest.raises(ParameterError, match=message):
            utility(rows, targets, **QUICK | options)

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
        ({"epsilons": []}, "epsilons must contain at least one number"),
        ({"epsilons": [2.0, 2.0]}, "epsilons must contain at least one number"),
        ({"labels": [1] * 600}, "class"),
        ({"labels": [1, 2]}, "public labels"),
        ({"epsilons": [0.0]}, "epsilon must be a"),
    ]:
        with pytest.raises(ParameterError, match=message):
            compared(**options)
