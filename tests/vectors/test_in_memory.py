"""Pairs, mappings and gensim's objects."""

from types import SimpleNamespace

import numpy as np
import pytest

import dptext

WORDS = ["the", ".", "Cat", "cat", "dog"]
MATRIX = [[0.1, 0.2], [0.5, 0.5], [1, 2], [3, 4], [5, 6]]


class Keyed:
    """The shape of gensim's KeyedVectors."""

    def __init__(self, words, matrix):
        self.index_to_key = words
        self.vectors = np.asarray(matrix, dtype=np.float32)


@pytest.mark.parametrize(
    "source",
    [
        (WORDS, MATRIX),
        (tuple(WORDS), np.array(MATRIX, dtype=np.float16)),
        (np.array(WORDS), np.array(MATRIX, dtype=np.float32, order="F")),
        dict(zip(WORDS, MATRIX, strict=True)),
        {word: np.array(row) for word, row in zip(WORDS, MATRIX, strict=True)},
        Keyed(WORDS, MATRIX),
        SimpleNamespace(wv=Keyed(WORDS, MATRIX)),
    ],
)
def test_words_and_numbers(source):
    vectors = dptext.load_vectors(source)
    assert vectors.words == ("the", "cat", "dog", "<unk>")
    assert vectors["cat"].tolist() == [1, 2]
    assert vectors.source == "given by the caller"
    assert dptext.load_vectors(source, limit=3).words == ("the", "cat", "<unk>")


def test_gensim_itself():
    models = pytest.importorskip("gensim.models")
    keyed = models.KeyedVectors(vector_size=2)
    keyed.add_vectors(WORDS, np.array(MATRIX, dtype=np.float32))
    assert dptext.load_vectors(keyed).fingerprint == dptext.load_vectors((WORDS, MATRIX)).fingerprint


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_files_of_gensim_and_files_for_gensim(tmp_path, small, binary):
    models = pytest.importorskip("gensim.models")
    keyed = models.KeyedVectors(vector_size=small.dimension)
    keyed.add_vectors(list(small.words), small.matrix)
    theirs = tmp_path / ("theirs.bin" if binary else "theirs.txt")
    keyed.save_word2vec_format(str(theirs), binary=binary)
    assert dptext.load_vectors(theirs).fingerprint == small.fingerprint
    ours = tmp_path / ("ours.bin" if binary else "ours.txt")
    dptext.save_vectors(small, ours)
    again = models.KeyedVectors.load_word2vec_format(str(ours), binary=binary)
    assert tuple(again.index_to_key) == small.words
    np.testing.assert_array_equal(again.vectors, small.matrix)


def test_an_unk_of_the_source_keeps_its_vector_wherever_it_stands():
    assert dptext.load_vectors((["<unk>", "cat"], [[7.0], [1.0]]))["<unk>"].tolist() == [7.0]
    assert dptext.load_vectors((["cat", "dog", "<unk>"], [[1.0], [2.0], [7.0]]), limit=2)["<unk>"].tolist() == [7.0]


NO_NUMBERS = "expected a matrix of numbers with rows of equal length, got something else"


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ((["secret"], [[1.0], [2.0]]), dptext.DataError, "expected one vector a word, got 1 words and 2 vectors"),
        (
            (["secret", "secret"], [[1.0], [2.0]]),
            dptext.DataError,
            "the matrix, rows 0 and 1 hold the same word: remove the one whose vector is wrong",
        ),
        (
            (["secret", 3], [[1.0], [2.0]]),
            dptext.DataError,
            "expected strings as words, row 1 holds another type",
        ),
        (
            (["cat", "secret"], [[1.0], [np.nan]]),
            dptext.DataError,
            "the matrix, row 1: the vector holds NaN or infinity; remove or repair the row",
        ),
        (
            (["cat", "secret"], [[1.0], [1e300]]),
            dptext.DataError,
            "the matrix, row 1: the vector holds NaN or infinity; remove or repair the row",
        ),
        ((["cat", "dog"], [[7.25], [1.0, 2.0]]), dptext.DataError, NO_NUMBERS),
        ((["cat", "dog"], [["secret"], ["7.25"]]), dptext.DataError, NO_NUMBERS),
        ((["cat", "dog"], [[1j], [2j]]), dptext.DataError, NO_NUMBERS),
        ((["cat"], [[10**400]]), dptext.DataError, NO_NUMBERS),
        ((["cat"], None), dptext.DataError, NO_NUMBERS),
        (
            (["cat"], [7.25]),
            dptext.DataError,
            "expected a matrix with two axes (words, dimensions), got shape (1,)",
        ),
        (
            (["cat"], [[]]),
            dptext.DataError,
            "expected a matrix with two axes (words, dimensions), got shape (1, 0)",
        ),
        (("secret", np.ones((6, 2))), dptext.ParameterError, "expected a sequence of words, got str"),
        ((iter(["secret"]), np.ones((6, 2))), dptext.ParameterError, "expected a sequence of words, got list_iterator"),
        (
            ([".", "3.14"], [[1.0], [2.0]]),
            dptext.DataError,
            "given by the caller: no words among the vectors: every entry is a number, an address or punctuation",
        ),
        ({}, dptext.DataError, "expected a mapping from words to vectors, got an empty one"),
        (
            {"cat": [1.0, 2.0], "secret": [7.25]},
            dptext.DataError,
            "row 1: expected one vector, as long as that of row 0, got shape (1,) beside (2,)",
        ),
        (
            {"secret": [[7.25]]},
            dptext.DataError,
            "row 0: expected one vector, as long as that of row 0, got shape (1, 1) beside (1, 1)",
        ),
        ({"secret": "7.25"}, dptext.DataError, NO_NUMBERS),
        (Keyed([None, "secret"], MATRIX[:2]), dptext.DataError, "expected strings as words, row 0 holds another type"),
    ],
)
def test_a_bad_source_is_refused(refused, source, error, message):
    refused(source, message, error)
