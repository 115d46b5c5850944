"""A mechanism as one mapped file: the same mechanism, and its arrays are nobody's copy."""

import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError, StorageError
from dptext.noise.selection import BoundsIndex
from dptext.privacy.randomness import RandomBits
from dptext.spark.tables import opened_tables, write_tables
from dptext.words.registry import MECHANISMS

OPTIONS = {"custext": {"size": 8}, "santext+": {}, "mahalanobis": {}}


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_mechanism_comes_back_and_draws_the_same(name, small, tmp_path):
    mechanism = MECHANISMS[name](small, epsilon=3.0, **OPTIONS.get(name, {}))
    again = opened_tables(write_tables(mechanism, tmp_path))
    rows = np.arange(len(small)) % 50
    drawn = [each.sample_rows(rows, RandomBits.keyed(bytes(32))) for each in (mechanism, again)]
    assert (drawn[0] == drawn[1]).all()
    assert again.statement == mechanism.statement


def test_the_matrix_is_a_view_of_the_file_and_cannot_be_written(small, tmp_path):
    vectors = opened_tables(write_tables(small, tmp_path))
    assert not vectors.matrix.flags.owndata
    assert not vectors.matrix.flags.writeable
    assert vectors.fingerprint == small.fingerprint


def test_an_index_goes_along_and_needs_its_own_file_no_more(glove, tmp_path):
    few = dptext.load_vectors(glove, limit=2000)
    mechanism = dptext.TEM(few, epsilon=4.0, index=tmp_path / "index")
    path = write_tables(mechanism, tmp_path)
    for each in (tmp_path / "index").iterdir():
        each.unlink()
    again = opened_tables(path)
    assert isinstance(again._selection._index, BoundsIndex)
    words = ["doctor", "said", "the"]
    assert again.sample(words, seed=3) == mechanism.sample(words, seed=3)


def test_what_is_the_same_is_written_once(small, tmp_path):
    assert write_tables(small, tmp_path) == write_tables(small, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


def test_what_cannot_be_sent_is_refused_in_one_line(small, tmp_path):
    def inner(x, y):
        return np.abs(x[:, None] - y[None]).sum(axis=2)

    mechanism = dptext.TEM(small, epsilon=1.0, metric=inner)
    with pytest.raises(ParameterError, match="importable there"):
        write_tables(mechanism, tmp_path)


def test_a_cut_file_is_noticed(small, tmp_path):
    path = write_tables(small, tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match="cut"):
        opened_tables(path)
    path.write_bytes(b"")
    with pytest.raises(StorageError):
        opened_tables(path)
