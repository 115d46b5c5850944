"""The linear eraser: the theorem on the rows that it was fitted on, and what networks still see."""

import numpy as np
import pytest
from papers.dptext.methods import fit_eraser

pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def rows():
    """(400, 12) vectors of which gender and age move some coordinates; correlated, of unequal spread."""
    rng = np.random.default_rng(1)
    gender, age = rng.integers(2, size=400), rng.integers(3, size=400)
    vectors = rng.normal(size=(400, 12))
    vectors[:, 0] += 2 * gender
    vectors[:, 1:4] += 2 * np.eye(3)[age]
    return vectors @ rng.normal(size=(12, 12)), gender, age


def accuracy(vectors, labels):
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1e3, max_iter=2000).fit(vectors, labels).score(vectors, labels)


def test_no_linear_model_beats_the_best_constant_where_it_did_before(rows):
    vectors, gender, age = rows
    erased = fit_eraser(vectors, {"gender": gender, "age": age}).apply(vectors)
    for labels in (gender, age):
        majority = np.bincount(labels).max() / len(labels)
        assert accuracy(vectors, labels) > majority + 0.2  # the probe is alive
        assert accuracy(erased, labels) == pytest.approx(majority, abs=0.005)
        means = np.array([erased[labels == label].mean(axis=0) for label in np.unique(labels)])
        np.testing.assert_allclose(means - means[0], 0, atol=1e-9)  # the theorem: equal means of classes
