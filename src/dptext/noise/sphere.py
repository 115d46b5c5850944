"""Uniform directions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits

__all__ = ["uniform_directions"]


def uniform_directions(bits: RandomBits, count: int, dimension: int) -> npt.NDArray[np.float64]:
    """(count, dimension) float64, rows uniform on the unit sphere: normal vectors, normalised (Muller 1959)."""
    directions = bits.normal(count, dimension)
    lengths = np.sqrt((directions**2).sum(axis=1, keepdims=True))
    # All coordinates are zero with probability below 2^-53: a fixed direction then, never an error.
    directions[lengths[:, 0] == 0.0, 0] = 1.0
    lengths[lengths == 0.0] = 1.0
    directions /= lengths
    return directions
