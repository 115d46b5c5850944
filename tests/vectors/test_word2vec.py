"""Text and binary files of GloVe and word2vec, compressed or not; broken lines and rows are named."""

import gzip
import tracemalloc

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptext
from dptext.io.batches import InputFile
from dptext.vectors import formats as module

GOOD = "the 0.1 0.2\n. 0.5 0.5\nCat 1 2\ncat 3 4\n3.14 0 0\ndog -1 1e-3\n"


def test_words_and_numbers(file):
    for content in (
        GOOD,
        "6 2\n" + GOOD,
        GOOD.replace("\n", " \n"),  # as word2vec and fastText write it
        GOOD.replace("\n", "\r\n"),
        GOOD.removesuffix("\n"),
        GOOD + "\n\n",
        "\ufeff6 2\n" + GOOD,
    ):
        vectors = dptext.load_vectors(file(content))
        assert vectors.words == ("the", "cat", "dog", "<unk>")
        assert vectors["cat"].tolist() == [1.0, 2.0]  # the first of two case variants
        np.testing.assert_allclose(vectors["dog"], [-1.0, 1e-3])


def test_words_that_hold_spaces_are_known_by_the_number_of_numbers(file):
    content = "cat 1 2\n. . . 3 4\nat name@domain.com 5 6\n\u0085 7 8\ndog 9 9\n 1 1\n"
    vectors = dptext.load_vectors(file(content))
    assert vectors.words[:2] == ("cat", "dog")
    assert vectors["dog"].tolist() == [9.0, 9.0]


def test_the_numbers_are_those_that_python_reads(file):
    texts = ["0.1", "-1e-45", "3.4028235e38", "1e-60", "+.5", "5.", "00012", "1E3", "-0", "0.30000001192092896"]
    vectors = dptext.load_vectors(file("cat " + " ".join(texts) + "\n"))
    assert vectors["cat"].tobytes() == np.array([float(text) for text in texts], dtype=np.float32).tobytes()


def test_a_file_of_many_blocks_is_one_file(file, small_blocks):
    rows = np.random.default_rng(3).normal(size=(3000, 8)).astype(np.float32)
    names = ["w" + "".join("abcdefghij"[int(digit)] for digit in str(n)) for n in range(len(rows))]
    lines = [" ".join([name, *map(repr, row.tolist())]) for name, row in zip(names, rows, strict=True)]
    lines.insert(2000, "a word of spaces " + " ".join(["1"] * 8))
    path = file("\n".join(lines))
    assert path.stat().st_size > 50 * small_blocks
    vectors = dptext.load_vectors(path)
    assert vectors.words[:-1] == tuple(names)
    np.testing.assert_array_equal(vectors.matrix[:-1], rows)


def test_a_limit_reads_no_more_than_it_takes(file, monkeypatch, small_blocks):
    names = ["w" + "".join("abcdefghij"[int(digit)] for digit in str(n)) for n in range(5000)]
    path = file("".join(f"{name} 0.25 0.5 0.75 1.0\n" for name in names))
    positions = []
    close = InputFile.close
    monkeypatch.setattr(InputFile, "close", lambda self: (positions.append(self.position), close(self)))
    assert len(dptext.load_vectors(path, limit=100)) == 100
    assert len(dptext.load_vectors(path)) == 5001
    size = path.stat().st_size
    assert positions[0] < size / 2 and positions[1] == size


BROKEN_TEXT = [
    ("the 1 2\nsecret 7.25\n", "vectors.txt, line 2: expected a word and 2 numbers"),
    ("the 1 2\nsecret 7.25 1 1\n", "vectors.txt, line 2: expected a word and 2 numbers"),
    ("the 1 2\nsecret 7.25 secret\n", "vectors.txt, line 2: expected a word and 2 numbers"),
    ("the 1 2\nsecret nan 7.25\n", "vectors.txt, line 2: the vector contains NaN"),
    ("2 3\nthe 1 2\nsecret 7.25 1\n", "vectors.txt, line 2: expected a word and 3 numbers"),
    ("secret 1 2\n. 1 2\n. 1 2\nSecret 3 4\nsecret 7.25 1\n", "vectors.txt, lines 1 and 5 contain the same word"),
    ("", "no vectors"),
    (b"2 2\nsecret \0\0\0\0\0\0\0\0\ncat \0\0\0\0\0\0\0\0\n", "vectors.txt: expected text, got binary data"),
    *((f"{header}\nsecret 7.25 1\n", "vectors.txt, line 1") for header in ("2 0", "2 " + "9" * 30, "9" * 40 + " 2")),
]


def test_a_broken_text_file_is_named_by_its_line(refused, file):
    for content, message in BROKEN_TEXT:
        refused(file(content), message)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("019.-+eE_naif x", min_size=1, max_size=9), min_size=2, max_size=4))
def test_lines_at_once_and_one_by_one_read_the_same(fields):
    """The quick way must take nothing that the careful way refuses, nor read it differently."""
    rows = [" ".join(fields).encode(), b"0 " * (len(fields) - 1) + b"0"]
    together = module._matrix(rows, len(fields))
    alone = module._matrix(rows[:1], len(fields))
    assert (together is None) == (alone is None)
    if alone is not None:
        numbers = np.array([float(field) for field in " ".join(fields).split(" ")])
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(alone[0], numbers.astype(np.float32))
        np.testing.assert_array_equal(together[0], alone[0])


# -- the binary format ---------------------------------------------------------------------------------------------


def test_numbers_may_hold_spaces_and_line_feeds(file, word2vec):
    matrix = np.frombuffer(b" \n \n\n\n  a  \n\n\n\n\n    \n \n b\n\n cccc", dtype="<f4").reshape(2, 4)
    vectors = dptext.load_vectors(file(word2vec(["cat", "dog"], matrix), "a.bin"))
    assert vectors.matrix[:2].tobytes() == matrix.tobytes()


@pytest.mark.parametrize(("dimension", "end"), [(1, b"\n"), (37, b""), (5000, b"\n")])
def test_rows_across_blocks(file, word2vec, dimension, end, small_blocks):
    count = 20 * small_blocks // (4 * dimension) + 3
    rows = np.random.default_rng(5).normal(size=(count, dimension)).astype(np.float32)
    names = ["w" + "".join("abcdefghij"[int(digit)] for digit in str(n)) for n in range(count)]
    vectors = dptext.load_vectors(file(word2vec(names, rows, end=end), "a.bin"))
    assert vectors.words[:-1] == tuple(names)
    np.testing.assert_array_equal(vectors.matrix[:-1], rows)


BROKEN_BINARY = [
    *((content, "a.bin: expected word2vec's binary format") for content in (b"", b"secret 7.25 1\ncat 1 2\n")),
    (b"2 2\nsecret 7.25 1.00\ncat 1.00 2.00\n", "a.bin: expected word2vec's binary format, got text"),
    (b"2 1\nsecret \0\0\0\0\ncat \0\0\0", "the file ends after row 1"),
    (b"1 1\nsecret \0\0\0\0\ncat \0\0\0\0", "the file contains more"),
    (b"2 1\ncat \0\0\0\0\n" + b"secret" * 20_000, "a.bin, row 2"),
    (b"2 1\ncat \0\0\0\0\nsecret \0\0\xc0\x7f\n", "a.bin, row 2: the vector contains NaN"),
    (b"9" * 40 + b" 2\nsecret 7.25 1\n", "a.bin, line 1"),
]


def test_a_broken_binary_file_is_named_by_its_row(refused, file):
    for content, message in BROKEN_BINARY:
        refused(file(content, "a.bin"), message)


def test_a_wrong_number_of_rows_is_refused_without_much_memory(refused, file, word2vec):
    for header, message in (
        (b"3 2\n", "the file ends after row 2"),
        (b"999999999999999 2\n", "the file ends after row 2"),
        (b"1 2\n", "the file contains more"),
    ):
        rows = word2vec(["secret", "dog"], [[7.25, 2], [3, 4]], header=header)
        tracemalloc.start()
        refused(file(rows, "a.bin"), message)
        refused(file(header + b"secret 7.25 2\ndog 3 4\n", "a.txt"), message)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10_000_000


# -- compressed files ----------------------------------------------------------------------------------------------


def zstd(data):
    return pyarrow.compress(data, "zstd", asbytes=True)


def test_compressed_files_of_several_frames_are_read_and_cut_ones_refused(refused, tmp_path):
    lines = b"".join(b"w%s 0.1 7.25\n" % bytes(97 + int(digit) for digit in str(n)) for n in range(5_000))
    for name, pack in (("a", bytes), ("a.GZ", gzip.compress), ("a.zst", zstd)):
        (tmp_path / name).write_bytes(pack(lines) + pack(b"") + pack(b"end 1 2\n"))
        vectors = dptext.load_vectors(tmp_path / name)
        assert (len(vectors), vectors["end"].tolist()) == (5_002, [1.0, 2.0])
    for name, pack in (("a.txt.gz", gzip.compress), ("a.txt.zst", zstd)):
        packed = pack(b"".join(b"secret%d 0.1 7.25\n" % n for n in range(50)))
        cut = (packed[:-1], packed[:-12], packed + b"more", b"secret 1 2\n", packed[:10] + b"\xff" * 5 + packed[15:])
        for content in cut:
            (tmp_path / name).write_bytes(content)
            refused(tmp_path / name, f"{name}: the compressed data is broken")
