"""The figure of part two: neighbours over the steps, and the delta column of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpugc.figure import STYLES
from papers.dpugc.published import EPSILON, LOSSES, MAX_ORDER, PRINTED
from papers.dpugc.results import Rows
from papers.reports import error_bars, new_figure, save_figure

CURVES = {
    "users": (
        ("plain", None, "another word2vec"),
        ("clipped, farther", None, "users clipped, no noise, larger steps"),
        ("clipped", None, "users clipped, no noise"),
        ("private", 8.0, "users, epsilon 8"),
    ),
    "pairs": (
        ("clipped pairs, farther", None, "pairs clipped, no noise, larger steps"),
        ("private pairs, farther", 8.0, "pairs, epsilon 8, larger steps"),
        ("private pairs", 8.0, "pairs, epsilon 8"),
        ("pairs as printed", None, "pairs, sigma = 5"),
    ),
}


def draw(steps: Mapping[str, Rows], frequent: Mapping[str, Rows], delta: Rows, path: Path) -> None:
    """Draw a panel for each corpus and unit, and one for the deltas; readable in grey."""
    curves = [
        (name, unit)
        for name, rows in steps.items()
        for unit in CURVES
        if any(rows.select(model=model, epsilon=epsilon) for model, epsilon, _ in CURVES[unit])
    ]
    count = len(curves) + bool(delta)
    if not count:
        return
    columns = min(2, count)
    lines = -(-count // columns)
    figure, grid = new_figure(5.6 * columns, 4.6 * lines, lines, columns)
    panels = grid.ravel()
    for axes, (name, unit) in zip(panels, curves, strict=False):
        _neighbours(axes, name, steps[name], frequent.get(name), unit)
    if delta:
        _deltas(panels[len(curves)], delta)
    for axes in panels[:count]:
        axes.grid(visible=True, color="0.93", linewidth=0.6)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 2, "frameon": False}
        axes.legend(fontsize=8, **below)
    for axes in panels[count:]:
        axes.set_visible(False)
    save_figure(figure, path, svg=True)


def _neighbours(axes: Any, corpus: str, rows: Rows, frequent: Rows | None, unit: str) -> None:
    axes.set_title(f"{corpus}: neighbours of the gold model")
    axes.set_ylabel("MAP-Word (95% over queries and runs)")
    axes.set_xlabel("steps" if unit == "users" else "steps, noise for pairs")
    axes.set_xscale("symlog", linthresh=10, linscale=0.4)
    axes.axhline(rows.mean("MAP-Word random") or 0.0, color="0.75", label="random words", zorder=0)
    blind = None if frequent is None else frequent.precision("MAP-Word")
    if blind is not None:
        axes.axhline(blind.value, color="0.6", linestyle=":", label="the most frequent words", zorder=0)
    for (model, epsilon, label), style in zip(CURVES[unit], STYLES, strict=False):
        points = [
            (mark, rows.precision("MAP-Word", model=model, epsilon=epsilon, steps=mark))
            for mark in rows.values("steps", model=model, epsilon=epsilon)
        ]
        if points:
            known = ((mark, estimate) for mark, estimate in points if estimate is not None)
            error_bars(axes, known, label=label, capsize=2.5, markersize=4.5, **style)
    axes.set_ylim(bottom=0)


def _deltas(axes: Any, rows: Rows) -> None:
    axes.set_title(f"The paper's delta at epsilon {EPSILON}")
    axes.set_xlabel("steps")
    axes.set_ylabel("delta (from 1e-12 on)")
    axes.set_xscale("log")
    axes.set_yscale("log")
    steps = list(PRINTED)
    first, *_ = LOSSES
    moments = [rows.mean("moments delta", of=first, steps=step) for step in steps]
    axes.plot(steps, moments, label=f"moments accountant, N = {first.rpartition(' ')[2]}", color="0.6", zorder=1)
    axes.plot(steps, list(PRINTED.values()), "ko", markersize=5, label="printed")
    floor = np.exp(-MAX_ORDER * EPSILON)
    axes.axhline(floor, color="0.75", linestyle=":", label=f"e^(-{MAX_ORDER} epsilon) = {floor:.4f}", zorder=0)
    for name, style in zip(LOSSES, STYLES[1:], strict=False):
        exact = [rows.mean("delta", of=name, steps=step) or 0.0 for step in steps]
        if max(exact) >= 1e-12:
            axes.plot(steps, exact, label=f"exact, {name}", markersize=4.5, **style)
    axes.set_ylim(1e-12, 2)
