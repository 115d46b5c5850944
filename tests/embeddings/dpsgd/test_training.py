"""`Tables`: rows that move in a step, and by how much."""

import numpy as np
import pytest

from dptext.embeddings.noise import CellNoise
from dptext.embeddings.participation import CELLS
from dptext.embeddings.training import Tables
from dptext.privacy.randomness import RandomBits

SIGMA = 1.5 * CELLS
RATES = np.array([1.0, 0.5, 2.0, 0.25, 1.0]) / SIGMA


def test_untrained_word_vectors_stay_fixed():
    start = np.arange(24, dtype=np.float32).reshape(6, 4)
    tables = Tables(start.copy(), RATES, CellNoise(SIGMA), both=False)
    for step, bits in enumerate(RandomBits(1).spawn(5)):
        tables.descend(step, bits)
    assert (tables.matrix[:3] == start[:3]).all()
    assert (tables.matrix[3:] != start[3:]).all()


def test_without_noise_a_step_is_plain_descent():
    tables = Tables(np.zeros((4, 3), dtype=np.float32), RATES, None)
    for step in range(3):
        tables.sums[3] = 4 * CELLS
        tables.descend(step, RandomBits(1))
    assert tables.matrix[3] == pytest.approx(-4 * CELLS * RATES[:3].sum())
    assert not tables.matrix[:3].any()
