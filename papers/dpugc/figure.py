"""The figure: better than public vectors, words that these lack, the gold model's neighbours, planted people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpugc.models import Model
from papers.dpugc.new_words import BENCHMARKS as NEW_BENCHMARKS
from papers.dpugc.probes import PAIRS
from papers.dpugc.results import Rows, over_things, share_over_things

from dptext.estimates import Estimate
from dptext.evaluation.neighbours import PAPER_QUERIES
from dptext.text.files import extra

__all__ = ["draw"]

STYLES: tuple[dict[str, Any], ...] = (
    {"color": "black", "linestyle": "-", "marker": "o"},
    {"color": "0.35", "linestyle": "--", "marker": "s"},
    {"color": "0.55", "linestyle": ":", "marker": "^"},
    {"color": "0.2", "linestyle": "-.", "marker": "D", "markerfacecolor": "white"},
)
BENCHMARKS = ("WordSim-353", "MEN", "SimLex-999")


def draw(rows: Mapping[str, Rows], path: Path) -> None:
    """Four panels, readable in grey.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = extra("matplotlib.figure", "report", "a figure").Figure(figsize=(11.0, 9.6), layout="constrained")
    extra("matplotlib.backends.backend_agg", "report", "a figure").FigureCanvasAgg(figure)  # no window
    panels = figure.subplots(2, 2).ravel()
    _better(panels[0], rows["difference"])
    _learned(panels[1], rows["new_words"])
    _nearer(panels[2], rows["neighbours"])
    _found(panels[3], rows["probes"])
    for axes in panels:
        axes.grid(visible=True, color="0.93", linewidth=0.6)
        if axes.has_data():
            axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False)
    figure.savefig(path, dpi=130)


def _better(axes: Any, rows: Rows) -> None:
    """Differences to processed public vectors over epsilon."""
    axes.set_title("Similarity: beside public vectors, processed")
    axes.set_ylabel("difference of Spearman's correlations\n(95% over pairs and runs)")
    axes.axhline(0.0, color="0.75", zorder=0)
    for style, benchmark in zip(STYLES, BENCHMARKS, strict=False):
        points = _private(rows, lambda model, name=benchmark: _difference(rows, model, name))
        _curve(axes, points, benchmark, style)
        level = _difference(rows, Model("no noise"), benchmark)
        if level is not None:
            axes.axhline(level.value, color=style["color"], linestyle="-.", linewidth=0.8)
    axes.plot([], [], color="0.3", linestyle="-.", linewidth=0.8, label="without noise")
    _epsilons(axes, rows)


def _learned(axes: Any, rows: Rows) -> None:
    """Correlations on the pairs with a word that has no public vector."""
    axes.set_title("Words that public vectors lack")
    axes.set_ylabel("Spearman's correlation, pairs that hold one\n(95% over pairs and runs)")
    axes.axhline(0.0, color="0.75", zorder=0)
    for style, benchmark in zip(STYLES, NEW_BENCHMARKS, strict=False):
        _curve(axes, _private(rows, lambda model, name=benchmark: rows.estimate(model, name)), benchmark, style)
        for kind, line in (("public, processed", "--"), ("no noise", "-.")):
            level = rows.estimate(Model(kind), benchmark) if rows else None
            if level is not None:
                axes.axhline(level.value, color=style["color"], linestyle=line, linewidth=0.8)
    axes.plot([], [], color="0.3", linestyle="--", linewidth=0.8, label="their public vectors")
    axes.plot([], [], color="0.3", linestyle="-.", linewidth=0.8, label="without noise")
    _epsilons(axes, rows)


def _nearer(axes: Any, rows: Rows) -> None:
    """MAP-Word over epsilon."""
    axes.set_title("Neighbours of the gold model")
    axes.set_ylabel("MAP-Word (95% over queries and runs)")
    _curve(axes, _private(rows, lambda model: _map_word(rows, model)), "private", STYLES[0])
    lines = {"public": ":", "public, processed": "--", "no noise": "-.", "another word2vec": "-"}
    for kind, line in lines.items():
        if rows.runs(Model(kind)):
            axes.axhline(_map_word(rows, Model(kind)).value, color="0.4", linestyle=line, linewidth=1.0, label=kind)
    if rows:
        blind = np.mean([rows.mean(model, "MAP-Word random") for model in rows.models()])
        axes.axhline(blind, color="0.75", label="random words", zorder=0)
    _epsilons(axes, rows)


def _found(axes: Any, rows: Rows) -> None:
    """How often the planted secret is the nearest of ten, over how many told it."""
    axes.set_title("Planted pairs: nearest of ten")
    axes.set_ylabel("share of names (95% over pairs and runs)")
    axes.axhline(0.1, color="0.75", label="a guess", zorder=0)
    names = [f"place {pair}" for pair in range(PAIRS)]
    people = [int(each) for each in rows.values("people")] if rows else []  # type: ignore[arg-type]
    for style, model in zip(STYLES, rows.models()[::-1], strict=False):
        points = [
            (place, share_over_things(found == 1, of="pairs"))
            for place, each in enumerate(people)
            if (found := rows.table(model, names, people=each)).size
        ]
        _curve(axes, points, str(model), style)
    axes.set_xticks(range(len(people)), [f"{each:,}" for each in people])
    axes.set_xlabel("people who tell each pair")


def _private(rows: Rows, estimate: Any) -> list[tuple[float, Estimate]]:
    found = [(model.epsilon or 0.0, estimate(model)) for model in rows.models() if model.kind == "private"]
    return [point for point in found if point[1] is not None]


def _difference(rows: Rows, model: Model, benchmark: str) -> Estimate | None:
    return rows.estimate(model, "difference", beside="public, processed", benchmark=benchmark)


def _map_word(rows: Rows, model: Model) -> Estimate:
    return over_things(rows.table(model, [f"MAP-Word {query}" for query in PAPER_QUERIES]), of="queries")


def _epsilons(axes: Any, rows: Rows) -> None:
    ticks = sorted({model.epsilon for model in rows.models() if model.kind == "private" and model.epsilon})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{each:g}" for each in ticks])
    axes.minorticks_off()
    axes.set_xlabel("epsilon (users, delta = 1e-6)")


def _curve(axes: Any, points: list[tuple[float, Estimate]], label: str, style: dict[str, Any]) -> None:
    if points:
        values = [each.value for _, each in points]
        reach = [[each.value - each.low for _, each in points], [each.high - each.value for _, each in points]]
        place = [at for at, _ in points]
        axes.errorbar(place, values, np.maximum(reach, 0), label=label, capsize=2.5, markersize=4.5, **style)
