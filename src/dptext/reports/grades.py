"""How a measured number is graded beside what a guess reaches, and which words and which sign stand for a grade.

One number is never read alone. Its *advantage* is the share of what a guess gets wrong that the number gets right,
``(score - baseline) / (best - baseline)``: 0 for a guess, 1 where nothing is wrong any more. The grade follows from
the advantage of the number and of both ends of its interval, and nothing else on a page has a threshold of its own:

==================================  =====================================  ====================================
.                                   the interval holds the baseline        it lies above the baseline
==================================  =====================================  ====================================
its upper end is at most a tenth    `Grade.GUESS`                          `Grade.LITTLE`
its upper end is above a tenth      `Grade.UNCLEAR`                        `Grade.MORE`; `Grade.MOST` where the
                                                                           number is a half or more,
                                                                           `Grade.NEARLY_ALL` from nine tenths on
==================================  =====================================  ====================================

Where a guess is rarely right, a tenth of what it gets wrong is a lot: of a thousand texts, of which a guess traces back
one, 80. So a number that is twenty times a guess with its whole interval is `Grade.MORE` at least: a promise of 3 nats
allows no more.

So a quiet grade has to hold at the end of the interval that is worst for it, and what few rows cannot show is never
called good news.

The tenth and the nine tenths are those of a promise: under pure epsilon, who held two inputs for equally likely has an
advantage of at most tanh(epsilon / 2). That is a tenth at 0.2 nats, a half at 1.1 nats, and nine tenths at 3 nats, up
to which a bound is said to protect by itself (`dptext.privacy.wording.Strength`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, NamedTuple

from dptext.estimates import Estimate

__all__ = ["Grade", "Said", "advantage", "grade", "said"]

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
    """The share of what is missing at the baseline that is reached; 0 where nothing is missing.

    Args:
        value, baseline: a score, and what a guess reaches.
        best: what could be reached: 1 for shares, 0 for errors.

    >>> round(advantage(0.31, 0.27), 3), round(advantage(30.0, 40.0, best=0.0), 3)
    (0.055, 0.25)
    """
    return 0.0 if best == baseline else (value - baseline) / (best - baseline)


def grade(score: Estimate, baseline: float, *, best: float = 1.0) -> Grade:
    """The grade of a number beside its baseline: the only place that decides one.

    Args:
        score: with its interval.
        baseline: what a guess reaches.
        best: what could be reached: 1 for shares, 0 where lower is better.

    >>> few, many = (Estimate(0.31, 0.31 - half, 0.31 + half, 1, "rows") for half in (0.05, 0.02))
    >>> grade(Estimate(0.08, 0.06, 0.09, 1, "rows"), 0.001).name
    'MORE'
    >>> grade(few, 0.27).name, grade(many, 0.27).name, grade(Estimate(0.979, 0.97, 0.985, 1, "rows"), 0.001).name
    ('UNCLEAR', 'LITTLE', 'NEARLY_ALL')
    """
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
    """Which words and which sign a grade has, the only place that decides it.

    Args:
        found: the grade.
        of: whose number it is: an "attacker" who is not to learn anything; one to whom a promise that protects by
            itself has "allowed" as much; a "model" that is to be good for something; the "control" of an attack, on
            original texts, where it should succeed.
        against: what the baseline is called.

    >>> said(Grade.LITTLE, "attacker"), said(Grade.GUESS, "model").good
    (Said(words='a little more than a guess', good=None), False)
    """
    words, good = _SAID[of][found]
    return Said(words.format(against=against), good)
