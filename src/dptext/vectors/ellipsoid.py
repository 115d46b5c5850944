"""The regularised Mahalanobis norm of a public matrix: how elliptical its cloud of points is, with a proved error."""

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
    """The unit ball of the norm, as the image of a sphere."""

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
