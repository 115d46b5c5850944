"""Word vectors are checked at birth and frozen afterwards."""

import pickle

import numpy as np
import pytest

import dptext
from dptext import WordVectors

WORDS = ["cat", "dog", "<unk>"]
MATRIX = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


def test_rows_belong_to_words():
    vectors = WordVectors(WORDS, MATRIX)
    assert vectors.words == ("cat", "dog", "<unk>")
    assert vectors.matrix.dtype == np.float32
    assert vectors["dog"].tolist() == [0.0, 1.0]
    assert vectors["DOG"].tolist() == [0.0, 1.0]
    assert (len(vectors), vectors.dimension) == (3, 2)
    assert "cat" in vectors
    assert "cow" not in vectors


def test_nothing_can_be_changed():
    matrix = np.array(MATRIX)
    vectors = WordVectors(WORDS, matrix)
    matrix[0] = 9.0
    assert vectors["cat"].tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        vectors.matrix[0] = 1.0
    with pytest.raises(AttributeError):
        vectors.words = ()
    copy = pickle.loads(pickle.dumps(vectors))
    assert not copy.matrix.flags.writeable
    assert copy.fingerprint == vectors.fingerprint


def test_the_fingerprint_sees_words_and_numbers():
    one = WordVectors(WORDS, MATRIX).fingerprint
    assert one == WordVectors(WORDS, MATRIX, source="elsewhere").fingerprint
    assert one != WordVectors(["cat", "cow", "<unk>"], MATRIX).fingerprint
    assert one != WordVectors(WORDS, [[1.0, 0.0], [0.0, 1.0], [0.5, 0.25]]).fingerprint


def test_the_diameter_bound_holds(small):
    points = small.matrix.astype(np.float64)
    farthest = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2)).max()
    assert farthest <= small.diameter_bound <= 2 * farthest


@pytest.mark.parametrize(
    ("words", "matrix", "what"),
    [
        (WORDS, MATRIX[:2], "got 3 words and 2 vectors"),
        (WORDS, [[1.0, np.nan], *MATRIX[1:]], "row 0 of the matrix holds NaN"),
        (WORDS, [*MATRIX[:2], [np.inf, 0.0]], "row 2 of the matrix holds NaN or infinity"),
        (WORDS, [[1.0], [1.0, 2.0], [3.0]], "rows of equal length"),
        (WORDS, [["a"], ["b"], ["c"]], "matrix of numbers"),
        (WORDS, [1.0, 2.0, 3.0], "two axes"),
        (WORDS, [[], [], []], "two axes"),
        (["cat", "cat", "<unk>"], MATRIX, "rows 0 and 1 hold the same word"),
        (["cat", "Cat", "<unk>"], MATRIX, "rows 0 and 1 hold the same word"),
        (["cat", "dog", "cow"], MATRIX, "must hold '<unk>'"),
    ],
)
def test_bad_vectors_are_refused_with_the_row(words, matrix, what):
    with pytest.raises(dptext.DataError, match=what):
        WordVectors(words, matrix)


def test_a_word_outside_is_a_key_error_that_does_not_repeat_it():
    with pytest.raises(KeyError) as error:
        WordVectors(WORDS, MATRIX)["confidential"]
    assert "confidential" not in str(error.value)
