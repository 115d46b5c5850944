"""What a published mechanism says of itself, what is true, and the refusal to run it unasked."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptext.checks import whole
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.statement import Parameter, PrivacyStatement
from dptext.representations.domains import Floats
from dptext.representations.randomizer import Channel, Randomizer

__all__ = ["Finding", "Published", "PublishedChannel"]

_SAME = 1e-9  # relatively: chances are rounded by less


@dataclass(frozen=True)
class Finding:
    """What is known of a printed epsilon.

    Attributes:
        claimed: as printed.
        bound: what no two inputs lose more than; infinite where nothing bounds it.
        attained: what the two inputs of the witness lose, exactly.
        reason: why the printed one does not hold, in a line.
        holds_for: the inputs that the bound is about, in words.
        witness: the two inputs, in words.
    """

    claimed: float
    bound: float
    attained: float
    reason: str
    holds_for: str
    witness: str

    @property
    def verdict(self) -> str:
        """Whether the claim is ``"false"``, ``"true"``, or ``"open"``: not proved, and no two inputs are known."""
        if self.attained > self.claimed * (1 + _SAME):
            return "false"
        return "true" if self.bound <= self.claimed * (1 + _SAME) else "open"

    def parameters(self) -> dict[str, Parameter]:
        """For the statement, which `PrivacyStatement.explain` shows."""
        said = self.verdict
        return {
            "claim_is": said,
            "reason": None if said == "true" else self.reason,
            "holds_for": self.holds_for,
            "witness": self.witness,
            "witness_loss": self.attained if math.isfinite(self.attained) else "infinity",
        }


class PublishedChannel(Channel):
    """A published mechanism for vectors of one dimension.

    Attributes:
        finding: what is claimed and what is true.
        witness: two (d,) vectors that lose ``finding.attained``: those of which an audit shows most.
    """

    finding: Finding
    witness: tuple[Floats, Floats]


@dataclass(frozen=True, kw_only=True, repr=False)
class Published(Randomizer):
    """A mechanism as a paper prints it.

    Attributes:
        epsilon: as printed. *Not* what is proved: that stands in the statement.
        dimension: of the vectors, if it is to be checked.
        unsafe_as_published: True, or it is refused.

    Raises:
        RefusedError: without ``unsafe_as_published=True``.
    """

    flaw: ClassVar[str]
    """Why the printed epsilon does not hold, in a line."""
    instead: ClassVar[str]
    """Which mechanisms with a proof do the same."""

    dimension: int | None = None
    unsafe_as_published: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unsafe_as_published is not True:
            raise RefusedError(
                f"{self.name} does not keep the epsilon that its paper prints: {self.flaw}. Use {self.instead}; or, to "
                "compare with the paper, unsafe_as_published=True: the statement then carries the true epsilon"
            )
        if self.dimension is not None:
            object.__setattr__(self, "dimension", whole("dimension", self.dimension, least=1))

    @abstractmethod
    def _calibrate(self, dimension: int) -> PublishedChannel: ...

    def channel(self, dimension: int) -> PublishedChannel:
        """See `Randomizer.channel`.

        Raises:
            ParameterError: another dimension than the one that it was built for.
        """
        if self.dimension is not None and dimension != self.dimension:
            raise ParameterError(f"{self.name} was built for vectors of {self.dimension} numbers, got {dimension}")
        channel = super().channel(dimension)
        assert isinstance(channel, PublishedChannel)
        return channel

    def statement(self, dimension: int | None = None, *, seeded: bool = False) -> PrivacyStatement:
        """What is true of one vector of a person, with the printed epsilon as ``claimed_epsilon``.

        Args:
            dimension: may be left out where it was given before.
            seeded: whether a seed is used.
        """
        wanted = self.dimension if dimension is None else dimension
        if wanted is None:
            raise ParameterError(f"the loss of {self.name} depends on the dimension: say of which, statement(50)")
        return super().statement(wanted, seeded=seeded).replace(claimed_epsilon=self.epsilon)


def alternating(dimension: int) -> Floats:
    """1, -1, 1, -1, ..."""
    signs: Floats = (1 - 2 * (np.arange(dimension) % 2)).astype(np.float64)
    return signs
