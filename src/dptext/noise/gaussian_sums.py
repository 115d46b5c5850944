"""Sums clipped in exact integers, with correctly rounded Gaussian and Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits

LEADING = 63
"""Bits of a uniform number in the first draw."""
_MORE = 64

Values: TypeAlias = Callable[[list[Decimal], Decimal], tuple[list[Decimal], Decimal]]
"""(uniform numbers, bound on their errors) -> (values, bound on their errors)."""


def settled(bits: RandomBits, leads: Sequence[int], values: Values) -> list[int]:
    """Return the nearest integers to real numbers that are functions of uniform numbers."""
    known, width = list(leads), LEADING
    while True:
        fresh = bits.take(_MORE // 8 * len(known))
        known = [
            lead << _MORE | int.from_bytes(fresh[8 * position : 8 * position + 8])
            for position, lead in enumerate(known)
        ]
        width += _MORE
        # a decimal digit has more than 3 bits; this context is independent of the caller's decimal context
        with localcontext(Context(prec=width // 3 + 20, Emin=-(10**9), Emax=10**9, traps=[])):
            rest = Decimal(2) ** -width
            reals, error = values([(lead + Decimal("0.5")) * rest for lead in known], rest)
            nearest = [real.to_integral_value() for real in reals]
            if all(abs(real - whole) + error < Decimal("0.5") for real, whole in zip(reals, nearest, strict=True)):
                return [int(whole) for whole in nearest]


def slip() -> Decimal:
    """Return a bound on the relative error of some thousand operations in the decimal context."""
    return Decimal(10) ** (12 - getcontext().prec)


def exponentials(uniforms: list[Decimal], rest: Decimal) -> tuple[list[Decimal], Decimal]:
    """Return E = -ln U of each U, which is known to within rest / 2, and an error bound."""
    energies = [-uniform.ln() for uniform in uniforms]
    # |ln (A + 1/2) - ln (A + f)| <= 1 / (2 A) <= 1 / (A + 1/2) for A >= 1; for A = 0 there is no bound
    minimum = min(uniforms)
    error = rest / minimum if minimum > rest else Decimal("Infinity")
    return energies, error + slip() * (1 + max(energies))


def normal_pair(uniforms: list[Decimal], rest: Decimal) -> tuple[list[Decimal], Decimal]:
    """Return two normals r cos a and r sin a, with r = sqrt(2 E) and a = 2 pi U (Box and Muller 1958), and a bound."""
    [energy], unsure = exponentials(uniforms[:1], rest)
    radius = (2 * energy).sqrt()
    cosine, sine = _cosine_and_sine(2 * _pi(getcontext().prec) * uniforms[1])
    # |sqrt(2 E + 2 e) - sqrt(2 E)| <= 2 |e| / sqrt(2 E) on either side; the error of an angle is at most pi rest
    error = 2 * unsure / radius + radius * (4 * rest + slip())
    return [radius * cosine, radius * sine], error


def _cosine_and_sine(angle: Decimal) -> list[Decimal]:
    """Return cosine and sine by their power series, for angles from 0 to 2 pi."""
    sums = [Decimal(0), Decimal(0)]
    term, place = Decimal(1), 0
    minimum = Decimal(10) ** -getcontext().prec
    while term > minimum:
        sums[place % 2] += term if place % 4 < 2 else -term
        place += 1
        term *= angle / place
    return sums


@lru_cache(maxsize=4)
def _pi(digits: int) -> Decimal:  # noqa: ARG001  the precision of the context
    """Return 16 arctan(1/5) - 4 arctan(1/239) (Machin 1706), cached by number of digits."""
    return 16 * _arctan_of_one_over(5) - 4 * _arctan_of_one_over(239)


def _arctan_of_one_over(number: int) -> Decimal:
    power, total, odd = Decimal(1) / number, Decimal(0), 1
    minimum = Decimal(10) ** -(getcontext().prec + 2)
    while abs(power) > minimum:
        total += power / odd
        power /= -number * number
        odd += 2
    return total


Floats = npt.NDArray[np.float64]
Leads = npt.NDArray[np.int64]

ELEMENTARY = (
    "the double-precision logarithm has a relative error of at most 2^-47, sine and cosine an absolute error of at "
    "most 2^-47"
)
"""Assumption of this module. Libraries document 2^-50, and tests compare several hundred values."""

_SLIP = 2.0**-45  # relative error bound of an elementary function and a few operations
_ROUNDED = 2.0**-51  # error bound of -ln after rounding a uniform number to 53 bits


def rounded_laplace(bits: RandomBits, x: Floats, *, scale: float, step: float) -> Floats:
    """Return (n, d) integers round((x + Z) / step), Z independent of density proportional to exp(-|z| / scale)."""
    draws = bits.integers(x.size).reshape(x.shape)
    leads = (draws >> np.uint64(1)).astype(np.int64)
    negative = (draws & np.uint64(1)).astype(bool)
    energy = -np.log(_middles(leads))
    error = _ROUNDED + _SLIP * _largest(energy) + _inverse(leads)
    np.negative(energy, out=energy, where=negative)
    cells, unsure = _round(x, energy, scale, step, error)
    for place in zip(*np.nonzero(unsure), strict=True):
        sign = -1 if negative[place] else 1
        [cells[place]] = settle(bits, [leads[place]], [x[place]], exponentials, sign * scale, step)
    return cells


def rounded_gaussian(bits: RandomBits, x: Floats, *, sigma: float, step: float) -> Floats:
    """Return (n, d) integers round((x + Z) / step), Z independent normal with standard deviation sigma."""
    normal = _Normals.drawn(bits, *x.shape)
    cells, unsure = _round(x, normal.values, sigma, step, normal.error)
    half = normal.leads.shape[2]
    rows, columns = np.nonzero(unsure)
    for row, pair in sorted(set(zip(rows.tolist(), (columns % max(half, 1)).tolist(), strict=True))):
        both = slice(pair, None, half)  # both depend on the same bits, so they are rounded together
        cells[row, both] = settle(bits, normal.leads[:, row, pair], x[row, both], normal_pair, sigma, step)
    return cells


def rounded_l2_laplace(bits: RandomBits, x: Floats, *, scale: float, step: float) -> Floats:
    """Return (n, d) integers round((x + Z) / step), Z of density proportional to exp(-||z|| / scale)."""
    count, dimension = x.shape
    normal = _Normals.drawn(bits, count, dimension)
    terms = (dimension + 1) // 2
    leads = (bits.integers(count * terms) >> np.uint64(1)).astype(np.int64).reshape(count, terms)
    weight = -np.log(_middles(leads)).sum(axis=1)
    off = terms * (_ROUNDED + _inverse(leads)) + _SLIP * _largest(weight)
    used = [normal.leads[0], normal.leads[1], leads]
    if dimension % 2 == 0:
        extra = _Normals.drawn(bits, count, 1)
        weight += extra.values[:, 0] ** 2 / 2
        off += (_largest(extra.values) + 1) * extra.error
        used += [extra.leads[0], extra.leads[1]]
    length = np.sqrt(2 * weight)
    # |sqrt(2 W + 2 w) - sqrt(2 W)| <= 2 |w| / sqrt(2 W) on either side; the outer 2 covers the product of both errors
    largest = _largest(normal.values)
    off = 2 * _ratio(off, float(length.min(initial=math.inf)))
    error = 2 * (_largest(length) * (normal.error + _SLIP * largest) + off * largest)
    cells, unsure = _round(x, normal.values * length[:, None], scale, step, error)
    for row in np.flatnonzero(unsure.any(axis=1)):
        row_leads = np.concatenate([entry[row] for entry in used])
        cells[row] = settle(bits, row_leads, x[row], partial(_decimal_l2_laplace, dimension), scale, step)
    return cells


def _decimal_l2_laplace(dimension: int, uniforms: list[Decimal], rest: Decimal) -> tuple[list[Decimal], Decimal]:
    """Return one Z at scale 1, from uniforms for the pairs of normals, the exponentials, and the extra normal."""
    half = (dimension + 1) // 2
    pairs = [normal_pair(uniforms[index : 2 * half : half], rest) for index in range(half)]
    energies, off = exponentials(uniforms[2 * half : 3 * half], rest)
    weight, off = sum(energies, Decimal(0)), half * off
    if dimension % 2 == 0:
        [extra, _], extra_off = normal_pair(uniforms[3 * half :], rest)
        weight, off = weight + extra * extra / 2, off + (abs(extra) + 1) * extra_off
    length = (2 * weight).sqrt()
    normals = [pair[0] for pair, _ in pairs] + [pair[1] for pair, _ in pairs][: dimension - half]
    largest = max(abs(normal) for normal in normals)
    error = 2 * (length * (max(entry for _, entry in pairs) + slip() * largest) + 2 * off / length * largest)
    return [length * normal for normal in normals], error


@dataclass
class _Normals:
    """Standard normals in pairs (columns j and j + half), with their leading bits and an error bound."""

    leads: Leads
    values: Floats
    error: float

    @classmethod
    def drawn(cls, bits: RandomBits, count: int, dimension: int) -> _Normals:
        half = (dimension + 1) // 2
        leads = (bits.integers(2 * count * half) >> np.uint64(1)).astype(np.int64).reshape(2, count, half)
        uniforms = _middles(leads)
        radius = np.sqrt(-2.0 * np.log(uniforms[0]))
        angle = 2.0 * np.pi * uniforms[1]
        values = np.empty((count, dimension))
        np.multiply(radius, np.cos(angle), out=values[:, :half])
        other = slice(0, dimension - half)
        np.multiply(radius[:, other], np.sin(angle[:, other]), out=values[:, half:])
        return cls(leads, values, cls._error(leads[0], radius))

    @staticmethod
    def _error(leads: Leads, radius: Floats) -> float:
        """Return the error bound 2 e / r + 2 s r of r cos a; that of E = r^2 / 2 is e <= 2^-51 + s E + 1 / lead."""
        if leads.size == 0:
            return 0.0
        minimum, maximum = float(radius.min()), float(radius.max())
        open_bits = max(_ratio(_inverse(leads), maximum), _ratio(1 / max(int(leads.max()), 1), minimum))
        return _ratio(2 * _ROUNDED, minimum) + 3 * _SLIP * maximum + 2 * open_bits


def _round(x: Floats, noise: Floats, scale: float, step: float, error: float) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return rounded (x + scale * noise) / step and a mask of uncertain entries; ``error`` bounds the noise error."""
    scaled = x / step
    error = error * (scale / step) + 2.0**-50 * _largest(scaled)
    scaled += noise * (scale / step)
    error += 2.0**-50 * _largest(scaled)  # the operations in between, each with a relative error of 2^-53
    cells = np.rint(scaled)
    cells += 0.0  # -0.0 becomes 0, because the sign would reveal more than the rounded value
    return cells, ~(np.abs(scaled - cells) < 0.5 - error)


def settle(
    bits: RandomBits,
    leads: Sequence[np.int64] | Leads,
    x: Sequence[np.float64] | Floats,
    noise: Values,
    scale: float,
    step: float,
) -> list[int]:
    def values(uniforms: list[Decimal], rest: Decimal) -> tuple[list[Decimal], Decimal]:
        lengths, off = noise(uniforms, rest)
        factor, unit = Decimal(scale), Decimal(step)  # exact conversions
        reals = [
            (Decimal(float(position)) + factor * entry) / unit for position, entry in zip(x, lengths, strict=False)
        ]
        return reals, off * abs(factor) / unit + slip() * (
            1 + max(abs(Decimal(float(position))) for position in x) / unit
        )

    return settled(bits, [int(lead) for lead in leads], values)


def _middles(leads: Leads) -> Floats:
    """Return the midpoints of the intervals in (0, 1) that the leading bits determine."""
    middles = leads.astype(np.float64)
    middles += 0.5
    middles *= 2.0**-LEADING
    return np.minimum(middles, 1 - 2.0**-53, out=middles)


def _largest(values: Floats) -> float:
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def _inverse(leads: Leads) -> float:
    """Return 1 / lead, a bound on the effect of the remaining bits on -ln."""
    return _ratio(1.0, float(leads.min(initial=2**LEADING - 1)))


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else math.inf


CELL = 2.0**-24
"""Step of the grid of a person's numbers."""
MOST_USERS = 2**28
"""Largest number of users for which every sum is an exact double."""

Integers: TypeAlias = npt.NDArray[np.int64]

_STEPS = 12  # the step of the output grid is at most 2^-12 of the noise
_ROWS_AT_ONCE = 1024
_SQUARE_UNITS = 2.0**34  # units of a squared length: the sum of 4e8 squares up to 1 is below 2^63


def clipped_matrices(rows: Floats, starts: Integers, norms: Floats) -> Integers:
    # Halving, doubling and a maximum are exact: every matrix is first scaled to numbers of at most 1.
    largest = np.maximum.reduceat(np.abs(rows).max(axis=1), starts)
    exponents = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    sizes = np.diff(np.r_[starts, len(rows)])
    rows = np.clip(np.nan_to_num(np.ldexp(rows, -np.repeat(exponents, sizes)[:, None])), -1.0, 1.0)
    # The squared length in whole units, each square rounded up: an integer sum does not depend on its order.
    squares = np.ceil(rows * rows * _SQUARE_UNITS).astype(np.int64).sum(axis=1)
    length = np.sqrt(np.add.reduceat(squares, starts) / _SQUARE_UNITS)
    # 1 - 2^-30 covers the rounding of these operations
    scale = np.divide(norms / CELL * (1 - 2.0**-30), length, out=np.zeros_like(length), where=length > 0)
    scaled = rows * np.repeat(scale, sizes)[:, None]  # (scaled)
    cells: Integers = np.trunc(scaled).astype(np.int64)
    allowed = np.array([_allowed(norm) for norm in norms.tolist()], dtype=np.int64)
    while True:
        # In coarse units first: if their sum is at most 2^40, the whole sum is below 2^62.
        coarse = np.add.reduceat(((np.abs(cells) >> 10) ** 2).sum(axis=1), starts)
        exact = np.add.reduceat((cells * cells).sum(axis=1), starts)
        over = (coarse > 2**40) | (exact > allowed)
        if not over.any():
            return cells
        factor = np.repeat(np.where(over, 1 - 2.0**-20, 1.0), sizes)[:, None]
        cells = np.trunc(cells * factor).astype(np.int64)


@lru_cache(maxsize=1024)  # one norm per level
def _allowed(norm: float) -> int:
    """Return the largest integer that is at most C^2 2^48, computed exactly because it is seldom a double."""
    return math.floor(Fraction(norm) ** 2 * 2**48)


def sums_by_key(keys: Integers, rows: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the sorted distinct keys, how often each occurs, and the sums of their rows."""
    order = np.argsort(keys, kind="stable")
    distinct, first, counts = np.unique(keys[order], return_index=True, return_counts=True)
    return distinct, counts, np.add.reduceat(rows[order], first, axis=0) if len(first) else rows


def noisy_matrix(cells: npt.NDArray[np.int64], sigma: float, bits: RandomBits) -> npt.NDArray[np.float64]:
    """Return (V, k) float64: cells in units of `CELL`, each plus N(0, sigma^2), rounded to a public grid."""
    exact = cells.astype(np.float64)
    if sigma == 0.0:
        return exact * CELL
    step = grid_step(sigma)
    for start in range(0, len(exact), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        exact[block] = rounded_gaussian(bits, exact[block], sigma=sigma / CELL, step=step / CELL)
    exact *= step
    return exact


def on_grid(cells: Integers, sigma: float) -> Floats:
    """Return cells in units of `CELL` as numbers, each rounded to the public grid of `noisy_matrix`."""
    step = grid_step(sigma)
    return np.asarray(np.rint(cells * (CELL / step)) * step)


def grid_step(sigma: float) -> float:
    """Return the step of the public grid of `noisy_matrix`: the power of two in (sigma 2^-13, sigma 2^-12]."""
    return 2.0 ** (math.floor(math.log2(min(sigma / CELL, 2.0**1000))) - _STEPS) * CELL


def count_off_grid(matrix: Floats, sigma: float) -> int:
    """Return the number of entries that are not multiples of `grid_step`: 0 for any output of `noisy_matrix`."""
    return int(np.count_nonzero(np.fmod(matrix, grid_step(sigma))))
