"""An object as one mapped file: the same object, and its arrays are nobody's copy."""

import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError, StorageError
from dptext.processes import load_shared, save_shared


def test_the_matrix_is_a_view_of_the_file_and_cannot_be_written(small, tmp_path):
    vectors = load_shared(save_shared(small, tmp_path))
    assert not vectors.matrix.flags.owndata
    assert not vectors.matrix.flags.writeable
    assert vectors.fingerprint == small.fingerprint


def test_what_is_the_same_is_written_once(small, tmp_path):
    assert save_shared(small, tmp_path) == save_shared(small, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def test_what_cannot_be_sent_is_refused_in_one_line(small, tmp_path):
    def inner(x, y):
        return np.abs(x[:, None] - y[None]).sum(axis=2)

    mechanism = dptext.TEM(small, epsilon=1.0, metric=inner)
    with pytest.raises(ParameterError, match="importable there"):
        save_shared(mechanism, tmp_path)


def test_a_cut_file_is_noticed(small, tmp_path):
    path = save_shared(small, tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match="cut"):
        load_shared(path)
    path.write_bytes(b"")
    with pytest.raises(StorageError):
        load_shared(path)


def test_a_bank_from_a_folder_takes_its_texts_and_vectors_along_as_arrays(tmp_path):
    words = [f"word{number}" for number in range(40)]
    vectors = dptext.load_vectors((words, np.random.default_rng(1).normal(size=(40, 8))))
    texts = [f"{one} {other}" for one in words for other in words]
    dptext.TextBank(texts, encoder=dptext.MeanOfWords(vectors), cache=False).save(tmp_path / "bank")
    bank = dptext.TextBank.load(tmp_path / "bank")
    path = save_shared(dptext.BankRewriter(bank, epsilon=4.0), tmp_path)
    repeated = load_shared(path).bank
    assert path.stat().st_size < bank.vectors.nbytes + 8 * len(bank) + sum(map(len, texts)) + 60_000
    for array in (repeated.vectors, repeated.texts._content):
        assert not array.flags.owndata
        assert not array.flags.writeable
    assert repeated.fingerprint == bank.fingerprint
    assert repeated.texts[7] == texts[7]
