"""No person moves the sum by more than 1, whatever they wrote and in whichever classes; and the sum is what its
equations say."""

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
    peoples = MomentSum(SPACE, CLASSES)
    peoples.add(people)
    return peoples.cells


def squared_length(cells):
    """Exactly, in Python's integers."""
    return sum(int(cell) ** 2 for cell in cells.ravel())


def by_hand(documents):
    """Equations (document) and (person), a document at a time."""
    result = np.zeros((CLASSES, 1 + SPACE.dimension))
    for text, code in documents:
        if code >= 0:
            result[code, 0] += COUNT_WEIGHT
            result[code, 1:] += math.sqrt(1 - COUNT_WEIGHT**2) * SPACE.units([text])[0] * UNIT
    length = np.linalg.norm(result)
    return result / length if length > 0 else result


def test_a_person_is_what_the_equations_say():
    documents = [("a b", 0), ("b b c", 2), ("", 2), ("x", -1), ("a", 0)]
    assert np.abs(total(Someone(*documents)) * CELL - by_hand(documents)).max() < 2 * CELL


@settings(max_examples=100)
@given(DOCUMENTS, st.integers(1, 5))
def test_nobody_is_longer_than_one_whatever_they_wrote(documents, chunk):
    cells = total(Someone(*documents, chunk=chunk))
    assert squared_length(cells) <= 2**48
    assert np.abs(cells * CELL - by_hand(documents)).max() < 2 * CELL


@settings(max_examples=50)
@given(st.lists(DOCUMENTS, max_size=5), DOCUMENTS, st.randoms())
def test_the_sum_moves_by_one_persons_matrix_to_the_last_bit(others, documents, random):
    people = [Someone(*other) for other in others]
    alone = total(Someone(*documents))
    with_them = [*people, Someone(*documents, chunk=3)]
    random.shuffle(with_them)
    assert (total(*with_them) - total(*people) == alone).all()


def test_somebody_who_writes_without_end_counts_once():
    for count in [1, TEXTS_AT_ONCE - 1, TEXTS_AT_ONCE, 3 * TEXTS_AT_ONCE + 1]:
        cells = total(Someone(*[("a b", 1)] * count, chunk=777))
        assert 0.999**2 * 2**48 < squared_length(cells) <= 2**48
        assert np.abs(cells * CELL - by_hand([("a b", 1)])).max() < 3 * CELL


def test_documents_of_no_class_are_as_if_they_were_not_there():
    assert (total(Someone(("a", -1), ("b", -1))) == 0).all()
    assert (total(Someone(("a", 1), ("b", -1))) == total(Someone(("a", 1)))).all()
    assert MomentSum(SPACE, CLASSES).add([Someone(), Someone(("a", -1))]) == 2


def test_classes_do_not_cost_one_by_one():
    """Somebody in all classes has length 1 in all, not in each: the twin that clips row by row is sqrt(K) long."""
    documents = [("a", code) for code in range(CLASSES)]
    assert squared_length(total(Someone(*documents))) <= 2**48
    row_by_row = sum(total(Someone(document)) for document in documents)
    assert squared_length(row_by_row) > 3.9 * 2**48
