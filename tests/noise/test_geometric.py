"""Two-sided geometric noise: its coins, its law, and its exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dptext.noise import geometric as module
from dptext.noise.geometric import STEPS, two_sided_geometric
from dptext.privacy.randomness import RandomBits

FALSE_ALARM = 1e-6
DRAWS = 400_000


def law(rate, most):
    """Probabilities of -most .. most, what is longer at the ends."""
    a = math.exp(-rate)
    inside = (1 - a) / (1 + a) * a ** np.abs(np.arange(-most, most + 1.0))
    inside[[0, -1]] = a**most / (1 + a)
    return inside


@pytest.mark.parametrize(("rate", "most"), [(0.01, 2_000), (0.3, 40), (1.0, 12), (3.0, 4), (0.5, 3)])
def test_the_law_is_geometric_and_two_thirds_or_three_halves_of_the_rate_are_rejected(rate, most):
    drawn = two_sided_geometric(RandomBits(1), DRAWS, rate=int(rate * STEPS), most=most)
    counts = np.bincount(drawn + most, minlength=2 * most + 1)

    def fits(other):
        expected = law(other, most) * DRAWS
        rare = expected < 10
        observed, wanted = counts[~rare], expected[~rare]
        if rare.any() and expected[rare].sum() > 0:
            observed, wanted = np.append(observed, counts[rare].sum()), np.append(wanted, expected[rare].sum())
        return stats.chisquare(observed, wanted, sum_check=False).pvalue > FALSE_ALARM

    assert fits(rate)
    assert not fits(rate * 2 / 3)
    assert not fits(rate * 3 / 2)


@pytest.mark.parametrize("g", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)])
def test_a_coin_shows_heads_as_often_as_it_should(g):
    heads = module._coins(RandomBits(2), np.full(DRAWS, int(g * STEPS), dtype=np.uint64)).sum()
    assert stats.binomtest(int(heads), DRAWS, math.exp(-g)).pvalue > FALSE_ALARM
    assert stats.binomtest(int(heads), DRAWS, 0.98 * math.exp(-g)).pvalue < FALSE_ALARM


def test_a_coin_is_exact_over_all_bits_it_can_see(monkeypatch):
    """With four steps and every integer tried once, heads are the series to its second term, as a fraction."""
    monkeypatch.setattr(module, "STEPS", 4)

    class EveryPair:
        """All pairs of (an integer below 4, an integer below 8), then nothing but tails."""

        calls = 0

        def below(self, bounds):
            self.calls += 1
            if self.calls == 1:
                return np.repeat(np.arange(4, dtype=np.uint64), 8)
            return np.tile(np.arange(8, dtype=np.uint64), 4)[: bounds.size] if self.calls == 2 else bounds - 1

    # coin 1 heads with 3/4, coin 2 with 3/8, coin 3 tails: K odd with probability 1 - 3/4 + 3/4 * 3/8
    heads = module._coins(EveryPair(), np.full(32, 3, dtype=np.uint64)).sum()
    assert Fraction(int(heads), 32) == 1 - Fraction(3, 4) + Fraction(3, 4) * Fraction(3, 8)


def test_extreme_rates_are_total():
    assert (two_sided_geometric(RandomBits(3), 1_000, rate=module.LARGEST_RATE, most=10) == 0).all()
    far = two_sided_geometric(RandomBits(3), 1_000, rate=1, most=10)
    assert set(far.tolist()) == {-10, 10}
    assert two_sided_geometric(RandomBits(3), 0, rate=1, most=10).size == 0
