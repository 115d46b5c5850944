"""The figure: the task at *true* epsilons, and what is learnt of it against what is learnt of a blogger."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from papers.blogs_posts import INDUSTRY
from papers.dpnr.blogs_cells import AS_SENT, DPNR, NONE, OURS, SCALAR
from papers.sweeps import Row

from dptext.errors import extra

if TYPE_CHECKING:
    from papers.dpnr.blogs_report import Rows

_STYLES: dict[str, dict[str, Any]] = {
    DPNR: {"color": "0.55", "linestyle": "--", "marker": "v", "markersize": 6},
    OURS[0]: {"color": "black", "linestyle": "-", "marker": "o", "markersize": 5},
    OURS[1]: {"color": "black", "linestyle": "-", "marker": "s", "markersize": 5, "markerfacecolor": "white"},
    OURS[2]: {"color": "black", "linestyle": ":", "marker": "D", "markersize": 4.5, "markerfacecolor": "0.8"},
}
_SIDES = {DPNR: (7, -8), OURS[0]: (7, -1), OURS[1]: (5, -11), OURS[2]: (-6, 4)}  # of what is written beside a point
_LABELS = {name: name if name == DPNR else f"{name}, 16 axes" for name in _STYLES}
_ATTRIBUTES = ("gender", "age")
_MEASURES = {INDUSTRY: "macro-F1"}  # where students are more than half: accuracy tells next to nothing
_ROOM = 0.03  # above the majority: where points are told apart


def draw(found: Mapping[str, Rows], path: Path) -> None:
    """Readable in grey: a row a task; a column for epsilon, and one an attribute.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = extra("matplotlib.figure", "report", "a figure").Figure(
        figsize=(14.0, 4.4 * len(found) + 0.8), layout="constrained"
    )
    extra("matplotlib.backends.backend_agg", "report", "a figure").FigureCanvasAgg(figure)  # no window
    panels = figure.subplots(len(found), 1 + len(_ATTRIBUTES), squeeze=False)
    for line, (task, rows) in zip(panels, found.items(), strict=True):
        _epsilons(line[0], task, rows)
        for axes, attribute in zip(line[1:], _ATTRIBUTES, strict=True):
            _panel(axes, task, rows, attribute)
    handles, labels = panels[0][1].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=9,
        title="Beside a point: its true epsilon, or the share of words that is masked",
        title_fontsize=9,
    )
    figure.savefig(path, dpi=110)


def _epsilons(axes: Any, task: str, rows: Rows) -> None:
    """Accuracy of the task, with its interval, at true epsilons; what is not private as a line."""
    measure = _measure(task)
    _blind(axes, None, rows.any[f"task {measure} blind"], measure)
    for mechanism, style in _STYLES.items():
        points = _of(rows, mechanism)
        if points:
            values = [row.numbers[f"task {measure}"] for row in points]
            errors = [
                [value - row.numbers[f"task {measure} low"] for row, value in zip(points, values, strict=True)],
                [row.numbers[f"task {measure} high"] - value for row, value in zip(points, values, strict=True)],
            ]
            epsilons = [rows.true_epsilon(row) for row in points]
            axes.errorbar(epsilons, values, yerr=errors, linewidth=1.0, capsize=2, **style)
    clean = rows.get(NONE)
    if clean is not None:
        value = clean.numbers[f"task {measure}"]
        axes.axhline(value, color="0.6", linestyle=(0, (1, 1)), linewidth=1.2, zorder=0)
        text = "no noise, and one scalar (infinite)"
        axes.text(0.02, value, text, transform=axes.get_yaxis_transform(), fontsize=7, va="bottom")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_title(task, fontsize=10)
    axes.set_xlabel("true epsilon of a post (log scale)", fontsize=9)
    axes.set_ylabel(f"{measure} of the task (95% over bloggers)", fontsize=9)
    axes.grid(visible=True, color="0.94", linewidth=0.6)


def _panel(axes: Any, task: str, rows: Rows, attribute: str) -> None:
    measure = _measure(task)
    blind = rows.any[f"{attribute} mlp blind"], rows.any[f"task {measure} blind"]
    _blind(axes, *blind, measure)
    for mechanism, style in _STYLES.items():
        points = _of(rows, mechanism)
        if points:
            places = [_place(row, attribute, measure) for row in points]
            axes.plot(*zip(*places, strict=True), label=_LABELS[mechanism], linewidth=1.0, **style)
            for row, place in zip(points, places, strict=True):
                if place[1] > blind[1] + _ROOM or place[0] > blind[0] + _ROOM:
                    _note(axes, f"{rows.true_epsilon(row):g}", place, _SIDES[mechanism], style["color"])
    clean = rows.get(NONE)
    if clean is not None:
        style = {"linestyle": "", "marker": "*", "markersize": 17, "markerfacecolor": "white", "color": "black"}
        axes.plot(*_place(clean, attribute, measure), label="no noise", **style)
    _scalar(axes, rows, attribute, measure)
    axes.set_title(f"{task}: {attribute}", fontsize=10)
    axes.set_xlabel(f"accuracy of the better attacker on {attribute}", fontsize=9)
    axes.set_ylabel(f"{measure} of the task", fontsize=9)
    axes.grid(visible=True, color="0.94", linewidth=0.6)


def _blind(axes: Any, attribute: float | None, task: float, measure: str) -> None:
    """Where somebody who sees nothing is."""
    axes.axhline(task, color="0.8", linewidth=1.2, zorder=0)
    style: dict[str, Any] = {"fontsize": 7, "color": "0.4"}
    axes.text(
        0.99,
        task,
        "majority" if measure == "accuracy" else "guessing",
        transform=axes.get_yaxis_transform(),
        ha="right",
        va="bottom",
        **style,
    )
    if attribute is not None:
        axes.axvline(attribute, color="0.8", linewidth=1.2, zorder=0)
        axes.text(
            attribute,
            0.98,
            "majority",
            transform=axes.get_xaxis_transform(),
            ha="right",
            va="top",
            rotation=90,
            **style,
        )


def _of(rows: Rows, mechanism: str) -> list[Row]:
    """Without masks."""
    return [row for row in rows.rows if row.settings["mechanism"] == mechanism and not row.settings["mu"]]


def _scalar(axes: Any, rows: Rows, attribute: str, measure: str) -> None:
    """The authors' code: true epsilon infinite, with words masked, and where the server does not undo the noise."""
    style: dict[str, Any] = {"linestyle": "", "color": "0.35"}
    for mechanism, is_masked, marker, label in (
        (SCALAR, False, "x", "one scalar, undone (true epsilon infinite)"),
        (SCALAR, True, "+", "one scalar, undone, words masked (infinite)"),
        (AS_SENT, False, "1", "one scalar, not undone (infinite)"),
    ):
        points = [
            row for row in rows.rows if row.settings["mechanism"] == mechanism and bool(row.settings["mu"]) is is_masked
        ]
        if points:
            places = [_place(row, attribute, measure) for row in points]
            axes.plot(*zip(*places, strict=True), marker=marker, markersize=8, label=label, **style)
            for row, place in zip(points, places, strict=True):
                if is_masked:
                    _note(axes, f"{100 * row.settings['mu']:g}%", place, (-6, -10), "0.35")


def _measure(task: str) -> str:
    return _MEASURES.get(task, "accuracy")


def _place(row: Row, attribute: str, measure: str) -> tuple[float, float]:
    numbers = row.numbers
    return max(numbers[f"{attribute} mlp"], numbers[f"{attribute} linear"]), numbers[f"task {measure}"]


def _note(axes: Any, said: str, place: tuple[float, float], offset: tuple[int, int], colour: str) -> None:
    """Beside a point, to the left where the offset is negative."""
    side = "left" if offset[0] > 0 else "right"
    axes.annotate(said, place, xytext=offset, textcoords="offset points", fontsize=7.5, color=colour, ha=side)
