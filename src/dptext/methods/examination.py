"""The settings of a report, the base of the examinations of a release, and the figures of a page."""

from __future__ import annotations

import io
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dptext.attacks import AttackScore
from dptext.attacks.base import ATTACKERS, Attacker
from dptext.audits.verdict import Verdict
from dptext.errors import ParameterError, extra
from dptext.intervals import Estimate
from dptext.methods.base import ReleaseFiles
from dptext.methods.checks import Check
from dptext.methods.results import GroupGap, Measurement, main_scores
from dptext.plotting import add_score_row
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
            raise ParameterError("group needs a label: groups are compared by how well their labels are predicted")
        if self.held_out is not None and self.original is None:
            raise ParameterError("held_out needs original: members of the release are compared with other people")
        paths = [path.resolve() for path in (self.private, self.original, self.held_out) if path is not None]
        if len(set(paths)) < len(paths):
            raise ParameterError("private, original and held_out must be different files")

    def files(self, data: Path, statement: PrivacyStatement) -> ReleaseFiles:
        """The release under examination, with the public inputs that were named."""
        names = ("text", "vectors", "bank", "public", "public_text", "distribution", "samples", "error", "seed")
        return ReleaseFiles(data=data, statement=statement, **{name: getattr(self, name) for name in names})

    @property
    def columns(self) -> list[str]:
        names = (self.label, self.attribute, self.group, self.user)
        return list(dict.fromkeys(name for name in names if name is not None))


class Examination(ABC):
    """The examination of one release. Its public attributes are the fields of `dptext.reports.page.Report`."""

    def __init__(
        self, config: ReportConfig, data: Path, statement: PrivacyStatement, say: Callable[[str], None]
    ) -> None:
        self.config, self.data, self.statement, self.say = config, data, statement, say
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
    def run(self) -> None:
        """Examine the release."""


def attack_picture(scores: Sequence[AttackScore], *, measure: str = "success rate") -> Picture | None:
    """Draw the main number of each attack next to its chance level; a single one needs no picture."""
    rows = [(score.attack.replace(" (", "\n("), score.score, score.baseline) for score in main_scores(scores)]
    caption = "Success of each attack (dot) and chance level (grey bar)"
    return (caption, scores_figure(rows, measure=measure)) if len(rows) > 1 else None


def guarantee_figure(verdicts: Sequence[tuple[str, Verdict]]) -> bytes:
    """Draw the stated epsilon, the measured loss and the largest measurable loss of each audit."""

    def draw(axes: Any) -> None:
        for name, verdict in verdicts:
            verdict.draw_row(axes, name)

    return _picture(draw, len(verdicts))


def scores_figure(scores: Sequence[tuple[str, Estimate, float]], *, measure: str) -> bytes:
    """Draw one row per score: name, share with its interval, and the chance level."""

    def draw(axes: Any) -> None:
        for name, score, baseline in scores:
            add_score_row(axes, name, value=score.value, low=score.low, high=score.high, baseline=baseline)
        axes.set_xlabel(measure)
        axes.set_xlim(-0.02, 1.02)

    lines = sum(1 + name.count("\n") for name, _, _ in scores)
    return _picture(draw, max(round(0.55 * lines), 2))


def plane_figure(points: Sequence[tuple[str, Any]], *, axis_label: str) -> bytes:
    """Draw texts as points of a plane, one style per kind."""
    styles: tuple[dict[str, Any], ...] = (
        {"s": 22, "color": "0.72", "marker": "."},
        {"s": 14, "facecolors": "none", "edgecolors": "0.4", "marker": "o", "linewidths": 0.6},
        {"s": 16, "color": "black", "marker": "x", "linewidths": 0.8},
    )

    def draw(axes: Any) -> None:
        for style, (name, values) in zip(styles[len(styles) - len(points) :], points, strict=True):
            axes.scatter(values[:, 0], values[:, 1], label=name, **style)
        axes.set_xlabel(axis_label)
        axes.set_xticks([])
        axes.set_yticks([])

    return _picture(draw, 8)


def _picture(draw: Callable[[Any], None], rows: int) -> bytes:
    size = (8.0, 1.5 + 0.42 * max(rows, 1))
    figure = extra("matplotlib.figure", "report", "a figure").Figure(figsize=size, layout="constrained")
    extra("matplotlib.backends.backend_agg", "report", "a figure").FigureCanvasAgg(figure)  # no window
    axes = figure.subplots()
    draw(axes)
    axes.set_axisbelow(True)
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the table next to it contains the name
        figure.savefig(stream, format="png", dpi=150, metadata={"Software": None})
    return stream.getvalue()
