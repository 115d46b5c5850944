"""DPText's noise as printed: Laplace by its inverse distribution function, with uniform numbers of the wrong range.

Derivation: docs/mechanisms/published-protocols.md#representations-published-dptext
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptext.checks import choice, number
from dptext.errors import ParameterError
from dptext.privacy.guarantee import NoGuarantee
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.representations.domains import Domain, Floats
from dptext.representations.published.protocols import Finding, Published, PublishedChannel, alternating
from dptext.representations.randomizer import Private

__all__ = ["CappedDPText", "DPText", "OneSidedNoise"]

_UNDEFINED = ("drawn again", "nan")
_LARGEST = 2.0**100  # what float32 holds with room to spare


class OneSidedNoise(PublishedChannel):
    """DPText's noise for vectors of one dimension."""

    def __init__(self, mechanism: DPText, dimension: int) -> None:
        self.name, self.domain = mechanism.name, Domain.CUBE  # the last state of a GRU lies between -1 and 1
        self.dimension = self.width = dimension
        self.guarantee = NoGuarantee(mechanism.flaw)
        self.scale = self.domain.sensitivity(dimension).l1 / mechanism.budget  # D / epsilon
        if self.scale > _LARGEST:
            raise ParameterError(
                f"{self.name} would add noise of {self.scale:.3g}, which float32 does not hold: choose a larger epsilon"
            )
        self.expected_squared_error = 2 * dimension * self.scale**2
        self._again = mechanism.undefined == "drawn again"
        self.witness = (alternating(dimension), -alternating(dimension))
        self.finding = Finding(
            claimed=mechanism.epsilon,
            bound=math.inf,
            attained=math.inf,
            reason=mechanism.flaw,
            holds_for="any two vectors that differ",
            witness="(1, -1, 1, -1, ...) and (-1, 1, -1, 1, ...)",
        )

    def _sample(self, vectors: Floats, bits: RandomBits) -> Private:
        r = bits.uniform(*vectors.shape)
        if self._again:
            r = r / 2  # what r is, given that it is at most 1/2
        with np.errstate(invalid="ignore", divide="ignore"):
            noise = -self.scale * np.sign(r) * np.log(1 - 2 * np.abs(r))  # eq. (printed)
        # ln 0 where r is 1/2 exactly, once in 2^53: as large as any noise that comes
        noise[noise == np.inf] = self.scale * 53 * math.log(2)
        sent: Private = (vectors + noise).astype(np.float32)
        return sent

    def parameters(self) -> dict[str, Parameter]:
        """The scale of the noise, and what is known of the printed epsilon."""
        return {"scale": self.scale, **self.finding.parameters()}


@dataclass(frozen=True, kw_only=True)
class DPText(Published):
    """DPText's noise as printed. It hides nothing: the true epsilon is infinite at every printed one.

    **Guarantee**: none. What x sends is never below x. Of two opposite corners of the cube, (1, -1, 1, -1, ...) and
    (-1, 1, -1, 1, ...), what the one sends rules out the other with probability 1 - e^(-epsilon / 2): in each of the
    d / 2 coordinates where it is -1 it stays below 1 with probability 1 - e^(-2 epsilon / D) = 1 - e^(-epsilon / d).

    The paper's vectors are states of a GRU, between -1 and 1, so D = 2 d: vectors are clipped to that cube first. With
    r uniform over [-1/2, 1/2] the same scale is sound, and is `dptext.Laplace` in the domain ``"unit cube"``.

    Input: (n, d). Output: (n, d) float32.

    Args:
        epsilon: as printed; 0.1 in the paper. Where it is learned, its cap.
        undefined: what happens to draws that have no value: ``"drawn again"`` until they have one (the noise is then
            exponential), or ``"nan"``: they stay undefined, and so does half of what is sent.
        others: see `Published`.

    >>> given = DPText(epsilon=0.1, dimension=64, unsafe_as_published=True)
    >>> given.statement().claimed_epsilon, given.statement().epsilon
    (0.1, inf)
    >>> bool((given.randomize([[0.5] * 64]) >= 0.5).all())  # never below
    True
    """

    name: ClassVar[str] = "DPText"
    domains: ClassVar[tuple[Domain, ...]] = (Domain.CUBE,)
    flaw: ClassVar[str] = (
        "the uniform numbers that its noise is made of come from [0, 1] in place of [-1/2, 1/2]: the noise is never "
        "negative, so a number that is sent rules out every larger one"
    )
    instead: ClassVar[str] = "Laplace(domain='unit cube'), or with less noise L2Laplace, Gaussian or PrivUnit"

    undefined: str = "drawn again"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("undefined", self.undefined, _UNDEFINED)

    @property
    def budget(self) -> float:
        """The epsilon that the noise is scaled to."""
        return self.epsilon

    def _calibrate(self, dimension: int) -> OneSidedNoise:
        return OneSidedNoise(self, dimension)


@dataclass(frozen=True, kw_only=True)
class CappedDPText(DPText):
    """DPText's noise with a budget that was learnt below the printed one: the scale is D / (share * epsilon).

    What `dptext.HidingEncoder` makes of `DPText` with ``learn_epsilon=True``, as the paper does.

    **Guarantee**: none, as for `DPText`. The claim that the statement carries is the cap: the learnt budget is a result
    of the training data.

    Args:
        epsilon: c1, the cap.
        share: of the cap, that the noise is scaled to; above 0 and at most 1.
        others: as for `DPText`.

    >>> learnt = CappedDPText(epsilon=0.1, share=0.5, unsafe_as_published=True)
    >>> said = learnt.statement(64)
    >>> said.claimed_epsilon, said.epsilon, said.parameters["scale"]
    (0.1, inf, 2560.0)
    """

    name: ClassVar[str] = "CappedDPText"

    share: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "share", number("share", self.share, above=0, most=1))

    @property
    def budget(self) -> float:
        """The epsilon that the noise is scaled to."""
        return self.epsilon * self.share
