"""Pictures of a report as PNG bytes: what is promised beside what was shown, and scores beside their baselines."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from dptext.audits.verdict import Verdict
from dptext.errors import ParameterError
from dptext.estimates import Estimate
from dptext.files.formats import extra

__all__ = ["curve_figure", "promise_figure", "scores_figure"]

_WIDTH = 8.0
_STYLES: tuple[dict[str, Any], ...] = (
    {"color": "black", "linestyle": "-", "marker": "o"},
    {"color": "0.45", "linestyle": "--", "marker": "s"},
    {"color": "0.25", "linestyle": ":", "marker": "^"},
    {"color": "0.6", "linestyle": "-.", "marker": "D"},
    {"color": "0.1", "linestyle": (0, (5, 1)), "marker": "v"},
    {"color": "0.5", "linestyle": (0, (1, 1)), "marker": "x"},
)


def promise_figure(verdicts: Sequence[tuple[str, Verdict]]) -> bytes:
    """For each audit: the epsilon that is promised, the loss that was shown, and the most that could have been.

    Raises:
        ParameterError: there is nothing to draw.
        MissingExtraError: matplotlib is not installed.
    """
    _check_any(verdicts)

    def draw(axes: Any) -> None:
        for place, (_, verdict) in enumerate(verdicts):
            bar = {"height": 0.34, "edgecolor": "black", "linewidth": 0.8}
            axes.barh(place - 0.19, verdict.allowed, color="0.82", label="promised at most", **bar)
            shown = {"color": "white", "hatch": "///"} if verdict.refuted else {"color": "0.35"}
            name = "shown: the promise is broken" if verdict.refuted else "shown by the audit"
            axes.barh(place + 0.19, max(verdict.loss, 0.0), label=name, **shown, **bar)
            if verdict.strongest < 1e6:
                axes.plot([verdict.strongest] * 2, [place - 0.42, place + 0.42], "k:", label="could have been shown")
        _name_rows(axes, [name for name, _ in verdicts])
        axes.set_xlabel("privacy loss in nats (epsilon)")

    return _picture(draw, len(verdicts))


def scores_figure(
    scores: Sequence[tuple[str, Estimate, float]], *, measure: str, limits: tuple[float, float] | None = None
) -> bytes:
    """A row each: name, number with its interval, and what is reached without the data.

    Args:
        scores: name, number, baseline.
        measure: what the axis says.
        limits: of the axis; None: what the numbers need.

    Raises:
        ParameterError: there is nothing to draw.
        MissingExtraError: matplotlib is not installed.
    """
    _check_any(scores)

    def draw(axes: Any) -> None:
        for place, (_, score, baseline) in enumerate(scores):
            axes.plot([score.low, score.high], [place, place], color="black", linewidth=2, solid_capstyle="butt")
            axes.plot(score.value, place, "o", color="black", label="result, 95% interval")
            axes.plot([baseline] * 2, [place - 0.3, place + 0.3], color="0.5", linewidth=3, label="without the data")
        _name_rows(axes, [name for name, _, _ in scores])
        axes.set_xlabel(measure)
        if limits is not None:
            axes.set_xlim(*limits)

    lines = sum(1 + name.count("\n") for name, _, _ in scores)
    return _picture(draw, max(round(0.55 * lines), 2))


def curve_figure(
    curves: Sequence[tuple[str, Sequence[tuple[float, Estimate]]]],
    *,
    x: str,
    y: str,
    title: str = "",
    baselines: Sequence[tuple[str, float]] = (),
    logarithmic: bool = False,
) -> bytes:
    """Lines with their intervals, over epsilon for example.

    Args:
        curves: name and points (x, estimate), by ascending x; at most six.
        x, y: what the axes say.
        title: above the picture.
        baselines: name and height of horizontal lines.
        logarithmic: the x axis doubles at equal steps.

    Raises:
        ParameterError: nothing to draw, or more curves than can be told apart in grey.
        MissingExtraError: matplotlib is not installed.
    """
    _check_any(curves)
    if len(curves) > len(_STYLES):
        raise ParameterError(f"{len(_STYLES)} curves can be told apart in grey, got {len(curves)}: draw two figures")

    def draw(axes: Any) -> None:
        for style, (name, points) in zip(_STYLES, curves, strict=False):
            places = [at for at, _ in points]
            reach = [[each.value - each.low for _, each in points], [each.high - each.value for _, each in points]]
            values = [each.value for _, each in points]
            axes.errorbar(places, values, yerr=reach, label=name, markersize=5, capsize=3, elinewidth=1, **style)
        for line, (name, height) in zip(("-", "--", ":"), baselines, strict=False):
            axes.axhline(height, color="0.7", linestyle=line, linewidth=1, label=name)
        if logarithmic:
            axes.set_xscale("log", base=2)
            ticks = sorted({at for _, points in curves for at, _ in points})
            axes.set_xticks(ticks, [f"{at:g}" for at in ticks])
            axes.minorticks_off()
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_title(title)
        axes.grid(visible=True, color="0.9", linewidth=0.6)

    return _picture(draw, 8)


def _check_any(rows: Sequence[Any]) -> None:
    if not rows:
        raise ParameterError("expected at least one row to draw, got none")


def _name_rows(axes: Any, names: Sequence[str]) -> None:
    # the name of a column may hold a dollar: it is no formula
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=True, axis="x", color="0.9", linewidth=0.6)


def _picture(draw: Callable[[Any], None], rows: int) -> bytes:
    figure_module, canvas_module = (
        extra("matplotlib.figure", "report", "a figure"),
        extra("matplotlib.backends.backend_agg", "report", "a figure"),
    )
    figure = figure_module.Figure(figsize=(_WIDTH, 1.5 + 0.42 * max(rows, 1)), layout="constrained")
    canvas_module.FigureCanvasAgg(figure)  # no window, no state of its own
    axes = figure.subplots()
    draw(axes)
    axes.set_axisbelow(True)
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the table beside it holds the name in letters
        figure.savefig(stream, format="png", dpi=150, metadata={"Software": None})
    return stream.getvalue()
