"""Additive noise on vectors: Laplace, L2-Laplace, Gaussian, and normalised Laplace (FEDERATE).

Derivation: docs/mechanisms/additive-noise.md#representations-federate
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.noise.gaussian_sums import ELEMENTARY, rounded_gaussian, rounded_l2_laplace, rounded_laplace
from dptext.privacy.gaussian import gaussian_sigma
from dptext.privacy.guarantee import ApproxDP, Guarantee, PureDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.bounds import Domain, Floats
from dptext.representations.randomizer import Channel, Private, Randomizer, in_blocks
from dptext.validation import check_choice, check_float

_WIDEN = 1 + 2.0**-30  # a vector bounded in double precision exceeds its domain at most by this factor
_STEPS = 2.0**12  # grid steps per standard deviation of a coordinate
_TOGETHER = 2**15  # numbers per block, so that a block fits into the cache
_BLOCKS_A_TASK = 16
_LONGEST = 2.0**100  # well within float32


class AdditiveChannel(Channel):
    """Additive noise for one dimension.

    Attributes:
        deviation: standard deviation of the noise on a coordinate, without rounding.
        step: step size of the grid.
    """

    def __init__(
        self,
        randomizer: Randomizer,
        domain: Domain,
        dimension: int,
        guarantee: Guarantee,
        deviation: float,
        noise: Callable[..., Floats],
        **scale: float,
    ) -> None:
        if not deviation <= _LONGEST:
            raise ParameterError(
                f"{randomizer.name} would add noise of {deviation:.3g} to vectors of length 1, beyond the range of "
                "float32: choose a larger epsilon"
            )
        self.name, self.domain, self.guarantee = randomizer.name, domain, guarantee
        self.dimension = self.width = dimension
        self.deviation, self.step = deviation, deviation / _STEPS
        self._noise, self._scale = noise, scale
        self._variance = deviation**2 * (1 + _STEPS**-2 / 12)
        self.expected_squared_error = dimension * self._variance

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        private = np.empty(vectors.shape, dtype=np.float32)

        def fill(rows: slice, stream: RandomBits) -> None:
            cells = self._noise(stream, vectors[rows], step=self.step, **self._scale)
            np.multiply(cells, self.step, out=private[rows], casting="same_kind")

        rows = max(1, _TOGETHER // self.dimension)
        in_blocks(fill, len(vectors), bits, rows=rows, blocks=_BLOCKS_A_TASK)
        return private

    def debiased_second_moment(self, moment: Floats) -> Floats:
        """Subtract v I, v the variance of the noise on a coordinate, because E[z z^T | x] = x x^T + v I."""
        return moment - self._variance * np.eye(self.dimension)

    def parameters(self) -> dict[str, Parameter]:
        return {**self._scale, "grid_step": self.step}

    def assumptions(self) -> tuple[str, ...]:
        return (ELEMENTARY,)


@dataclass(frozen=True, kw_only=True)
class _Additive(Randomizer):
    """Additive noise on vectors of a chosen domain."""

    domains: ClassVar[tuple[Domain, ...]] = (Domain.BALL, Domain.SPHERE, Domain.CUBE, Domain.ONE_HOT)

    domain: Domain = Domain.BALL

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "domain", check_choice("domain", self.domain, self.domains))

    def options(self) -> dict[str, Parameter]:
        return {**super().options(), "domain": str(self.domain)}


@dataclass(frozen=True, kw_only=True)
class Laplace(_Additive):
    """Laplace noise on every coordinate, of scale (L1 diameter of the domain) / epsilon. Unbiased.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors: the densities of x + Z and
    x' + Z have a ratio of at most e^(||x - x'||_1 / scale) (Dwork, McSherry, Nissim and Smith 2006, Proposition 1), and
    rounding is post-processing. Assumption: `dptext.noise.gaussian_sums.ELEMENTARY`.

    In the unit ball two vectors are up to 2 sqrt(d) apart in L1: the noise has variance 8 d / epsilon^2 per coordinate,
    twice that of `L2Laplace`. It suits one-hot vectors best, whose L1 diameter is 2 in any dimension.

    Input: (n, d); each row is mapped into the domain. Output: (n, d) float32 on a public grid.
    E||z - x||^2 = 2 d scale^2.

    Args:
        domain: the unit ball (default), the unit sphere, the cube, or one-hot; or its name.

    Raises:
        ParameterError: from `channel`: the noise would exceed the range of float32.

    >>> round(Laplace(epsilon=8.0).expected_squared_error(64))
    512
    >>> Laplace(epsilon=8.0, domain="one-hot").randomize([[0.0, 1.0], [0.0, 0.0]]).shape
    (2, 2)
    """

    name: ClassVar[str] = "Laplace"

    def _calibrate(self, dimension: int) -> AdditiveChannel:
        scale = self.domain.sensitivity(dimension)[0] * _WIDEN / self.epsilon
        guarantee, deviation = PureDP(self.epsilon), scale * math.sqrt(2)
        return AdditiveChannel(self, self.domain, dimension, guarantee, deviation, rounded_laplace, scale=scale)


@dataclass(frozen=True, kw_only=True)
class L2Laplace(_Additive):
    """Noise of density proportional to exp(-||z|| / scale), scale = (L2 diameter of the domain) / epsilon. Unbiased.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, because
    | ||o - x|| - ||o - x'|| | <= ||x - x'||, and rounding is post-processing. Assumption:
    `dptext.noise.gaussian_sums.ELEMENTARY`.

    In the unit ball the scale is 2 / epsilon. Arguments, input and output: as for `Laplace`.
    E||z - x||^2 = d (d + 1) scale^2.

    Source: Chaudhuri, Monteleoni and Sarwate 2011, section 3 (the density).

    >>> round(L2Laplace(epsilon=8.0).expected_squared_error(64))
    260
    """

    name: ClassVar[str] = "L2Laplace"

    def _calibrate(self, dimension: int) -> AdditiveChannel:
        scale = self.domain.sensitivity(dimension)[1] * _WIDEN / self.epsilon
        guarantee, deviation = PureDP(self.epsilon), scale * math.sqrt(dimension + 1)
        return AdditiveChannel(self, self.domain, dimension, guarantee, deviation, rounded_l2_laplace, scale=scale)


@dataclass(frozen=True, kw_only=True)
class Gaussian(_Additive):
    """Normal noise on every coordinate, with the smallest sigma for the guarantee (analytic calibration). Unbiased.

    **Guarantee** (unit: one vector; substitution; local): (epsilon, delta) for any two vectors (Balle and Wang 2018,
    Theorem 8, at the L2 diameter of the domain: `dptext.privacy.gaussian`); rounding is post-processing, so
    delta needs no allowance for a grid. Assumption: `dptext.noise.gaussian_sums.ELEMENTARY`.

    In the unit ball the sensitivity is 2. Arguments, input and output: as for `Laplace`. E||z - x||^2 = d sigma^2.

    Args:
        delta: above 0 and below 1; choose it far below 1 / (number of people).

    >>> round(Gaussian(epsilon=8.0, delta=1e-5).expected_squared_error(64))
    92
    """

    name: ClassVar[str] = "Gaussian"

    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", check_float("delta", self.delta, above=0, below=1))

    def _calibrate(self, dimension: int) -> AdditiveChannel:
        distance = self.domain.sensitivity(dimension)[1] * _WIDEN
        sigma = gaussian_sigma(epsilon=self.epsilon, delta=self.delta, sensitivity=distance)
        guarantee = ApproxDP(self.epsilon, self.delta)
        return AdditiveChannel(self, self.domain, dimension, guarantee, sigma, rounded_gaussian, sigma=sigma)


def onto_l1_sphere(vectors: Floats) -> Floats:
    """Return (n, d) nonzero vectors, each divided by the sum of its absolute values.

    >>> onto_l1_sphere([[3.0, -1.0], [0.0, 2.0]]).tolist()
    [[0.75, -0.25], [0.0, 1.0]]
    """
    values = np.asarray(vectors, dtype=np.float64)
    return np.asarray(values / np.abs(values).sum(axis=1, keepdims=True))


class L1NormalisedLaplace(AdditiveChannel):
    """FEDERATE's noise for one dimension; ``expected_squared_error`` is relative to the normalised vector."""

    def __init__(self, mechanism: NormalisedLaplace, dimension: int) -> None:
        scale = 2 * _WIDEN / mechanism.epsilon  # eq. (sensitivity)
        guarantee, deviation = PureDP(mechanism.epsilon), scale * math.sqrt(2)
        # the length is lost in any case, and a vector without a direction gets a public one
        super().__init__(mechanism, Domain.SPHERE, dimension, guarantee, deviation, rounded_laplace, scale=scale)

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        return super()._sample(onto_l1_sphere(vectors), bits)

    def noiseless(self, vectors: npt.ArrayLike) -> Floats:
        """Return (n, d) vectors of the L1 sphere. *Not private.*"""
        return onto_l1_sphere(super().noiseless(vectors))


@dataclass(frozen=True, kw_only=True)
class NormalisedLaplace(Randomizer):
    """L1 normalisation, then Laplace noise of scale 2 / epsilon. Unbiased for the normalised vector.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors: equation (sensitivity) of
    this module, Dwork, McSherry, Nissim and Smith 2006, Proposition 1, and rounding is post-processing. Assumption:
    `dptext.noise.gaussian_sums.ELEMENTARY`.

    L1 normalisation shortens a dense vector to about sqrt(pi / (2 d)) of its length. The squared noise is
    8 d / epsilon^2 in total, so the error is 5 d^2 / epsilon^2 of the squared length: more than the 4 d^2 of
    `L2Laplace`, less than the 8 d^2 of `Laplace` in the ball.

    Input: (n, d). Output: (n, d) float32 on a public grid.

    >>> channel = NormalisedLaplace(epsilon=8.0).channel(64)
    >>> round(channel.expected_squared_error), channel.noiseless([[1.0, -1.0, *[0.0] * 62]])[0, :3].round(6).tolist()
    (8, [0.5, -0.5, 0.0])
    """

    name: ClassVar[str] = "NormalisedLaplace"
    domains: ClassVar[tuple[Domain, ...]] = (Domain.SPHERE,)

    def _calibrate(self, dimension: int) -> L1NormalisedLaplace:
        return L1NormalisedLaplace(self, dimension)
