"""Tests of mechanisms in a memory-mapped file: equal mechanisms, and arrays without copies."""

import numpy as np
import pytest

from dptext.privacy.randomness import RandomBits
from dptext.processes import load_shared, save_shared
from dptext.words.registry import MECHANISMS

OPTIONS = {"custext": {"size": 8}, "santext+": {}, "mahalanobis": {}}


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_mechanism_comes_back_and_draws_the_same(name, small, tmp_path):
    mechanism = MECHANISMS[name](small, epsilon=3.0, **OPTIONS.get(name, {}))
    shared = load_shared(save_shared(mechanism, tmp_path))
    rows = np.arange(len(small)) % 50
    draws = [entry.sample_rows(rows, RandomBits.keyed(bytes(32))) for entry in (mechanism, shared)]
    assert (draws[0] == draws[1]).all()
    assert shared.statement == mechanism.statement
