"""The first line of word2vec's formats is a promise: kept, or named."""

import tracemalloc

import pytest

import dptext

BEYOND = (
    ", line 1: expected the number of rows and a dimension of 1 to 1,000,000, got numbers beyond that; is this a file "
    "of vectors?"
)


@pytest.mark.parametrize("name", ["a.txt", "a.bin"])
@pytest.mark.parametrize("header", ["2 0", "2 1000001", "2 " + "9" * 30, "9" * 30 + " 2", "9" * 5000 + " 2"])
def test_a_header_beyond_reason_is_refused(refused, file, name, header):
    refused(file(header + "\nsecret 7.25 1\n", name), name + BEYOND)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"3 2\n", "expected 3 rows, as the header says, the file ends after row 2; it was cut: copy it again"),
        (
            b"999999999999999 2\n",
            "expected 999,999,999,999,999 rows, as the header says, the file ends after row 2; it was cut: copy it "
            "again",
        ),
        (
            b"1 2\n",
            "expected 1 rows, as the header says, the file holds more; correct the header or get the file again",
        ),
    ],
)
def test_a_header_that_does_not_keep_its_promise(refused, file, word2vec, header, message):
    rows = word2vec(["secret", "dog"], [[7.25, 2], [3, 4]], header=header)
    text = header + b"secret 7.25 2\ndog 3 4\n"
    tracemalloc.start()
    refused(file(rows, "a.bin"), f"a.bin: {message}")
    refused(file(text, "a.txt"), f"a.txt: {message}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize("name", ["a.txt", "a.bin"])
def test_a_promise_beyond_the_limit_is_not_looked_at(file, word2vec, name):
    header = b"100 2\n"
    content = word2vec(["cat", "dog", "cow"], [[1, 2], [3, 4], [5, 6]], header=header)
    if name == "a.txt":
        content = header + b"cat 1 2\ndog 3 4\ncow 5 6\n"
    assert dptext.load_vectors(file(content, name), limit=3).words == ("cat", "dog", "<unk>")


def test_a_header_alone(refused, file):
    refused(file("0 2\n", "a.txt"), "a.txt holds no vectors: expected a word and its numbers on each line")
    refused(file("0 2\n", "a.bin"), "a.bin holds no vectors: its header says so")
