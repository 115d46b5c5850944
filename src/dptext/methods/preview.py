"""The preview of one text in the playground: its data classes, its sentences, and the numbers behind them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dptext.calibration.deniability import Floats
from dptext.methods.data import utterances
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import Strength, paragraphs, strength_in_brief, table_cells
from dptext.representations.randomizer import Channel
from dptext.vectors.word_vectors import WordVectors

_PUBLIC_TEXTS = 2000
_PEOPLE = 2000
_CANDIDATES = 100  # texts among which the adversary chooses
_MIN_WORDS = 8  # of an example
_INTERVAL_ERROR = 0.05
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text, how likely it stays (None: it is not replaced), and its most likely replacements."""

    text: str
    stays: float | None = None
    replacements: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class AttackPreview:
    """The success of the best adversary, next to the chance level."""

    sentence: str
    success: float
    chance: float


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two neighbouring inputs, the overlap of their outputs, and the probabilities of some outputs under both."""

    first: str
    second: str
    overlap: float
    sentence: str
    outcomes: tuple[tuple[str, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """An output for the first (0) or the second (1) input, in the plane of both vectors."""

    x: float
    y: float
    source: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPreview:
    """The page about one text."""

    method: str
    epsilon: float
    guarantee: str
    strength: str
    protects: bool
    pieces: tuple[Piece, ...]
    draws: tuple[str, ...]
    attack: AttackPreview
    neighbours: Neighbours
    points: tuple[Point, ...] | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A number from 0 to 1: exact, or a mean of draws with its interval."""

    value: float
    low: float = math.nan
    high: float = math.nan
    draws: int | None = None

    @classmethod
    def from_draws(cls, values: Floats) -> Share:
        """Return the mean of independent draws, each from 0 to 1."""
        mean = min(float(values.mean()), 1.0)
        reach = math.sqrt(math.log(2 / _INTERVAL_ERROR) / (2 * values.size))  # Hoeffding 1963
        return cls(mean, max(mean - reach, 0.0), min(mean + reach, 1.0), values.size)


class Previewer(ABC):
    """Previews of one release method.

    Attributes:
        key, title: the name of the method in requests, and for people.
        choices: the mechanisms to choose from.
        epsilons: smallest, largest and initial value.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    choices: ClassVar[tuple[str, ...]]
    epsilons: ClassVar[tuple[float, float, float]]

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:
        self._vectors, self._samples = vectors, samples

    @abstractmethod
    def show(self, text: str, epsilon: float, *, choice: str, neighbour: str | None, draws: int) -> TextPreview:
        """Return the preview of a text; ``choice`` is a mechanism, ``neighbour`` the second input."""

    def preview(
        self,
        epsilon: float,
        statement: PrivacyStatement | None,
        *,
        pieces: Iterable[Piece],
        draws: Iterable[str],
        success: Share,
        chance: float,
        candidates: int,
        texts: tuple[str, str],
        overlap: Share,
        outcomes: Sequence[tuple[str, float, float]] = (),
        topic: str = "overlap",
        points: tuple[Point, ...] | None = None,
    ) -> TextPreview:
        """Return a preview with its sentences; ``statement`` None: the text has no word that it could cover."""

        def paragraphs_of(topic: str) -> list[str]:
            values = {"success": success, "chance": chance, "candidates": candidates, "overlap": overlap}
            template = "methods/templates/preview.txt"
            return paragraphs(template, topic=topic, method=self.key, percent=percent, **values)

        if statement is None:
            guarantee, strength = paragraphs_of("no words")
        else:
            level = Strength.for_statement(statement)
            guarantee = table_cells(statement)[0].removesuffix(level.value).rstrip()  # the strength contains the level
            strength = strength_in_brief(statement, attacks_follow=False)[0]
        return TextPreview(
            method=self.key,
            epsilon=epsilon,
            guarantee=guarantee,
            strength=strength,
            protects=statement is not None and Strength.for_statement(statement) is Strength.PROTECTS,
            pieces=tuple(pieces),
            draws=tuple(draws),
            attack=AttackPreview(" ".join(paragraphs_of("attack")), success.value, chance),
            neighbours=Neighbours(
                *texts, overlap.value, " ".join(paragraphs_of(topic)), tuple(outcomes) if overlap.value < 1 else ()
            ),
            points=points,
        )


def outcome_table(
    names: Sequence[str], first: Floats, second: Floats, *, rest: str
) -> tuple[tuple[str, float, float], ...]:
    """Return named outputs with their probabilities under both inputs, and the remaining probability."""
    named = zip(names, first.tolist(), second.tolist(), strict=True)
    return (*named, (rest, max(0.0, 1.0 - float(first.sum())), max(0.0, 1.0 - float(second.sum()))))


DELTA = 1e-6
"""Delta of mechanisms that have one."""
REPLACEMENTS, OUTCOMES = 5, 6
"""Numbers of replacements and of outputs in a preview."""


def percent(share: float) -> str:
    """Return a share in per cent; rounding never makes it look certain or impossible."""
    if 0.999 < share < 1:
        return ">99.9%"
    return "<0.1%" if 0 < share < 0.001 else f"{100 * share:.1f}".removesuffix(".0") + "%"


# -- numbers ----------------------------------------------------------------------------------------------------------


def overlap(first: Floats, second: Floats) -> Share:
    """Return the overlap of two distributions over the same outputs: one minus their total variation distance."""
    return Share(min(1.0, float(np.minimum(first, second).sum())))


def sampled_overlap(log_ratios: Floats) -> Share:
    """Return the overlap from log likelihood ratios of outputs, of which half were drawn for each input."""
    return Share.from_draws(2.0 / (1.0 + np.exp(np.minimum(np.abs(log_ratios), _LARGEST_EXPONENT))))


def sampled_success(log_likelihoods: Floats) -> Share:
    """Return how often the best adversary names the right one of k equally likely inputs, from (n, k) numbers."""
    relative = log_likelihoods - log_likelihoods.max(axis=1, keepdims=True)
    return Share.from_draws(1.0 / np.exp(relative).sum(axis=1))


def largest(values: Floats, count: int) -> list[int]:
    """Return the indices of the largest values, in descending order."""
    count = min(count, values.size)
    indices = np.argpartition(-values, count - 1)[:count]
    return [int(index) for index in indices[np.lexsort((indices, -values[indices]))]]


def log_densities(channel: Channel, outputs: Floats, vectors: Floats) -> Floats:
    """Return (n, m) log densities of outputs for each input vector, up to a constant."""
    constants = channel.parameters()
    if "cap_mass" in constants:
        height, mass, chance = (float(constants[name] or 0.0) for name in ("cap_height", "cap_mass", "cap_chance"))
        directions = outputs / np.linalg.norm(outputs, axis=1, keepdims=True)
        inside, outside = math.log(chance / mass), math.log1p(-chance) - math.log1p(-mass)
        return np.asarray(np.where(directions @ vectors.T >= height, inside, outside))
    if "scale" in constants:
        return log_l2_laplace(outputs, vectors, float(constants["scale"] or 0.0))
    return -_squared_distances(outputs, vectors) / (2 * float(constants["sigma"] or 0.0) ** 2)


def log_l2_laplace(outputs: Floats, vectors: Floats, scale: float) -> Floats:
    """Return log densities of noise whose density is proportional to exp(-||z|| / scale)."""
    return np.asarray(-np.sqrt(_squared_distances(outputs, vectors)) / scale)


def _squared_distances(outputs: Floats, vectors: Floats) -> Floats:
    squares = np.square(outputs).sum(axis=1)[:, None] + np.square(vectors).sum(axis=1) - 2 * outputs @ vectors.T
    return np.asarray(np.maximum(squares, 0.0))


# -- public texts -----------------------------------------------------------------------------------------------------


class Samples:
    """Public utterances that serve as examples, as a bank or pool, and as other people's texts."""

    name = "SNIPS"

    @cached_property
    def examples(self) -> tuple[tuple[str, str], ...]:
        """(title, text): one text of each intent."""
        result: dict[str, str] = {}
        for text, intent in utterances("test"):
            if len(text.split()) >= _MIN_WORDS:
                result.setdefault(intent, text)
        return tuple(result.items())

    @cached_property
    def public(self) -> list[str]:
        return self._train[1::2][:_PUBLIC_TEXTS]

    @cached_property
    def people(self) -> list[str]:
        """One text per person."""
        return self._train[::2][:_PEOPLE]

    def candidates(self, text: str) -> list[str]:
        """Return the texts among which an adversary chooses: this one first."""
        others = dict.fromkeys(other for other, _ in utterances("test") if other != text)
        return [text, *others][:_CANDIDATES]

    def neighbour(self, text: str) -> str:
        """Return an example other than this text."""
        return next(example for _, example in self.examples if example != text)

    @cached_property
    def _train(self) -> list[str]:
        return [text for text, _ in utterances("train")]
