"""Results of a report: data classes, the grade and sign of a number compared with its chance level, and figures.

Derivation: docs/howto/report.md#reports-grades
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal

from dptext.attacks.base import AttackScore
from dptext.audits.verdict import Verdict
from dptext.errors import extra
from dptext.evaluation.measures import Measured
from dptext.intervals import Estimate
from dptext.plotting import add_score_row

NEAR, HALF, NEARLY = 0.1, 0.5, 0.9
"""Advantages at which grades change."""
_TIMES = 20.0
"""A guarantee of 3 nats allows about this multiple of the chance level."""
Picture = tuple[str, bytes]
"""A caption and a PNG picture."""


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
    """Utility of the release, for all rows or for one group.

    Attributes:
        texts: number of texts that the model was trained on.
        lead: difference in accuracy of the model trained on the corpus, on the same texts.
    """

    name: str
    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    gain: Estimate | None = None
    detail: str = ""
    owner_only: bool = False
    is_rival: bool = False
    texts: int | None = None
    lead: Estimate | None = None

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
    owner_picture: bool = False

    @property
    def has_owner_numbers(self) -> bool:
        """Return whether any number was computed from original texts."""
        labels = any(label.real is not None for label in self.labels)
        return self.owner_picture or labels or any(entry.real or entry.owner_only for entry in self.spread)


@dataclass(frozen=True, kw_only=True)
class Relinking:
    """Success of linking a text to one of several people.

    Attributes:
        people: how many there are.
        parts: sentences per document.
        exact: success for public texts; None: not computed.
        maximum: bound for any texts.
        pure: bound for any mechanism with this epsilon.
    """

    people: int
    parts: int
    exact: float | None
    maximum: float
    pure: float


def main_scores(scores: Sequence[AttackScore]) -> list[AttackScore]:
    """Return the first number of each attack, its success rate; the others measure it in other ways."""
    first: dict[str, AttackScore] = {}
    for score in scores:
        first.setdefault(score.attack, score)
    return list(first.values())


# -- figures -------------------------------------------------------------------------------------------------------


def attack_picture(scores: Sequence[AttackScore], *, measure: str = "success rate") -> Picture | None:
    """Draw the main number of each attack next to its chance level; a single one needs no picture."""
    rows = [(score.attack.replace(" (", "\n("), score.score, score.baseline) for score in main_scores(scores)]
    caption = "Success of each attack (dot) and chance level (grey bar)"
    return (caption, scores_figure(rows, measure=measure)) if len(rows) > 1 else None


def guarantee_figure(name: str, verdict: Verdict) -> bytes:
    """Draw the stated epsilon, the measured loss and the largest measurable loss of an audit."""
    return _picture(lambda axes: verdict.draw_row(axes, name), 1)


def scores_figure(scores: Sequence[tuple[str, Estimate, float]], *, measure: str) -> bytes:
    """Draw one row per score: name, share with its interval, and the chance level."""

    def draw(axes: Any) -> None:
        for name, score, baseline in scores:
            add_score_row(axes, name, value=score.value, low=score.low, high=score.high, baseline=baseline)
        axes.set(xlabel=measure, xlim=(-0.02, 1.02))

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
        for style, (name, values) in zip(styles[-len(points) :], points, strict=True):
            axes.scatter(values[:, 0], values[:, 1], label=name, **style)
        axes.set(xlabel=axis_label, xticks=[], yticks=[])

    return _picture(draw, 8)


def _picture(draw: Callable[[Any], None], rows: int) -> bytes:
    size = (8.0, 1.5 + 0.42 * rows)
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
