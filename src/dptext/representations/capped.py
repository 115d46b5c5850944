"""L2-Laplace noise at a budget that was learnt below a public cap: the cap is what is promised."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from dptext.errors import ParameterError
from dptext.privacy.guarantee import PureDP
from dptext.representations.additive import AdditiveChannel, L2Laplace

__all__ = ["CappedLaplace"]


@dataclass(frozen=True, kw_only=True)
class CappedLaplace(L2Laplace):
    """L2-Laplace noise of the budget ``share * epsilon``, which promises ``epsilon``.

    For a budget that was learnt (`dptext.HidingEncoder` with ``learn_epsilon=True``): the learnt one is a result of
    the training data and varies with them, so it is no promise that could be made beforehand; the cap c1 is.

    **Guarantee** (unit: one vector; substitution; local): pure epsilon for any two vectors, as for `L2Laplace`; more
    noise than that takes promises no less.

    Args:
        epsilon: c1, the cap, which is promised.
        share: of the cap, that the noise is scaled to; above 0 and at most 1.
        domain: as for `L2Laplace`.

    Raises:
        ParameterError: as for `L2Laplace`; a share out of range.

    >>> randomizer = CappedLaplace(epsilon=8.0, share=0.5)
    >>> print(randomizer.statement(64).guarantee, round(randomizer.expected_squared_error(64)))
    8-differential privacy (pure) 1040
    """

    name: ClassVar[str] = "CappedLaplace"

    share: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        number = isinstance(self.share, int | float) and not isinstance(self.share, bool)
        if not number or not 0 < self.share <= 1:
            raise ParameterError(f"share must be a number above 0 and at most 1, got {self.share!r}")
        object.__setattr__(self, "share", float(self.share))

    def _calibrate(self, dimension: int) -> AdditiveChannel:
        channel = replace(self, epsilon=self.epsilon * self.share, share=1.0)._wide(dimension)
        channel.guarantee = PureDP(self.epsilon)
        return channel

    def _wide(self, dimension: int) -> AdditiveChannel:
        return super()._calibrate(dimension)
