"""Elements of matplotlib figures (extra ``report``): axes, line styles, named rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dptext.errors import ParameterError, extra

Row = int
"""Index of a named row, from the top."""

_FORMS = (
    {"linestyle": "-", "marker": "o"},
    {"linestyle": "--", "marker": "s"},
    {"linestyle": ":", "marker": "^"},
    {"linestyle": "-.", "marker": "D"},
)
_SHOWN = 1e6  # nats; longer bars are cut, with a note
_SHARES = (1.0, 0.55, 0.75, 0.4)


def get_axes(axes: Any, *, height: float = 4.0) -> Any:
    """Return ``axes``, or the axes of a new figure."""
    pyplot = extra("matplotlib.pyplot", "report", "a figure")
    if axes is not None:
        if not hasattr(axes, "get_legend_handles_labels"):
            raise ParameterError(f"axes must be matplotlib axes or None, got {type(axes).__name__}")
        return axes
    figure, output = pyplot.subplots(figsize=(7.0, height), layout="constrained")
    figure.set_facecolor(output.get_facecolor())  # a transparent background could hide the text on a dark page
    return output


def grey(axes: Any, share: float = 1.0) -> tuple[float, float, float]:
    """Mix the text colour (``share``) with the background colour: black and greys in the default style."""
    to_rgb, text = extra("matplotlib.colors", "report", "a figure").to_rgb, axes.xaxis.label.get_color()
    red, green, blue = (
        share * ink + (1 - share) * paper
        for ink, paper in zip(to_rgb(text), to_rgb(axes.get_facecolor()[:3]), strict=True)
    )
    return red, green, blue


def next_style(axes: Any, place: int | None = None) -> dict[str, Any]:
    """Return the style of a line; ``place`` None: the next one after the labelled lines."""
    if place is None:
        place = len({label for label in axes.get_legend_handles_labels()[1] if label})
    return {"color": grey(axes, _SHARES[place % len(_SHARES)]), **_FORMS[place % len(_FORMS)]}


def label_axes(axes: Any, x: str, y: str, title: str = "") -> None:
    """Label the axes, draw a grid in the background, and add a legend."""
    axes.set(xlabel=x, ylabel=y, title=title)
    axes.grid(visible=True, color=grey(axes, 0.1), linewidth=0.6)
    axes.set_axisbelow(True)
    _legend(axes)


def legend_below(axes: Any) -> None:
    """Add a legend below, with each name once."""
    _legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3, frameon=False)


def _legend(axes: Any, **where: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        axes.legend(once.values(), once.keys(), fontsize=8, **where)


def add_named_row(axes: Any, name: str) -> Row:
    """Add a row below the existing ones."""
    names: Sequence[str] = (*getattr(axes, "_dptext_rows", ()), name)
    axes._dptext_rows = names
    # the name of a column may contain a dollar
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=True, axis="x", color=grey(axes, 0.1), linewidth=0.6)
    axes.set_axisbelow(True)
    return len(names) - 1


def add_guarantee_row(axes: Any, name: str, *, allowed: float, loss: float, strongest: float, refuted: bool) -> None:
    """Draw the guaranteed loss, the loss that an audit showed, and the largest loss that it could have shown."""
    place, ink = add_named_row(axes, name), grey(axes)
    bar = {"height": 0.34, "edgecolor": ink, "linewidth": 0.8}
    end = 1.25 * max([entry for entry in (allowed, loss, strongest) if entry < _SHOWN], default=1.0) or 1.0
    for entry, offset in ((allowed, -0.19), (loss, 0.19)):
        if entry >= _SHOWN:
            axes.text(
                end, place + offset, " beyond this" if math.isfinite(entry) else " infinite", va="center", fontsize=8
            )
    allowed, loss = min(allowed, end), min(loss, end)
    axes.barh(place - 0.19, allowed, color=grey(axes, 0.18), label="guaranteed at most", **bar)
    visible = {"color": grey(axes, 0.0), "hatch": "///"} if refuted else {"color": grey(axes, 0.65)}
    text = "shown: the guarantee is false" if refuted else "shown by the audit"
    axes.barh(place + 0.19, max(loss, 0.0), label=text, **visible, **bar)
    if strongest < _SHOWN:
        line = {"color": ink, "linestyle": ":", "label": "could have been shown"}
        axes.plot([strongest] * 2, [place - 0.42, place + 0.42], **line)
    axes.set_xlabel("privacy loss in nats (epsilon)")


def add_score_row(axes: Any, name: str, *, value: float, low: float, high: float, baseline: float) -> None:
    """Draw a number with its interval, and the baseline without the data."""
    place, ink = add_named_row(axes, name), grey(axes)
    axes.plot([low, high], [place, place], color=ink, linewidth=2, solid_capstyle="butt")
    axes.plot(value, place, "o", color=ink, label="result, 95% interval")
    without = {"color": grey(axes, 0.5), "linewidth": 3, "label": "without the data"}
    axes.plot([baseline] * 2, [place - 0.3, place + 0.3], **without)
