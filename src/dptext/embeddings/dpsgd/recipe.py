"""How a training goes, in numbers that are public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from dptext.embeddings.context_features import public_frequencies
from dptext.embeddings.dpsgd.clipping import Clipping
from dptext.errors import ParameterError
from dptext.privacy.accounting import checked_amount

__all__ = ["NoiseForm", "Recipe", "Unit", "checked_choice", "checked_whole"]

Unit: TypeAlias = Literal["user", "document", "pair"]
NoiseForm: TypeAlias = Literal["dense", "lazy"]

Floats: TypeAlias = npt.NDArray[np.float64]

_MOST = {"window": 100, "negatives": 100, "pairs": 10_000, "most_words": 10_000_000}
_FARTHEST = 1e20  # far from where numbers of single precision, and squares, end
_LAZY_BELOW = 0.35  # of the rows are touched: then noise when it is due is less work than noise on all rows


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What happens to a unit in a step, and what the step does.

    Attributes:
        unit: whose gradient is bounded.
        pairs: drawn from the texts of a unit that takes part; 1 where the unit is a pair.
        window: words on either side.
        negatives: negative words beside a pair.
        subsample: the frequency above which a word is left out now and then; 0: never.
        clip: C, the greatest length of a unit's gradient; or one for words and one for contexts.
        distance: the sum of the learning rates of all steps: so far the tables go at most, in Euclidean length, if in
            every step as many units take part as are expected, and all pull in one direction. The learning rate falls
            in a straight line to nothing.
        most_words: of a user that are looked at.
        noise: "dense" or "lazy" (`dptext.embeddings.dpsgd.tables`); None: whatever is less work.

    Raises:
        ParameterError: a number out of range.
    """

    unit: Unit
    pairs: int
    window: int
    negatives: int
    subsample: float
    clip: float | tuple[float, float]
    distance: float
    most_words: int
    noise: NoiseForm | None

    def __post_init__(self) -> None:
        checked_choice("unit", self.unit, Unit)
        if self.noise is not None:
            checked_choice("noise", self.noise, NoiseForm)
        for name, most in _MOST.items():
            object.__setattr__(self, name, checked_whole(name, getattr(self, name), most))
        if self.unit == "pair":
            object.__setattr__(self, "pairs", 1)
        Clipping.of(self.clip)
        object.__setattr__(self, "distance", checked_amount("distance", self.distance))
        if self.distance > _FARTHEST:
            raise ParameterError(f"distance must be at most {_FARTHEST:g}, got {self.distance:g}")
        if isinstance(self.subsample, bool) or self.subsample != 0:
            object.__setattr__(self, "subsample", checked_amount("subsample", self.subsample))

    @property
    def clipping(self) -> Clipping:
        """The same as `clip`."""
        return Clipping.of(self.clip)

    def rates(self, steps: int) -> Floats:
        """(steps,) the learning rate of each step, for a sum in units of C that is divided by the denominator."""
        falling = np.arange(steps, 0, -1, dtype=np.float64)
        rates: Floats = self.distance * falling / falling.sum()
        return rates

    def form(self, words: int, units: float) -> NoiseForm:
        """Dense or lazy noise: the given one, or what is less work where so many units are expected in a step.

        It follows from public numbers: whichever is taken says nothing about the texts.
        """
        if self.noise is not None:
            return self.noise
        return "lazy" if self.touched_share(words, units) < _LAZY_BELOW else "dense"

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
        """(words,) b of `dptext.embeddings.dpsgd.gradients`: the logarithm of how much more often a word is beside
        another one than it is a negative word, if no two words had to do with each other.

        With it a context vector of 0 says just that, and a gradient is what stands against it. (Without, the first
        thing that all context vectors learn is one common direction: the mean of all words.)
        """
        beside, negative = self.contexts(words)
        return np.log(beside / (self.negatives * negative)).astype(np.float32)

    def touched_share(self, words: int, units: float) -> float:
        """Which share of the rows a step is expected to touch, if words are used as their public ranks say."""
        beside, negative = self.contexts(words)
        pairs = units * self.pairs
        untouched = np.exp(-pairs * beside) + np.exp(-pairs * (beside + self.negatives * negative))
        return float(1 - untouched.mean() / 2)


def checked_choice(name: str, value: object, choices: Any) -> None:
    """One of the strings that a type allows.

    Raises:
        ParameterError: another one.
    """
    allowed = get_args(choices)
    if value not in allowed:
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def checked_whole(name: str, value: object, most: int) -> int:
    """A whole number from 1 to ``most``.

    Raises:
        ParameterError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= most:
        raise ParameterError(f"{name} must be an integer between 1 and {most:,}, got {value!r}")
    return int(value)
