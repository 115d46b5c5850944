"""DPNR as printed, and as its authors' code ran: min-max normalised vectors with Laplace noise of scale 1 / epsilon.

Derivation: docs/mechanisms/published-protocols.md#representations-published-dpnr
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dptext.checks import choice
from dptext.errors import ParameterError
from dptext.noise.gaussian_sums import rounded_laplace
from dptext.privacy.guarantee import NoGuarantee, PureDP
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.additive import AdditiveChannel
from dptext.representations.domains import Domain, Floats
from dptext.representations.published.claim import Finding, Published, PublishedChannel, alternating
from dptext.representations.randomizer import Private

__all__ = ["DPNR", "MinMaxLaplace", "min_max"]

_NOISES = ("per coordinate", "one scalar")
_WIDEN = 1 + 2.0**-30  # more than what doubles are off by in d * epsilon: the stated product is never too small
_ONE_SCALAR = (
    "one draw of noise is added to all coordinates: subtracting the smallest number leaves the normalised vector as it "
    "was"
)


def min_max(vectors: Floats) -> Floats:
    """(n, d) vectors, each less its smallest number, over the largest that then is left; zeros for a constant one.

    >>> min_max([[1.0, 2.0, 5.0], [7.0, 7.0, 7.0]]).tolist()
    [[0.0, 0.25, 1.0], [0.0, 0.0, 0.0]]
    """
    low = np.min(vectors, axis=1, keepdims=True)
    scaled: Floats = np.asarray(vectors, dtype=np.float64) - low
    spread = scaled.max(axis=1, keepdims=True)
    scaled /= np.where(spread > 0, spread, np.inf)
    return scaled


def _one_draw(bits: RandomBits, x: Floats, *, scale: float, step: float) -> Floats:
    """(n, d) x / step and one whole number of steps for each row."""
    return x / step + rounded_laplace(bits, np.zeros((len(x), 1)), scale=scale, step=step)


class MinMaxLaplace(AdditiveChannel, PublishedChannel):
    """DPNR for vectors of one dimension; ``expected_squared_error`` is that around the min-max vector."""

    def __init__(self, mechanism: DPNR, dimension: int) -> None:
        if dimension < 2:
            raise ParameterError(
                "min-max normalisation leaves nothing of one number: expected a dimension of at least 2"
            )
        self.one_scalar = mechanism.noise == "one scalar"
        bound = float(f"{dimension * mechanism.epsilon:.12g}")  # eq. (true)
        scale = _WIDEN / mechanism.epsilon
        noise = _one_draw if self.one_scalar else rounded_laplace
        super().__init__(
            mechanism,
            Domain.SPHERE,  # min-max normalisation undoes any scale
            dimension,
            NoGuarantee(_ONE_SCALAR) if self.one_scalar else PureDP(bound),
            deviation=scale * math.sqrt(2),
            noise=partial(noise, scale=scale),
            scale={"scale": scale},
        )
        high = (1 + alternating(dimension)) / 2
        self.witness = (high, 1 - high)
        self.finding = Finding(
            claimed=mechanism.epsilon,
            bound=math.inf if self.one_scalar else bound,
            attained=math.inf if self.one_scalar else bound,
            reason=_ONE_SCALAR if self.one_scalar else mechanism.flaw,
            holds_for=f"any two vectors of {dimension} numbers, attained",
            witness="(1, 0, 1, 0, ...) and (0, 1, 0, 1, ...)",
        )

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        return super()._sample(min_max(vectors), bits)

    def noiseless(self, vectors: npt.ArrayLike) -> Floats:
        """(n, d) min-max vectors. *Not private.*"""
        return min_max(super().noiseless(vectors))

    def debiased_second_moment(self, moment: Floats) -> Floats:
        """For min-max vectors: the noise of all coordinates is one and the same, or uncorrelated."""
        if self.one_scalar:
            return moment - self._variance
        return super().debiased_second_moment(moment)

    def parameters(self) -> dict[str, Parameter]:
        """The scale of the noise, the step of the grid, and what is known of the printed epsilon."""
        return {**super().parameters(), **self.finding.parameters()}


@dataclass(frozen=True, kw_only=True)
class DPNR(Published):
    """Min-max normalisation, then Laplace noise of scale 1 / epsilon.

    **Guarantee** (unit: one vector; substitution; local), with noise per coordinate: pure d * epsilon, equation (true)
    of this module, attained (the noise is a part in 10^9 wider than printed). Assumption:
    `dptext.noise.gaussian_sums.ELEMENTARY`. With one scalar: none.

    Word dropout, the paper's third part, is done to the text before it is encoded: `mask_words`. For a whole text it
    changes nothing; what it does for single words, `with_word_dropout` says.

    Input: (n, d), d at least 2. Output: (n, d) float32 around the min-max vector.

    Args:
        noise: ``"per coordinate"`` (the paper) or ``"one scalar"`` (its authors' code).
        others: see `Published`.

    >>> DPNR(epsilon=1.0, dimension=64, unsafe_as_published=True).statement().epsilon
    64.0
    >>> DPNR(epsilon=1.0, dimension=64, noise="one scalar", unsafe_as_published=True).statement().epsilon
    inf
    """

    name: ClassVar[str] = "DPNR"
    domains: ClassVar[tuple[Domain, ...]] = (Domain.SPHERE,)
    flaw: ClassVar[str] = (
        "the noise is scaled to a sensitivity of 1, but two min-max vectors of d numbers are up to d apart in L1"
    )
    instead: ClassVar[str] = "PrivUnit, L2Laplace or Gaussian, whose noise is scaled to what two vectors may differ by"

    noise: str = "per coordinate"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("noise", self.noise, _NOISES)

    def _calibrate(self, dimension: int) -> MinMaxLaplace:
        return MinMaxLaplace(self, dimension)
