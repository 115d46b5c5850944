"""The classifier takes the steps of dense Adam, learns what can be learnt, and says what is wrong with its input."""

import numpy as np
import pytest
from papers.tem.fasttext import FastTextClassifier, Ragged

from dptext.errors import ParameterError

WORDS = 200


@pytest.fixture(scope="module")
def texts():
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 3, 600)
    lengths = generator.integers(0, 30, 600)
    # words of a class are its own half of the time
    rows = [
        np.where(generator.random(n) < 0.5, generator.integers(0, 20, n) + 20 * label, generator.integers(0, WORDS, n))
        for n, label in zip(lengths, labels, strict=True)
    ]
    return Ragged.of(rows), labels


def test_it_learns(texts):
    rows, labels = texts
    model = FastTextClassifier(WORDS, dimension=10, learning_rate=0.01, seed=1)
    model.fit(rows.take(np.arange(400)), labels[:400])
    assert model.score(rows.take(np.arange(400, 600)), labels[400:]) > 0.75  # a third by chance
    shares = model.predict_proba(rows)
    assert shares.shape == (600, 3)
    assert np.allclose(shares.sum(axis=1), 1)
    assert (model.predict(rows) == model.classes_[shares.argmax(axis=1)]).all()


def test_names_of_classes_come_back(texts):
    rows, labels = texts
    names = np.array(["one", "two", "three"])[labels]
    model = FastTextClassifier(WORDS, dimension=4, epochs=2, seed=1).fit(rows, names)
    assert model.classes_.tolist() == ["one", "three", "two"]
    assert set(model.predict(rows)) <= set(names)


def test_a_seed_repeats_the_model_and_none_does_not(texts):
    rows, labels = texts
    fits = [
        FastTextClassifier(WORDS, dimension=4, epochs=1, seed=seed).fit(rows, labels) for seed in (5, 5, None, None)
    ]
    assert (fits[0].vectors_ == fits[1].vectors_).all()
    assert (fits[2].vectors_ != fits[3].vectors_).any()


def _reference(rows, labels, vectors, order, batch, epochs, rate, beta_1=0.9, beta_2=0.999):
    """Adam as its paper has it, on dense float64 tables."""
    values = [vectors.astype(np.float64), np.zeros((vectors.shape[1], 3)), np.zeros(3)]
    first, second = [np.zeros_like(value) for value in values], [np.zeros_like(value) for value in values]
    bags = np.stack([np.bincount(row, minlength=len(vectors)) / max(1, len(row)) for row in rows])
    step = 0
    for epoch in range(epochs):
        for start in range(0, len(rows), batch):
            step += 1
            chosen = order[epoch][start : start + batch]
            means = bags[chosen] @ values[0]
            odds = np.exp(means @ values[1] + values[2])
            error = (odds / odds.sum(axis=1, keepdims=True) - np.eye(3)[labels[chosen]]) / len(chosen)
            gradients = [bags[chosen].T @ (error @ values[1].T), means.T @ error, error.sum(axis=0)]
            for place, gradient in enumerate(gradients):
                first[place] = beta_1 * first[place] + (1 - beta_1) * gradient
                second[place] = beta_2 * second[place] + (1 - beta_2) * gradient**2
                upwards = first[place] / (1 - beta_1**step)
                values[place] -= rate * upwards / (np.sqrt(second[place] / (1 - beta_2**step)) + 1e-8)
    return values


def test_the_steps_are_those_of_dense_adam(texts):
    """Over 190 steps, so that the scaled moments are brought back three times; other betas are told apart."""
    from dptext.privacy.randomness import RandomBits

    rows, labels = texts
    start = np.random.default_rng(2).normal(size=(WORDS, 6)).astype(np.float32)
    model = FastTextClassifier(vectors=start, epochs=10, batch_size=32, learning_rate=0.01, seed=3).fit(rows, labels)
    bits = RandomBits(3)
    order = [np.argsort(bits.integers(len(rows)), kind="stable") for _ in range(10)]
    lists = [row.tolist() for row in np.split(rows.values, rows.starts[1:-1])]
    lists = [np.array(row, dtype=int) for row in lists]
    vectors, weights, bias = _reference(lists, labels, start, order, 32, 10, 0.01)
    assert np.abs(model.vectors_ - vectors).max() < 2e-3
    assert np.abs(model.weights_ - weights).max() < 2e-3
    assert np.abs(model.bias_ - bias).max() < 2e-3
    other, *_ = _reference(lists, labels, start, order, 32, 10, 0.01, beta_2=0.99)
    assert np.abs(model.vectors_ - other).max() > 2e-2
    assert (start != model.vectors_).any()  # the caller's table is his


def test_vectors_given_are_not_changed(texts):
    rows, labels = texts
    start = np.ones((WORDS, 3), dtype=np.float32)
    FastTextClassifier(vectors=start, epochs=1, seed=1).fit(rows, labels)
    assert (start == 1).all()


def test_an_empty_text_gets_the_bias(texts):
    rows, labels = texts
    model = FastTextClassifier(WORDS, dimension=4, epochs=2, seed=1).fit(rows, labels)
    assert np.allclose(model.logits([[]]), model.bias_)


def test_ragged_rows():
    rows = Ragged.of([[5, 6], [], [7], [8, 9, 10]])
    assert rows.lengths.tolist() == [2, 0, 1, 3]
    taken = rows.take(np.array([3, 1, 0, 3]))
    assert taken.values.tolist() == [8, 9, 10, 5, 6, 8, 9, 10]
    assert taken.starts.tolist() == [0, 3, 3, 5, 8]
    assert Ragged.of(rows) is rows
    assert len(Ragged.of([])) == 0


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: FastTextClassifier(3).fit([[0], [3]], [0, 1]), "between 0 and 2"),
        (lambda: FastTextClassifier(3).fit([[0], [-1]], [0, 1]), "between 0 and 2"),
        (lambda: FastTextClassifier(3).fit([[0], [1]], [0, 0]), "at least two classes, got 1"),
        (lambda: FastTextClassifier(3).fit([[0], [1]], [0]), "labels must be one for each of 2 rows"),
        (lambda: FastTextClassifier(3).fit([[0], [0.5]], [0, 1]), "row 2 is something else"),
        (lambda: FastTextClassifier().fit([[0], [1]], [0, 1]), "number of words"),
        (lambda: FastTextClassifier(3, epochs=0).fit([[0], [1]], [0, 1]), "epochs must be"),
        (lambda: FastTextClassifier(3, batch_size=1.5).fit([[0], [1]], [0, 1]), "batch_size must be"),
        (lambda: FastTextClassifier(3, learning_rate=np.nan).fit([[0], [1]], [0, 1]), "learning_rate must be"),
        (lambda: FastTextClassifier(vectors=[[np.nan]]).fit([[0], [0]], [0, 1]), "finite numbers"),
        (lambda: FastTextClassifier(3, vectors=[[1.0]]).fit([[0], [0]], [0, 1]), "vectors must be of 3 words, got 1"),
        (lambda: FastTextClassifier(3).predict([[0]]), "call fit first"),
    ],
)
def test_what_is_wrong_is_named(call, says):
    with pytest.raises(ParameterError, match=says):
        call()
