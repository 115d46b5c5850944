"""Subsets of coordinates: all of one size, all equally likely."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dptext.noise.window import uniform_subsets
from dptext.privacy.randomness import RandomBits

FALSE_ALARM = 1e-6
ROWS = 60_000


@pytest.mark.parametrize(("of", "size"), [(5, 1), (5, 2), (6, 3), (4, 4), (7, 6)])
def test_every_subset_is_as_likely(of, size):
    subsets = np.sort(uniform_subsets(RandomBits(1), ROWS, of=of, size=size), axis=1)
    every = list(combinations(range(of), size))
    counts = np.array([(subsets == each).all(axis=1).sum() for each in every])
    assert counts.sum() == ROWS
    if len(every) > 1:
        assert stats.chisquare(counts).pvalue > FALSE_ALARM


def test_runs_of_neighbours_are_not_uniform_subsets():
    """The positive control of the test above."""
    starts = np.random.default_rng(1).integers(0, 6, ROWS)
    subsets = np.sort((starts[:, None] + np.arange(3)) % 6, axis=1)
    counts = np.array([(subsets == each).all(axis=1).sum() for each in combinations(range(6), 3)])
    assert stats.chisquare(counts).pvalue < FALSE_ALARM


def test_no_rows_are_fine():
    assert uniform_subsets(RandomBits(1), 0, of=5, size=2).shape == (0, 2)
