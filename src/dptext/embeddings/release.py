"""The one release: the sum of bounded matrices, with Gaussian noise on every number of every row.

All |V| rows get noise, whether anybody used the word or not. Which words have a row is public: it tells nothing.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.embeddings.user_matrices import CELL
from dptext.noise.rounded import rounded_gaussian
from dptext.privacy.randomness import RandomBits

__all__ = ["noisy_matrix"]

_STEPS = 12  # the grid of the outcome is 2^-12 of the noise, or finer
_ROWS_AT_ONCE = 1024


def noisy_matrix(cells: npt.NDArray[np.int64], sigma: float, bits: RandomBits) -> npt.NDArray[np.float64]:
    """(V, k) float64: cells in units of `CELL`, plus N(0, sigma^2) on each, rounded to a public grid.

    **Guarantee.** That of the real-valued Gaussian mechanism of this sigma on a sum whose sensitivity is the length C
    of a user's matrix (`dptext.embeddings.user_matrices`), exactly: cells are integers that doubles hold (for at most
    `MOST_USERS` users), and the outcome has the law of the rounded real number (`dptext.noise.rounded`), so finite
    arithmetic adds nothing to epsilon. Assumption: `dptext.noise.rounded.ELEMENTARY`.

    Args:
        cells: (V, k) whole numbers.
        sigma: standard deviation of the noise; 0 gives the sum itself, **which is private**.
        bits: of this release alone.
    """
    exact = cells.astype(np.float64)
    if sigma == 0.0:
        return exact * CELL
    scaled = sigma / CELL
    step = 2.0 ** (math.floor(math.log2(scaled)) - _STEPS)
    for start in range(0, len(exact), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        exact[block] = rounded_gaussian(bits, exact[block], sigma=scaled, step=step)
    exact *= step * CELL
    return exact
