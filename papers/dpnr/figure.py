"""The figure: accuracy against *true* epsilon, for DPNR and for mechanisms with a proof."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpnr.results import Rows, at_true_epsilon, decision_accuracy
from papers.reports import error_bars, new_figure, save_figure

from dptext.intervals import Estimate

PUBLISHED: dict[tuple[int, str], dict[str, Any]] = {
    (32, "plain"): {"color": "0.6", "linestyle": ":", "marker": "v"},
    (32, "robust"): {"color": "0.6", "linestyle": "--", "marker": "^"},
    (64, "plain"): {"color": "0.45", "linestyle": ":", "marker": "v", "markerfacecolor": "white"},
    (64, "robust"): {"color": "0.45", "linestyle": "--", "marker": "^", "markerfacecolor": "white"},
    (64, "adaptive"): {"color": "0.45", "linestyle": "-.", "marker": "D", "markerfacecolor": "white"},
}
OURS: dict[str, dict[str, Any]] = {
    "PrivUnit": {"color": "black", "linestyle": "-", "marker": "o"},
    "L2Laplace": {"color": "black", "linestyle": "-", "marker": "s", "markerfacecolor": "white"},
    "Gaussian": {"color": "black", "linestyle": "-", "marker": "x"},
}
_LARGEST = 400.0
DECISION = "decision, randomised response"


def draw(sets: Mapping[str, Mapping[str, Rows]], path: Path) -> None:
    """Draw a panel for each data set; readable in grey."""
    figure, panels = new_figure(6.4 * len(sets), 5.6, 1, len(sets))
    for axes, (name, parts) in zip(panels[0], sets.items(), strict=True):
        _panel(axes, name, parts)
    save_figure(figure, path)


def _panel(axes: Any, name: str, parts: Mapping[str, Rows]) -> None:
    axes.set_title(name)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("true epsilon of a text, for any two texts (log scale)")
    axes.set_ylabel("accuracy (95% over runs)")
    constants = next(iter(parts.values())).constants
    axes.axhline(constants["majority"], color="0.8", linewidth=1.2, zorder=0)
    axes.annotate(
        "majority class", (1.0, constants["majority"]), xytext=(0, -9), textcoords="offset points", fontsize=7
    )
    if "study" in parts:
        for (dimension, training), style in PUBLISHED.items():
            if dimension in parts["study"].values("dimension"):
                points = at_true_epsilon(parts["study"], "DPNR", dimension, training)
                _curve(axes, points, f"DPNR d={dimension}, {training}", style)
        _no_noise(axes, parts["study"])
    if "ours" in parts:
        rows, smallest = parts["ours"], min(parts["ours"].values("dimension"))
        for mechanism, style in OURS.items():
            _curve(
                axes, at_true_epsilon(rows, mechanism, smallest, "robust"), f"{mechanism} d={smallest}, robust", style
            )
        points = at_true_epsilon(rows, "PrivUnit", smallest, "plain")
        _curve(axes, points, f"PrivUnit d={smallest}, plain", OURS["PrivUnit"] | {"linestyle": "--"})
        clean = rows.over_runs("clean", mechanism="PrivUnit", dimension=smallest, training="plain")
        if clean is not None:
            epsilons = np.geomspace(1.0, _LARGEST, 60)
            shares = [decision_accuracy(clean, epsilon, constants["classes"]) for epsilon in epsilons]
            axes.plot(epsilons, shares, color="black", linestyle=(0, (1, 1)), linewidth=1.0, label=DECISION)
    axes.set_xlim(0.9, _LARGEST)
    axes.set_xticks(ticks := [2**power for power in range(9)], [str(tick) for tick in ticks])
    axes.grid(visible=True, color="0.93", linewidth=0.6)
    if axes.get_legend_handles_labels()[0]:  # none where every server was trained once
        axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False)


def _no_noise(axes: Any, rows: Rows) -> None:
    clean = rows.over_runs("clean", mechanism="DPNR", dimension=min(rows.values("dimension")), training="plain")
    if clean is not None:
        axes.axhline(clean.value, color="0.8", linewidth=1.2, linestyle="--", zorder=0)
        axes.annotate("no noise", (1.0, clean.value), xytext=(0, 3), textcoords="offset points", fontsize=7)


def _curve(axes: Any, points: tuple[list[float], list[Estimate]], label: str, style: dict[str, Any]) -> None:
    finite = [(epsilon, mean) for epsilon, mean in zip(*points, strict=True) if math.isfinite(epsilon)]
    if finite:
        error_bars(axes, finite, label=label, capsize=2, markersize=4, **style)
