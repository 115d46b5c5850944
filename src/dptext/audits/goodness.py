"""Whether private vectors are drawn from the noise that their statement names.

A statement names a mechanism and the constants of its noise. From these alone, `stated_noise` draws the noise a second
time: nothing is shared with the mechanism under audit. `compare_vectors` draws about 2,000 outputs from both, for
inputs that differ from row to row (axes, diagonals, short, sparse and zero vectors), and compares three statistics:

- the length of the noise: its scale;
- the projection of the noise on the input: whether the output leans towards the input more than stated;
- the cosine between the noise of neighbouring rows: whether rows share their noise.

Length and projection are compared for each kind of input and for all of them together, the cosine between neighbouring
rows of a call and between the same row of two calls. Each comparison gets an equal share of the error (Bonferroni), and
half of that share is for the reference draws (Dvoretzky, Kiefer and Wolfowitz 1956, with the constant of Massart 1990),
so a mechanism with exactly the stated noise is found to differ with probability at most ``error``, for every number of
draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError

__all__ = ["distance_from"]

Floats: TypeAlias = npt.NDArray[np.float64]


def distance_from(draws: npt.ArrayLike, cdf: Callable[[Floats], npt.ArrayLike]) -> tuple[float, float]:
    """Compare independent draws with a known distribution function (Kolmogorov-Smirnov).

    Args:
        draws: (n,) numbers.
        cdf: (m,) numbers -> (m,) probabilities of at most this number. It may have jumps.

    Returns:
        D, the largest distance between the share of draws up to a number and its probability, and a bound on the
        probability that draws of this distribution are at least as far away: 2 exp(-2 n D^2) (Massart 1990), for every
        n. A draw that is not finite gives (1, 0).

    Raises:
        ParameterError: no draws.

    >>> distance_from([0.1, 0.4, 0.8], lambda numbers: numbers)[0].__round__(3)
    0.267
    """
    ordered = np.sort(np.asarray(draws, dtype=np.float64))
    if ordered.ndim != 1 or ordered.size == 0:
        raise ParameterError(f"draws must have shape (n,) with n >= 1, got {ordered.shape}")
    if not np.isfinite(ordered).all():
        return 1.0, 0.0
    places, counts = np.unique(ordered, return_counts=True)
    up_to = np.cumsum(counts) / ordered.size
    above = np.abs(up_to - np.asarray(cdf(places)))
    below = np.abs(up_to - counts / ordered.size - np.asarray(cdf(np.nextafter(places, -np.inf))))
    distance = float(max(above.max(), below.max()))
    return distance, min(1.0, 2 * math.exp(-2 * ordered.size * distance**2))
