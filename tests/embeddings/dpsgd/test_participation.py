"""Sampling rates of levels, the published accountant and the true epsilon, and exact sampling probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dptext import Document, SkipGram, load_vectors
from dptext.embeddings.participation import (
    personal_participation,
    sampled_slots,
    sampled_users,
    threshold,
)
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits

ALARM = 1e-6

LEVELS = {"strict": 1.0, "standard": 3.0, "open": 8.0}


@pytest.fixture(scope="module")
def participation():
    return personal_participation(LEVELS, delta=1e-6, steps=1000, sampling_rate=0.0625, default="standard")


def test_rates_match_published_values_and_the_epsilon_of_each_level(participation):
    expected = {"strict": 0.00946, "standard": 0.0260, "open": 0.0625}
    assert participation.rates == pytest.approx(expected, rel=0.005)
    for level, epsilon in LEVELS.items():
        assert 0.99 * epsilon < participation.guarantee(level).epsilon <= epsilon
    assert participation.default == "standard"


@pytest.mark.slow
def test_a_rate_determines_the_noise_of_the_largest_level():
    result = personal_participation({"a": 1.0, "b": 8.0}, delta=1e-6, steps=1000, sampling_rate=0.05)
    assert result.noise_multiplier == 1.273
    assert result.rates["b"] == 0.05
    assert result.rates["a"] < 0.01
    assert result.default == "a"


def test_invalid_arguments_are_refused():
    for arguments, part in [
        ({"levels": {}}, "at least one"),
        ({"levels": {"a": 0.01}}, "floor"),
        ({"levels": LEVELS, "default": "none"}, "default"),
    ]:
        with pytest.raises(ParameterError, match=part):
            personal_participation(delta=1e-6, steps=10, sampling_rate=0.1, **arguments)


@pytest.mark.slow
def test_each_level_of_a_training_has_a_statement():
    vectors = load_vectors((["tea", "cup", "tax", "law"], [[1, 0], [2, 1], [-1, 2], [-2, 1]]))
    documents = [
        Document("a cup of tea", user=str(n), attributes={"wish": ("strict", "open")[n % 2]}) for n in range(9)
    ]
    values = personal_participation({"strict": 1.0, "open": 8.0}, delta=1e-6, steps=20, sampling_rate=0.5)
    model = SkipGram(vectors, epsilon=values, level="wish", public_users=20, seed=1).fit(documents)
    strict, other = (model.statements_[level] for level in ("strict", "open"))
    assert strict.epsilon <= 1.0 < other.epsilon <= 8.0
    assert model.statement_ == other
    assert "level 'strict'" in strict.neighbours
    assert "level" not in other.neighbours


# -- sampling -------------------------------------------------------------------------------------------------


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
        result = users(rates, levels)
        assert (np.diff(result) > 0).all()
        for level, rate in enumerate(rates):
            count = int((levels[result] == level).sum())
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


def test_chances_are_rounded_down():
    for rate, expected in [(1.0, 2**32), (0.5, 2**31), (2.0**-32, 1), (0.1, 429496729)]:
        assert threshold(rate) == expected


def test_rates_of_one_and_no_users():
    assert users((1.0,), np.zeros(1000)).tolist() == list(range(1000))
    assert users((0.5,), []).tolist() == []


def test_slots_have_their_rate_and_geometric_gaps():
    """Two tests of `ALARM`."""
    result = sampled_slots(RandomBits(1), 10_000_000, 0.001)
    assert (np.diff(result) > 0).all()
    assert result[-1] < 10_000_000
    assert likely(len(result), 10_000_000, 0.001)
    assert not likely(len(result), 10_000_000, 0.0011)
    gaps = np.diff(result) - 1
    counts = np.histogram(gaps, [0, 100, 300, 700, 1500, 3000, 1e9])[0]
    chances = np.diff(stats.geom.cdf(np.array([0, 100, 300, 700, 1500, 3000, 1e9]), 0.001))
    assert stats.chisquare(counts, chances * len(gaps) / chances.sum()).pvalue > ALARM


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
@pytest.mark.parametrize("rate", [1.0, 0.999, 0.5, 1e-9])
def test_slots_of_every_number_and_rate(count, rate):
    results = [sampled_slots(RandomBits(seed), count, rate) for seed in range(300)]
    assert all(entry.size == 0 or (entry[0] >= 0 and entry[-1] < count) for entry in results)
    assert likely(sum(map(len, results)), 300 * count, rate) if 0 < rate < 1 and count else True
    if rate == 1.0:
        assert results[0].tolist() == list(range(count))


def test_the_first_and_the_last_slot_are_like_the_others():
    taken = np.zeros(5)
    for seed in range(20_000):
        taken[sampled_slots(RandomBits(seed), 5, 0.3)] += 1
    assert all(likely(int(entry), 20_000, 0.3) for entry in taken)
