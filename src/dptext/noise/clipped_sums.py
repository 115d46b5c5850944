"""Matrices of people clipped to a norm in exact integers, and exactly rounded noise on their sum.

Derivation: docs/mechanisms/numbers.md#noise-clipped-sums
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
    """(V, k) float64: cells in units of `CELL`, plus N(0, sigma^2) on each, rounded to a public grid."""
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
    """Return how many numbers are not whole multiples of `grid_step`: none in any output of `noisy_matrix`."""
    return int(np.count_nonzero(np.fmod(matrix, grid_step(sigma))))
