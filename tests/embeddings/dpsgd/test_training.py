"""Lazy noise and dense noise: one law. A row is caught up before it is read, and once for each step."""

import math

import numpy as np
import pytest
from scipy import stats

from dptext.embeddings.dpsgd.noise import CellNoise
from dptext.embeddings.dpsgd.recipe import CELLS
from dptext.embeddings.dpsgd.training import Tables
from dptext.privacy.randomness import RandomBits
from embeddings.dpsgd.cells import put as put_cells

ALARM = 1e-6
SIGMA = 1.5 * CELLS
RATES = np.array([1.0, 0.5, 2.0, 0.25, 1.0]) / SIGMA
READ = [[0, 3], [3], [1, 3], [], [0, 1]]  # row 2 is never read
DRAWS = 4000


def put(tables, row, cells):
    put_cells(tables.sums, np.array([row], dtype=np.int32), cells[None].astype(np.int32))


def run(seed, *, lazy, dimension=1):
    """What is read in each step, and the end: a row's cells are a function of what was read, as gradients are."""
    bits = iter(RandomBits(seed).spawn(20))
    tables = Tables(np.zeros((4, dimension), dtype=np.float32), RATES, CellNoise(SIGMA), lazy=lazy)
    seen = []
    for step, rows in enumerate(READ):
        tables.read(step, np.array(rows, dtype=np.int32), next(bits))
        for row in rows:
            seen.append(tables.matrix[row].copy())
            put(tables, row, np.rint(CELLS * np.tanh(tables.matrix[row])))
        tables.descend(step, next(bits))
    return np.array([*seen, *tables.settled(len(READ), next(bits))])


def test_lazy_and_dense_have_one_law():
    """Seven values that were read and four at the end, over many runs: means, each distribution, all correlations.

    Each of some eighty tests has a false-alarm probability of `ALARM` / 80. A twin that forgets the pending noise is
    rejected.
    """
    dense, lazy = (run(1 + form, lazy=form == 1, dimension=DRAWS) for form in (0, 1))
    size = ALARM / 80
    for one, other in zip(dense, lazy, strict=True):
        if not one.any():
            assert not other.any()  # the first values are read before any noise
            continue
        assert stats.ks_2samp(one, other).pvalue > size
    with np.errstate(invalid="ignore"):
        first, second = np.corrcoef(dense), np.corrcoef(lazy)
    far = stats.norm.isf(size / 2) * math.sqrt(2 / DRAWS)
    there = np.isfinite(first)
    assert (there == np.isfinite(second)).all()
    assert (
        np.abs(np.arctanh(np.clip(first[there], -0.99, 0.99)) - np.arctanh(np.clip(second[there], -0.99, 0.99))).max()
        < far
    )
    never_read = dense[-2] / (SIGMA * math.sqrt((RATES**2).sum()))
    assert stats.kstest(never_read, "norm").pvalue > size
    forgetful = lazy[-2] / (SIGMA * math.sqrt((RATES**2).sum())) * math.sqrt(0.5)
    assert stats.kstest(forgetful, "norm").pvalue < size


def test_the_last_of_a_million_steps_has_its_noise():
    """Learning rates fall in a straight line to nothing. (Sums of variances from the first step on held nothing of the
    last ones: their noise was 0.) A variance of 40,000 numbers is right within 5%: seven standard deviations."""
    steps = 10**6
    falling = np.arange(steps, 0, -1, dtype=np.float64)
    for last in (1, 5):
        tables = Tables(
            np.zeros((4, 10_000), dtype=np.float32), falling / SIGMA, CellNoise(SIGMA), lazy=True, done=steps - last
        )
        noise = tables.settled(steps, RandomBits(last))
        assert np.mean(noise.astype(np.float64) ** 2) == pytest.approx((falling[-last:] ** 2).sum(), rel=0.05)


@pytest.mark.parametrize("lazy", [False, True])
def test_word_vectors_that_are_not_trained_stay_as_they_are(lazy):
    start = np.arange(24, dtype=np.float32).reshape(6, 4)
    tables = Tables(start.copy(), RATES, CellNoise(SIGMA), lazy=lazy, both=False)
    bits = iter(RandomBits(1).spawn(20))
    for step in range(5):
        tables.read(step, np.array([0, 2, 4], dtype=np.int32), next(bits))
        tables.descend(step, next(bits))
    end = tables.settled(5, next(bits))
    assert (end[:3] == start[:3]).all()
    assert (end[3:] != start[3:]).all()


def test_without_noise_both_forms_are_plain_descent():
    ends = []
    for lazy in (False, True):
        tables = Tables(np.zeros((4, 3), dtype=np.float32), RATES, None, lazy=lazy)
        bits = iter(RandomBits(1).spawn(20))
        for step, rows in enumerate(READ):
            tables.read(step, np.array(rows, dtype=np.int32), next(bits))
            for row in rows:
                put(tables, row, np.full(3, (1 + row) * CELLS))
            tables.descend(step, next(bits))
        ends.append(tables.settled(5, next(bits)).copy())
    assert (ends[0] == ends[1]).all()
    assert ends[0][3] == pytest.approx(-4 * CELLS * RATES[:3].sum())
