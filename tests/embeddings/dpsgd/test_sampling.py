"""Poisson sampling: coins of their own, of the chance that is stated, for each unit."""

import math

import numpy as np
import pytest
from scipy import stats

from dptext.embeddings.dpsgd.sampling import sampled_slots, sampled_users, threshold
from dptext.privacy.randomness import RandomBits

ALARM = 1e-6


def likely(count, trials, chance):
    """Two-sided, `ALARM`."""
    return min(stats.binom.cdf(count, trials, chance), stats.binom.sf(count - 1, trials, chance)) > ALARM / 2


def users(rates, levels, seed=1):
    thresholds = np.array([threshold(rate) for rate in rates], dtype=np.uint64)
    return sampled_users(RandomBits(seed), np.asarray(levels, dtype=np.uint16), thresholds)


def test_each_level_has_its_rate():
    """Levels in blocks and mixed, across the blocks in which bits are drawn. Six tests of `ALARM`."""
    rates = (0.5, 0.01, 0.1)
    for levels in (np.repeat([0, 1, 2], 200_000), np.tile([0, 1, 2], 200_000)):
        found = users(rates, levels)
        assert (np.diff(found) > 0).all()
        for level, rate in enumerate(rates):
            count = int((levels[found] == level).sum())
            assert likely(count, 200_000, rate)
            assert not likely(count, 200_000, 1.2 * rate)


def test_coins_are_independent():
    """Pairs of neighbours and of steps: chi-square with `ALARM`; a sample of fixed size is rejected by its variance."""
    levels = np.zeros(1000, dtype=np.uint16)
    taken = np.zeros((2000, 1000), dtype=np.int64)
    for step in range(2000):
        taken[step, users((0.3,), levels, seed=step)] = 1
    sizes = taken.sum(axis=1)
    spread = ((sizes - 300) ** 2).sum() / (1000 * 0.3 * 0.7)
    assert ALARM / 2 < stats.chi2.cdf(spread, 2000) < 1 - ALARM / 2
    for one, other in ((taken[:, :-1], taken[:, 1:]), (taken[:-1], taken[1:])):
        # products of a unit with both its neighbours hang together
        z = ((one & other).sum() - one.size * 0.09) / math.sqrt(one.size * 0.09 * 0.91 * (1 + 2 * 0.3))
        assert abs(z) < stats.norm.isf(ALARM / 2)


@pytest.mark.parametrize(("rate", "expected"), [(1.0, 2**32), (0.5, 2**31), (2.0**-32, 1), (0.1, 429496729)])
def test_chances_are_rounded_down(rate, expected):
    assert threshold(rate) == expected


def test_everybody_and_nobody():
    assert users((1.0,), np.zeros(1000)).tolist() == list(range(1000))
    assert users((0.5,), []).tolist() == []


def test_slots_have_their_rate_and_geometric_gaps():
    """Two tests of `ALARM`."""
    found = sampled_slots(RandomBits(1), 10_000_000, 0.001)
    assert (np.diff(found) > 0).all()
    assert found[-1] < 10_000_000
    assert likely(len(found), 10_000_000, 0.001)
    assert not likely(len(found), 10_000_000, 0.0011)
    gaps = np.diff(found) - 1
    counts = np.histogram(gaps, [0, 100, 300, 700, 1500, 3000, 1e9])[0]
    chances = np.diff(stats.geom.cdf(np.array([0, 100, 300, 700, 1500, 3000, 1e9]), 0.001))
    assert stats.chisquare(counts, chances * len(gaps) / chances.sum()).pvalue > ALARM


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
@pytest.mark.parametrize("rate", [1.0, 0.999, 0.5, 1e-9])
def test_slots_of_every_number_and_rate(count, rate):
    found = [sampled_slots(RandomBits(seed), count, rate) for seed in range(300)]
    assert all(each.size == 0 or (each[0] >= 0 and each[-1] < count) for each in found)
    assert likely(sum(map(len, found)), 300 * count, rate) if 0 < rate < 1 and count else True
    if rate == 1.0:
        assert found[0].tolist() == list(range(count))


def test_the_first_and_the_last_slot_are_like_the_others():
    taken = np.zeros(5)
    for seed in range(20_000):
        taken[sampled_slots(RandomBits(seed), 5, 0.3)] += 1
    assert all(likely(int(each), 20_000, 0.3) for each in taken)
