"""word2vec's binary format: what is read, and how a broken row is named."""

import logging

import numpy as np
import pytest

import dptext

WORDS = ["the", ".", "Cat", "cat", "déjà", "dog"]
MATRIX = [[0.1, 0.2], [0.5, 0.5], [1, 2], [3, 4], [5, 6], [7, 8]]


@pytest.mark.parametrize("end", [b"\n", b""])
def test_words_and_numbers(file, word2vec, end):
    vectors = dptext.load_vectors(file(word2vec(WORDS, MATRIX, end=end), "a.bin"))
    assert vectors.words == ("the", "cat", "déjà", "dog", "<unk>")
    assert vectors["cat"].tolist() == [1, 2]


def test_numbers_may_hold_spaces_and_line_feeds(file, word2vec):
    matrix = np.frombuffer(b" \n \n\n\n  a  \n\n\n\n\n    \n \n b\n\n cccc", dtype="<f4").reshape(2, 4)
    vectors = dptext.load_vectors(file(word2vec(["cat", "dog"], matrix), "a.bin"))
    assert vectors.matrix[:2].tobytes() == matrix.tobytes()


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("dimension", [1, 37, 5000])
def test_rows_across_blocks(file, word2vec, dimension, end, small_blocks):
    count = 20 * small_blocks // (4 * dimension) + 3
    rows = np.random.default_rng(5).normal(size=(count, dimension)).astype(np.float32)
    names = ["w" + "".join("abcdefghij"[int(digit)] for digit in str(n)) for n in range(count)]
    vectors = dptext.load_vectors(file(word2vec(names, rows, end=end), "a.bin"))
    assert vectors.words[:-1] == tuple(names)
    np.testing.assert_array_equal(vectors.matrix[:-1], rows)


def test_a_word_that_is_not_utf8_is_left_out_and_counted(file, word2vec, caplog):
    path = file(word2vec(["the", b"secret\xc3", "dog"], [[1, 2], [3, 4], [5, 6]]), "a.bin")
    with caplog.at_level(logging.INFO, "dptext"):
        assert dptext.load_vectors(path).words == ("the", "dog", "<unk>")
    assert "2 of the first 3 entries are words, 0 are other forms of these, 1 are not UTF-8 (a.bin)" in caplog.text


def test_a_limit_reads_no_more_than_it_takes(file, word2vec, counted_blocks):
    names = ["w" + "".join("abcdefghij"[int(digit)] for digit in str(n)) for n in range(5000)]
    path = file(word2vec(names, np.ones((5000, 3))), "a.bin")
    assert len(dptext.load_vectors(path, limit=100)) == 100
    assert len(counted_blocks) <= 2
    assert len(dptext.load_vectors(path)) == 5001
    assert len(counted_blocks) > 5


NO_HEADER = (
    'a.bin: expected word2vec\'s binary format, which begins with a line "rows dimension", got none; if it is text, '
    "let its name end in .txt or .vec"
)
CUT = "a.bin: expected 2 rows, as the header says, the file ends after row {}; it was cut: copy it again"
NOT_FINITE = "a.bin, row 2: the vector holds NaN or infinity; remove or repair the row"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", 'a.bin holds no vectors: expected a line "rows dimension" and the rows'),
        (b"secret 7.25 1\ncat 1 2\n", NO_HEADER),
        (b"secret", NO_HEADER),
        (b"2 2", NO_HEADER),
        (b"2 2 2\nsecret ", NO_HEADER),
        (b"-2 2\nsecret ", NO_HEADER),
        (b"\xb2 2\nsecret ", NO_HEADER),
        (b"\x00" * 1000, NO_HEADER),
        (
            b"2 2\nsecret 7.25 1.00\ncat 1.00 2.00\n",
            "a.bin: expected word2vec's binary format, got text; let its name end in .txt or .vec",
        ),
        (b"2 1\nsecret \0\0\0\0\ncat \0\0\0", CUT.format(1)),
        (b"2 1\nsecret \0\0\0\0\n", CUT.format(1)),
        (b"2 1\nsecret \0\0\0", CUT.format(0)),
        (b"2 1\n", CUT.format(0)),
        (
            b"1 1\nsecret \0\0\0\0\ncat \0\0\0\0",
            "a.bin: expected 1 rows, as the header says, the file holds more; correct the header or get the file again",
        ),
        (
            b"2 1\ncat \0\0\0\0\n" + b"secret" * 20_000,
            "a.bin, row 2: expected a word, a space and 1 float32 numbers, got no space; is the header right?",
        ),
        (b"2 1\ncat \0\0\0\0\nsecret \0\0\xc0\x7f\n", NOT_FINITE),
        (b"2 1\ncat \0\0\0\0\nsecret \0\0\x80\xff\n", NOT_FINITE),
        (
            b"2 1\nsecret \0\0\0\0\nsecret \0\0\xe8\x40",
            "a.bin, rows 1 and 2 hold the same word: remove the one whose vector is wrong",
        ),
        (
            b"1 1\n. \0\0\0\0",
            "a.bin: no words among the vectors: every entry is a number, an address or punctuation",
        ),
    ],
)
def test_a_broken_file_is_named_by_its_row(refused, file, content, message):
    refused(file(content, "a.bin"), message)
