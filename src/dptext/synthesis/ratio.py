"""The density ratio between described texts and public ones, out of noisy moments: post-processing.

With S and m the covariance and the mean of the public pool's features, a class whose density is that of the pool times
exp(lambda . (v - m) - A) has, to first order in lambda, the mean m + S lambda. What was released gives its mean with
noise of variance t on every number, so in the eigenbasis of S (eigenvalues s)

    y = s lambda + N(0, t),    lambda ~ N(0, r),    so    y ~ N(0, r s^2 + t)                               (evidence)

and r is the number that makes y most likely. Then

    lambda^ = r s (r s^2 + t)^-1 y                                                                          (posterior)

which is 0 where noise drowns the data, and S^-1 y where there is none: linear discriminants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LogRatio"]

Floats = npt.NDArray[np.float64]
_STRENGTHS = np.logspace(-6, 8, 113)  # r that are tried


@dataclass(frozen=True, eq=False)
class LogRatio:
    """Linear scores of classes.

    Attributes:
        weights: (K, k) lambda of each class.
        offsets: (K,)
        shares: (K,) the noisy shares of the classes, at least 0, summing to 1.
        overall: (k,) lambda of all classes together.
        mean: (k,) of the pool.
    """

    weights: Floats
    offsets: Floats
    shares: Floats
    overall: Floats
    mean: Floats

    @classmethod
    def fit(cls, matrix: Floats, sigma: float, count_weight: float, mean: Floats, covariance: Floats) -> LogRatio:
        """From the noisy sum of (document), its noise, and the pool's moments."""
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, 0.0)
        feature_weight = math.sqrt(1 - count_weight**2)
        counts = np.maximum(matrix[:, 0] / count_weight, sigma / count_weight)
        whole = max(float(matrix[:, 0].sum()) / count_weight, sigma / count_weight)
        sums = matrix[:, 1:] / feature_weight

        def weights(total: Floats, count: float, variance: float) -> Floats:
            shift = vectors.T @ (total / count - mean)
            noise = variance / (feature_weight * count) ** 2
            evidence = [_log_likelihood(shift, r * values**2 + noise) for r in _STRENGTHS]
            best = _STRENGTHS[int(np.argmax(evidence))]
            if max(evidence) <= _log_likelihood(shift, np.full(len(shift), noise)):
                return np.zeros(len(mean))
            found: Floats = vectors @ (best * values / (best * values**2 + noise) * shift)  # (posterior)
            return found

        each = np.array([weights(total, count, sigma**2) for total, count in zip(sums, counts, strict=True)])
        shares = np.maximum(matrix[:, 0], 0.0)
        shares = shares / shares.sum() if shares.sum() > 0 else np.full(len(matrix), 1 / len(matrix))
        return cls(
            weights=each,
            offsets=-0.5 * np.einsum("yk,kl,yl->y", each, covariance, each),
            shares=shares,
            overall=weights(sums.sum(axis=0), whole, len(matrix) * sigma**2),
            mean=np.asarray(mean, dtype=np.float64),
        )

    def scores(self, vectors: npt.NDArray[Any]) -> Floats:
        """(n, K) the log-ratio of each class at vectors of candidates."""
        found: Floats = (vectors - self.mean) @ self.weights.T + self.offsets
        return found

    def nearness(self, vectors: npt.NDArray[Any]) -> Floats:
        """(n,) the log-ratio of all classes together, up to a constant."""
        near: Floats = (vectors - self.mean) @ self.overall
        return near


def _log_likelihood(values: Floats, variances: Floats) -> float:
    variances = np.maximum(variances, 1e-300)
    return float(-0.5 * np.sum(np.log(variances) + values**2 / variances))
