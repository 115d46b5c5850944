"""How a measured number is graded beside what a guess reaches, and which words and which sign stand for a grade.

Derivation: docs/howto/report.md#reports-grades
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, NamedTuple

from dptext.estimates import Estimate

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
