"""The figure of part one: similarity, new words, neighbours and planted pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpugc.models import Model
from papers.dpugc.new_words import BENCHMARKS as NEW_BENCHMARKS
from papers.dpugc.probes import AS_NEW, AS_PUBLIC, PAIRS
from papers.dpugc.results import Rows, share_over_units
from papers.reports import new_figure, save_figure

from dptext.intervals import Estimate

STYLES: tuple[dict[str, Any], ...] = (
    {"color": "black", "linestyle": "-", "marker": "o"},
    {"color": "0.35", "linestyle": "--", "marker": "s"},
    {"color": "0.55", "linestyle": ":", "marker": "^"},
    {"color": "0.2", "linestyle": "-.", "marker": "D", "markerfacecolor": "white"},
)
SHIFT = 0.11  # distance of two curves at one place; places are 1 apart
BENCHMARKS = ("WordSim-353", "MEN", "SimLex-999")
PROCESSED, NO_NOISE = Model("public, processed"), Model("no noise")
LAST_PLACES = {NO_NOISE: "no\nnoise", PROCESSED: "public\nvectors"}  # to the right of the epsilons
PLANTED = (
    (AS_PUBLIC, Model("word2vec"), "word2vec"),
    (AS_NEW, NO_NOISE, "no noise, new words"),
    (AS_NEW, Model("private", 8.0), "private, epsilon 8, new words"),
    (AS_PUBLIC, Model("private", 8.0), "private, epsilon 8, public words"),
)

Curve = Callable[[Model], Estimate | None]


def draw(rows: Mapping[str, Rows], path: Path) -> None:
    """Draw four panels, readable in grey, as PNG and SVG."""
    figure, panels = new_figure(11.0, 9.6, 2, 2)
    _similarity(panels[0, 0], rows["difference"])
    _new_words(panels[0, 1], rows["new_words"])
    _neighbours(panels[1, 0], rows["neighbours"])
    _planted(panels[1, 1], rows["probes"])
    for axes in panels.ravel():
        axes.grid(visible=True, color="0.93", linewidth=0.6)
        labels = zip(*axes.get_legend_handles_labels(), strict=True)
        ordered = sorted(labels, key=lambda label: hasattr(label[0], "get_xdata"))  # curves with intervals first
        if ordered:
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18), "ncols": 3, "frameon": False}
            axes.legend(*zip(*ordered, strict=True), fontsize=8, **below)
    save_figure(figure, path, svg=True)


def _similarity(axes: Any, rows: Rows) -> None:
    axes.set_title("Similarity: gain over public vectors, processed")
    axes.set_ylabel("difference of Spearman's correlations\n(95% over pairs and runs)")
    axes.axhline(0.0, color="0.75", zorder=0)

    def curve(name: str) -> Curve:
        return lambda model: rows.estimate("difference", **model.settings, beside=PROCESSED.kind, benchmark=name)

    _draw_over_epsilons(axes, rows, {name: curve(name) for name in BENCHMARKS})


def _new_words(axes: Any, rows: Rows) -> None:
    axes.set_title("Words without public vectors")
    axes.set_ylabel("Spearman's correlation, pairs with such a word\n(95% over pairs and runs)")
    axes.axhline(0.0, color="0.75", zorder=0)

    def curve(name: str) -> Curve:
        return lambda model: rows.estimate(name, **model.settings)

    _draw_over_epsilons(axes, rows, {name: curve(name) for name in BENCHMARKS if name in NEW_BENCHMARKS})


def _neighbours(axes: Any, rows: Rows) -> None:
    axes.set_title("Neighbours of the gold model")
    axes.set_ylabel("MAP-Word (95% over queries and runs)")
    if rows:
        random = np.mean([rows.mean("MAP-Word random", **model.settings) or 0.0 for model in rows.models()])
        axes.axhline(random, color="0.75", label="random words", zorder=0)
    repeated = rows.precision("MAP-Word", model="another word2vec")
    if repeated is not None:
        axes.axhline(repeated.value, color="0.4", linestyle="--", linewidth=1.0, label="another word2vec")
    _draw_over_epsilons(axes, rows, {"private vectors": lambda model: rows.precision("MAP-Word", **model.settings)})


def _planted(axes: Any, rows: Rows) -> None:
    axes.set_title("Planted pairs: is the secret the nearest of ten?")
    axes.set_ylabel("share of names (95% over pairs and runs)")
    axes.axhline(0.1, color="0.75", label="chance", zorder=0)
    names = [f"place {pair}" for pair in range(PAIRS)]
    people = rows.values("people")

    def share(secrets: str, model: Model, count: int) -> Estimate | None:
        places = rows.table(names, **model.settings, people=count, secrets=secrets)
        return share_over_units(places == 1, of="pairs") if places.size else None

    curves = {name: [share(secrets, model, count) for count in people] for secrets, model, name in PLANTED}
    _draw(axes, curves, len(people))
    axes.set_xticks(range(len(people)), [f"{count:,}" for count in people])
    axes.set_xlabel("people who write each pair")


def _draw_over_epsilons(axes: Any, rows: Rows, curves: Mapping[str, Curve]) -> None:
    """Draw the private model at each epsilon, and then the models without one."""
    private = [model for model in rows.models() if model.kind == "private"]
    models = [*private, *(model for model in LAST_PLACES if any(curve(model) for curve in curves.values()))]
    _draw(axes, {name: [curve(model) for model in models] for name, curve in curves.items()}, len(private))
    labels = [LAST_PLACES.get(model) or f"{model.epsilon:g}" for model in models]
    axes.set_xticks(range(len(models)), labels, fontsize=8.5)
    axes.set_xlabel("epsilon (users, delta = 1e-6)")


def _draw(axes: Any, curves: Mapping[str, list[Estimate | None]], joined: int) -> None:
    """Draw estimates at 0, 1, ...; a line joins the first ``joined`` of them."""
    for place, ((label, estimates), style) in enumerate(zip(curves.items(), STYLES, strict=False)):
        numbers = [(np.nan,) * 3 if entry is None else (entry.value, entry.low, entry.high) for entry in estimates]
        values, low, high = np.array(numbers).reshape(-1, 3).T
        position = np.arange(len(estimates), dtype=np.float64) + SHIFT * (place - (len(curves) - 1) / 2)
        single = np.arange(joined, len(estimates))  # a NaN in front of each of these interrupts the line
        position, values, low, high = (np.insert(column, single, np.nan) for column in (position, values, low, high))
        errors = np.fmax([values - low, high - values], 0)
        axes.errorbar(position, values, errors, label=label, capsize=2.5, markersize=4.5, **style)
