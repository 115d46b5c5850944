"""Results of a report: data classes, and the grade and sign of a number compared with its chance level.

Derivation: docs/howto/report.md#reports-grades
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal

from dptext.attacks.base import AttackScore
from dptext.evaluation.measures import Measured
from dptext.intervals import Estimate

NEAR, HALF, NEARLY = 0.1, 0.5, 0.9
"""Advantages at which grades change."""
_TIMES = 20.0
"""A guarantee of 3 nats allows about this multiple of the chance level."""


# -- grades --------------------------------------------------------------------------------------------------------


class Grade(IntEnum):
    """Distance of a number above its chance level; ordered."""

    GUESS = 0
    UNCLEAR = 1
    LITTLE = 2
    MORE = 3
    MOST = 4
    NEARLY_ALL = 5

    @property
    def is_shown(self) -> bool:
        """Return whether chance is excluded: the interval lies above the baseline."""
        return self >= Grade.LITTLE


def advantage(value: float, baseline: float) -> float:
    """Return the part of the distance from the baseline to 1; 0 where they are equal."""
    return 0.0 if baseline == 1.0 else (value - baseline) / (1.0 - baseline)


def grade(score: Estimate, baseline: float) -> Grade:
    """Return the grade of a number compared with its baseline; the only place that decides it."""
    low, number, high = (advantage(value, baseline) for value in (score.low, score.value, score.high))
    if low <= 0:
        return Grade.GUESS if high <= NEAR else Grade.UNCLEAR
    if high <= NEAR and not 0 < _TIMES * baseline < score.low:
        return Grade.LITTLE
    return Grade.NEARLY_ALL if number >= NEARLY else Grade.MOST if number >= HALF else Grade.MORE


Of = Literal["attacker", "allowed", "model", "control"]
"""An attack, an attack within the bound of the guarantee, a useful model, an attack on original texts."""


def sign(grade: Grade, of: Of) -> bool | None:
    """Return whether a grade is good news; None: neither. The only place that decides it."""
    if of == "control" or grade in (Grade.UNCLEAR, Grade.LITTLE):
        return None
    if of == "model":
        return grade is not Grade.GUESS
    return True if grade is Grade.GUESS else None if of == "allowed" else False


# -- data classes --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeptPieces:
    """Strings of one kind (names, addresses, numbers) in the original rows, and how many the release still contains."""

    kind: str
    pieces: int
    whole: int
    part: int


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Utility of the release, for all rows or for one group."""

    name: str
    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    gain: Estimate | None = None
    detail: str = ""
    owner_only: bool = False
    is_rival: bool = False
    texts: int | None = None  # that the model was trained on
    lead: Estimate | None = None  # of the model trained on the corpus, on the same texts

    @classmethod
    def of(cls, measured: Measured, **fields: Any) -> Measurement:
        values = {name: getattr(measured, name) for name in ("measure", "score", "baseline", "baseline_name", "gain")}
        return cls(**values, **fields)

    @property
    def grade(self) -> Grade:
        """The grade of the gain where it was measured, else of the score."""
        if self.gain is None:
            return grade(self.score, self.baseline)
        value, low, high = (self.baseline + gain for gain in (self.gain.value, self.gain.low, self.gain.high))
        return grade(replace(self.gain, value=value, low=low, high=high), self.baseline)

    @property
    def is_useful(self) -> bool:
        return self.grade.is_shown


@dataclass(frozen=True, kw_only=True)
class GroupGap:
    """Largest gap between the groups that one model serves."""

    sentence: str
    gap: Estimate
    is_for_release: bool = True
    owner_only: bool = False

    @property
    def grade(self) -> Grade:
        return grade(self.gap, 0.0)

    @property
    def is_shown(self) -> bool:
        return self.grade.is_shown


@dataclass(frozen=True, kw_only=True)
class LabelOfCorpus:
    """One label of a synthetic corpus."""

    name: str
    count: int
    share: float
    released: float
    real: float | None = None
    samples: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Spread:
    """One measure of the variety of texts."""

    name: str
    corpus: str = ""
    pool: str = ""
    real: str = ""
    detail: str = ""
    owner_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Contents of a synthetic corpus."""

    texts: int
    pool: int | None
    labels: Sequence[LabelOfCorpus] = ()
    more_labels: int = 0
    spread: Sequence[Spread] = ()


@dataclass(frozen=True, kw_only=True)
class Relinking:
    """Success of linking a text to one of several people."""

    people: int
    parts: int  # sentences per document
    maximum: float  # for any texts
    pure: float  # for any texts and any mechanism with this epsilon


def main_scores(scores: Sequence[AttackScore]) -> list[AttackScore]:
    """Return the first number of each attack, its success rate; the others measure it in other ways."""
    first: dict[str, AttackScore] = {}
    for score in scores:
        first.setdefault(score.attack, score)
    return list(first.values())
