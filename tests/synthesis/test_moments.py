"""`MomentSum`: the matrix of a user has a norm of at most 1, over all classes, and follows its equations."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.noise.gaussian_sums import CELL
from dptext.synthesis.moments import COUNT_WEIGHT, TEXTS_AT_ONCE, UNIT, MomentSum
from synthesis.spaces import HashedWords, Someone

SPACE = HashedWords()
CLASSES = 4
DOCUMENTS = st.lists(st.tuples(st.text(alphabet="ab \ud800é", max_size=8), st.integers(-1, CLASSES - 1)), max_size=12)


def total(*people):
    total = MomentSum(SPACE, CLASSES)
    total.add(people)
    return total.cells


def squared_length(cells):
    """Return the squared norm as an exact integer."""
    return sum(int(cell) ** 2 for cell in cells.ravel())


def expected_matrix(documents):
    """Compute equations (document) and (person), one document at a time."""
    result = np.zeros((CLASSES, 1 + SPACE.dimension))
    for text, code in documents:
        if code >= 0:
            result[code, 0] += COUNT_WEIGHT
            result[code, 1:] += math.sqrt(1 - COUNT_WEIGHT**2) * SPACE.units([text])[0] * UNIT
    length = np.linalg.norm(result)
    return result / length if length > 0 else result


def test_a_matrix_follows_the_equations():
    documents = [("a b", 0), ("b b c", 2), ("", 2), ("x", -1), ("a", 0)]
    assert np.abs(total(Someone(*documents)) * CELL - expected_matrix(documents)).max() < 2 * CELL


@settings(max_examples=100)
@given(DOCUMENTS, st.integers(1, 5))
def test_the_norm_of_a_user_is_at_most_one(documents, chunk):
    cells = total(Someone(*documents, chunk=chunk))
    assert squared_length(cells) <= 2**48
    assert np.abs(cells * CELL - expected_matrix(documents)).max() < 2 * CELL


@settings(max_examples=50)
@given(st.lists(DOCUMENTS, max_size=5), DOCUMENTS, st.randoms())
def test_the_sum_changes_by_exactly_the_matrix_of_one_user(others, documents, random):
    people = [Someone(*other) for other in others]
    alone = total(Someone(*documents))
    with_them = [*people, Someone(*documents, chunk=3)]
    random.shuffle(with_them)
    assert (total(*with_them) - total(*people) == alone).all()


def test_a_user_with_many_documents_has_norm_one():
    for count in [1, TEXTS_AT_ONCE - 1, TEXTS_AT_ONCE, 3 * TEXTS_AT_ONCE + 1]:
        cells = total(Someone(*[("a b", 1)] * count, chunk=777))
        assert 0.999**2 * 2**48 < squared_length(cells) <= 2**48
        assert np.abs(cells * CELL - expected_matrix([("a b", 1)])).max() < 3 * CELL


def test_documents_without_a_class_are_ignored():
    assert (total(Someone(("a", -1), ("b", -1))) == 0).all()
    assert (total(Someone(("a", 1), ("b", -1))) == total(Someone(("a", 1)))).all()
    assert MomentSum(SPACE, CLASSES).add([Someone(), Someone(("a", -1))]) == 2


def test_the_norm_covers_all_classes_together():
    """The known-broken version that clips each row separately has a norm of sqrt(K)."""
    documents = [("a", code) for code in range(CLASSES)]
    assert squared_length(total(Someone(*documents))) <= 2**48
    row_by_row = sum(total(Someone(document)) for document in documents)
    assert squared_length(row_by_row) > 3.9 * 2**48
