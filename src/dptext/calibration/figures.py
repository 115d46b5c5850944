"""What an epsilon does to words, drawn on axes: how often one stays, what it could become, how far replacements go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dptext.drawing import grey, labelled, next_style

if TYPE_CHECKING:
    from dptext.calibration.deniability import Deniability

__all__ = ["draw_density", "draw_keep", "draw_support"]

_BINS = 8


def draw_keep(axes: Any, name: str, found: Sequence[Deniability]) -> None:
    """The keep rate over epsilon: a line of means, and a band for most of text."""
    style, epsilons = next_style(axes), [each.epsilon for each in found]
    low, high = ([each.quantile("keep", share) for each in found] for share in (0.05, 0.95))
    axes.fill_between(epsilons, low, high, color=style["color"], alpha=0.15, linewidth=0)
    axes.plot(epsilons, [each.mean("keep") for each in found], label=name, markersize=4, **style)
    labelled(axes, "epsilon", "probability to stay\n(mean; band: 5% to 95% of text)", "How often a word stays")
    axes.set_ylim(-0.02, 1.02)


def draw_support(axes: Any, name: str, found: Sequence[Deniability]) -> None:
    """How many words one could become, over epsilon."""
    style, epsilons = next_style(axes), [each.epsilon for each in found]
    low, middle, high = ([each.quantile("support", share) for each in found] for share in (0.25, 0.5, 0.75))
    draws = found[0].draws if found else None
    label = name if draws is None else f"{name} (at least: {draws:,} draws a word)"
    axes.fill_between(epsilons, low, high, color=style["color"], alpha=0.15, linewidth=0)
    axes.plot(epsilons, middle, label=label, markersize=4, **style)
    labelled(axes, "epsilon", "words\n(median; band: 25% to 75% of text)", "How many words it could become")
    axes.set_yscale("log")


def draw_density(axes: Any, found: Deniability) -> None:
    labels = axes.get_legend_handles_labels()[1]
    style = next_style(axes, len(labels) - (_DIAGONAL in labels))
    x, y = found.neighbourhood, found.replacement_distance
    number = np.isfinite(y)
    x, y = x[number], y[number]
    axes.scatter(x, y, s=9, color=[style["color"]], marker=style["marker"], alpha=0.35, linewidths=0)
    groups = np.array_split(np.argsort(x, kind="stable"), _BINS if x.size >= 2 * _BINS else 1)
    means = [(x[group].mean(), y[group].mean()) for group in groups if group.size]
    label = f"{found.mechanism}, epsilon {found.epsilon:.4g} (stays {found.mean('keep'):.0%})"
    axes.plot(*np.array(means).reshape(-1, 2).T, label=label, markersize=6, linewidth=2, **style)
    for line in [each for each in axes.lines if each.get_label() == _DIAGONAL]:
        line.remove()  # it stands last in the legend
    if x.size:
        axes.axline((x.mean(), x.mean()), slope=1, color=grey(axes, 0.3), linewidth=0.8, zorder=0, label=_DIAGONAL)
    axes.margins(y=0.2)  # words lie everywhere: room above them for the legend
    neighbour = f"distance to the {_ordinal(found.neighbours)} neighbour (dense to sparse)"
    labelled(axes, neighbour, "mean distance of a replacement", "How far a replacement goes")


_DIAGONAL = "as far as that neighbour"


def _ordinal(number: int) -> str:
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{last}"
