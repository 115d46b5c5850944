"""Noise of a training: exact rounding, normal up to its tails, and of the stated scale over a whole run.

Statistical tests have fixed seeds; on fresh ones each would raise a false alarm with probability `ALARM` at most.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from dptext.embeddings import noise as module
from dptext.embeddings.noise import CellNoise, normals
from dptext.embeddings.participation import CELLS
from dptext.embeddings.training import Tables
from dptext.noise.gaussian_sums import normal_pair
from dptext.privacy.randomness import NoiseKey, RandomBits

ALARM = 1e-6
PAIRS = module._PAIRS
SIGMA = 1.3 * CELLS


def normal_values(words, *, marked=False):
    out = np.empty(2 * PAIRS)
    normals(words, out, marked)
    return out


def drawn_words(seed):
    words = np.empty(2 * PAIRS, dtype=np.uint64)
    RandomBits(seed).fill(words)
    return words


def exactly(radius_word, angle_word):
    """Return the two normals of two words in 50 digits, by definition."""
    with mpmath.workdps(50):
        uniform = (mpmath.mpf(int(radius_word) >> 1) + mpmath.mpf(1) / 2) / 2**63
        turn = (mpmath.mpf(module._angle_lead(int(angle_word))) + mpmath.mpf(1) / 2) / 2**63
        radius, angle = mpmath.sqrt(-2 * mpmath.log(uniform)), 2 * mpmath.pi * turn
        return radius * mpmath.cos(angle), radius * mpmath.sin(angle)


@pytest.mark.statistical
def test_normals_have_the_proved_precision():
    words = drawn_words(1)
    words[:8] = [2**64 - 1, 2**64 - 2, 1, 3, 2**39, 2**40 + 7, 2**63, 2**62 - 1]  # the ends of the logarithm
    words[PAIRS : PAIRS + 8] = [0, 2**64 - 1, 2**63, 2**61, 2**62 - 1, 2**62, 3 * 2**61, 5 * 2**60 + 1]
    values = normal_values(words)
    certain = ~np.isnan(normal_values(words, marked=True))
    # marked: the shortest radius and the smallest leads, below the 2^38 and 2^-12 of the bound
    assert np.flatnonzero(~certain).tolist() == [0, 1, 2, 3, PAIRS, PAIRS + 1, PAIRS + 2, PAIRS + 3]
    for pair in range(PAIRS):
        first, second = exactly(words[pair], words[PAIRS + pair])
        if certain[pair]:
            assert abs(first - values[pair]) < module._DOUBT / 100
            assert abs(second - values[PAIRS + pair]) < module._DOUBT / 100
        assert abs(first - values[pair]) < 1e-6  # usable even where the bound does not hold


def test_the_fallback_gives_the_same_normals():
    words = drawn_words(2)
    from decimal import Decimal, localcontext

    with localcontext(prec=60):
        for pair in range(20):
            leads = [int(words[pair]) >> 1, module._angle_lead(int(words[PAIRS + pair]))]
            uniforms = [(Decimal(lead) + Decimal("0.5")) / 2**63 for lead in leads]
            result, _ = normal_pair(uniforms, Decimal(2) ** -63)
            for one, other in zip(result, exactly(words[pair], words[PAIRS + pair]), strict=True):
                assert abs(float(one) - float(other)) < 1e-14


def many(seed, count):
    words = np.empty(-(-count // (2 * PAIRS)) * 2 * PAIRS, dtype=np.uint64)
    RandomBits(seed).fill(words)
    return np.concatenate([normal_values(block) for block in words.reshape(-1, 2 * PAIRS)])


def test_normals_are_normal_and_uncorrelated():
    """Four tests of `ALARM`; a known-broken version with 1.5 times less noise is rejected."""
    values = many(3, 1_000_000)
    assert stats.kstest(values, "norm").pvalue > ALARM
    for lag in (1, PAIRS, 100):
        assert abs((values[:-lag] * values[lag:]).mean()) * math.sqrt(len(values)) < stats.norm.isf(ALARM / 2)
    assert stats.kstest(values[:10_000] / 1.5, "norm").pvalue < ALARM


def test_tails_exceed_those_of_short_uniforms():
    """Of normals from 24-bit uniforms none is beyond 5.77 standard deviations, where a normal is with 8e-9. Here, given
    a radius beyond 5.77 (the 24 leading bits of its word are 0), the rest of its energy is exponential, as it should
    be.
    """
    words = np.empty(40 * 2 * PAIRS, dtype=np.uint64)
    RandomBits(4).fill(words)
    words = words.reshape(-1, 2 * PAIRS)
    words[:, :PAIRS] >>= np.uint64(24)
    values = np.array([normal_values(word) for word in words])
    energy = (values[:, :PAIRS] ** 2 + values[:, PAIRS:] ** 2).ravel() / 2
    beyond = energy - 24 * math.log(2)
    assert beyond.min() >= 0
    assert np.sqrt(2 * energy.max()) > 6.9
    assert np.abs(values).max() > 6.5
    assert stats.kstest(beyond, "expon").pvalue > ALARM
    assert stats.kstest(np.minimum(beyond, 2.0), "expon").pvalue < ALARM  # known-broken: cut at 6.1
    angles = np.arctan2(values[:, PAIRS:], values[:, :PAIRS]).ravel() / (2 * math.pi)
    assert stats.kstest(angles % 1, "uniform").pvalue > ALARM


# -- on tables ----------------------------------------------------------------------------------------------------


def sums_of(tables, rows, cells):
    sums = np.zeros(tables.shape, dtype=np.int32)
    sums[rows] = cells
    return sums


def test_tables_move_by_the_rounded_sum_of_cells_and_noise():
    """Compare with 50 digits: every number is the grid point nearest to cells + sigma Z."""
    noise, rows = CellNoise(SIGMA), np.array([3, 0], dtype=np.int32)
    tables = np.zeros((5, 300), dtype=np.float32)
    cells = np.random.default_rng(5).integers(-(2**20), 2**20, (2, 300)).astype(np.int32)
    cells[1] >>= 5  # numbers of 16 bits
    noise.descend(tables, rows, sums_of(tables, rows, cells), 2.0**-40, RandomBits(6))
    words = np.empty(1024, dtype=np.uint64)
    RandomBits(6).fill(words)
    flat = cells.ravel()
    for place in range(0, 600, 7):
        pair = exactly(words[place % PAIRS], words[PAIRS + place % PAIRS])
        grid = mpmath.nint((int(flat[place]) + SIGMA * pair[place // PAIRS]) / noise.step)
        slot, axis = divmod(place, 300)
        assert tables[rows[slot], axis] == -np.float32(float(grid) * 2.0**-40 * noise.step)
    assert not tables[[1, 2, 4]].any()


def test_doubtful_numbers_are_settled_exactly(monkeypatch):
    """With a large margin of doubt, every number is computed exactly, pair by pair."""
    rows = np.arange(3, dtype=np.int32)
    cells = np.random.default_rng(7).integers(-(2**20), 2**20, (3, 201)).astype(np.int32)
    cells[0] >>= 5
    result = []
    for doubt in (module._DOUBT, 2.0**-14.5):
        monkeypatch.setattr(module, "_DOUBT", doubt)  # in front of the compiled loop
        settled = []
        settle = module.settle
        monkeypatch.setattr(module, "settle", lambda *arguments, f=settle, s=settled: s.append(1) or f(*arguments))
        tables = np.ones((3, 201), dtype=np.float32)
        CellNoise(SIGMA).descend(tables, rows, sums_of(tables, rows, cells), 2.0**-30, RandomBits(8))
        monkeypatch.setattr(module, "settle", settle)
        result.append((tables, len(settled)))
    assert result[0][1] == 0
    assert result[1][1] > 150
    assert (result[0][0] == result[1][0]).all()


def run_of_noise(steps, *, key):
    """Return the noise of a whole run without users, in standard deviations."""
    rates = np.linspace(1.0, 0.1, steps)
    tables = np.zeros((20_000, 100), dtype=np.float32)
    output = Tables(tables, rates, CellNoise(SIGMA))
    for step in range(steps):
        output.descend(step, key(step, 1))
    return tables / (SIGMA * math.sqrt((rates**2).sum()))


def fresh(step, use):
    return NoiseKey(9).stream(b"test", 2 * step + use, b"")


def reused(step, use):
    """Known-broken: one step of twenty has the noise of the step before it."""
    return fresh(step - (step == 14), use)


def within_half_a_percent(values):
    """2 million numbers: their variance is off by .5% with a probability below 1e-6 (5 standard deviations)."""
    return abs(float((values.astype(np.float64) ** 2).mean()) - 1) < 0.005


def test_the_noise_of_a_whole_run_has_the_stated_scale():
    assert within_half_a_percent(run_of_noise(20, key=fresh))


def test_a_reused_counter_is_detected():
    """It adds 3 per cent to the variance."""
    values = run_of_noise(20, key=reused)
    assert not within_half_a_percent(values)
    assert not within_half_a_percent(values / math.sqrt(1.02))


def test_no_two_rows_or_steps_share_noise():
    values = run_of_noise(1, key=fresh)
    assert len(np.unique(values[:, :3], axis=0)) == 20_000
    one, other = (run_of_noise(1, key=lambda step, use, n=n: fresh(step + n, use)) for n in (0, 5))
    # correlation of independent numbers: 7e-4 each; 5 of them with probability below 1e-6
    assert abs(float((one * other).mean())) < 5 / math.sqrt(one.size)
