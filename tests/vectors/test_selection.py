"""Which rows are kept: words, each once, the unknown word among them, and no more than the limit asks for."""

import logging

import numpy as np
import pytest

import dptext
from dptext.vectors.word_vectors import SourceRows, select_words


def stream(*blocks):
    """SourceRows of one dimension whose value is their number."""
    number = 0
    for words in blocks:
        numbers = range(number, number + len(words))
        number += len(words)
        yield SourceRows(numbers, words, np.array([[float(n)] for n in numbers], dtype=np.float32))


def test_unk_is_the_mean_of_the_words(glove):
    np.testing.assert_allclose(glove["<unk>"], glove.matrix[:-1].mean(axis=0, dtype=np.float64), atol=1e-6)


def test_each_word_is_kept_once_the_first_time(caplog):
    with caplog.at_level(logging.INFO, "dptext"):
        vectors = select_words(stream(["the", "Cat", "3"], ["cat", "THE", None, "dog"]), place="row", source="these")
    assert vectors.words == ("the", "cat", "dog", "<unk>")
    assert vectors.matrix[:-1].ravel().tolist() == [0, 1, 6]
    assert "3 of the first 7 entries are words, 2 are other forms of these, 1 are not UTF-8 (these)" in caplog.text
    assert "cat" not in caplog.text


@pytest.mark.parametrize("word", ["cat", "Cat", "<unk>"])
def test_a_word_that_stands_twice_is_refused(word):
    with pytest.raises(dptext.DataError) as error:
        select_words(stream(["the", "cat", word + "s", word], ["dog", word]), place="x, row", source="these")
    first = 1 if word == "cat" else 3
    second = 3 if word == "cat" else 5
    assert str(error.value) == (
        f"x, rows {first} and {second} hold the same word: remove the one whose vector is wrong"
    )


def test_an_entry_that_leaves_anyway_may_stand_twice():
    """As "|" does in published files: nothing hangs on which counts."""
    assert select_words(stream(["|", "the", "|"], ["|", "7", "7"]), place="row", source="these").words[0] == "the"


@pytest.mark.parametrize("limit", [None, 5, 4, 3, 2])
def test_the_number_of_words_found_finds_the_same_words_again(limit):
    """A statement carries the number of words: `dptext.words.registry` gives it as the limit."""

    def load(limit):
        blocks = stream(["the", "The", "THE"], ["cat", "CAT"], ["."], ["dog", "Dog"], ["DOG", "<unk>"])
        return select_words(blocks, place="row", source="these", limit=limit)

    found = load(limit)
    assert load(len(found)).fingerprint == found.fingerprint
    assert (len(found), found["<unk>"].tolist()) == (
        (4, [9.0]) if limit is None or limit > 3 else (limit, [pytest.approx(found.matrix[:-1].mean())])
    )


def test_reading_stops_at_the_first_word_too_many():
    closed = []

    def endless():
        try:
            for n in range(10**9):
                word = "w" + "".join("abcdefghij"[int(digit)] for digit in str(n))
                yield SourceRows([n], [word], np.array([[n]], dtype=np.float32))
        finally:
            closed.append(n)

    assert len(select_words(endless(), place="row", source="these", limit=50)) == 50
    assert closed == [49]


def test_what_stands_behind_the_last_word_is_not_looked_at():
    def rows():
        yield SourceRows([0, 1, 2], ["the", "cat", "dog"], np.array([[1.0], [2.0], [np.nan]], dtype=np.float32))

    assert len(select_words(rows(), place="row", source="these", limit=3)) == 3
    with pytest.raises(dptext.DataError, match=r"^row 2: the vector holds NaN"):
        select_words(rows(), place="row", source="these")


def test_the_result_is_frozen():
    with pytest.raises(ValueError, match="read-only"):
        select_words(stream(["the", "cat"]), place="row", source="these").matrix[0] = 1.0
