"""How long the gradient of a unit may be, and in which units it is counted."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dptext.errors import ParameterError
from dptext.privacy.accounting import checked_amount

__all__ = ["CELLS", "Clipping"]

CELLS = 2**18
"""The length C, in units of the sum of a step, in which all numbers are whole."""

_LEAST, _MOST = 1e-20, 1e20  # far from where single precision ends: cells for a length of 1 must be a number there


@dataclass(frozen=True)
class Clipping:
    """The greatest length.

    Attributes:
        norm: C, of both tables together.
        words, contexts: of each table, where each has a norm of its own; then C is the root of the sum of their
        squares.
            0: they have not.
    """

    norm: float
    words: float = 0.0
    contexts: float = 0.0

    @classmethod
    def of(cls, given: float | tuple[float, float]) -> Clipping:
        """One norm, or one for each table.

        Raises:
            ParameterError: not one norm or two; a norm that is no number from 1e-20 to 1e20.
        """
        if not isinstance(given, tuple | list):
            return cls(_checked(given))
        if len(given) != 2:
            raise ParameterError(f"clip must be one norm, or two (of words, of contexts), got {len(given)}")
        words, contexts = (_checked(each) for each in given)
        return cls(math.hypot(words, contexts), words, contexts)

    @property
    def limits(self) -> tuple[float, float, float, float]:
        """In cells: of both tables together, or 0; of words, of contexts; how many cells a length of 1 has."""
        unit = CELLS / self.norm
        return (0.0 if self.words else float(CELLS), self.words * unit, self.contexts * unit, unit)


def _checked(value: float) -> float:
    norm = checked_amount("clip", value)
    if not _LEAST <= norm <= _MOST:
        raise ParameterError(f"clip must be between {_LEAST:g} and {_MOST:g}, got {norm:g}")
    return norm
