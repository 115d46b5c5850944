"""What a report asks of a release, and how its page is put together, of whichever kind the release is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dptext.attacks import AttackScore
from dptext.attacks.base import ATTACKERS, Attacker
from dptext.audits.verdict import Verdict
from dptext.errors import ParameterError
from dptext.io.batches import display_name
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.reports.answers import main_scores
from dptext.reports.figures import promise_figure, scores_figure
from dptext.reports.page import Picture, Report
from dptext.reports.results import Check, GroupGap, Measurement

_SEEDS = 2**31


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a report is to be made of."""

    private: Path
    original: Path | None = None
    text: str = "text"
    label: str | None = None
    attribute: str | None = None
    group: str | None = None
    user: str | None = None
    public: Sequence[Path] = ()
    public_text: str = "text"
    distribution: Path | None = None
    held_out: Path | None = None
    rows: int = 3000
    vectors: str | None = None
    bank: Path | None = None
    redact_list: Path | None = None
    samples: int = 200_000
    error: float = 1e-6
    attackers: Sequence[Attacker] = ATTACKERS
    folds: int = 5
    seed: int = field(default_factory=lambda: int(RandomBits().integers(1)[0]) % _SEEDS)

    def __post_init__(self) -> None:
        if self.rows < 2 * self.folds:
            raise ParameterError(f"rows must be at least {2 * self.folds}, got {self.rows}")
        if self.group is not None and self.label is None:
            raise ParameterError(
                "group needs a label: how well a group is served shows in how well its labels are named"
            )
        if self.original is not None and self.original.resolve() == self.private.resolve():
            raise ParameterError("original must be another file than the private one: name what it was made from")
        if self.held_out is not None and self.original is None:
            raise ParameterError("held_out needs original: those who had no part are compared with those who had")
        others = [each.resolve() for each in (self.private, self.original) if each is not None]
        if self.held_out is not None and self.held_out.resolve() in others:
            raise ParameterError("held_out must be another file than private and original: name people who had no part")

    @property
    def columns(self) -> list[str]:
        named = (self.label, self.attribute, self.group, self.user)
        return list(dict.fromkeys(each for each in named if each is not None))


class Making(ABC):
    """A report while it is made: what stands in an attribute of a name that `Report` has is put on the page."""

    def __init__(self, asked: Question, data: Path, statement: PrivacyStatement, say: Callable[[str], None]) -> None:
        self.asked, self.data, self.statement, self.say = asked, data, statement, say
        self.notes: list[str] = []
        self.attacks: list[AttackScore] = []
        self.owner_attacks: list[AttackScore] = []
        self.controls: list[AttackScore] = []
        self.utility: list[Measurement] = []
        self.fairness: list[Measurement] = []
        self.gaps: list[GroupGap] = []
        self.pictures: dict[str, Picture | None] = {}
        self.limits: dict[str, float] = {}

    @abstractmethod
    def look(self) -> tuple[list[Check], Verdict]:
        """Look at everything that was asked for; what was checked of the file, and the verdict on its promise."""

    def report(self, title: str, command: str) -> Report:
        """The page."""
        checks, verdict = self.look()
        pictures = {
            "audit": _picture_of_promise(verdict),
            "attacks": picture_of_attacks([*self.owner_attacks, *self.attacks]),
            "utility": _picture_of_use(self.utility),
        } | self.pictures
        names = {each.name for each in fields(Report)}
        found: dict[str, Any] = {name: value for name, value in vars(self).items() if name in names}
        found |= {
            "title": title or f"What is known about {display_name(self.data)}",
            "checks": checks,
            "verdicts": [verdict],
            "pictures": {name: each for name, each in pictures.items() if each is not None},
            "command": command,
        }
        return Report(**found)


def _picture_of_promise(verdict: Verdict) -> Picture | None:
    if verdict.allowed >= 1e6:
        return None
    return (
        "For the pair of words, texts or vectors that comes closest: what it may give away, and what the audit showed",
        promise_figure([(f"worst pair found, {verdict.method.partition(',')[0]}", verdict)]),
    )


def picture_of_attacks(scores: Sequence[AttackScore], *, measure: str = "share of right answers") -> Picture | None:
    """The main number of each attack beside its baseline: all are shares of right answers."""
    drawn = [(each.attack.replace(" (", "\n("), each.score, each.baseline) for each in main_scores(scores)]
    caption = "How often each attacker was right (dot), beside somebody who sees nothing (grey bar)"
    return (caption, scores_figure(drawn, measure=measure)) if len(drawn) > 1 else None  # one needs no picture


def _picture_of_use(found: Sequence[Measurement]) -> Picture | None:
    accuracies = [each for each in found if each.measure == "accuracy"]
    drawn = [(each.what.replace(", ", ",\n"), each.score, each.baseline) for each in accuracies]
    caption = "How often each model was right (dot), beside the best blind guess (grey bar)"
    return (caption, scores_figure(drawn, measure="accuracy")) if len(drawn) > 1 else None
