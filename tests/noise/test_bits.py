"""Coins and flips: their chances are the given integers, and epsilons come from these integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dptext.noise import discrete as module
from dptext.noise.discrete import (
    FINE_SCALE,
    SCALE,
    asked_less_rounding,
    coins,
    fine_threshold,
    flip_codes,
    flip_epsilon,
    flip_threshold,
    leaning_coins,
    log_ratio,
    losses_of_a_bit,
    packed_coins,
    round_at_random,
    round_up_epsilon,
    uneven_bits,
)
from dptext.privacy.randomness import RandomBits

FALSE_ALARM = 1e-6
DRAWS = 200_000


def is_the_chance(heads, draws, chance, tests=1):
    return stats.binomtest(int(heads), draws, chance).pvalue > FALSE_ALARM / tests


# -- epsilons of integers ----------------------------------------------------------------------------------------


def test_thresholds_and_stated_epsilons_stay_below_the_requested_epsilon():
    for epsilon in (1e-6, 1e-3, 0.1, math.log(3), 8.0, 20.0):
        threshold = flip_threshold(epsilon)
        assert flip_epsilon(threshold) <= epsilon < flip_epsilon(threshold - 1)
        assert flip_epsilon(threshold) > 0.99 * epsilon
    for epsilon in np.geomspace(1e-3, 500, 50):
        assert round_up_epsilon(asked_less_rounding(epsilon)) <= epsilon
        assert round_up_epsilon(epsilon) > epsilon


# -- coins -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0, 1, 2**31, SCALE - 1])
def test_a_coin_counts_the_integers_below_its_threshold(threshold, monkeypatch):
    """Every coin compares one uniform integer of 32 bits with the threshold, so its chance is exact."""
    edges = np.array([0, max(threshold - 1, 0), threshold, SCALE - 1], dtype=np.uint32)
    monkeypatch.setattr(module, "_words", lambda _bits, count: np.resize(edges, count))
    assert coins(None, 4, threshold).tolist() == [edge < threshold for edge in edges.tolist()]
    packed = packed_coins(RandomBits(1), 1, np.full(4, threshold, dtype=np.uint32))
    assert np.unpackbits(packed)[:4].tolist() == coins(None, 4, threshold).tolist()
    codes = np.zeros(4, dtype=np.uint16)
    flip_codes(codes, [0, threshold], None)
    assert (codes >> 1).tolist() == coins(None, 4, threshold).tolist()


@pytest.mark.parametrize(("width", "equal"), [(1, True), (13, True), (13, False), (64, False)])
def test_packed_coins_have_their_chances_and_wrong_ones_are_rejected(width, equal):
    rows = DRAWS // width
    chances = np.full(width, 0.3) if equal else np.linspace(0.1, 0.9, width)
    packed = packed_coins(RandomBits(2), rows, (chances * SCALE).astype(np.uint32))
    assert packed.shape == (rows, -(-width // 8))
    heads = np.unpackbits(packed, axis=1)
    assert not heads[:, width:].any()
    counts = heads[:, :width].sum(axis=0)
    assert all(is_the_chance(*entry, tests=width) for entry in zip(counts, [rows] * width, chances, strict=True))
    assert not is_the_chance(counts.sum(), rows * width, chances.mean() / 1.5)


def test_coins_of_different_columns_rows_and_blocks_are_independent():
    rows = 60_000  # several blocks, two tasks
    heads = np.unpackbits(packed_coins(RandomBits(3), rows, np.full(32, SCALE // 2, dtype=np.uint32)), axis=1)
    signs = heads.astype(np.float64) * 2 - 1
    # each correlation is nearly normal with deviation 1 / sqrt(rows); 32 * 31 / 2 + 31 of them
    limit = stats.norm.isf(FALSE_ALARM / 2 / 527) / math.sqrt(rows)
    correlations = signs.T @ signs / rows
    assert np.abs(correlations[np.triu_indices(32, 1)]).max() < limit
    assert np.abs((signs[1:] * signs[:-1]).mean(axis=0)).max() < limit
    assert np.abs((signs[:30_000] * signs[30_000:]).mean(axis=0)).max() < limit * math.sqrt(2)
    copied = np.concatenate([signs[:, :16], signs[:, :16]], axis=1)
    assert np.abs((copied.T @ copied / rows)[np.triu_indices(32, 1)]).max() > limit


def test_codes_are_flipped_bit_by_bit():
    thresholds = [int(share * SCALE) for share in (0.4, 0.2, 0.05)]
    codes = np.full(DRAWS, 0b101, dtype=np.uint16)
    flip_codes(codes, thresholds, RandomBits(4))
    flips = np.array(thresholds) / SCALE
    flipped = np.arange(8)[:, None] ^ 0b101
    law = np.where(flipped >> np.arange(3) & 1, flips, 1 - flips).prod(axis=1)
    counts = np.bincount(codes, minlength=8)
    assert stats.chisquare(counts, law * DRAWS).pvalue > FALSE_ALARM
    other = np.where(flipped >> np.arange(3) & 1, flips / 1.5, 1 - flips / 1.5).prod(axis=1)
    assert stats.chisquare(counts, other * DRAWS).pvalue < FALSE_ALARM


@pytest.mark.parametrize("number", [-1.0, -0.3, 0.7])
def test_a_leaning_coin_leans_by_its_number(number):
    threshold = flip_threshold(1.5)
    heads = leaning_coins(RandomBits(5), np.full(DRAWS, number), threshold).sum()
    flip = threshold / SCALE
    assert is_the_chance(heads, DRAWS, 0.5 + number * (0.5 - flip))
    assert not is_the_chance(heads, DRAWS, 0.5 + (number + 0.05) * (0.5 - flip))


def test_a_leaning_coin_has_the_extreme_probabilities_of_its_threshold(monkeypatch):
    """They are t and 2^32 - t, of 2^32: the integers of equation (flip)."""
    for threshold in (1, 12_345, flip_threshold(0.001)):
        edges = np.array([threshold - 1, threshold, SCALE - threshold - 1, SCALE - threshold], dtype=np.uint32)
        monkeypatch.setattr(module, "_words", lambda _bits, count, edges=edges: edges[:count])
        assert leaning_coins(None, np.full(4, -1.0), threshold).tolist() == [True, False, False, False]
        assert leaning_coins(None, np.full(4, 1.0), threshold).tolist() == [True, True, True, False]


# -- uneven bits ---------------------------------------------------------------------------------------------------


class Given:
    """A stream that yields what a test wants."""

    def __init__(self, words, more):
        self.words, self.more = words, more

    def take(self, count):
        assert count == self.words.nbytes
        return self.words.tobytes()

    def integers(self, count):
        return self.more[:count].astype(np.uint64)


@pytest.mark.parametrize("seed", [0, 7])
def test_a_coin_is_a_comparison_of_64_bits(seed):
    """Words that tie with a threshold in their first 16 bits come often here; all 64 bits decide."""
    rng = np.random.default_rng(seed)
    rows, width = 40, 13
    one, zero = (rng.integers(0, 2**64, size=width, dtype=np.uint64) for _ in range(2))
    zero[:4] = one[:4] + np.uint64(seed)  # the same first bits, for the most part
    words = np.where(rng.random((rows, width)) < 0.5, one >> np.uint64(48), rng.integers(0, 2**16, (rows, width)))
    words = words.astype("<u2")
    more = rng.integers(0, 2**64, size=rows * width, dtype=np.uint64)
    more[::2] = (one[0] & np.uint64(2**48 - 1)) << np.uint64(16)  # a tie to the last bit
    code = rng.random((rows, width)) < 0.5
    sent = np.unpackbits(uneven_bits(Given(words, more), np.packbits(code, axis=1), one, zero), axis=1)[:, :width]

    coarse = [(entry >> np.uint64(48)).astype(int) for entry in (one, zero)]
    used, target = 0, np.empty((rows, width), dtype=bool)
    for row in range(rows):
        for column in range(width):
            word, rest = int(words[row, column]), 0
            if word in (coarse[0][column], coarse[1][column]):
                rest = int(more[used]) >> 16
                used += 1
            target[row, column] = (word << 48) + rest < int((one if code[row, column] else zero)[column])
    assert used > 100
    assert (sent.astype(bool) == target).all()


def test_a_chance_that_16_bits_do_not_hold_comes_as_often_as_it_should():
    """2^25 coins of 1.5 * 2^-18: about 192; with the first 16 bits alone there would be none, without rest 512."""
    chance, rows, width = 1.5 * 2.0**-18, 2**15, 2**10
    threshold = np.full(width, fine_threshold(chance), dtype=np.uint64)
    heads = 0
    for part in range(8):
        ones = np.full((rows // 8, width // 8), 255, dtype=np.uint8)
        heads += int(np.unpackbits(uneven_bits(RandomBits(part), ones, threshold, threshold)).sum())
    assert stats.binomtest(heads, rows * width, chance).pvalue > FALSE_ALARM
    for twin in (chance / 1.5, chance * 1.5, 2.0**-16):
        assert stats.binomtest(heads, rows * width, twin).pvalue < FALSE_ALARM


def test_ones_and_zeros_follow_their_own_law_and_twins_with_one_and_a_half_times_the_odds_are_rejected():
    draws = 200_000
    for code, chance in ((255, 0.3), (0, 0.1)):
        one, zero = (np.full(8, fine_threshold(entry), dtype=np.uint64) for entry in (0.3, 0.1))
        sent = uneven_bits(RandomBits(3), np.full((draws, 1), code, dtype=np.uint8), one, zero)
        counts = np.bincount(sent[:, 0], minlength=256)
        places = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1)

        def law(p, places=places):
            return p**places * (1 - p) ** (8 - places)

        assert stats.chisquare(counts, draws * law(chance)).pvalue > FALSE_ALARM
        twin = 1.5 * chance / (1 + 0.5 * chance)
        assert stats.chisquare(counts, draws * law(twin)).pvalue < FALSE_ALARM


def test_losses_are_those_of_exact_fractions():
    for one, zero in ((2**63, 2**62), (2**21, 2**63 + 1), (FINE_SCALE - 2**20, 2**20), (2**63 + 1, 2**63)):
        p, q = Fraction(one, FINE_SCALE), Fraction(zero, FINE_SCALE)
        up, down = losses_of_a_bit(one, zero)
        ratios = {True: (p / q, (1 - p) / (1 - q)), False: (q / p, (1 - q) / (1 - p))}
        for result, side in ((up, True), (down, False)):
            worst = max(ratios[side])
            # ln(1 + x) = 2 artanh(x / (2 + x)), in fractions up to the last step
            target = 2 * math.atanh(float((worst - 1) / (worst + 1)))
            assert result == pytest.approx(target, rel=1e-9)
    assert losses_of_a_bit(2**40, 2**40) == (0.0, 0.0)
    assert log_ratio(3, 5) == -log_ratio(5, 3) == pytest.approx(math.log(0.6))


# -- rounding at random --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [-3.75, -0.1, 1000.9])
def test_it_goes_up_as_often_as_the_number_is_near_what_is_above(number):
    rounded = round_at_random(RandomBits(1), np.full(DRAWS, number))
    below = int(np.floor(number))
    assert set(rounded.tolist()) == {below, below + 1}
    up = int((rounded == below + 1).sum())
    assert stats.binomtest(up, DRAWS, number - below).pvalue > FALSE_ALARM
    assert stats.binomtest(up, DRAWS, (number - below) / 1.5).pvalue < FALSE_ALARM
