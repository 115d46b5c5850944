"""Decimal arithmetic behind a rounding, and the drawing of more bits until it is sure."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import stats

from dptext.noise import rounded as digits
from dptext.noise.rounded import LEADING, exponentials, normal_pair, settled
from dptext.privacy.randomness import RandomBits

FALSE_ALARM = 1e-6


def test_pi_and_the_circle_to_sixty_digits():
    with localcontext(prec=70):
        assert str(digits._pi(70)).startswith("3.14159265358979323846264338327950288419716939937510582097494459")
        for angle in ("0", "0.001", "1.5", "3.2", "6.28"):
            cosine, sine = digits._cosine_and_sine(Decimal(angle))
            assert abs(cosine * cosine + sine * sine - 1) < Decimal("1e-65")
            assert float(cosine) == pytest.approx(math.cos(float(angle)), abs=1e-15)
            assert float(sine) == pytest.approx(math.sin(float(angle)), abs=1e-15)


def test_what_is_settled_is_the_rounded_uniform_number_and_uses_no_more_bits_than_it_needs():
    """U in 2^-LEADING (lead, lead + 1), in steps of which a border lies inside: only more bits can tell the side."""
    lead = 2**62

    def steps(uniforms, rest):
        return [(uniforms[0] * 2**LEADING - lead) * share for share in (1, 10)], rest * 2**LEADING * 10

    bits = RandomBits(1)
    cells = np.array([settled(bits, [lead], steps) for _ in range(4_000)])
    # round(10 U'), U' uniform: 0 and 10 half as often as the others; round(U') is the same U' once more
    counts = np.bincount(cells[:, 1], minlength=11)
    assert stats.chisquare(counts, np.array([0.05, *[0.1] * 9, 0.05]) * 4_000).pvalue > FALSE_ALARM
    assert ((cells[:, 0] == 1) == (cells[:, 1] > 5))[cells[:, 1] != 5].all()


class ZerosThenOnes:
    """A stream that first gives nothing but zeros."""

    def __init__(self, zeros):
        self.left, self.asked = zeros, 0

    def take(self, count):
        self.asked += 1
        self.left -= 1
        return (b"\0" if self.left >= 0 else b"\x37") * count


def test_a_uniform_number_that_begins_with_zeros_asks_for_more():
    bits = ZerosThenOnes(3)
    [cell] = settled(bits, [0], lambda uniforms, rest: exponentials(uniforms, rest))
    assert bits.asked == 4
    assert cell == round((LEADING + 3 * 64) * math.log(2) - math.log(0x37 / 256))


def test_a_border_is_never_decided_without_the_bits():
    """Zeros for ever stay below 2^-k for all k, so the cells of U - 1/2 stay open; the first one settles them."""
    bits = ZerosThenOnes(10)
    assert settled(bits, [2 ** (LEADING - 1)], lambda uniforms, rest: ([uniforms[0]], rest)) == [1]
    assert bits.asked == 11


def test_the_error_of_a_normal_pair_holds():
    """Moved over all that the bits leave open, the normals stay within the error that is stated."""
    with localcontext(prec=60):
        rest = Decimal(2) ** -20
        for one, two in [(3, 0), (1, 5), (2**20 - 1, 2**19), (2**10, 2**20 - 1), (2**19, 12_345)]:
            middle = [(Decimal(each) + Decimal("0.5")) * rest for each in (one, two)]
            known, error = normal_pair(middle, rest)
            for a in ("0.001", "0.5", "0.999"):
                for b in ("0.001", "0.999"):
                    moved, _ = normal_pair([(one + Decimal(a)) * rest, (two + Decimal(b)) * rest], Decimal(0))
                    assert all(abs(x - y) <= error for x, y in zip(known, moved, strict=True))
