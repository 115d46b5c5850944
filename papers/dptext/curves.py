"""The figure: what is learnt of the task against what is learnt of a blogger, over budgets and weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from papers.dptext import methods
from papers.sweeps import Row

from dptext.errors import extra

if TYPE_CHECKING:
    from papers.dptext.rows import Rows

_LINES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("ADV-ALL, over alpha", "alpha", {"color": "0.55", "linestyle": "--", "marker": "v", "markersize": 6}),
    ("ours, over epsilon", "epsilon", {"color": "black", "linestyle": "-", "marker": "o", "markersize": 5}),
    (
        "decision, over epsilon",
        "decision",
        {"color": "0.45", "linestyle": "-.", "marker": "X", "markersize": 5},
    ),
    (
        f"ours at {methods.MAIN:g}, over alpha",
        "weight",
        {"color": "black", "linestyle": ":", "marker": "s", "markersize": 5, "markerfacecolor": "white"},
    ),
)
_POINTS = {
    methods.ORIGINAL: ("*", "ORIGINAL"),
    methods.LEACE: ("P", "LEACE"),
    methods.FEDERATE: ("D", "FEDERATE"),
    methods.UNTRAINED: ("<", "no training"),
    methods.NARROW_ADV: ("^", "ADV-ALL, 8"),
}
_ATTRIBUTES = ("gender", "age")
_WIDTH, _HEIGHT = 4.6, 3.6
_LEAST = 0.12  # of an axis


def draw(found: Sequence[Rows], path: Path) -> None:
    """A panel for each attribute and each set of rows.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    extra("matplotlib", "report", "the figure").use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH * len(_ATTRIBUTES), _HEIGHT * len(found) + 0.5), layout="constrained")
    panels = figure.subplots(len(found), len(_ATTRIBUTES), squeeze=False)
    for rows, pair in zip(found, panels, strict=True):
        for attribute, panel in zip(_ATTRIBUTES, pair, strict=True):
            _panel(panel, rows, attribute)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


def _panel(panel: Any, rows: Rows, attribute: str) -> None:
    for label, kind, style in _LINES:
        chosen = _line(rows, kind)
        if not chosen:
            continue
        points = [_point(row, attribute) for row in chosen]
        panel.plot(*zip(*points, strict=True), label=label, linewidth=1.2, **style)
        for row, (x, y) in zip(chosen, points, strict=True):
            told = row.settings["alpha"] if kind == "alpha" else row.settings["epsilon"]
            if kind != "weight":
                panel.annotate(f"{told:g}", (x, y), (4, -9), textcoords="offset points", fontsize=7, color="0.3")
    for name, (marker, label) in _POINTS.items():
        for row in rows.of(name, alpha=None)[:1]:
            x, y = _point(row, attribute)
            panel.plot([x], [y], marker=marker, linestyle="", color="0.35", markersize=7, label=label)
    blind = rows.any[f"{attribute} best blind"]
    panel.axhline(blind, color="0.7", linewidth=1, label="majority")
    panel.axvline(rows.any["task accuracy blind"], color="0.7", linewidth=1)
    for row in rows.of(methods.LABEL):
        panel.axhline(
            row.numbers[f"{attribute} best"], color="0.7", linewidth=1, linestyle=":", label="the label alone"
        )
    panel.set_xlim(*_wide(panel.get_xlim()))
    panel.set_ylim(*_wide(panel.get_ylim()))
    panel.set_title(f"{rows.task}, {rows.encoder}", fontsize=9)
    panel.set_xlabel("task, accuracy", fontsize=8)
    panel.set_ylabel(f"{attribute}, best attacker", fontsize=8)
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)


def _wide(ends: tuple[float, float]) -> tuple[float, float]:
    """At least so wide: what lies together by chance is not to look apart."""
    room = max(0.0, _LEAST - (ends[1] - ends[0])) / 2
    return ends[0] - room, ends[1] + room


def _line(rows: Rows, what: str) -> list[Row]:
    if what == "alpha":
        return rows.of(methods.ADV_ALL)
    if what == "decision":
        return rows.of(methods.DECISION)
    if what == "epsilon":
        return rows.of(methods.OURS, alpha=1.0)
    result = rows.of(methods.OURS, epsilon=methods.MAIN)
    return sorted(result, key=lambda row: row.settings["alpha"]) if len(result) > 1 else []


def _point(row: Row, attribute: str) -> tuple[float, float]:
    return row.numbers["task accuracy"], row.numbers[f"{attribute} best"]
