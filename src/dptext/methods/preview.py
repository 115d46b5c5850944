"""The preview of one text in the playground: its data classes, its sentences, and the numbers behind them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dptext.calibration.deniability import Floats
from dptext.methods.data import utterances
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import Strength, paragraphs, strength_in_brief, table_cells
from dptext.vectors.word_vectors import WordVectors

DELTA = 1e-6
"""Delta of mechanisms that have one."""
DRAWS, REPLACEMENTS = 3, 5
"""Numbers of draws and of replacements in a preview."""
_PUBLIC_TEXTS = 2000
_PEOPLE = 2000
_CANDIDATES = 100  # texts among which the adversary chooses
_MIN_WORDS = 8  # of an example


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
    """Two neighbouring inputs, and the overlap of their outputs."""

    first: str
    second: str
    overlap: float
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPreview:
    """The preview of one text."""

    method: str
    epsilon: float
    guarantee: str
    strength: str
    protects: bool
    pieces: tuple[Piece, ...]
    draws: tuple[str, ...]
    attack: AttackPreview
    neighbours: Neighbours


class Previewer(ABC):
    """Previews of one release method."""

    key: ClassVar[str]  # in requests
    title: ClassVar[str]  # on the page
    epsilons: ClassVar[tuple[float, float, float]]  # smallest, largest and initial value

    def __init__(self, vectors: WordVectors, samples: Samples) -> None:
        self._vectors, self._samples = vectors, samples

    @abstractmethod
    def show(self, text: str, epsilon: float) -> TextPreview:
        """Return the preview of a text."""

    def preview(
        self,
        epsilon: float,
        statement: PrivacyStatement | None,
        *,
        pieces: Iterable[Piece],
        draws: Iterable[str],
        success: float,
        chance: float,
        candidates: int,
        texts: tuple[str, str],
        overlap: float,
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
            attack=AttackPreview(" ".join(paragraphs_of("attack")), success, chance),
            neighbours=Neighbours(*texts, overlap, " ".join(paragraphs_of("overlap"))),
        )


def percent(share: float) -> str:
    """Return a share in per cent; rounding never makes it look certain or impossible."""
    if 0.999 < share < 1:
        return ">99.9%"
    return "<0.1%" if 0 < share < 0.001 else f"{100 * share:.1f}".removesuffix(".0") + "%"


def overlap(first: Floats, second: Floats) -> float:
    """Return the overlap of two distributions over the same outputs: one minus their total variation distance."""
    return min(1.0, float(np.minimum(first, second).sum()))


def largest(values: Floats, count: int) -> list[int]:
    """Return the indices of the largest values, in descending order."""
    return [int(index) for index in np.argsort(-values, kind="stable")[:count]]


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
        """Return the texts among which an adversary chooses, this one first."""
        others = dict.fromkeys(other for other, _ in utterances("test") if other != text)
        return [text, *others][:_CANDIDATES]

    def neighbour(self, text: str) -> str:
        """Return an example other than this text."""
        return next(example for _, example in self.examples if example != text)

    @cached_property
    def _train(self) -> list[str]:
        return [text for text, _ in utterances("train")]
