"""The settings of a report, and what the examination of a release collects for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from dptext.attacks import AttackScore
from dptext.attacks.base import ATTACKERS, Attacker
from dptext.audits.verdict import Verdict
from dptext.errors import ParameterError
from dptext.methods.base import ReleaseFiles
from dptext.methods.checks import Check
from dptext.methods.figures import scores_figure
from dptext.methods.results import GroupGap, Measurement, main_scores
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement

_SEEDS = 2**31
Picture = tuple[str, bytes]
"""A caption and a PNG picture."""


@dataclass(frozen=True, kw_only=True)
class ReportConfig:
    """Settings of a report: the files, columns and sizes that `dptext.report` takes."""

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
        others = [entry.resolve() for entry in (self.private, self.original) if entry is not None]
        if self.held_out is not None and self.held_out.resolve() in others:
            raise ParameterError("held_out must be another file than private and original: name people who had no part")

    def files(self, data: Path, statement: PrivacyStatement) -> ReleaseFiles:
        """The release under examination, with the public inputs that were named."""
        names = ("text", "vectors", "bank", "public", "public_text", "distribution", "samples", "error", "seed")
        return ReleaseFiles(data=data, statement=statement, **{name: getattr(self, name) for name in names})

    @property
    def columns(self) -> list[str]:
        named = (self.label, self.attribute, self.group, self.user)
        return list(dict.fromkeys(entry for entry in named if entry is not None))


class Examination(ABC):
    """What is found out about one release: the attributes that `dptext.reports.page.Report` has go on its page."""

    def __init__(
        self, asked: ReportConfig, data: Path, statement: PrivacyStatement, say: Callable[[str], None]
    ) -> None:
        self.asked, self.data, self.statement, self.say = asked, data, statement, say
        self.checks: list[Check] = []
        self.verdicts: list[Verdict] = []
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
        """Examine the release; return the checks of the file and the verdict on its guarantee."""

    def run(self) -> Self:
        checks, verdict = self.look()
        self.checks, self.verdicts = checks, [verdict]
        return self


def picture_of_attacks(scores: Sequence[AttackScore], *, measure: str = "share of right answers") -> Picture | None:
    """The main number of each attack beside its baseline: all are shares of right answers."""
    draws = [(score.attack.replace(" (", "\n("), score.score, score.baseline) for score in main_scores(scores)]
    caption = "How often each attacker was right (dot), beside somebody who sees nothing (grey bar)"
    return (caption, scores_figure(draws, measure=measure)) if len(draws) > 1 else None  # one needs no picture
