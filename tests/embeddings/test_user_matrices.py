"""`UserMatrixSum`: the matrix of a user has at most the clipping norm and follows its equations."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.embeddings.plan import (
    UNIT,
    ContextFeatures,
    UserMatrixSum,
    UserText,
    features_of_vectors,
)
from dptext.noise.gaussian_sums import CELL
from dptext.text.tokens import Vocabulary

WORDS = Vocabulary([f"w{n}" for n in range(39)] + ["<unk>"])
WINDOW = 3


@pytest.fixture(scope="module")
def features():
    return features_of_vectors(np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32), WORDS)


def chunk(documents):
    rows = [np.asarray(document, dtype=np.int32) for document in documents]
    return np.concatenate([*rows, np.empty(0, np.int32)]), np.array([len(row) for row in rows], dtype=np.int64)


def total(features, users, weights=None):
    result = UserMatrixSum(features, np.ones(40) if weights is None else weights, WINDOW)
    result.add(users)
    return result.cells


def squared_length(cells):
    """Return the squared norm as an exact integer."""
    return sum(int(cell) ** 2 for cell in cells.ravel())


def expected_matrix(features, documents, weights, norm):
    """Compute equations (rows) and (scaled), one word at a time."""
    sums, counts = np.zeros((40, features.dimension)), np.zeros(40)
    for document in documents:
        for place, word in enumerate(document):
            if word < 0:
                continue
            counts[word] += 1
            for other in range(max(0, place - WINDOW), min(len(document), place + WINDOW + 1)):
                if other != place:
                    sums[word] += features.matrix[document[other]] * UNIT
    rows = weights[:, None] * np.divide(sums, counts[:, None], out=np.zeros_like(sums), where=counts[:, None] > 0)
    length = np.linalg.norm(rows)
    return rows * norm / length if length > 0 else rows


def test_a_matrix_follows_the_equations(features):
    generator = np.random.default_rng(2)
    documents = [generator.integers(-1, 40, size=size).tolist() for size in (1, 0, 30, 7)]
    weights = generator.random(40)
    cells = total(features, [UserText([chunk(documents)], norm=0.7)], weights)
    assert np.abs(cells * CELL - expected_matrix(features, documents, weights, 0.7)).max() < 2 * CELL


ADVERSARIES = {
    "one word a million times": [[3] * 1_000_000],
    "every word once": [list(range(40))],
    "nothing": [[]],
    "no document": [],
    "only unknown words": [[-1] * 100],
    "one word alone": [[5]],
    "the unknown word by name": [[39] * 50],
    "many short documents": [[n % 40, (n * 7) % 40] for n in range(20_000)],
    "a known word among unknown ones": [[-1, 4, -1]],
}


def test_the_matrix_of_a_user_has_at_most_the_clipping_norm(features):
    for documents in ADVERSARIES.values():
        for norm in (1.0, 0.154552, 2.0**-20):
            cells = total(features, [UserText([chunk(documents)], norm=norm)])
            assert squared_length(cells) <= Fraction(norm) ** 2 * 2**48


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    documents=st.lists(st.lists(st.integers(-1, 39), max_size=40), max_size=6),
    others=st.lists(st.lists(st.integers(-1, 39), max_size=20), max_size=4),
    norm=st.floats(1e-6, 1.0),
)
def test_the_sum_changes_by_exactly_the_matrix_of_one_user(documents, others, norm):
    features = features_of_vectors(np.random.default_rng(4).normal(size=(40, 5)).astype(np.float32), WORDS)
    rest = [UserText([chunk([other])]) for other in others]
    user = UserText([chunk(documents)], norm=norm)
    difference = total(features, [*rest[:2], user, *rest[2:]]) - total(features, rest)
    assert (difference == total(features, [user])).all()
    assert squared_length(difference) <= Fraction(norm) ** 2 * 2**48


def test_the_clipping_norm_is_nearly_attained(features):
    documents = np.random.default_rng(3).integers(0, 39, size=(40, 20)).tolist()
    cells = total(features, [UserText([chunk(documents)])])
    assert math.sqrt(squared_length(cells)) * CELL > 1 - 1e-4


def test_a_norm_per_row_is_known_to_be_broken(features, monkeypatch):
    def row_by_row(rows, starts, norms):
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.trunc(rows / np.where(lengths > 0, lengths, 1) / CELL).astype(np.int64)

    monkeypatch.setattr("dptext.embeddings.plan.clipped_matrices", row_by_row)
    cells = total(features, [UserText([chunk(ADVERSARIES["every word once"])])])
    assert squared_length(cells) > CELL**-2


def test_chunks_batches_and_order_do_not_change_the_sum(features, monkeypatch):
    """A rounding that depended on other users would break the sensitivity."""
    generator = np.random.default_rng(5)
    people = [[generator.integers(-1, 40, size=n).tolist() for n in generator.integers(0, 12, 5)] for _ in range(300)]
    whole = total(features, [UserText([chunk(person)]) for person in people])
    distance = sum(total(features, [UserText([chunk(person)])]) for person in people)
    assert (whole == distance).all()
    assert (total(features, [UserText([chunk(person)]) for person in reversed(people)]) == whole).all()
    in_chunks = [UserText([chunk([one]) for one in person]) for person in people]
    assert (total(features, in_chunks) == whole).all()
    monkeypatch.setattr("dptext.embeddings.plan._BATCH", 64)
    assert (total(features, in_chunks) == whole).all()
    assert (total(features, [UserText([chunk(person)]) for person in people]) == whole).all()


def test_contexts_end_with_a_document(features):
    distance = total(features, [UserText([chunk([[1, 2], [3, 4]])])])
    together = total(features, [UserText([chunk([[1, 2, 3, 4]])])])
    assert (distance != together).any()


def test_features_are_zero_for_the_unknown_word_and_flat_vectors():
    generator = np.random.default_rng(7)
    matrix = (generator.normal(size=(40, 6)) @ generator.normal(size=(6, 6)) + 3).astype(np.float32)
    result = features_of_vectors(matrix, WORDS)
    assert result.matrix.shape == (41, 6)
    assert not result.matrix[39].any()
    assert not result.matrix[-1].any()
    assert result.fingerprint == features_of_vectors(matrix, WORDS).fingerprint
    flat = features_of_vectors(np.ones((40, 6), np.float32), WORDS)
    assert not flat.matrix.any()


def test_features_that_are_not_finite_are_zero():
    rows = np.array([[np.nan, 1.0], [np.inf, 1e39], [1.0, 2.0]])
    with np.errstate(over="ignore"):
        result = ContextFeatures.of(rows, unknown_row=2)
    assert np.isfinite(result.matrix).all()
