"""What noisy vectors tell of the mean and covariance of the clean ones, and how far that can be believed.

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

__all__ = ["Covariance", "covariance", "isotropic", "positive", "shrunk_mean"]

_BLOCKS = 16
_TINY = 1e-300


@dataclass(frozen=True)
class Covariance:
    """An estimate of a covariance matrix.

    Attributes:
        matrix: (d, d), positive semi-definite.
        entry_error: the squared error expected in one entry, on average.
        intensity: a, from 0 (the data alone) to 1 (the target alone).
    """

    matrix: Floats
    entry_error: float
    intensity: float


def covariance(
    vectors: Floats,
    mean: Floats,
    *,
    debias: Callable[[Floats], Floats] | None = None,
    target: Floats | None = None,
) -> Covariance:
    """The covariance of what the (n, k) vectors stand for, shrunk.

    Args:
        vectors: float64, n >= 1.
        mean: (k,) of them.
        debias: the channel's `Channel.debiased_second_moment`; None: of the vectors themselves.
        target: (d, d) to shrink towards; None: the multiple of the identity that has the estimate's trace.
    """
    blocks = min(_BLOCKS, len(vectors))
    moments = [rows.T @ rows / len(rows) for rows in (vectors[start::blocks] for start in range(blocks))]
    # the mean is taken off after the debiasing, which holds for second moments about 0
    outer = np.outer(mean, mean)
    estimates = np.stack([(moment if debias is None else debias(moment)) - outer for moment in moments])
    estimate = estimates.mean(axis=0)
    if target is None:
        target = isotropic(estimate)
    if blocks == 1:
        return Covariance(target, 0.0, 1.0)
    variance = float(((estimates - estimate) ** 2).sum()) / (blocks * (blocks - 1))
    intensity = min(1.0, variance / max(float(((estimate - target) ** 2).sum()), _TINY))  # eq. 14
    left = (1 - intensity) * variance / estimate.size  # what shrinking by a leaves, bias included
    return Covariance(positive((1 - intensity) * estimate + intensity * target), left, intensity)


def shrunk_mean(vectors: Floats, centre: Floats) -> Floats:
    """The mean, drawn towards a public one as far as its noise asks (James and Stein 1961, positive part)."""
    mean = vectors.mean(axis=0)
    noise = float(vectors.var(axis=0).sum()) / len(vectors)
    distance = float(((mean - centre) ** 2).sum())
    shrunk: Floats = centre + max(0.0, 1 - noise / max(distance, _TINY)) * (mean - centre)
    return shrunk


def isotropic(matrix: Floats) -> Floats:
    """The multiple of the identity with the matrix's trace; that of 0 where the trace is negative."""
    size = len(matrix)
    return np.eye(size) * (max(float(np.trace(matrix)), 0.0) / size)


def positive(matrix: Floats) -> Floats:
    """The nearest positive semi-definite matrix in the Frobenius norm: negative eigenvalues become 0."""
    values, basis = np.linalg.eigh((matrix + matrix.T) / 2)
    nearest: Floats = (basis * np.maximum(values, 0.0)) @ basis.T
    return nearest
