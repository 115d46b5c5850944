"""Rounded noise: its law, and that every rounding is the one of sixty digits."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import stats

from dptext.noise import gaussian_sums as module
from dptext.noise.gaussian_sums import (
    LEADING,
    exponentials,
    normal_pair,
    rounded_gaussian,
    rounded_l2_laplace,
    rounded_laplace,
    settled,
)
from dptext.privacy.randomness import RandomBits
from laws import FALSE_ALARM, follows

FINE = 2.0**-12


def laplace(bits, x, scale, step):
    return rounded_laplace(bits, x, scale=scale, step=step)


def gaussian(bits, x, scale, step):
    return rounded_gaussian(bits, x, sigma=scale, step=step)


def l2_laplace(bits, x, scale, step):
    return rounded_l2_laplace(bits, x, scale=scale, step=step)


KINDS = [laplace, gaussian, l2_laplace]


# -- the law ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.4, 1.7])
@pytest.mark.parametrize(
    ("kind", "law"), [(laplace, stats.laplace), (gaussian, stats.norm), (l2_laplace, stats.laplace)]
)
def test_the_probabilities_of_the_grid_are_those_of_the_rounded_real_number(kind, law, step):
    """Two thirds and three halves of the scale are rejected, and so are borders at another place."""
    draws, position, scale = 200_000, 0.33, 1.3
    cells = kind(RandomBits(1), np.full((draws, 1), position), scale, step)[:, 0]
    assert np.array_equal(cells, np.rint(cells))
    counts = np.bincount(cells.astype(int) + 60, minlength=121)[:121]

    def fits(scale, shift=0.5):
        borders = (np.arange(-60, 62) - shift) * step - position
        return follows(counts, np.diff(law.cdf(borders / scale)))

    assert fits(scale)
    assert not fits(scale * 2 / 3)
    assert not fits(scale * 3 / 2)
    assert not fits(scale, shift=0.25)


@pytest.mark.parametrize("dimension", [2, 3, 8])
def test_the_length_of_l2_laplace_noise_is_gamma_and_its_direction_uniform(dimension):
    draws, scale = 20_000, 0.7
    noise = l2_laplace(RandomBits(2), np.zeros((draws, dimension)), scale, FINE * scale) * FINE * scale
    length = np.sqrt((noise**2).sum(axis=1))
    assert stats.kstest(length, stats.gamma(dimension, scale=scale).cdf).pvalue > FALSE_ALARM
    # without the squared normal of even dimensions the length would lose about half a unit of its shape
    for wrong in (stats.gamma(dimension, scale=scale * 1.5), stats.gamma(dimension - 0.5, scale=scale)):
        assert stats.kstest(length, wrong.cdf).pvalue < FALSE_ALARM
    for axis in {0, dimension // 2, dimension - 1}:
        height = (noise[:, axis] / length + 1) / 2
        assert stats.kstest(height, stats.beta((dimension - 1) / 2, (dimension - 1) / 2).cdf).pvalue > FALSE_ALARM
        assert abs(stats.spearmanr(length, noise[:, axis] / length).statistic) < 5 / math.sqrt(draws)


# -- every rounding is right -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [1, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_what_doubles_decide_is_what_sixty_digits_decide(kind, dimension, monkeypatch):
    """The same leading bits, once as usual and once with every coordinate in doubt."""
    x = np.random.default_rng(1).normal(size=(120, dimension))
    usual = kind(RandomBits(4), x, 1.3, 1.3 * FINE)
    calls = []
    settle = module.settle
    monkeypatch.setattr(module, "settle", lambda *arguments: calls.append(1) or settle(*arguments))
    monkeypatch.setattr(module, "_SLIP", 1.0)
    slow = kind(RandomBits(4), x, 1.3, 1.3 * FINE)
    assert len(calls) >= 120
    np.testing.assert_array_equal(usual, slow)


@pytest.mark.parametrize("kind", KINDS)
def test_in_doubt_more_bits_decide_and_the_law_stays(kind, monkeypatch):
    """On a grid so fine that 63 bits do not reach it, low digits are still uniform; the digits of doubles are 0."""
    step = 2.0**-60
    cells = kind(RandomBits(5), np.zeros((300, 2)), 1.0, step)
    assert (cells % 8 == 0).mean() > 0.9  # as a double shows it
    seen = []
    settled = module.settled
    monkeypatch.setattr(module, "settled", lambda *arguments: seen.append(settled(*arguments)) or seen[-1])
    kind(RandomBits(6), np.zeros((300, 2)), 1.0, step)
    low = np.array([whole % 8 for row in seen for whole in row])
    assert len(low) >= 600
    assert stats.chisquare(np.bincount(low, minlength=8)).pvalue > FALSE_ALARM


LEADS = [0, 1, 2, 3, 1000, 2**30, 2**53 - 1, 2**61, 2**62, 2**62 + 1, 2**63 - 2**40, 2**63 - 1]


def test_doubles_are_as_near_as_the_bound_says():
    """Elementary functions of this machine, over random numbers and the ends of the range."""
    random = [int(integer) >> 1 for integer in RandomBits(7).integers(600)]
    ones = np.array([*LEADS[1:], *random[:300]], dtype=np.int64)
    twos = np.array([*LEADS[:0:-1], *random[300:]], dtype=np.int64)
    for start in range(0, len(ones), 7):
        part = slice(start, start + 7)
        leads = np.stack([ones[part], twos[part]])[:, :, None]

        class Given:
            def integers(self, count, leads=leads):
                return leads.ravel().astype(np.uint64) << np.uint64(1)

        normal = module._Normals.drawn(Given(), leads.shape[1], 2)
        for row in range(leads.shape[1]):
            with localcontext(prec=50):
                uniforms = [(int(lead) + Decimal("0.5")) * Decimal(2) ** -LEADING for lead in leads[:, row, 0]]
                exact, _ = normal_pair(uniforms, Decimal(0))
                energy, _ = exponentials(uniforms[:1], Decimal(0))
                off = max(abs(Decimal(float(a)) - b) for a, b in zip(normal.values[row], exact, strict=True))
                double = -np.log(module._middles(leads[0, row]))[0]
                assert abs(Decimal(float(double)) - energy[0]) <= Decimal(2.0**-51) + Decimal(2.0**-47) * energy[0]
                assert off <= Decimal(normal.error)
        if ones[part].min() > 2**20 and ones[part].max() < 2**62:
            assert normal.error < 1e-12  # and the bound is no empty one


class Constant:
    """All bits zero, or all one."""

    def __init__(self, byte):
        self.byte, self.calls = byte, 0

    def integers(self, count):
        return np.frombuffer(self.byte * (8 * count), dtype=np.uint64)

    def take(self, count):
        self.calls += 1
        return (b"\x5a" if self.calls > 2 else self.byte) * count


@pytest.mark.parametrize("byte", [b"\0", b"\xff"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_extremes_of_the_bits_are_total(kind, byte):
    cells = kind(Constant(byte), np.array([[0.2, -0.1, 0.0]]), 1.0, FINE)
    assert np.isfinite(cells).all()


# -- digits --------------------------------------------------------------------------------------------------------


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
    """Moved over everything that the bits leave open, the normals stay within the error that is stated."""
    with localcontext(prec=60):
        rest = Decimal(2) ** -20
        for one, two in [(3, 0), (1, 5), (2**20 - 1, 2**19), (2**10, 2**20 - 1), (2**19, 12_345)]:
            middle = [(Decimal(entry) + Decimal("0.5")) * rest for entry in (one, two)]
            known, error = normal_pair(middle, rest)
            for a in ("0.001", "0.5", "0.999"):
                for b in ("0.001", "0.999"):
                    moved, _ = normal_pair([(one + Decimal(a)) * rest, (two + Decimal(b)) * rest], Decimal(0))
                    assert all(abs(x - y) <= error for x, y in zip(known, moved, strict=True))
