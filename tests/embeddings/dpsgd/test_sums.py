"""`Sums`: numbers of 16 and 32 bits add up to the same values as numbers of 64 bits."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.embeddings.noise import NOWHERE, Sums, add_cells
from dptext.embeddings.participation import CELLS, MOST
from embeddings.dpsgd.cells import get, put

ROWS, DIMENSION = 6, 9
EDGES = [0, 1, -1, 2**15 - 1, -(2**15 - 1), 2**15, -(2**15), 2**16, CELLS, -CELLS, 12_345, -54_321]


def plainly(total, parts):
    """Add in 64 bits and clamp after each addition."""
    return np.clip(total + np.trunc(parts.astype(np.float64)).astype(np.int64), -MOST, MOST)


@settings(deadline=None, max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    touched=st.lists(st.lists(st.integers(0, ROWS - 1), unique=True, max_size=ROWS), max_size=30),
    scale=st.sampled_from([0, 1, 40, 3_000, 40_000, CELLS]),
)
def test_sums_are_those_of_64_bits(seed, touched, scale):
    generator = np.random.default_rng(seed)
    sums, expected = Sums.of(ROWS, ROWS, DIMENSION), np.zeros((ROWS, DIMENSION), dtype=np.int64)
    for step in range(2):  # the second step finds the sums of the first one
        for rows in touched:
            parts = generator.integers(-scale, scale + 1, (len(rows), DIMENSION)).astype(np.float32)
            edges = generator.random(parts.shape) < 0.1
            parts[edges] = generator.choice(EDGES, parts.shape)[edges]
            add_cells(sums, np.array(rows, dtype=np.int32), parts, np.ones(len(rows)))
            expected[rows] = plainly(expected[rows], parts)
        every = np.arange(ROWS, dtype=np.int32)
        assert (get(sums, every) == expected).all()
        assert sums.touched.tolist() == sorted({row for rows in touched for row in rows})
        if step == 0:
            sums.clear()
            assert not get(sums, every).any()
            expected[:] = 0


def test_sums_are_clamped():
    sums, row = Sums.of(2, 2, DIMENSION), np.array([1], dtype=np.int32)
    put(sums, row, np.full((1, DIMENSION), MOST - 5, dtype=np.int32))
    add_cells(sums, row, np.full((1, DIMENSION), CELLS, dtype=np.float32), np.ones(1))
    assert (get(sums, row) == MOST).all()


def test_a_factor_of_0_touches_nothing():
    sums, row = Sums.of(2, 2, DIMENSION), np.array([1], dtype=np.int32)
    add_cells(sums, row, np.full((1, DIMENSION), np.nan, dtype=np.float32), np.zeros(1))
    assert (sums.places == NOWHERE).all()
