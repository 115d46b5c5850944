"""Matrices of people clipped to a norm in exact integers, and exactly rounded noise on their sum.

What a person brings is a matrix x of finite numbers. It is scaled as a whole, all its rows together, to the person's
clipping norm C,

    y = C x / ||x||,                                                                                         (scaled)

(a short one is made longer) and every number is rounded *towards zero* to a multiple of 2^-24. All of it is done number
by number, or on integers: so a person's matrix is a function of their own x, to the last bit, no matter who is worked
on together with them.

**Sensitivity.** For every person (no number, one number, a million rows of the greatest numbers) the Euclidean length
of their rounded matrix is at most C. *Proof.* It is checked, in integers: with y = 2^-24 m, m integers below 2^25 in
size, the sum of m^2 is at most C^2 2^48 (no overflow: see `clipped_matrices`), else the matrix is cut until it is.
Nothing of it depends on anybody else, as long as x does not: C is public. The sum over people is one of integers, so it
is exact in any order: with and without a person it differs by their matrix, to the last bit, and by at most C under
add/remove, C + C' under substitution. (A sum of floating-point numbers has no such bound: the roundings of all later
additions change with one person.) |

**Noise** comes once, on every number of every row, used or not.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.noise.rounded import rounded_gaussian
from dptext.privacy.randomness import RandomBits

__all__ = [
    "CELL",
    "MOST_USERS",
    "Floats",
    "Integers",
    "clipped_matrices",
    "count_off_grid",
    "grid_step",
    "noisy_matrix",
]

CELL = 2.0**-24
"""The grid of a person's numbers."""
MOST_USERS = 2**28
"""So many people may take part: below, no sum exceeds what a double holds exactly."""

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

_STEPS = 12  # the grid of the outcome is 2^-12 of the noise, or finer
_ROWS_AT_ONCE = 1024
_SQUARE_UNITS = 2.0**34  # of a squared length: 4e8 squares of at most 1 add up to less than 2^63


def clipped_matrices(rows: Floats, starts: Integers, norms: Floats) -> Integers:
    """(m, k) int64 in units of `CELL`: each person's rows scaled to their clipping norm C, rounded towards zero, and
    checked, from (m, k) finite numbers.

    Args:
        starts: (u,) the first row of each person.
        norms: (u,) C, above 0 and at most 1.
    """
    # Halving and doubling are exact, and so is a maximum: every matrix is first brought to numbers of at most 1.
    largest = np.maximum.reduceat(np.abs(rows).max(axis=1), starts)
    exponents = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    sizes = np.diff(np.r_[starts, len(rows)])
    rows = np.clip(np.nan_to_num(np.ldexp(rows, -np.repeat(exponents, sizes)[:, None])), -1.0, 1.0)
    # The squared length in whole units, each square rounded up: an integer sum, so no order of adding matters.
    squares = np.ceil(rows * rows * _SQUARE_UNITS).astype(np.int64).sum(axis=1)
    length = np.sqrt(np.add.reduceat(squares, starts) / _SQUARE_UNITS)
    # 1 - 2^-30 covers the rounding of these few operations
    scale = np.divide(norms / CELL * (1 - 2.0**-30), length, out=np.zeros_like(length), where=length > 0)
    scaled = rows * np.repeat(scale, sizes)[:, None]  # (scaled)
    cells: Integers = np.trunc(scaled).astype(np.int64)
    allowed = np.array([_allowed(norm) for norm in norms.tolist()], dtype=np.int64)
    while True:
        # In coarse units first: where these add up to no more than 2^40, the whole sum stays below 2^62.
        coarse = np.add.reduceat(((np.abs(cells) >> 10) ** 2).sum(axis=1), starts)
        exact = np.add.reduceat((cells * cells).sum(axis=1), starts)
        over = (coarse > 2**40) | (exact > allowed)
        if not over.any():
            return cells
        factor = np.repeat(np.where(over, 1 - 2.0**-20, 1.0), sizes)[:, None]
        cells = np.trunc(cells * factor).astype(np.int64)


@lru_cache(maxsize=1024)  # a norm is that of a level
def _allowed(norm: float) -> int:
    """The greatest integer that is at most C^2 2^48: seldom a double, so not computed with any."""
    return math.floor(Fraction(norm) ** 2 * 2**48)


def noisy_matrix(cells: npt.NDArray[np.int64], sigma: float, bits: RandomBits) -> npt.NDArray[np.float64]:
    """(V, k) float64: cells in units of `CELL`, plus N(0, sigma^2) on each, rounded to a public grid.

    **Guarantee.** That of the real-valued Gaussian mechanism of this sigma on a sum whose sensitivity is the norm C
    of a person's matrix (above), exactly: cells are integers that doubles hold (for at most
    `MOST_USERS` users), and the outcome has the law of the rounded real number (`dptext.noise.rounded`), so finite
    arithmetic adds nothing to epsilon. Assumption: `dptext.noise.rounded.ELEMENTARY`.

    The ``bits`` are of this release alone. A sigma of 0 gives the sum itself, **which is private**.
    """
    exact = cells.astype(np.float64)
    if sigma == 0.0:
        return exact * CELL
    step = grid_step(sigma)
    for start in range(0, len(exact), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        exact[block] = rounded_gaussian(bits, exact[block], sigma=sigma / CELL, step=step / CELL)
    exact *= step
    return exact


def grid_step(sigma: float) -> float:
    """Return the step of the public grid of `noisy_matrix`: the power of two in (sigma 2^-13, sigma 2^-12]."""
    return 2.0 ** (math.floor(math.log2(min(sigma / CELL, 2.0**1000))) - _STEPS) * CELL


def count_off_grid(matrix: Floats, sigma: float) -> int:
    """Return how many numbers are not whole multiples of `grid_step`: none in any output of `noisy_matrix`.

    The step is a power of two, so the multiples and this test are exact. A sum without noise is a multiple of `CELL`
    only, and floating-point noise of 2^-52 of its size.
    """
    return int(np.count_nonzero(np.fmod(matrix, grid_step(sigma))))
