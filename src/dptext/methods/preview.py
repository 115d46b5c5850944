"""What the playground shows of a text: plain values, their sentences, and how far the outputs of two inputs overlap."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from dptext.calibration.outcomes import Floats, probability_interval
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import Strength, strength_in_brief, table_cells
from dptext.representations.randomizer import Channel

NOTE = (
    "This is a teaching aid: what is typed here is not released, and no promise is made for it. Trying a private text "
    "here and publishing the draw that looks best is a release of its own, and the choice adds to what it gives away."
)
"""Stands beside all that is shown."""
_PUBLIC = 2000
_PEOPLE = 2000
_KNOWN = 99
_WORDS = 8  # of a text to try, at least
_NO_CERTAINTY = 1 - 1e-12  # with noise nobody is certain: what is closer to 1 was rounded
SAME = "Both give the same outputs with the same chances: nobody can tell them apart."
_ERROR = 0.05
_MOST_LOSS = 32.0  # nats, at the ends of the grid
_ROUNDING = 1e-9  # of the transforms
_HARDLY = 1e-4
_SHOWN = 5e-4


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text; joined in their order they are the text."""

    text: str
    stays: float | None
    becomes: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Attacker:
    """The best attacker."""

    says: str
    right: float
    blind: float


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two inputs that the promise makes hard to tell apart."""

    first: str
    second: str
    overlap: float
    outcomes: tuple[tuple[str, float, float], ...]
    says: str


@dataclass(frozen=True, slots=True)
class Point:
    """An output in the plane."""

    x: float
    y: float
    of: int


@dataclass(frozen=True, slots=True)
class Shown:
    """All that is shown for a text."""

    way: str
    epsilon: float
    promise: str
    strength: str
    protects: bool
    pieces: tuple[Piece, ...]
    draws: tuple[str, ...]
    attacker: Attacker
    neighbours: Neighbours
    points: tuple[Point, ...] | None = None
    note: str = NOTE

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def outcomes(
    names: Iterable[str], one: Iterable[float], other: Iterable[float], *, rest: str
) -> tuple[tuple[str, float, float], ...]:
    """Outputs with the chances of two inputs, and what remains of the chances."""
    firsts, seconds = ([float(entry) for entry in side] for side in (one, other))
    named = zip(names, firsts, seconds, strict=True)
    return (*named, (rest, max(0.0, 1.0 - sum(firsts)), max(0.0, 1.0 - sum(seconds))))


# -- numbers and their sentences --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Between:
    """A number from 0 to 1, and what is known of it."""

    low: float
    high: float
    draws: int | None = None
    value: float | None = None

    @classmethod
    def exactly(cls, value: float) -> Between:
        return cls(value, value)

    @property
    def middle(self) -> float:
        """The number itself, or the best guess of it."""
        return (self.low + self.high) / 2 if self.value is None else self.value

    @property
    def how(self) -> str:
        """How it is known, for a bracket."""
        if self.draws is not None:
            return f"from {self.draws:,} draws; between {self.low:.1%} and {self.high:.1%}"
        if self.high - self.low < _SHOWN:
            return "computed exactly" if self.low == self.high else "computed to the digits shown"
        return f"bounded: between {self.low:.1%} and {self.high:.1%}"


class Promised(TypedDict):
    """What `Shown` says of a promise."""

    promise: str
    strength: str
    protects: bool


def promised(statement: PrivacyStatement) -> Promised:
    strength = Strength.for_statement(statement)
    return {
        "promise": table_cells(statement)[0].removesuffix(strength.value).rstrip(),  # `strength` says that
        "strength": strength_in_brief(statement, attacks_follow=False)[0],
        "protects": strength is Strength.PROTECTS,
    }


def attacker(
    knows: str,
    right: Between,
    blind: float,
    *,
    does: str = "names the right one from what came out",
    guess: str | None = None,
) -> Attacker:
    share = percent(min(right.middle, _NO_CERTAINTY))
    says = (
        f"Somebody who knows how the output is made, and {knows}, {does} in {share} of the cases ({right.how}); "
        f"blindly in {percent(blind)}."
    )
    if guess is not None:
        says += f" From the first output they would guess: {guess}"
    return Attacker(says, right.middle, blind)


def told_apart(overlap: Between) -> str:
    right = percent(min(1 - overlap.middle / 2, _NO_CERTAINTY))
    return (
        f"Their outputs overlap by {percent(overlap.middle)} ({overlap.how}): somebody who holds both for equally "
        f"likely names the right one in {right} of the cases; blindly in 50%."
    )


def percent(share: float) -> str:
    """A share in per cent, which is not said to be certain or impossible because of rounding."""
    if 0.999 < share < 1:
        return ">99.9%"
    return "<0.1%" if 0 < share < 0.001 else f"{100 * share:.1f}".removesuffix(".0") + "%"


# -- public texts -----------------------------------------------------------------------------------------------------


class Samples:
    """Utterances of SNIPS (CC0)."""

    name = "SNIPS"

    @cached_property
    def samples_to_try(self) -> tuple[tuple[str, str], ...]:
        """(title, text), one of each intent."""
        result: dict[str, str] = {}
        for row in _bundled("test"):
            if row["intent"] not in result and len(row["text"].split()) >= _WORDS:
                result[row["intent"]] = row["text"]
        return tuple(result.items())

    @cached_property
    def public(self) -> list[str]:
        return [row["text"] for row in self._train[1::2][:_PUBLIC]]

    @cached_property
    def people(self) -> list[str]:
        """Texts of made-up people, one each."""
        return [row["text"] for row in self._train[::2][:_PEOPLE]]

    def among(self, text: str) -> list[str]:
        """Texts of which an attacker knows that one came in: this one first, and others."""
        others = dict.fromkeys(row["text"] for row in _bundled("test"))
        return [text, *[other for other in others if other != text][:_KNOWN]]

    def another(self, text: str) -> str:
        return next(entry for _, entry in self.samples_to_try if entry != text)

    @cached_property
    def _train(self) -> list[dict[str, str]]:
        return _bundled("train")


def _bundled(name: str) -> list[dict[str, str]]:
    content = (files("dptext") / "cli" / "sample" / f"snips-{name}.jsonl.gz").read_bytes()
    return [json.loads(line) for line in gzip.decompress(content).decode().splitlines()]


# -- overlaps ---------------------------------------------------------------------------------------------------------


def overlap(one: Floats, other: Floats) -> Between:
    """Of two distributions over the same outputs."""
    return Between.exactly(min(1.0, float(np.minimum(one, other).sum())))


def overlap_of_places(places: Sequence[tuple[Floats, Floats]]) -> Between:
    """Of two products of distributions, such as the words of a text, each drawn by itself."""
    if len(places) == 1:
        return overlap(*places[0])
    ordered = sorted(places, key=lambda pair: float(np.minimum(*pair).sum()))
    step = 2.0 ** -(9 - min(2, (len(places) - 1) // 8))
    lower, upper = _Losses(step, up=True), _Losses(step, up=False)
    for one, other in ordered:
        upper.add(one, other)
        if upper.overlap() < _HARDLY:
            return Between(0.0, upper.overlap())
        lower.add(one, other)
    return Between(lower.overlap(), upper.overlap())


class _Losses:
    """The distribution under P of a sum of losses, each rounded up (for a lower bound) or down (for an upper one)."""

    def __init__(self, step: float, *, up: bool) -> None:
        self._step, self._up, self._cells = step, up, round(_MOST_LOSS / step)
        self._masses, self._lowest = np.ones(1), 0  # of losses from this multiple of the step on
        self._tells_nothing = 0.0

    def add(self, one: Floats, other: Floats) -> None:
        possible = one > 0
        with np.errstate(divide="ignore"):
            losses = np.log(one[possible]) - np.log(other[possible])
        position = (np.ceil if self._up else np.floor)(losses / self._step)
        limited = np.clip(position, -self._cells - 1, self._cells + 1).astype(np.int64)
        first = int(limited.min(initial=0))
        masses = np.asarray(np.bincount(limited - first, weights=one[possible]), dtype=np.float64)
        inside, low = self._cut(masses, first)
        whole, lowest = self._cut(_convolved(self._masses, inside), self._lowest + low)
        self._masses, self._lowest = whole, lowest

    def _cut(self, masses: Floats, first: int) -> tuple[Floats, int]:
        """Losses brought into the grid."""
        position = np.arange(masses.size) + first
        if self._up:  # beyond the upper end: one of the two alone; below the lower end: raised to it
            masses, position = np.where(position > self._cells, 0.0, masses), np.maximum(position, -self._cells)
        else:  # beyond the upper end: lowered to it; below the lower end: tells nothing, whatever is added
            self._tells_nothing += float(masses[position < -self._cells].sum())
            masses, position = np.where(position < -self._cells, 0.0, masses), np.minimum(position, self._cells)
        low = max(int(position[0]), -self._cells)
        kept = np.clip(position, low, self._cells)
        return np.asarray(np.bincount(kept - low, weights=masses), dtype=np.float64), low

    def overlap(self) -> float:
        """E of min(1, e^-L)."""
        losses = (np.arange(self._masses.size) + self._lowest) * self._step
        value = float((self._masses * np.exp(-np.maximum(losses, 0.0))).sum())
        if self._up:
            return max(0.0, value - _ROUNDING)
        return min(1.0, value + self._tells_nothing + _ROUNDING)


def _convolved(one: Floats, other: Floats) -> Floats:
    size = one.size + other.size - 1
    power = 1 << (size - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(one, power) * np.fft.rfft(other, power), power)[:size]
    result: Floats = np.maximum(product, 0.0)
    return result


# -- from draws ----------------------------------------------------------------------------------------------------


def mean_of_draws(values: Floats) -> Between:
    """The mean of a number from 0 to 1, from independent draws of it (the interval is Chernoff's)."""
    mean = min(float(values.mean()), 1.0)
    low, high = probability_interval(np.array([mean * values.size]), values.size, _ERROR)
    return Between(float(low[0]), float(high[0]), values.size, mean)


def overlap_of_draws(logs: npt.NDArray[np.float64]) -> Between:
    """From outputs of which as many were drawn for either input."""
    return mean_of_draws(2.0 / (1.0 + np.exp(np.minimum(np.abs(logs[:, 0] - logs[:, 1]), 700.0))))


def right_in_draws(logs: npt.NDArray[np.float64]) -> Between:
    """How often the best attacker names the right one of k equally likely inputs."""
    return mean_of_draws(1.0 / np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1))


def likeliest(chances: Floats, bits: RandomBits) -> npt.NDArray[np.int64]:
    """(n,) the likeliest of k inputs for each of n outputs; of equally likely ones any."""
    tied = chances >= chances.max(axis=1, keepdims=True)
    places = bits.below(tied.sum(axis=1).astype(np.uint64)).astype(np.int64)
    result: npt.NDArray[np.int64] = (np.cumsum(tied, axis=1) > places[:, None]).argmax(axis=1)
    return result


# -- densities of randomizers, from their own constants ---------------------------------------------------------------


def log_densities(channel: Channel, outputs: Floats, vectors: Floats) -> Floats:
    text = channel.parameters()
    if "cap_mass" in text:
        height, mass, chance = (float(text[name] or 0.0) for name in ("cap_height", "cap_mass", "cap_chance"))
        units = outputs / np.linalg.norm(outputs, axis=1, keepdims=True)
        inside, outside = math.log(chance / mass), math.log1p(-chance) - math.log1p(-mass)
        result: Floats = np.where(units @ vectors.T >= height, inside, outside)
        return result
    if "scale" in text:
        return log_l2_laplace(outputs, vectors, float(text["scale"] or 0.0))
    return -_squared(outputs, vectors) / (2 * float(text["sigma"] or 0.0) ** 2)


def log_l2_laplace(outputs: Floats, vectors: Floats, scale: float) -> Floats:
    """The same of noise of density proportional to exp(-||z|| / scale)."""
    result: Floats = -np.sqrt(_squared(outputs, vectors)) / scale
    return result


def _squared(outputs: Floats, vectors: Floats) -> Floats:
    squares = np.square(outputs).sum(axis=1)[:, None] + np.square(vectors).sum(axis=1) - 2 * outputs @ vectors.T
    result: Floats = np.maximum(squares, 0.0)
    return result
