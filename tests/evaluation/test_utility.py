"""Tests of utility: leaks are impossible, and baselines are correct."""

import sys

import numpy as np
import pytest

from dptext import Document
from dptext.errors import MissingExtraError, ParameterError
from dptext.evaluation.measures import Fold
from dptext.evaluation.utility import BagOfWords, VectorFeatures, predictions, utility, words_of

QUICK = {"resamples": 100, "seed": 1}


@pytest.fixture(scope="module")
def authors():
    """40 people of ten rows that are all alike, and a label of each person's that nothing says."""
    generator = np.random.default_rng(1)
    people = np.repeat(np.arange(40), 10)
    vectors = 3 * generator.normal(size=(40, 30))[people] + 0.1 * generator.normal(size=(400, 30))
    return vectors, generator.permutation(np.arange(40) % 2)[people], people


def test_rows_of_a_person_never_train_and_test(authors):
    vectors, labels, people = authors
    by_row = utility(vectors, labels, **QUICK)
    assert by_row.score.value > 0.95  # the model knows the person
    by_person = utility(vectors, labels, people=people, **QUICK)
    assert by_person.score.low < 0.5 < by_person.score.high
    assert not by_person.above_baseline
    assert by_person.score.of == "people"
    result = predictions(vectors, labels, people=people, seed=1)
    assert np.sort(result.rows).tolist() == list(range(400))
    with pytest.raises(ParameterError, match="people on both sides"):
        utility(vectors, labels, people=people, folds=[Fold(np.arange(395), np.arange(395, 400))], **QUICK)


def test_features_learn_from_the_rows_that_train_only(authors):
    vectors, labels, people = authors
    learnt = []

    class Watched(VectorFeatures):
        def fitted(self, train):
            learnt.append({tuple(row) for row in train})
            return super().fitted(train)

    result = predictions(vectors, labels, people=people, features=Watched(), folds=4, seed=1)
    tested = np.split(result.rows, 4)
    for seen, rows in zip(learnt, tested, strict=True):
        assert len(seen) == 300
        assert not seen & {tuple(row) for row in vectors[rows]}


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_signal_is_found_and_noise_is_not(model):
    generator = np.random.default_rng(2)
    noise = generator.normal(size=(200, 5))
    labels = np.array(["no", "yes"])[(noise[:, 0] + 0.3 * generator.normal(size=200) > 0).astype(int)]
    result = utility(noise, labels, model=model, **QUICK)
    assert result.above_baseline
    assert result.score.value > 0.8
    assert result.baseline == pytest.approx(max(np.mean(labels == "yes"), np.mean(labels == "no")))
    assert result.baseline_name == "majority class"
    assert not utility(noise[:, 1:], labels, model=model, **QUICK).above_baseline
    predicted = predictions(noise, labels, model=model, seed=1)
    assert set(predicted.predicted) <= {"no", "yes"}
    assert predicted.score("macro-F1", **QUICK).baseline == 0.5


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_numbers_are_predicted_beside_their_mean(model):
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(200, 4))
    ages = 30 + 8 * vectors[:, 0] + 2 * generator.normal(size=200)
    result = utility(vectors, ages, measure="RMSE", model=model, **QUICK)
    assert result.above_baseline
    assert result.score.value < 4 < result.baseline
    assert result.baseline == pytest.approx(ages.std())
    assert "(mean)" in str(result)
    nothing = utility(generator.normal(size=(200, 4)), ages, measure="MAE", model=model, **QUICK)
    assert not nothing.above_baseline


def test_trained_on_private_and_tested_on_either():
    raw = ["good film", "bad film"] * 30
    private = ["fine movie", "poor film"] * 30
    labels = [1, 0] * 30
    same = utility(private, labels, **QUICK)
    other = utility(private, labels, test_rows=raw, **QUICK)
    assert (same.trained_on, same.tested_on, other.trained_on, other.tested_on) == (
        "private",
        "private",
        "private",
        "raw",
    )
    assert same.score.value == 1.0
    assert other.score.value == 0.5  # the words that were learnt do not occur
    assert "trained on private, tested on raw" in str(other)
    assert utility(raw, labels, trained_on="as it was", **QUICK).tested_on == "as it was"


def test_texts_may_be_documents_or_missing():
    texts = [Document("good film"), Document("bad film"), "good", "bad", None] * 8
    result = utility(texts, [1, 0, 1, 0, 0] * 8, **QUICK)
    assert result.score.value == 1.0
    assert result.features == "bag of words (65,536 buckets, tf-idf)"


def test_a_fixed_test_set_is_one_fold():
    texts, labels = ["good", "bad"] * 20, [1, 0] * 20
    result = utility(texts, labels, folds=[Fold(np.arange(30), np.arange(30, 40))], **QUICK)
    assert (result.rows, result.folds, result.score.value) == (10, 1, 1.0)


def test_bags_count_public_words_or_buckets():
    texts = ["Good, GOOD film 7!", None, "@me unknown"]
    counts = BagOfWords(["good", "film"]).of(texts).toarray()
    assert counts.tolist() == [[2, 1], [0, 0], [0, 0]]
    hashed = BagOfWords().of(texts)
    assert hashed.shape == (3, 1 << 16)
    assert hashed.sum(axis=1).ravel().tolist() == [[3, 0, 1]]
    assert (hashed != BagOfWords().of(texts)).nnz == 0


def test_models_of_the_caller_get_word_ids_and_a_seed():
    seeds = []

    class Counting:
        """Sum of log-odds of words, like a fastText model without layers."""

        def __init__(self, seed):
            seeds.append(seed)

        def fit(self, ids, labels):
            self.counts = np.ones((3, 2))
            for entry, label in zip(ids, labels, strict=True):
                assert entry.dtype == np.int64
                np.add.at(self.counts[:, label], entry, 1)

        def predict(self, ids):
            logs = np.log(self.counts / self.counts.sum(axis=0))
            return np.array([logs[entry].sum(axis=0) for entry in ids]).argmax(axis=1)

    class WordIds:
        name = "word ids"

        def of(self, rows):
            ids = np.empty(len(rows), dtype=object)
            for row, text in enumerate(rows):
                ids[row] = np.array(
                    [["<unk>", "good", "bad"].index(w) if w in ("good", "bad") else 0 for w in words_of(text)]
                )
            return ids

        def fitted(self, train):
            return list

    options = {"features": WordIds(), "model": Counting, "folds": 4}
    result = utility(["good film", "bad"] * 20, ["+", "-"] * 20, **options, **QUICK)
    assert result.score.value == 1.0
    assert result.model == "Counting"
    assert len(set(seeds)) == 4


def test_a_seed_repeats_everything():
    generator = np.random.default_rng(5)
    vectors, labels = generator.normal(size=(60, 3)), np.arange(60) % 2
    assert utility(vectors, labels, model="mlp", **QUICK) == utility(vectors, labels, model="mlp", **QUICK)


def test_bad_input_is_named():
    for rows, targets, options, says in [
        (["a"] * 20, [0] * 20, {}, "targets must hold at least two classes"),
        (["a"] * 4, [0, 1] * 2, {}, "folds must be at most the number of rows, 4, got 5"),
        (["a"] * 20, [0, 1] * 9, {}, "targets must have one entry for each of 20 rows"),
        (["a"] * 20, [0.0, float("nan")] * 10, {"measure": "RMSE"}, "targets must be finite numbers, row 1"),
        (["a"] * 20, [0, 1] * 10, {"people": [1]}, "people must have one entry for each of 20 rows"),
        (["a"] * 20, [0, 1] * 10, {"measure": "AUC"}, "measure must be one of"),
        (["a"] * 20, [0, 1] * 10, {"model": "forest"}, "model must be 'linear', 'mlp' or"),
        (["a"] * 20, [0, 1] * 10, {"test_rows": ["a"] * 19}, "test_rows must be the same rows"),
        ("a text", [0, 1], {}, "rows must be a list of texts"),
        (np.full((20, 2), np.nan), [0, 1] * 10, {}, "rows must be finite vectors, row 0"),
        ([[1.0], [1.0, 2.0]] * 10, [0, 1] * 10, {}, "rows must be texts, or vectors of equal length"),
        (np.ones(20), [0, 1] * 10, {}, "one vector per row"),
        (["a"] * 20, [0, 1] * 10, {"features": BagOfWords(["a"]), "folds": 1}, "folds must be an integer"),
        (["a"] * 20, [0, 1] * 10, {"folds": [Fold(np.arange(0, 10, 2), np.arange(1, 11, 2))]}, "hold every class"),
    ]:
        with pytest.raises(ParameterError, match=says):
            utility(rows, targets, **QUICK | options)


def test_models_that_answer_nonsense_are_refused():
    for answers, says in [
        (lambda count: np.full(count, np.nan), "finite answers"),
        (lambda count: np.zeros(count - 1), "finite answers"),
        (lambda count: np.full(count, 7), "class codes 0 to 1"),
        (lambda count: np.full(count, 0.5), "class codes"),
    ]:

        class Strange:
            def __init__(self, seed): ...

            def fit(self, features, targets): ...

            def predict(self, features, answers=answers):
                return answers(features.shape[0])

        with pytest.raises(ParameterError, match=f"model: expected .*{says}"):
            utility(["a"] * 20, [0, 1] * 10, model=Strange, **QUICK)


@pytest.mark.parametrize("module", ["sklearn.linear_model", "sklearn.feature_extraction.text"])
def test_without_scikit_learn_the_install_line_is_said(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[sklearn\]"'):
        utility(["a", "b"] * 10, [0, 1] * 10, **QUICK)


def test_an_empty_vocabulary_is_refused():
    with pytest.raises(ParameterError, match="vocabulary must hold"):
        BagOfWords([])
    assert words_of("") == []
