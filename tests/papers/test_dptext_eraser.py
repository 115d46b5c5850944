"""The linear eraser: the theorem on the rows that it was fitted on, and what networks still see."""

import numpy as np
import pytest
from papers.dptext.eraser import fit_eraser

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


def test_of_those_that_erase_it_moves_least_and_only_what_it_has_to(rows):
    vectors, gender, _ = rows
    eraser = fit_eraser(vectors, {"gender": gender})
    erased = eraser.apply(vectors)
    assert np.linalg.matrix_rank(erased - vectors, tol=1e-6) == 1
    moved = ((erased - vectors) ** 2).sum(axis=1).mean()
    gap = vectors[gender == 1].mean(axis=0) - vectors[gender == 0].mean(axis=0)
    along = gap / np.linalg.norm(gap)
    plain = vectors - np.outer(
        (vectors - vectors.mean(axis=0)) @ along, along
    )  # the orthogonal projection, also guarded
    assert moved < 0.95 * ((plain - vectors) ** 2).sum(axis=1).mean()
    np.testing.assert_allclose(erased.mean(axis=0), vectors.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(eraser.apply(erased), erased, atol=1e-9)


def test_it_is_that_of_the_authors_package(rows):
    package = pytest.importorskip("concept_erasure")
    torch = pytest.importorskip("torch")
    vectors, _, age = rows
    reference = package.LeaceEraser.fit(
        torch.tensor(vectors),
        torch.nn.functional.one_hot(torch.tensor(age)).double(),
        method="leace",
        shrinkage=False,
        svd_tol=1e-6,
    )
    result = fit_eraser(vectors, {"age": age}).apply(vectors)
    np.testing.assert_allclose(reference(torch.tensor(vectors)).numpy(), result, atol=1e-4)


def test_a_network_reads_what_is_left():
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(600, 3))
    labels = (vectors[:, 0] * vectors[:, 1] > 0).astype(int)
    vectors[:, 2] += labels
    erased = fit_eraser(vectors, {"x": labels}).apply(vectors)
    assert accuracy(erased, labels) < 0.6
    assert (
        MLPClassifier(32, max_iter=2000, solver="lbfgs", random_state=1).fit(erased, labels).score(erased, labels) > 0.8
    )
