"""How likely a word stays under noise on its vector: exact along a line, averaged over lines.

Derivation: docs/mechanisms/private-vectors.md#playground-rays
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits

DIRECTIONS = 128
"""Over so many directions the chance is averaged."""

Floats = npt.NDArray[np.float64]


class Rays:
    """Directions of noise through the words of a vocabulary."""

    def __init__(self, matrix: npt.NDArray[np.float32], bits: RandomBits) -> None:
        normal = bits.normal(DIRECTIONS // 2, matrix.shape[1])
        self._matrix = matrix.astype(np.float64)
        self._along = (normal / np.linalg.norm(normal, axis=1, keepdims=True)) @ self._matrix.T
        self._squares = np.square(self._matrix).sum(axis=1)
        self._lengths: dict[int, Floats] = {}

    def forget(self) -> None:
        """Another text: what was found for the words of the last one is not kept."""
        self._lengths.clear()

    def stays(self, row: int, epsilon: float) -> float:
        """How likely the nearest word to the noisy vector of a word is the word itself."""
        if row not in self._lengths:
            self._lengths[row] = self._longest(row)
        return float(_below(epsilon * self._lengths[row], self._matrix.shape[1]).mean())

    def _longest(self, row: int) -> Floats:
        """(directions,) how far one can go; each line is two directions."""
        apart = np.maximum(self._squares + self._squares[row] - 2 * self._matrix @ self._matrix[row], 0.0)
        apart[row] = np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            steepness = np.nan_to_num(2 * (self._along - self._along[:, row, None]) / apart, nan=0.0)  # (stays)
            found: Floats = 1.0 / np.maximum(np.r_[steepness.max(axis=1), -steepness.min(axis=1)], 1e-300)
        return found


def _below(values: Floats, shape: int) -> Floats:
    """(n,) how likely a Gamma number of a whole shape is below values: 1 - e^-x (1 + x + ... + x^(shape-1) / ...)."""
    x = np.clip(values, 1e-300, 1e4)
    logs = np.array([math.lgamma(count + 1) for count in range(shape)])
    terms = np.exp(np.arange(shape) * np.log(x)[:, None] - x[:, None] - logs)
    found: Floats = np.clip(1.0 - terms.sum(axis=1), 0.0, 1.0)
    return found
