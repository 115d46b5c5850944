"""The secret of a job: the same part gets the same bits, anything changed gets others."""

import copy
import itertools
import pickle

import pytest

from dptext.errors import ParameterError
from dptext.privacy.randomness import NoiseKey, RandomBits


def bits(key, parameters=b"p", place=0, content=b"c"):
    return key.stream(parameters, place, content).take(16)


def test_a_part_gets_the_same_bits_again():
    key = NoiseKey()
    assert bits(key) == bits(key)
    assert bits(NoiseKey.restored(key.secret(), seeded=False)) == bits(key)
    assert bits(NoiseKey(seed=7)) == bits(NoiseKey(seed=7))


def test_anything_changed_gets_other_bits():
    key = NoiseKey(seed=7)
    parts = list(itertools.product([b"", b"p", b"pp"], [0, 1, 11], [b"", b"c", b"1c"]))
    assert len({bits(key, *part) for part in parts}) == len(parts)
    assert len({bits(NoiseKey(seed=seed)) for seed in (0, 1, -1, 10)}) == 4
    assert bits(NoiseKey()) != bits(NoiseKey())


def test_a_job_and_a_stream_of_one_seed_share_nothing():
    assert NoiseKey(seed=7).secret() != RandomBits(7).take(32)


def test_the_statement_can_tell_that_a_seed_was_used():
    assert NoiseKey(seed=7).seeded
    assert NoiseKey(seed=7).stream(b"", 0, b"").seeded
    assert not NoiseKey().stream(b"", 0, b"").seeded
    assert NoiseKey.restored(bytes(32), seeded=True).stream(b"", 0, b"").seeded


@pytest.mark.parametrize("share", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_is_never_copied_by_accident(share):
    with pytest.raises(TypeError, match="never copied or pickled"):
        share(NoiseKey())


def test_it_does_not_show_its_secret():
    key = NoiseKey()
    assert key.secret().hex() not in repr(key)


@pytest.mark.parametrize("seed", [True, 1.5, "7"])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(ParameterError, match="seed must be an integer"):
        NoiseKey(seed=seed)


def test_a_secret_has_its_length():
    with pytest.raises(ParameterError, match="has 32 bytes, got 31"):
        NoiseKey.restored(bytes(31), seeded=False)
