"""PrivUnit2 and PrivUnitG: a random direction that leans towards the vector's own (the default for vectors).

Derivation: docs/mechanisms/privunit.md#representations-privunit
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptext.errors import ParameterError
from dptext.noise.discrete import Tail, gaussian_tail, sphere_tail, tail_heights
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.bounds import Domain, Floats
from dptext.representations.randomizer import REAL_ARITHMETIC, Channel, Private, Randomizer, in_blocks
from dptext.validation import check_int

_COIN = 2.0**53
_GRID = 2.0**20
_MARGIN = 1e-9  # nats in reserve: the relative error of masses is 1e-12, in 2^20 dimensions 5e-10
_LEAST = 10 * _MARGIN  # epsilon; at less than the margin itself, the cap would be avoided
_TELLING = 1e-9  # relative to a variance, 1/d: smaller values are rounding
_ROWS = 512  # per block, so that a block fits into the cache
_BLOCKS_A_TASK = 16
_HIGHEST = 1 - 1e-9


class CapChannel(Channel):
    """PrivUnit2 (``sphere``) or PrivUnitG calibrated for one dimension."""

    domain = Domain.SPHERE

    def __init__(self, name: str, epsilon: float, dimension: int, *, sphere: bool) -> None:
        self.name = name
        self.dimension = self.width = check_int("dimension", dimension, minimum=2)
        if epsilon < _LEAST:
            raise ParameterError(f"epsilon {epsilon:.3g} is below the sampler's precision: use at least {_LEAST:g}")
        self.guarantee = PureDP(epsilon)
        self._sphere = sphere
        self.height = self._best_height(epsilon)
        self.chance, self.shrinkage, self._along, self._across = self._at(self.height, epsilon)
        self.expected_squared_error = self._error(self.height, epsilon)

    def _tail(self, height: float) -> Tail:
        return (sphere_tail if self._sphere else gaussian_tail)(self.dimension, height)

    def _at(self, height: float, epsilon: float) -> tuple[float, float, float, float]:
        """Return (p, c, E[T^2], variance of a coordinate across x) for a height of the rim."""
        tail = self._tail(height)
        odds = math.exp(min(epsilon - _MARGIN + math.log(tail.mass) - math.log1p(-tail.mass), 700.0))  # eq. (exact)
        p = 1 - math.ceil(_COIN / (1 + odds) + 0.5) / _COIN  # downwards: no more than epsilon
        rest = Tail(1 - tail.mass, -tail.first, 1 / self.dimension - tail.second)
        inside, outside = p / tail.mass, (1 - p) / rest.mass
        along = inside * tail.second + outside * rest.second
        across = (1 - along) / (self.dimension - 1) if self._sphere else 1 / self.dimension
        return p, inside * tail.first + outside * rest.first, along, across

    def _error(self, height: float, epsilon: float) -> float:
        _, shrinkage, along, across = self._at(height, epsilon)
        return (along + (self.dimension - 1) * across) / shrinkage**2 - 1

    def _best_height(self, epsilon: float) -> float:
        maximum = _HIGHEST if self._sphere else 37 / math.sqrt(self.dimension)
        low, high = 0.0, min(maximum, math.sqrt(1 - math.exp(-2 * (epsilon + 20) / max(self.dimension - 1, 1))) * 1.01)
        if not self._sphere:
            high = min(maximum, math.sqrt(2 * (epsilon + 10) / self.dimension))
        ratio = (math.sqrt(5) - 1) / 2
        one, two = high - ratio * (high - low), low + ratio * (high - low)
        for _ in range(80):
            if self._error(one, epsilon) <= self._error(two, epsilon):
                high, two = two, one
                one = high - ratio * (high - low)
            else:
                low, one = one, two
                two = low + ratio * (high - low)
        return (low + high) / 2

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        count = len(vectors)
        inside = np.flatnonzero(bits.uniform(count) <= self.chance)
        heights = np.full(count, np.nan)
        heights[inside] = tail_heights(bits, inside.size, self.dimension, self.height, sphere=self._sphere)
        private = np.empty(vectors.shape, dtype=np.float32)

        def fill(rows: slice, stream: RandomBits) -> None:
            private[rows] = self._lean(vectors[rows], heights[rows], stream)

        in_blocks(fill, count, bits, rows=_ROWS, blocks=_BLOCKS_A_TASK)
        return private

    def _lean(self, x: Floats, heights: Floats, bits: RandomBits) -> Floats:
        normal = bits.normal(len(x), self.dimension)
        # a normal vector has independent parts along x and across it
        along = np.einsum("ij,ij->i", normal, x)
        normal -= along[:, None] * x
        lengths = np.sqrt(np.einsum("ij,ij->i", normal, normal))
        heights = np.where(np.isnan(heights), self._outside(along, lengths, bits), heights)
        if self._sphere:
            normal *= (np.sqrt(np.maximum(1 - heights * heights, 0.0)) / np.maximum(lengths, 5e-324))[:, None]
        else:
            normal *= self.dimension**-0.5
        normal += heights[:, None] * x
        normal *= _GRID
        np.rint(normal, out=normal)
        normal += 0.0  # -0.0 becomes 0: its sign is finer than the grid
        normal *= 1 / (_GRID * self.shrinkage)
        return normal

    def _outside(self, along: Floats, across: Floats, bits: RandomBits) -> Floats:
        """Return (n,) T given T < height, from normal parts along and across x; values above are drawn again."""
        heights = self._free_heights(along, across)
        above = np.flatnonzero(heights >= self.height)
        while above.size:
            repeated = bits.normal(above.size, self.dimension)
            heights[above] = self._free_heights(
                repeated[:, 0], np.sqrt(np.einsum("ij,ij->i", repeated[:, 1:], repeated[:, 1:]))
            )
            above = above[heights[above] >= self.height]
        return heights

    def _free_heights(self, along: Floats, across: Floats) -> Floats:
        return along / np.sqrt(along**2 + across**2) if self._sphere else along * self.dimension**-0.5

    def debiased_second_moment(self, moment: Floats) -> Floats:
        """Solve E[z z^T | x] = ((E T^2 - b) x x^T + b I) / c^2, with b the variance across x, for x x^T."""
        if self._along - self._across < _TELLING / self.dimension:
            return super().debiased_second_moment(moment)
        return (self.shrinkage**2 * moment - self._across * np.eye(self.dimension)) / (self._along - self._across)

    def parameters(self) -> dict[str, Parameter]:
        return {"cap_height": self.height, "cap_mass": self._tail(self.height).mass, "cap_chance": self.chance}

    def assumptions(self) -> tuple[str, ...]:
        return (REAL_ARITHMETIC,)


@dataclass(frozen=True, kw_only=True)
class PrivUnit(Randomizer):
    """PrivUnit2: a random unit vector near the input unit vector, divided by its shrinkage. Unbiased.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, equation (exact) of this
    module. Assumption: directions drawn in double precision and rounded to multiples of 2^-20 protect like real-valued
    ones.

    Input: (n, d), d >= 2; each row is scaled to length 1 (a row of zeros becomes the first axis). Output: (n, d)
    float32, all of one length 1 / c. E||z - x||^2 = 1 / c^2 - 1.

    Raises:
        ParameterError: from `channel`: d is below 2, or epsilon below 1e-8.

    Source: Bhowmick, Duchi, Freudiger, Kapoor and Rogers 2018, Algorithm 1, calibrated exactly.

    >>> randomizer = PrivUnit(epsilon=8.0)
    >>> round(randomizer.expected_squared_error(64), 2)
    7.95
    >>> randomizer.randomize([[3.0, 4.0], [0.0, 0.0]]).shape
    (2, 2)
    """

    name: ClassVar[str] = "PrivUnit"
    domains: ClassVar[tuple[Domain, ...]] = (Domain.SPHERE,)

    def _calibrate(self, dimension: int) -> CapChannel:
        return CapChannel(self.name, self.epsilon, dimension, sphere=True)


@dataclass(frozen=True, kw_only=True)
class PrivUnitG(Randomizer):
    """PrivUnitG: PrivUnit with normal coordinates in place of a direction. Unbiased, a little noisier.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, equation (exact) of this
    module with normal masses. Assumption: as for `PrivUnit`.

    Input, errors: as for `PrivUnit`. Output: (n, d) float32.

    Source: Asi, Feldman and Talwar 2022, Algorithm 2.

    >>> round(PrivUnitG(epsilon=8.0).expected_squared_error(64), 2)
    8.5
    """

    name: ClassVar[str] = "PrivUnitG"
    domains: ClassVar[tuple[Domain, ...]] = (Domain.SPHERE,)

    def _calibrate(self, dimension: int) -> CapChannel:
        return CapChannel(self.name, self.epsilon, dimension, sphere=False)
