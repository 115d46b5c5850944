"""What a published mechanism says of itself, what is true, and the refusal to run it unasked."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dptext.checks import whole
from dptext.errors import ParameterError, RefusedError
from dptext.privacy.claim import Finding
from dptext.privacy.statement import PrivacyStatement
from dptext.representations.domains import Floats
from dptext.representations.randomizer import Channel, Randomizer

__all__ = ["Finding", "Published", "PublishedChannel"]


class PublishedChannel(Channel):
    """A published mechanism for vectors of one dimension."""

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
