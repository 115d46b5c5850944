"""What noisy vectors tell of the second moments of the clean ones, and how far that can be believed.

A channel turns the mean of z z^T into an unbiased estimate of the mean of x x^T, but at small budgets its variance
exceeds the matrix itself: taken at face value it has negative eigenvalues, and its inverse amplifies noise. So it is
shrunk towards a public matrix (or a multiple of the identity) by the intensity of least expected squared error,

    a = min(1, E||S^ - S||^2 / ||S^ - T||^2),                                        (Ledoit and Wolf 2004, eq. 14)

with E||S^ - S||^2 measured from the spread among interleaved blocks of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dptext.representations.domains import Floats

__all__ = ["SecondMoment", "isotropic", "positive", "second_moment"]

_BLOCKS = 16
_TINY = 1e-300


@dataclass(frozen=True)
class SecondMoment:
    """An estimate of a second moment.

    Attributes:
        matrix: (d, d), symmetric; eigenvalues may be negative (`positive`).
        entry_variance: the sampling variance that is left in one entry, on average.
        intensity: a, from 0 (the data alone) to 1 (the target alone).
    """

    matrix: Floats
    entry_variance: float
    intensity: float


def second_moment(
    vectors: Floats, *, debias: Callable[[Floats], Floats] | None = None, target: Floats | None = None
) -> SecondMoment:
    """The second moment of what the (n, k) vectors stand for, shrunk.

    Args:
        vectors: float64, n >= 1.
        debias: the channel's `Channel.debiased_second_moment`; None: of the vectors themselves.
        target: (d, d) to shrink towards; None: the multiple of the identity that has the estimate's trace.
    """
    blocks = min(_BLOCKS, len(vectors))
    moments = [rows.T @ rows / len(rows) for rows in (vectors[start::blocks] for start in range(blocks))]
    estimates = np.stack([moment if debias is None else debias(moment) for moment in moments])
    mean = estimates.mean(axis=0)
    if target is None:
        target = isotropic(mean)
    if blocks == 1:
        return SecondMoment(target, 0.0, 1.0)
    variance = float(((estimates - mean) ** 2).sum()) / (blocks * (blocks - 1))
    intensity = min(1.0, variance / max(float(((mean - target) ** 2).sum()), _TINY))  # eq. 14
    left = (1 - intensity) ** 2 * variance / mean.size
    return SecondMoment((1 - intensity) * mean + intensity * target, left, intensity)


def isotropic(matrix: Floats) -> Floats:
    """The multiple of the identity with the matrix's trace; that of 0 where the trace is negative."""
    size = len(matrix)
    return np.eye(size) * (max(float(np.trace(matrix)), 0.0) / size)


def positive(matrix: Floats) -> Floats:
    """The nearest positive semi-definite matrix in the Frobenius norm: negative eigenvalues become 0."""
    values, basis = np.linalg.eigh((matrix + matrix.T) / 2)
    nearest: Floats = (basis * np.maximum(values, 0.0)) @ basis.T
    return nearest
