"""Random real numbers to as many digits as a rounding asks for.

A uniform real number is an endless row of random bits, of which the first `LEADING` are drawn at once. A rounded
function of such numbers almost always depends on these alone; where double precision cannot tell which way it goes,
more bits are drawn and it is computed in decimal arithmetic until it can (the idea is Knuth and Yao's, 1976). So what
comes out has exactly the law of the rounded real number: no digit of it is a floating-point accident.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, getcontext, localcontext
from functools import lru_cache
from typing import TypeAlias

from dptext.privacy.randomness import RandomBits

__all__ = ["LEADING", "Values", "exponentials", "normal_pair", "settled", "slip"]

LEADING = 63
"""Bits of a uniform number that are drawn at once."""
_MORE = 64

Values: TypeAlias = Callable[[list[Decimal], Decimal], tuple[list[Decimal], Decimal]]
"""(uniform numbers, how far each may be off) -> (values, how far each of them may be off)."""


def settled(bits: RandomBits, leads: Sequence[int], values: Values) -> list[int]:
    """The nearest integers of real numbers that depend on uniform ones.

    Args:
        bits: where more bits come from.
        leads: the first `LEADING` bits of each uniform number, as integers.
        values: the real numbers and a bound on their error, from the uniform ones at the middle of what their bits
            leave open. It runs in a decimal context that is precise enough.
    """
    known, width = list(leads), LEADING
    while True:
        fresh = bits.take(_MORE // 8 * len(known))
        known = [lead << _MORE | int.from_bytes(fresh[8 * at : 8 * at + 8]) for at, lead in enumerate(known)]
        width += _MORE
        # a decimal digit has more than 3 bits; nothing a caller sets in his own context matters here
        with localcontext(Context(prec=width // 3 + 20, Emin=-(10**9), Emax=10**9, traps=[])):
            rest = Decimal(2) ** -width
            reals, error = values([(lead + Decimal("0.5")) * rest for lead in known], rest)
            nearest = [real.to_integral_value() for real in reals]
            if all(abs(real - whole) + error < Decimal("0.5") for real, whole in zip(reals, nearest, strict=True)):
                return [int(whole) for whole in nearest]


def slip() -> Decimal:
    """More than what some thousand operations of the decimal context can be off by, relatively."""
    return Decimal(10) ** (12 - getcontext().prec)


def exponentials(uniforms: list[Decimal], rest: Decimal) -> tuple[list[Decimal], Decimal]:
    """E = -ln U of each, U within rest / 2 of what is known of it."""
    energies = [-uniform.ln() for uniform in uniforms]
    # |ln (A + 1/2) - ln (A + f)| <= 1 / (2 A) <= 1 / (A + 1/2) for A >= 1; for A = 0 there is no bound
    least = min(uniforms)
    error = rest / least if least > rest else Decimal("Infinity")
    return energies, error + slip() * (1 + max(energies))


def normal_pair(uniforms: list[Decimal], rest: Decimal) -> tuple[list[Decimal], Decimal]:
    """r cos a and r sin a with r = sqrt(2 E), a = 2 pi U: two normals from two uniforms (Box and Muller 1958)."""
    [energy], unsure = exponentials(uniforms[:1], rest)
    radius = (2 * energy).sqrt()
    cosine, sine = _cosine_and_sine(2 * _pi(getcontext().prec) * uniforms[1])
    # |sqrt(2 E + 2 e) - sqrt(2 E)| <= 2 |e| / sqrt(2 E) on either side; an angle is off by pi rest at most
    error = 2 * unsure / radius + radius * (4 * rest + slip())
    return [radius * cosine, radius * sine], error


def _cosine_and_sine(angle: Decimal) -> list[Decimal]:
    """The two power series, for angles from 0 to 2 pi."""
    sums = [Decimal(0), Decimal(0)]
    term, place = Decimal(1), 0
    least = Decimal(10) ** -getcontext().prec
    while term > least:
        sums[place % 2] += term if place % 4 < 2 else -term
        place += 1
        term *= angle / place
    return sums


@lru_cache(maxsize=4)
def _pi(digits: int) -> Decimal:  # noqa: ARG001  the precision of the context
    """16 arctan(1/5) - 4 arctan(1/239) (Machin 1706), remembered for a number of digits."""
    return 16 * _arctan_of_one_over(5) - 4 * _arctan_of_one_over(239)


def _arctan_of_one_over(number: int) -> Decimal:
    power, total, odd = Decimal(1) / number, Decimal(0), 1
    least = Decimal(10) ** -(getcontext().prec + 2)
    while abs(power) > least:
        total += power / odd
        power /= -number * number
        odd += 2
    return total
