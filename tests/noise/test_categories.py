"""Randomised response on k categories: draws follow the proved distribution."""

from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from dptext.audits.losses import exact_loss
from dptext.noise.discrete import RandomizedResponse
from dptext.privacy.randomness import RandomBits


@pytest.mark.parametrize("categories", [1, 2, 10_000])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
def test_the_ratio_of_what_is_drawn_is_never_above_the_promise(categories, epsilon):
    getcontext().prec = 60
    threshold = RandomizedResponse(categories, epsilon).threshold
    ratio = 1 + Fraction(categories * threshold, 2**64 - threshold)  # equation (response)
    true = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    assert Decimal(epsilon) * Decimal("0.99996") < true <= Decimal(epsilon)


def test_the_audit_finds_the_whole_promise_and_refutes_a_wrong_chance():
    response = RandomizedResponse(3, 1.0)
    result = exact_loss(np.log(response.probabilities), allowed=1.0)
    assert result.excess <= 0
    assert result.loss == pytest.approx(1.0, rel=1e-9)
    # Warner's chance for two categories, taken for three
    truth = np.e / (1 + np.e)
    wrong = np.full((3, 3), (1 - truth) / 2)
    np.fill_diagonal(wrong, truth)
    assert exact_loss(np.log(wrong), allowed=1.0).excess > 0.5


def test_what_comes_out_has_these_chances():
    """Chi-square of 9 cells, 6 free: above 45 with chance 5e-8 if all is right; another epsilon is far above."""
    count = 60_000
    sent = RandomizedResponse(3, 1.0).draw(RandomBits(5), np.repeat([0, 1, 2], count))
    seen = np.stack([np.bincount(part, minlength=3) for part in sent.reshape(3, count)])

    def distance(epsilon):
        expected = count * RandomizedResponse(3, epsilon).probabilities
        return float(((seen - expected) ** 2 / expected).sum())

    assert distance(1.0) < 45 < distance(1.5)


def test_a_fresh_draw_each_time_and_one_category():
    truth = np.zeros(64, dtype=np.int64)
    one, other = (RandomizedResponse(4, 0.1).draw(RandomBits(), truth) for _ in range(2))
    assert (one != other).any()  # equal with chance below 1e-30
    assert not RandomizedResponse(1, 1.0).draw(RandomBits(), truth).any()
    assert RandomizedResponse(4, 0.1).draw(RandomBits(), truth[:0]).shape == (0,)
