"""The sum of a step: rounded towards zero and clamped after each addition."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.embeddings.noise import add_cells
from dptext.embeddings.participation import CELLS, MOST

ROWS, DIMENSION = 6, 9


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 2**32 - 1),
    touched=st.lists(st.lists(st.integers(0, ROWS - 1), unique=True, max_size=ROWS), max_size=30),
    scale=st.sampled_from([0, 1, 40, 3_000, 40_000, CELLS]),
)
def test_sums_are_those_of_64_bits(seed, touched, scale):
    generator = np.random.default_rng(seed)
    sums, expected = np.zeros((ROWS, DIMENSION), dtype=np.int32), np.zeros((ROWS, DIMENSION), dtype=np.int64)
    for rows in touched:
        parts = generator.uniform(-scale, scale, (len(rows), DIMENSION)).astype(np.float32)
        add_cells(sums, np.array(rows, dtype=np.int32), parts, np.ones(len(rows)))
        expected[rows] += np.trunc(parts.astype(np.float64)).astype(np.int64)
    assert (sums == expected).all()


def test_sums_are_clamped():
    for sign in (1, -1):
        sums, row = np.zeros((2, DIMENSION), dtype=np.int32), np.array([1], dtype=np.int32)
        sums[1] = sign * (MOST - 5)
        add_cells(sums, row, np.full((1, DIMENSION), sign * CELLS, dtype=np.float32), np.ones(1))
        assert (sums[1] == sign * MOST).all()


def test_a_factor_of_0_touches_nothing():
    sums, row = np.zeros((2, DIMENSION), dtype=np.int32), np.array([1], dtype=np.int32)
    add_cells(sums, row, np.full((1, DIMENSION), np.nan, dtype=np.float32), np.zeros(1))
    assert not sums.any()
