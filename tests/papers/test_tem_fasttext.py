"""The classifier takes the steps of dense Adam and learns."""

import numpy as np
import pytest
from papers.tem.fasttext import FastTextClassifier, Ragged

WORDS = 200


@pytest.fixture(scope="module")
def texts():
    """Half of the words of a text are of its class."""
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 3, 600)
    rows = [
        np.where(generator.random(n) < 0.5, generator.integers(0, 20, n) + 20 * label, generator.integers(0, WORDS, n))
        for n, label in zip(generator.integers(0, 30, 600), labels, strict=True)
    ]
    return Ragged.of(rows), labels


def start(dimension, seed=2):
    return np.random.default_rng(seed).normal(size=(WORDS, dimension)).astype(np.float32)


def test_it_learns_and_a_seed_repeats_the_model(texts):
    rows, labels = texts
    vectors = start(10)
    fit = rows.take(np.arange(400)), labels[:400]
    models = [FastTextClassifier(vectors, learning_rate=0.01, seed=seed).fit(*fit) for seed in (1, 1, 2)]
    assert models[0].score(rows.take(np.arange(400, 600)), labels[400:]) > 0.75  # a third by chance
    shares = models[0].predict_proba(rows)
    assert shares.shape == (600, 3)
    assert np.allclose(shares.sum(axis=1), 1)
    assert (models[0].vectors_ == models[1].vectors_).all()
    assert (models[0].vectors_ != models[2].vectors_).any()
    assert (vectors == start(10)).all()  # given vectors are not changed


def reference(rows, labels, vectors, order, batch, epochs, rate, beta_1=0.9, beta_2=0.999):
    """Adam as in its paper, on dense float64 tables."""
    values = [vectors.astype(np.float64), np.zeros((vectors.shape[1], 3)), np.zeros(3)]
    first, second = [np.zeros_like(value) for value in values], [np.zeros_like(value) for value in values]
    bags = np.stack([np.bincount(row, minlength=len(vectors)) / max(1, len(row)) for row in rows])
    step = 0
    for epoch in range(epochs):
        for begin in range(0, len(rows), batch):
            step += 1
            chosen = order[epoch][begin : begin + batch]
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
    """Over 190 steps, so that the scaled moments are scaled back three times; other betas are noticed."""
    from dptext.privacy.randomness import RandomBits

    rows, labels = texts
    vectors = start(6)
    model = FastTextClassifier(vectors, epochs=10, batch_size=32, learning_rate=0.01, seed=3).fit(rows, labels)
    bits = RandomBits(3)
    order = [np.argsort(bits.integers(len(rows)), kind="stable") for _ in range(10)]
    lists = [np.array(row, dtype=int) for row in np.split(rows.values, rows.starts[1:-1])]
    expected, weights, bias = reference(lists, labels, vectors, order, 32, 10, 0.01)
    for result, values in ((model.vectors_, expected), (model.weights_, weights), (model.bias_, bias)):
        assert np.abs(result - values).max() < 2e-3
    other, *_ = reference(lists, labels, vectors, order, 32, 10, 0.01, beta_2=0.99)
    assert np.abs(model.vectors_ - other).max() > 2e-2
