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
    """(count, dimension) float64, rows with density proportional to exp(-||z|| / scale).

    The radius is Gamma(shape dimension, scale), the direction uniform: E||z|| = dimension * scale and
    E||z||^2 = dimension (dimension + 1) scale^2.

    **Guarantee.** x + z satisfies metric DP with epsilon = 1 / scale per unit of Euclidean distance, because
    | ||o - x|| - ||o - x'|| | <= ||x - x'||. Assumption: double-precision noise is treated as real-valued; do not
    release its digits, snap or post-process it (Mironov 2012).
    """
    # Gamma of integer shape d is the sum of d exponentials; all 53-bit tails are there.
    radius = scale * bits.exponential(count, dimension).sum(axis=1, keepdims=True)
    noise = uniform_directions(bits, count, dimension)
    noise *= radius
    return noise


def elliptical_laplace(
    bits: RandomBits, count: int, root: npt.NDArray[np.float64], scale: float
) -> npt.NDArray[np.float64]:
    """(count, dimension) float64, rows with density proportional to exp(-||root^-1 z|| / scale).

    The image of `l2_laplace` under the (d, d) ``root``. Any two roots of one matrix A = root root^T give the same
    law, because they differ by a rotation and directions are uniform.

    **Guarantee.** x + z satisfies metric DP with epsilon = 1 / scale per unit of ||root^-1 (x - x')||. Assumption: as
    for `l2_laplace`.
    """
    return l2_laplace(bits, count, len(root), scale) @ root.T
