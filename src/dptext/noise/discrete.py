"""Randomized response over categories, and the length of L2-Laplace noise.

Derivation: docs/mechanisms/bits.md#noise-categories
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dptext.checks import number, whole
from dptext.privacy.randomness import RandomBits

__all__ = [
    "RandomizedResponse",
    "elliptical_laplace",
    "l2_laplace",
    "uniform_directions",
]


_SCALE = 2**64
_MOST_CATEGORIES = 10_000
_MOST_EPSILON = 20.0  # beyond that hardly one in a billion is ever another: it would be sent as it is
_ROUNDING = 2.0**-48  # more than the arithmetic below is off by


@dataclass(frozen=True)
class RandomizedResponse:
    """Randomised response for k categories."""

    categories: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", whole("categories", self.categories, least=1, most=_MOST_CATEGORIES))
        object.__setattr__(self, "epsilon", number("epsilon", self.epsilon, above=0, most=_MOST_EPSILON))

    @cached_property
    def threshold(self) -> int:
        """t: the truth is sent where 64 random bits, as a number, are below it."""
        # 1 - tau = k / (e^epsilon + k - 1), rounded up: the complement keeps its digits where tau is almost 1
        rest = _SCALE * self.categories / (math.exp(self.epsilon) + self.categories - 1)
        return max(0, _SCALE - math.ceil(rest * (1 + _ROUNDING)))

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """(k, k) what is really drawn: row of the true category, column of the one that is sent."""
        other = (_SCALE - self.threshold) / (_SCALE * self.categories)
        table = np.full((self.categories, self.categories), other)
        np.fill_diagonal(table, other + self.threshold / _SCALE)
        return table

    def draw(self, bits: RandomBits, truth: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """(n,) what is sent for (n,) true categories 0 .. k - 1. The same bits are drawn whatever is true and sent."""
        uniform = bits.below(np.full(len(truth), self.categories, dtype=np.uint64)).astype(np.int64)
        return np.where(bits.integers(len(truth)) < np.uint64(self.threshold), truth, uniform)


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
