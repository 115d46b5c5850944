"""Word vectors are checked at birth and frozen afterwards."""

import logging
import pickle

import numpy as np
import pytest

from dptext import WordVectors
from dptext.errors import DataError, ParameterError
from dptext.vectors.word_vectors import SourceRows, select_words
from secrecy import MARKER, assert_error

WORDS = ["cat", "dog", "<unk>"]
MATRIX = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


def test_rows_belong_to_words_and_cannot_be_changed():
    matrix = np.array(MATRIX)
    vectors = WordVectors(WORDS, matrix)
    matrix[0] = 9.0
    assert vectors.words == ("cat", "dog", "<unk>") and vectors.matrix.dtype == np.float32
    assert vectors["cat"].tolist() == [1.0, 0.0]
    assert vectors["dog"].tolist() == vectors["DOG"].tolist() == [0.0, 1.0]
    assert (len(vectors), vectors.dimension) == (3, 2)
    assert "cat" in vectors and "cow" not in vectors
    with pytest.raises(ValueError, match="read-only"):
        vectors.matrix[0] = 1.0
    with pytest.raises(AttributeError):
        vectors.words = ()
    copy = pickle.loads(pickle.dumps(vectors))
    assert not copy.matrix.flags.writeable
    assert copy.fingerprint == vectors.fingerprint == WordVectors(WORDS, MATRIX, source="elsewhere").fingerprint
    assert vectors.fingerprint != WordVectors(["cat", "cow", "<unk>"], MATRIX).fingerprint
    assert vectors.fingerprint != WordVectors(WORDS, [[1.0, 0.0], [0.0, 1.0], [0.5, 0.25]]).fingerprint


def test_the_diameter_bound_holds(small):
    points = small.matrix.astype(np.float64)
    farthest = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2)).max()
    assert farthest <= small.diameter_bound <= 2 * farthest


# -- which rows are kept -------------------------------------------------------------------------------------------


def stream(*blocks):
    """SourceRows of one dimension whose value is their number."""
    number = 0
    for words in blocks:
        numbers = range(number, number + len(words))
        number += len(words)
        yield SourceRows(numbers, words, np.array([[float(n)] for n in numbers], dtype=np.float32))


def test_each_word_is_kept_once_the_first_time(caplog):
    with caplog.at_level(logging.INFO, "dptext"):
        vectors = select_words(stream(["the", "Cat", "3"], ["cat", "THE", None, "dog"]), place="row", source="these")
    assert vectors.words == ("the", "cat", "dog", "<unk>")
    assert vectors.matrix[:-1].ravel().tolist() == [0, 1, 6]
    assert "3 of the first 7 entries are words, 2 are other forms of these, 1 are not UTF-8 (these)" in caplog.text
    assert "cat" not in caplog.text


@pytest.mark.parametrize("word", ["cat", "Cat", "<unk>"])
def test_a_repeated_word_is_refused(word):
    first, second = (1, 3) if word == "cat" else (3, 5)
    with pytest.raises(DataError, match=f"x, rows {first} and {second} contain the same word"):
        select_words(stream(["the", "cat", word + "s", word], ["dog", word]), place="x, row", source="these")


@pytest.mark.parametrize("limit", [None, 4, 3, 2])
def test_the_number_of_words_found_finds_the_same_words_again(limit):
    """A statement carries the number of words: `dptext.words.registry` gives it as the limit."""

    def load(limit):
        blocks = stream(["the", "The", "THE"], ["cat", "CAT"], ["."], ["dog", "Dog"], ["DOG", "<unk>"])
        return select_words(blocks, place="row", source="these", limit=limit)

    result = load(limit)
    assert load(len(result)).fingerprint == result.fingerprint
    assert (len(result), result["<unk>"].tolist()) == (
        (4, [9.0]) if limit is None or limit > 3 else (limit, [pytest.approx(result.matrix[:-1].mean())])
    )


# -- the most similar words ----------------------------------------------------------------------------------------


def test_the_most_similar_words_are_those_of_a_loop():
    rng = np.random.default_rng(5)
    names = ["<unk>", *(f"w{'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}" for n in range(60))]
    vectors = WordVectors(names, rng.normal(size=(61, 7)))

    def similarity(one, other):
        one, other = one.astype(np.float64), other.astype(np.float64)
        return one @ other / np.linalg.norm(one) / np.linalg.norm(other)

    expected = sorted(((similarity(vectors["waa"], vectors[name]), name) for name in names[2:]), reverse=True)[:10]
    result = vectors.most_similar("WAA")
    assert [word for word, _ in result] == [word for _, word in expected]
    assert [number for _, number in result] == pytest.approx([number for number, _ in expected])
    assert vectors.most_similar(vectors["waa"], 1)[0][0] == "waa"


def test_errors_do_not_repeat_an_unknown_word():
    vectors = WordVectors(WORDS, MATRIX)
    assert_error(ParameterError, lambda: vectors.most_similar(MARKER), "not among these 3 words")
    for wrong in ([MARKER, MARKER], [1.0], [np.nan, 1.0], None, [[1.0, 2.0]]):
        assert_error(ParameterError, lambda wrong=wrong: vectors.most_similar(wrong), "a vector of 2 finite numbers")
