"""How a training goes, in numbers that are public: Python's alone, so that a plan needs no compiled code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.checks import choice, number, whole
from dptext.embeddings.user_matrices import public_frequencies
from dptext.errors import ParameterError

__all__ = ["CELLS", "IEEE", "MOST", "Clipping", "Limits", "Recipe", "Unit"]

Unit: TypeAlias = Literal["user", "document", "pair"]
Floats: TypeAlias = npt.NDArray[np.float64]

CELLS = 2**18
"""The clipping norm C, in units of the sum of a step, in which all numbers are whole."""
MOST = 2**30
"""No number of the sum goes beyond; it takes 4096 units that agree on one coordinate alone."""

# What the proof takes for granted, in the words of a statement.
IEEE = "this machine's arithmetic is that of IEEE 754: each operation and square root is rounded to the nearest number"

_MOST = {"window": 100, "negatives": 100, "pairs": 10_000, "most_words": 10_000_000}
_FARTHEST = 1e20  # far from where numbers of single precision, and squares, end
_SHORTEST_CLIP, _LONGEST_CLIP = 1e-20, 1e20  # the same: the cells of a length of 1 must be a number there


class Limits(NamedTuple):
    """Clipping norms in cells, for `dptext.embeddings.dpsgd.clipping`."""

    joint: float
    words: float
    contexts: float
    cells: float


@dataclass(frozen=True)
class Clipping:
    """The clipping norm of a unit."""

    norm: float
    words: float = 0.0
    contexts: float = 0.0

    @classmethod
    def of(cls, clip: float | tuple[float, float]) -> Clipping:
        """One norm, or one for each table."""
        norms = clip if isinstance(clip, tuple | list) else (clip,)
        if isinstance(clip, tuple | list) and len(clip) != 2:
            raise ParameterError(f"clip must be one norm, or two (of words, of contexts), got {len(clip)}")
        checked = [number("clip", each, least=_SHORTEST_CLIP, most=_LONGEST_CLIP) for each in norms]
        return cls(*checked) if len(checked) == 1 else cls(math.hypot(*checked), *checked)

    @property
    def limits(self) -> Limits:
        """The same in cells."""
        cells = CELLS / self.norm
        return Limits(0.0 if self.words else float(CELLS), self.words * cells, self.contexts * cells, cells)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What happens to a unit in a step, and what the step does: see `dptext.SkipGram`."""

    unit: Unit
    pairs: int
    window: int
    negatives: int
    subsample: float
    clip: float | tuple[float, float]
    distance: float
    most_words: int

    def __post_init__(self) -> None:
        choice("unit", self.unit, get_args(Unit))
        for name, most in _MOST.items():
            object.__setattr__(self, name, whole(name, getattr(self, name), least=1, most=most))
        if self.unit == "pair":
            object.__setattr__(self, "pairs", 1)
        Clipping.of(self.clip)
        object.__setattr__(self, "distance", number("distance", self.distance, above=0, most=_FARTHEST))
        if isinstance(self.subsample, bool) or self.subsample != 0:  # a 0 stays what it is: the fingerprint has it
            object.__setattr__(self, "subsample", number("subsample", self.subsample, above=0))

    @property
    def clipping(self) -> Clipping:
        """The same as `clip`."""
        return Clipping.of(self.clip)

    def rates(self, steps: int) -> Floats:
        """(steps,) the learning rate of each step, for a sum in units of C that is divided by the denominator."""
        falling = np.arange(steps, 0, -1, dtype=np.float64)
        rates: Floats = self.distance * falling / falling.sum()
        return rates

    def kept(self, words: int) -> Floats:
        """(words,) the chance that a word stays, by its public rank (as word2vec.c has it)."""
        if self.subsample == 0:
            return np.ones(words)
        share = self.subsample / public_frequencies(words)
        return np.minimum(1.0, np.sqrt(share) + share)

    def contexts(self, words: int) -> tuple[Floats, Floats]:
        """(words,) shares of a word among words beside others, and among negative words, by its public rank."""
        frequencies = public_frequencies(words)
        beside, negative = frequencies * self.kept(words), frequencies**0.75
        return beside / beside.sum(), negative / negative.sum()

    def offsets(self, words: int) -> npt.NDArray[np.float32]:
        beside, negative = self.contexts(words)
        return np.log(beside / (self.negatives * negative)).astype(np.float32)
