"""The figure of part two: neighbours over the steps, and the delta column of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpugc.figure import STYLES
from papers.dpugc.published import EPSILON, LOSSES, MOST_ORDER, PRINTED
from papers.dpugc.training_results import Found

from dptext.errors import extra

__all__ = ["draw"]

CURVES = {
    "users": (
        ("plain", None, "another word2vec"),
        ("clipped, farther", None, "users clipped, no noise, farther"),
        ("clipped", None, "users clipped, no noise"),
        ("private", 8.0, "users, epsilon 8"),
    ),
    "pairs": (
        ("clipped pairs, farther", None, "pairs clipped, no noise, farther"),
        ("private pairs, farther", 8.0, "pairs, epsilon 8, farther"),
        ("private pairs", 8.0, "pairs, epsilon 8"),
        ("pairs as printed", None, "pairs, sigma = 5"),
    ),
}


def draw(steps: Mapping[str, Found], frequent: Mapping[str, Found], delta: Found, path: Path) -> None:
    """As many panels as there are corpora and units, and one for the deltas; readable in grey.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    target = [(name, unit) for name, result in steps.items() for unit in CURVES if _has(result, unit)]
    count = len(target) + bool(delta)
    if not count:
        return
    columns = min(2, count)
    lines = -(-count // columns)
    figure = extra("matplotlib.figure", "report", "a figure").Figure(
        figsize=(5.6 * columns, 4.6 * lines), layout="constrained"
    )
    extra("matplotlib.backends.backend_agg", "report", "a figure").FigureCanvasAgg(figure)  # no window
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, (name, unit) in zip(panels, target, strict=False):
        _neighbours(axes, name, steps[name], frequent.get(name), unit)
    if delta:
        _deltas(panels[len(target)], delta)
    for axes in panels[:count]:
        axes.grid(visible=True, color="0.93", linewidth=0.6)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 2, "frameon": False}
        axes.legend(fontsize=8, **below)
    for axes in panels[count:]:
        axes.set_visible(False)
    figure.savefig(path, dpi=130)
    with extra("matplotlib", "report", "a figure").rc_context({"svg.hashsalt": "dpugc"}):  # equal rows, equal file
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})


def _has(found: Found, unit: str) -> bool:
    return any(found.of(model=model, epsilon=epsilon) for model, epsilon, _ in CURVES[unit])


def _neighbours(axes: Any, corpus: str, found: Found, frequent: Found | None, unit: str) -> None:
    axes.set_title(f"{corpus}: neighbours of the gold model")
    axes.set_ylabel("MAP-Word (95% over queries and runs)")
    axes.set_xlabel("steps" if unit == "users" else "steps, noise for pairs")
    axes.set_xscale("symlog", linthresh=10, linscale=0.4)
    axes.axhline(found.mean("MAP-Word random") or 0.0, color="0.75", label="random words", zorder=0)
    blind = None if frequent is None else frequent.precision("MAP-Word")
    if blind is not None:
        axes.axhline(blind.value, color="0.6", linestyle=":", label="the most frequent words", zorder=0)
    for (model, epsilon, label), style in zip(CURVES[unit], STYLES, strict=False):
        marks = [int(str(mark)) for mark in found.values("steps", model=model, epsilon=epsilon)]
        scores = [found.precision("MAP-Word", model=model, epsilon=epsilon, steps=mark) for mark in marks]
        draws = np.array([(score.value, score.low, score.high) for score in scores if score is not None]).reshape(-1, 3)
        if len(draws):
            value, low, high = draws.T
            reach = np.fmax([value - low, high - value], 0)
            axes.errorbar(marks, value, reach, label=label, capsize=2.5, markersize=4.5, **style)
    axes.set_ylim(bottom=0)


def _deltas(axes: Any, found: Found) -> None:
    axes.set_title(f"The paper's delta at epsilon {EPSILON}")
    axes.set_xlabel("steps")
    axes.set_ylabel("delta (from 1e-12 on)")
    axes.set_xscale("log")
    axes.set_yscale("log")
    steps = list(PRINTED)
    first, *_ = LOSSES
    moments = [found.mean("moments delta", of=first, steps=step) for step in steps]
    axes.plot(steps, moments, label=f"moments accountant, N = {first.rpartition(' ')[2]}", color="0.6", zorder=1)
    axes.plot(steps, list(PRINTED.values()), "ko", markersize=5, label="printed")
    floor = np.exp(-MOST_ORDER * EPSILON)
    axes.axhline(floor, color="0.75", linestyle=":", label=f"e^(-{MOST_ORDER} epsilon) = {floor:.4f}", zorder=0)
    for name, style in zip(LOSSES, STYLES[1:], strict=False):
        exact = [found.mean("delta", of=name, steps=step) or 0.0 for step in steps]
        if max(exact) >= 1e-12:
            axes.plot(steps, exact, label=f"the loss itself, {name}", markersize=4.5, **style)
    axes.set_ylim(1e-12, 2)
