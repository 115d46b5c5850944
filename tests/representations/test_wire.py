"""Bytes on the wire: what comes from outside is checked for its shape and otherwise always means something."""

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.representations.bits import OneBit, OptimizedUnary, WeightedBits

RANDOMIZERS = [OneBit(epsilon=8.0), WeightedBits(epsilon=40.0, bits=3), OptimizedUnary(epsilon=2.0)]
DIMENSION = 11


@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_any_bytes_decode_and_unused_bits_are_ignored(randomizer):
    channel = randomizer.channel(DIMENSION)
    rubbish = np.random.default_rng(1).integers(0, 256, (500, channel.bytes), dtype=np.uint8)
    decoded = randomizer.decode(rubbish, DIMENSION)
    assert decoded.dtype == np.float32 and decoded.shape == (500, DIMENSION) and np.isfinite(decoded).all()
    unused = 8 * channel.bytes - channel.bits
    assert unused > 0
    rubbish[:, -1] ^= 1
    np.testing.assert_array_equal(channel.decode(rubbish), decoded)
    sent = randomizer.send(np.zeros((50, DIMENSION)))
    assert not (sent[:, -1] & ((1 << unused) - 1)).any()


@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_send_is_seeded_like_randomize_and_fresh_without_a_seed(randomizer):
    vectors = np.random.default_rng(2).uniform(-1, 1, (200, DIMENSION))
    np.testing.assert_array_equal(
        randomizer.decode(randomizer.send(vectors, seed=3), DIMENSION), randomizer.randomize(vectors, seed=3)
    )
    assert (randomizer.send(vectors) != randomizer.send(vectors)).any()


def test_what_is_no_row_of_bytes_is_refused():
    for sent in [
        np.zeros((2, 3), dtype=np.uint8),
        np.zeros(2, dtype=np.uint8),
        np.zeros((2, 2)),
        np.zeros((2, 2), dtype=bool),
        np.zeros((2, 2), dtype=np.int8),
        [[0, 0]],
    ]:
        with pytest.raises(ParameterError, match=r"expected uint8 of shape \(n, 2\)"):
            OneBit(epsilon=8.0).decode(sent, DIMENSION)


def test_vectors_are_checked_as_everywhere():
    with pytest.raises(ParameterError, match="shape"):
        OneBit(epsilon=1.0).send([1.0, 2.0])
    with pytest.raises(ParameterError, match="expected vectors of 3 numbers"):
        OneBit(epsilon=1.0).channel(3).send(np.zeros((1, 4)), RandomBits(1))
    with pytest.raises(ParameterError, match="dimension"):
        OneBit(epsilon=1.0).decode(np.zeros((1, 1), dtype=np.uint8), 0)
