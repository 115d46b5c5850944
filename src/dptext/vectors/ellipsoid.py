"""The regularised Mahalanobis norm of a public matrix: how elliptical its cloud of points is, with a proved error.

S is the covariance of the rows, scaled to mean variance 1 (trace d), and A = lambda S + (1 - lambda) I. The norm is
||x|| = sqrt(x^T A^-1 x): along directions in which the words spread far a step counts less. lambda = 0 is Euclidean.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dptext.checks import number
from dptext.errors import ParameterError

__all__ = ["Ellipsoid"]

Floats = npt.NDArray[np.float64]

_BLOCK = 4096
_UNIT = 2.0**-53
_LARGEST_ERROR = 1e-6


class Ellipsoid:
    """The unit ball of the norm, as the image of a sphere.

    **Error.** Everything is computed in float64, and for any order of the sums (BLAS, threads), the root L used
    here has L L^T = A + E with ||E|| <= `error` * smallest eigenvalue of A. Proof: an entry of the covariance, summed
    in blocks, errs by (block + blocks) units of the root of the product of two variances (Cauchy and Schwarz), a
    matrix whose norm is at most its trace d; scaling, adding and Cholesky's factorisation (Higham 2002, theorem 10.3)
    err by a few times d units of trace(A) = d. So the norm ||L^-1 x|| is within a factor 1 + `error` of the exact one.

    Args:
        matrix: (n, d) finite; public.
        lambda_: between 0 and 1, the weight of the covariance beside the identity.

    Attributes:
        root: (d, d) L, lower triangular.
        smallest: a lower bound on the smallest eigenvalue of A: no step counts more than Euclidean / sqrt(smallest).
        error: see above.

    Raises:
        ParameterError: lambda is no number from 0 to 1; A is singular, or so close to it that the error is above 1e-6.
    """

    def __init__(self, matrix: npt.NDArray[np.float32], lambda_: float) -> None:
        lambda_ = number("lambda", lambda_, least=0, most=1)
        size, dimension = matrix.shape
        self._matrix = matrix
        shape = (1 - lambda_) * np.eye(dimension) + lambda_ * _scaled_covariance(matrix)
        self.smallest = max(1.0 - lambda_, float(np.linalg.eigvalsh(shape)[0]) * (1 - 2 * _LARGEST_ERROR))
        units = 4 * dimension * (_BLOCK + size / _BLOCK + dimension**1.5 + 16)
        self.error = units * _UNIT / self.smallest if self.smallest > 0 else math.inf
        if self.error > _LARGEST_ERROR:
            raise ParameterError(
                f"lambda {lambda_:g} leaves directions without noise, because the vectors hardly spread there: use a "
                "lambda below 1 (the paper uses .2)"
            )
        self.root: Floats = np.linalg.cholesky(shape).astype(np.float64)

    @cached_property
    def diameter_bound(self) -> float:
        """A bound on the norm of the difference of any two rows: twice the radius around the mean."""
        inverse = _inverse_of_triangle(self.root)
        mean = _mean(self._matrix)
        radius = 0.0
        for start in range(0, len(self._matrix), _BLOCK):
            whitened = (self._matrix[start : start + _BLOCK] - mean) @ inverse.T
            radius = max(radius, float(np.sqrt((whitened**2).sum(axis=1)).max()))
        # one error for L, one for its inverse
        return math.nextafter(2.0 * radius * (1 + 4 * self.error + 1e-12), math.inf)


def _mean(matrix: npt.NDArray[np.float32]) -> Floats:
    mean = np.zeros(matrix.shape[1])
    for _ in range(2):  # the second pass adds what rounding left out: far from the origin it would count
        parts = [(matrix[at : at + _BLOCK] - mean).sum(axis=0) for at in range(0, len(matrix), _BLOCK)]
        mean += np.sum(parts, axis=0) / len(matrix)
    return mean


def _scaled_covariance(matrix: npt.NDArray[np.float32]) -> Floats:
    """(d, d) covariance of the rows, divided by the mean variance; the identity where all rows are equal."""
    mean = _mean(matrix)
    total = np.zeros((matrix.shape[1],) * 2)
    for start in range(0, len(matrix), _BLOCK):
        part = matrix[start : start + _BLOCK] - mean
        total += part.T @ part
    spread = np.trace(total) / len(total)
    return total / spread if spread > 0 else np.eye(len(total))


def _inverse_of_triangle(root: Floats) -> Floats:
    inverse = np.zeros_like(root)
    for row in range(len(root)):
        inverse[row] = -(root[row, :row] @ inverse[:row])
        inverse[row, row] += 1.0
        inverse[row] /= root[row, row]
    return inverse
