"""What a report found: plain values, and the grade, words and sign of a number beside what a guess reaches.

Derivation: docs/howto/report.md#reports-grades
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal, NamedTuple

from dptext.attacks.base import AttackScore
from dptext.estimates import Estimate
from dptext.evaluation.measures import Measured

NEAR, HALF, NEARLY = 0.1, 0.5, 0.9
"""Advantages at which grades change."""
_TIMES = 20.0
"""So often a guess is about what a promise of 3 nats allows at most."""


class Grade(IntEnum):
    """How far above a guess; ordered."""

    GUESS = 0
    UNCLEAR = 1
    LITTLE = 2
    MORE = 3
    MOST = 4
    NEARLY_ALL = 5

    @property
    def is_shown(self) -> bool:
        """Whether chance is excluded: the interval lies above the baseline."""
        return self >= Grade.LITTLE


class Said(NamedTuple):
    """A grade in words, and whether it is good news; None: neither, which has no sign on a page."""

    words: str
    good: bool | None


def advantage(value: float, baseline: float, *, best: float = 1.0) -> float:
    """The share of what is missing at the baseline that is reached; 0 where nothing is missing."""
    return 0.0 if best == baseline else (value - baseline) / (best - baseline)


def grade(score: Estimate, baseline: float, *, best: float = 1.0) -> Grade:
    """The grade of a number beside its baseline: the only place that decides one."""
    low, high = sorted(advantage(each, baseline, best=best) for each in (score.low, score.high))
    number = advantage(score.value, baseline, best=best)
    if low <= 0:
        return Grade.GUESS if high <= NEAR else Grade.UNCLEAR
    if high <= NEAR and not (best == 1.0 and 0 < _TIMES * baseline < score.low):
        return Grade.LITTLE
    return Grade.NEARLY_ALL if number >= NEARLY else Grade.MOST if number >= HALF else Grade.MORE


Of = Literal["attacker", "allowed", "model", "control"]

_SAID: dict[Of, dict[Grade, Said]] = {
    "attacker": {
        Grade.GUESS: Said("no more than a guess", True),
        Grade.UNCLEAR: Said("chance explains it, but the rows are too few to exclude more", None),
        Grade.LITTLE: Said("a little more than a guess", None),
        Grade.MORE: Said("more than a guess", False),
        Grade.MOST: Said("far more than a guess", False),
        Grade.NEARLY_ALL: Said("nearly always right", False),
    },
    "model": {
        Grade.GUESS: Said("no better than {against}", False),
        Grade.UNCLEAR: Said("not shown to be better than {against}", None),
        Grade.LITTLE: Said("a little better than {against}", None),
        Grade.MORE: Said("better than {against}", True),
        Grade.MOST: Said("much better than {against}", True),
        Grade.NEARLY_ALL: Said("nearly always right", True),
    },
    "control": {
        Grade.GUESS: Said("the attack fails here too: above it says nothing", None),
        Grade.UNCLEAR: Said("the attack is not shown to work here: above it says nothing", None),
        Grade.LITTLE: Said("the attack hardly works here: above it says little", None),
        Grade.MORE: Said("the attack works", None),
        Grade.MOST: Said("the attack works", None),
        Grade.NEARLY_ALL: Said("the attack works", None),
    },
}

_SAID["allowed"] = {
    found: Said(f"{words}, and within what the promise allows", None) if good is False else Said(words, good)
    for found, (words, good) in _SAID["attacker"].items()
}


def said(found: Grade, of: Of, *, against: str = "a guess") -> Said:
    """Which words and which sign a grade has, the only place that decides it."""
    words, good = _SAID[of][found]
    return Said(words.format(against=against), good)


@dataclass(frozen=True)
class Stayed:
    """One kind, in all rows that were looked at."""

    kind: str
    pieces: int
    whole: int
    part: int


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What the release is still good for, or how good it is for one group."""

    what: str
    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    lower_is_better: bool = False
    gain: Estimate | None = None
    detail: str = ""
    owner_only: bool = False
    is_rival: bool = False

    @classmethod
    def of(cls, found: Measured, **more: Any) -> Measurement:
        """A measure of predictions, as a page shows it."""
        values = {name: getattr(found, name) for name in ("measure", "score", "baseline", "baseline_name", "gain")}
        return cls(**values, **more)

    @property
    def grade(self) -> Grade:
        """How far it is beyond the baseline: by the gain, where that is known."""
        best = 0.0 if self.lower_is_better else 1.0
        if self.gain is None:
            return grade(self.score, self.baseline, best=best)
        better = -1.0 if self.lower_is_better else 1.0
        value, low, high = (self.baseline + better * each for each in (self.gain.value, self.gain.low, self.gain.high))
        return grade(replace(self.gain, value=value, low=low, high=high), self.baseline, best=best)

    @property
    def is_useful(self) -> bool:
        """Whether it is beyond the baseline with the whole interval."""
        return self.grade.is_shown


@dataclass(frozen=True, kw_only=True)
class GroupGap:
    """How far the groups lie apart that one model serves."""

    words: str
    gap: Estimate
    of_release: bool = True
    owner_only: bool = False

    @property
    def grade(self) -> Grade:
        """How large it is; chance, and nothing else, is what is expected where all are served alike."""
        return grade(self.gap, 0.0)

    @property
    def is_shown(self) -> bool:
        return self.grade.is_shown


@dataclass(frozen=True, kw_only=True)
class KeptColumn:
    """A column of the release that looks like an identifier."""

    name: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Sample:
    """A *public or synthetic* text before and after."""

    before: str
    after: str


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
    """One number of how various texts are."""

    what: str
    corpus: str = ""
    pool: str = ""
    real: str = ""
    detail: str = ""
    owner_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """What a synthetic corpus holds."""

    texts: int
    pool: int | None
    labels: Sequence[LabelOfCorpus] = ()
    more_labels: int = 0
    spread: Sequence[Spread] = ()
    owner_picture: bool = False

    @property
    def has_owner_numbers(self) -> bool:
        """Whether original texts had a part in any number."""
        return (
            self.owner_picture
            or any(each.real is not None for each in self.labels)
            or any(each.real or each.owner_only for each in self.spread)
        )


@dataclass(frozen=True, kw_only=True)
class Relinking:
    people: int
    parts: int
    exact: float | None
    most: float
    pure: float


def main_scores(scores: Sequence[AttackScore]) -> list[AttackScore]:
    """The first number of each attack, which says how often the attacker was right; the others say it in other ways."""
    first: dict[str, AttackScore] = {}
    for score in scores:
        first.setdefault(score.attack, score)
    return list(first.values())
