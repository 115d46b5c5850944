"""Bits with two chances: every comparison against all 64 bits, and the laws of chances too fine for 16."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dptext.errors import ParameterError
from dptext.noise.bits import FINE_SCALE, fine_threshold, log_ratio, losses_of_a_bit, uneven_bits
from dptext.privacy.randomness import RandomBits

FALSE_ALARM = 1e-6


class Given:
    """A stream that yields what a test wants."""

    def __init__(self, words, more):
        self.words, self.more = words, more

    def take(self, count):
        assert count == self.words.nbytes
        return self.words.tobytes()

    def integers(self, count):
        return self.more[:count].astype(np.uint64)


@pytest.mark.parametrize("seed", range(20))
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

    coarse = [(each >> np.uint64(48)).astype(int) for each in (one, zero)]
    used, wanted = 0, np.empty((rows, width), dtype=bool)
    for row in range(rows):
        for column in range(width):
            word, rest = int(words[row, column]), 0
            if word in (coarse[0][column], coarse[1][column]):
                rest = int(more[used]) >> 16
                used += 1
            wanted[row, column] = (word << 48) + rest < int((one if code[row, column] else zero)[column])
    assert used > 100
    assert (sent.astype(bool) == wanted).all()


def test_unused_bits_are_0_and_no_rows_are_no_rows():
    one = np.full(11, FINE_SCALE - 2**20, dtype=np.uint64)
    sent = uneven_bits(RandomBits(1), np.full((3, 2), 255, dtype=np.uint8), one, one)
    assert (sent[:, 1] & 0b11111 == 0).all()
    assert uneven_bits(RandomBits(1), np.empty((0, 2), dtype=np.uint8), one, one).shape == (0, 2)


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
        one, zero = (np.full(8, fine_threshold(each), dtype=np.uint64) for each in (0.3, 0.1))
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
        for found, side in ((up, True), (down, False)):
            worst = max(ratios[side])
            # ln(1 + x) = 2 artanh(x / (2 + x)), in fractions up to the last step
            wanted = 2 * math.atanh(float((worst - 1) / (worst + 1)))
            assert found == pytest.approx(wanted, rel=1e-9)
    assert losses_of_a_bit(2**40, 2**40) == (0.0, 0.0)
    assert log_ratio(3, 5) == -log_ratio(5, 3) == pytest.approx(math.log(0.6))


@pytest.mark.parametrize("chance", [0.0, 1.0, -0.5, 1e-14, 1 - 1e-14, 2.0, math.nan])
def test_chances_that_64_bits_hardly_hold_are_refused(chance):
    with pytest.raises(ParameterError, match="chances must lie between"):
        fine_threshold(chance)


def test_thresholds_are_the_nearest():
    assert fine_threshold(0.5) == 2**63
    assert fine_threshold(1e-12) == round(Fraction(1e-12) * FINE_SCALE)
