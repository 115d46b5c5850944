"""FEDERATE's noise: a vector over the sum of its absolute values, then Laplace noise on every coordinate.

Derivation: docs/mechanisms/additive-noise.md#representations-federate
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dptext.noise.gaussian_sums import rounded_laplace
from dptext.privacy.guarantee import PureDP
from dptext.privacy.randomness import RandomBits
from dptext.representations.additive import AdditiveChannel
from dptext.representations.domains import Domain, Floats
from dptext.representations.randomizer import Private, Randomizer

__all__ = ["L1NormalisedLaplace", "NormalisedLaplace", "onto_l1_sphere"]

_WIDEN = 1 + 2.0**-30  # a vector normalised in double precision is within this factor of the L1 sphere


def onto_l1_sphere(vectors: Floats) -> Floats:
    """(n, d) vectors of which none is zero, each over the sum of its absolute values.

    >>> onto_l1_sphere([[3.0, -1.0], [0.0, 2.0]]).tolist()
    [[0.75, -0.25], [0.0, 1.0]]
    """
    given = np.asarray(vectors, dtype=np.float64)
    normalised: Floats = given / np.abs(given).sum(axis=1, keepdims=True)
    return normalised


class L1NormalisedLaplace(AdditiveChannel):
    """FEDERATE's noise for one dimension; ``expected_squared_error`` is that around the normalised vector."""

    def __init__(self, mechanism: NormalisedLaplace, dimension: int) -> None:
        scale = 2 * _WIDEN / mechanism.epsilon  # eq. (sensitivity)
        super().__init__(
            mechanism,
            Domain.SPHERE,  # the length is lost in any case, and a vector without a direction gets a public one
            dimension,
            PureDP(mechanism.epsilon),
            deviation=scale * math.sqrt(2),
            noise=partial(rounded_laplace, scale=scale),
            scale={"scale": scale},
        )

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        return super()._sample(onto_l1_sphere(vectors), bits)

    def noiseless(self, vectors: npt.ArrayLike) -> Floats:
        """(n, d) vectors of the L1 sphere. *Not private.*"""
        return onto_l1_sphere(super().noiseless(vectors))


@dataclass(frozen=True, kw_only=True)
class NormalisedLaplace(Randomizer):
    """A vector over its L1 norm, and Laplace noise of scale 2 / epsilon. Unbiased for the normalised vector.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors: equation (sensitivity) of
    this module, Dwork, McSherry, Nissim and Smith 2006, Proposition 1, and rounding is post-processing. Assumption:
    `dptext.noise.gaussian_sums.ELEMENTARY`.

    A dense vector loses length where it is normalised in L1: about sqrt(pi / (2 d)) of it is left. Against that, the
    noise is 8 d / epsilon^2 in all, so the error is 5 d^2 / epsilon^2 of the squared length: more than the 4 d^2 of
    `L2Laplace`, less than the 8 d^2 of `Laplace` in the ball.

    Input: (n, d). Output: (n, d) float32 on a public grid.

    >>> channel = NormalisedLaplace(epsilon=8.0).channel(64)
    >>> round(channel.expected_squared_error), channel.noiseless([[1.0, -1.0, *[0.0] * 62]])[0, :3].round(6).tolist()
    (8, [0.5, -0.5, 0.0])
    """

    name: ClassVar[str] = "NormalisedLaplace"
    is_candidate: ClassVar[bool] = False
    domains: ClassVar[tuple[Domain, ...]] = (Domain.SPHERE,)

    def _calibrate(self, dimension: int) -> L1NormalisedLaplace:
        return L1NormalisedLaplace(self, dimension)
