"""Noise whose density falls exponentially with its length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits

__all__ = ["elliptical_laplace", "l2_laplace", "uniform_directions"]


def uniform_directions(bits: RandomBits, count: int, dimension: int) -> npt.NDArray[np.float64]:
    """(count, dimension) float64, rows uniform on the unit sphere: normal vectors, normalised (Muller 1959)."""
    directions = bits.normal(count, dimension)
    lengths = np.sqrt((directions**2).sum(axis=1, keepdims=True))
    # All coordinates are zero with probability below 2^-53: a fixed direction then, never an error.
    directions[lengths[:, 0] == 0.0, 0] = 1.0
    lengths[lengths == 0.0] = 1.0
    directions /= lengths
    return directions


def l2_laplace(bits: RandomBits, count: int, dimension: int, scale: float) -> npt.NDArray[np.float64]:
    """(count, dimension) float64, rows with density proportional to exp(-||z|| / scale)."""
    # Gamma of integer shape d is the sum of d exponentials; all 53-bit tails are there.
    radius = scale * bits.exponential(count, dimension).sum(axis=1, keepdims=True)
    noise = uniform_directions(bits, count, dimension)
    noise *= radius
    return noise


def elliptical_laplace(
    bits: RandomBits, count: int, root: npt.NDArray[np.float64], scale: float
) -> npt.NDArray[np.float64]:
    """(count, dimension) float64, rows with density proportional to exp(-||root^-1 z|| / scale)."""
    return l2_laplace(bits, count, len(root), scale) @ root.T
