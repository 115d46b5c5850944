"""A mechanism as one mapped file: the same mechanism, and its arrays are nobody's copy."""

import numpy as np
import pytest

import dptext
from dptext.noise.selection import BoundsIndex
from dptext.object_files import opened_object
from dptext.privacy.randomness import RandomBits
from dptext.spark.tables import write_tables
from dptext.words.registry import MECHANISMS

OPTIONS = {"custext": {"size": 8}, "santext+": {}, "mahalanobis": {}}


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_mechanism_comes_back_and_draws_the_same(name, small, tmp_path):
    mechanism = MECHANISMS[name](small, epsilon=3.0, **OPTIONS.get(name, {}))
    again = opened_object(write_tables(mechanism, tmp_path))
    rows = np.arange(len(small)) % 50
    drawn = [each.sample_rows(rows, RandomBits.keyed(bytes(32))) for each in (mechanism, again)]
    assert (drawn[0] == drawn[1]).all()
    assert again.statement == mechanism.statement


def test_an_index_goes_along_and_needs_its_own_file_no_more(glove, tmp_path):
    few = dptext.load_vectors(glove, limit=2000)
    mechanism = dptext.TEM(few, epsilon=4.0, index=tmp_path / "index")
    path = write_tables(mechanism, tmp_path)
    for each in (tmp_path / "index").iterdir():
        each.unlink()
    again = opened_object(path)
    assert isinstance(again._selection._index, BoundsIndex)
    words = ["doctor", "said", "the"]
    assert again.sample(words, seed=3) == mechanism.sample(words, seed=3)
