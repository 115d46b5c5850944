"""The figure: better than public vectors, words that these lack, the gold model's neighbours, planted people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpugc.models import Model
from papers.dpugc.neighbours import PAPER_QUERIES
from papers.dpugc.new_words import BENCHMARKS as NEW_BENCHMARKS
from papers.dpugc.probes import AS_NEW, AS_PUBLIC, PAIRS
from papers.dpugc.results import Rows, over_things, share_over_things
from papers.sweeps import Setting

from dptext.errors import extra
from dptext.intervals import Estimate

__all__ = ["draw"]

STYLES: tuple[dict[str, Any], ...] = (
    {"color": "black", "linestyle": "-", "marker": "o"},
    {"color": "0.35", "linestyle": "--", "marker": "s"},
    {"color": "0.55", "linestyle": ":", "marker": "^"},
    {"color": "0.2", "linestyle": "-.", "marker": "D", "markerfacecolor": "white"},
)
BESIDE = 0.11  # what belongs to one place stands so far apart, places being 1 apart
BENCHMARKS = ("WordSim-353", "MEN", "SimLex-999")
PROCESSED, NO_NOISE = Model("public, processed"), Model("no noise")
AFTER = {NO_NOISE: "no\nnoise", PROCESSED: "public\nvectors"}
"""What stands to the right of the epsilons, by the name of its place."""
PLANTED = (
    (AS_PUBLIC, Model("word2vec"), "word2vec"),
    (AS_NEW, NO_NOISE, "no noise, new words"),
    (AS_NEW, Model("private", 8.0), "private, epsilon 8, new words"),
    (AS_PUBLIC, Model("private", 8.0), "private, epsilon 8, public words"),
)

Curve = Callable[[Model], Estimate | None]


def draw(rows: Mapping[str, Rows], path: Path) -> None:
    """Four panels, readable in grey, as a picture and as an SVG beside it.

    Args:
        rows: by the name of their file.
        path: of the picture.

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
        named = sorted(zip(*axes.get_legend_handles_labels(), strict=True), key=lambda each: _is_line(each[0]))
        if named:
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18), "ncols": 3, "frameon": False}
            axes.legend(*zip(*named, strict=True), fontsize=8, **below)
    figure.savefig(path, dpi=130)
    with extra("matplotlib", "report", "a figure").rc_context({"svg.hashsalt": "dpugc"}):  # equal rows, equal file
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})


def _better(axes: Any, rows: Rows) -> None:
    axes.set_title("Similarity: more than public vectors, processed")
    axes.set_ylabel("difference of Spearman's correlations\n(95% over pairs and runs)")
    axes.axhline(0.0, color="0.75", zorder=0)

    def curve(name: str) -> Curve:
        return lambda model: rows.estimate(model, "difference", beside=PROCESSED.kind, benchmark=name)

    _over_epsilons(axes, rows, {name: curve(name) for name in BENCHMARKS})


def _learned(axes: Any, rows: Rows) -> None:
    axes.set_title("Words whose public vectors are taken away")
    axes.set_ylabel("Spearman's correlation, pairs that hold one\n(95% over pairs and runs)")
    axes.axhline(0.0, color="0.75", zorder=0)
    names = [benchmark for benchmark in BENCHMARKS if benchmark in NEW_BENCHMARKS]  # in the styles of the first panel
    _over_epsilons(axes, rows, {name: lambda model, name=name: rows.estimate(model, name) for name in names})


def _nearer(axes: Any, rows: Rows) -> None:
    axes.set_title("Neighbours of the gold model")
    axes.set_ylabel("MAP-Word (95% over queries and runs)")
    if rows:
        blind = np.mean([rows.mean(model, "MAP-Word random") for model in rows.models()])
        axes.axhline(blind, color="0.75", label="random words", zorder=0)
    repeated = _map_word(rows, Model("another word2vec"))
    if repeated is not None:
        axes.axhline(repeated.value, color="0.4", linestyle="--", linewidth=1.0, label="another word2vec")
    _over_epsilons(axes, rows, {"private vectors": lambda model: _map_word(rows, model)})


def _found(axes: Any, rows: Rows) -> None:
    axes.set_title("Planted pairs: is the secret the nearest of ten?")
    axes.set_ylabel("share of names (95% over pairs and runs)")
    axes.axhline(0.1, color="0.75", label="a guess", zorder=0)
    names = [f"place {pair}" for pair in range(PAIRS)]
    people = rows.values("people") if rows else []

    def share(secrets: str, model: Model, each: Setting) -> Estimate | None:
        places = rows.table(model, names, people=each, secrets=secrets)
        return share_over_things(places == 1, of="pairs") if places.size else None

    curves = {name: [share(secrets, model, person) for person in people] for secrets, model, name in PLANTED}
    _draw(axes, curves, len(people))
    axes.set_xticks(range(len(people)), [f"{person:,}" for person in people])
    axes.set_xlabel("people who tell each pair")


def _map_word(rows: Rows, model: Model) -> Estimate | None:
    result = rows.table(model, [f"MAP-Word {query}" for query in PAPER_QUERIES])
    return over_things(result, of="queries") if result.size else None


def _over_epsilons(axes: Any, rows: Rows, curves: Mapping[str, Curve]) -> None:
    """A place for each epsilon of the private model, and then for what has none."""
    private = [entry for entry in rows.models() if entry.kind == "private"]
    models = [*private, *(entry for entry in AFTER if any(curve(entry) is not None for curve in curves.values()))]
    result = {name: [curve(model) for model in models] for name, curve in curves.items()}
    _draw(axes, result, len(private))
    axes.set_xticks(range(len(models)), [AFTER.get(entry) or f"{entry.epsilon:g}" for entry in models], fontsize=8.5)
    axes.set_xlabel("epsilon (users, delta = 1e-6)")


def _draw(axes: Any, curves: Mapping[str, list[Estimate | None]], joined: int) -> None:
    """Values and intervals at 0, 1, ...; a line joins the first of them."""
    for place, ((label, result), style) in enumerate(zip(curves.items(), STYLES, strict=False)):
        numbers = [(np.nan,) * 3 if entry is None else (entry.value, entry.low, entry.high) for entry in result]
        values, low, high = np.array(numbers).reshape(-1, 3).T
        # a line ends where there is no number, so each of the others has one before it
        position = np.arange(len(result), dtype=np.float64) + BESIDE * (place - (len(curves) - 1) / 2)
        after = np.arange(joined, len(result))
        position, values, low, high = (np.insert(value, after, np.nan) for value in (position, values, low, high))
        reach = np.fmax([values - low, high - values], 0)
        axes.errorbar(position, values, reach, label=label, capsize=2.5, markersize=4.5, **style)


def _is_line(handle: Any) -> bool:
    return hasattr(handle, "get_xdata")  # and no curve with its intervals: those are named first
