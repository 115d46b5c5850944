"""Figures, readable in grey, drawn by matplotlib (extra ``report``): files of a calibration, pictures of a page."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dptext.audits.verdict import Verdict
from dptext.calibration.deniability import Deniability
from dptext.errors import ParameterError, extra
from dptext.estimates import Estimate
from dptext.own_files import check_target, replacing

__all__ = ["calibration_figure", "figure_format", "plane_figure", "promise_figure", "scores_figure"]

FORMATS = (".png", ".pdf", ".svg")
_STYLES = (
    {"color": "black", "linestyle": "-", "marker": "o"},
    {"color": "0.45", "linestyle": "--", "marker": "s"},
    {"color": "0.25", "linestyle": ":", "marker": "^"},
    {"color": "0.6", "linestyle": "-.", "marker": "D"},
)
_BINS = 8


def figure_format(path: Path) -> str:
    """The format that the name of a figure asks for, and whether it can be drawn at all, before any work is done.

    Raises:
        ParameterError, StorageError: another suffix; as `dptext.own_files.check_target`.
        MissingExtraError: matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise ParameterError(f"a figure's name ends in {', '.join(FORMATS)}, got {path.name!r}")
    check_target(path, replace=True, apart_from={})
    extra("matplotlib", "report", "a figure")
    return path.suffix.lower().removeprefix(".")


def calibration_figure(
    path: Path,
    curves: Mapping[str, Sequence[Deniability]],
    at_half: Mapping[str, Deniability],
    *,
    source: str,
) -> None:
    """Keep rate and support over epsilon, and how far replacements go in dense and in sparse regions.

    Args:
        path: see `figure_format`.
        curves: for each mechanism its measurements, by ascending epsilon.
        at_half: for each mechanism its measurement at the epsilon of the third panel.
        source: the vectors, for the title.

    Raises:
        StorageError: the file cannot be written.
    """
    kind = figure_format(path)
    figure = _figure(13.0, 4.4)
    left, middle, right = figure.subplots(1, 3)
    for style, (name, found) in zip(_STYLES, curves.items(), strict=False):
        _draw_keep(left, name, found, style)
        _draw_support(middle, name, found, style)
    for style, (name, each) in zip(_STYLES, at_half.items(), strict=False):
        _draw_density(right, name, each, style)
    _finish(left, "How often a word stays", "epsilon", "probability to stay\n(mean; band: 5% to 95% of text)")
    _finish(middle, "How many words it could become", "epsilon", "words\n(median; band: 25% to 75% of text)")
    _finish(right, "How far a replacement goes", _neighbour_label(at_half), "mean distance of a replacement")
    left.set_ylim(-0.02, 1.02)
    middle.set_yscale("log")
    _diagonal(right)
    figure.suptitle(source)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=kind, dpi=150)
    with replacing(path) as stream:
        stream.write(drawn.getvalue())


def _draw_keep(axes: Any, name: str, found: Sequence[Deniability], style: dict[str, str]) -> None:
    epsilons = [each.epsilon for each in found]
    low, high = ([each.quantile("keep", share) for each in found] for share in (0.05, 0.95))
    axes.fill_between(epsilons, low, high, color=style["color"], alpha=0.15, linewidth=0)
    axes.plot(epsilons, [each.mean("keep") for each in found], label=name, markersize=4, **style)


def _draw_support(axes: Any, name: str, found: Sequence[Deniability], style: dict[str, str]) -> None:
    epsilons = [each.epsilon for each in found]
    low, middle, high = ([each.quantile("support", share) for each in found] for share in (0.25, 0.5, 0.75))
    draws = found[0].draws if found else None
    label = name if draws is None else f"{name} (at least: {draws:,} draws a word)"
    axes.fill_between(epsilons, low, high, color=style["color"], alpha=0.15, linewidth=0)
    axes.plot(epsilons, middle, label=label, markersize=4, **style)


def _draw_density(axes: Any, name: str, each: Deniability, style: dict[str, str]) -> None:
    """A dot a word, and a line through the means of groups of equal size."""
    x, y = each.neighbourhood, each.replacement_distance
    number = np.isfinite(y)
    x, y = x[number], y[number]
    axes.scatter(x, y, s=9, color=style["color"], marker=style["marker"], alpha=0.35, linewidths=0)
    groups = np.array_split(np.argsort(x, kind="stable"), _BINS if x.size >= 2 * _BINS else 1)
    means = [(x[group].mean(), y[group].mean()) for group in groups if group.size]
    label = f"{name}, epsilon {each.epsilon:.4g} (stays {each.mean('keep'):.0%})"
    axes.plot(*zip(*means, strict=True), label=label, markersize=6, linewidth=2, **style)


def _neighbour_label(at_half: Mapping[str, Deniability]) -> str:
    k = next(iter(at_half.values())).neighbours if at_half else 1
    return f"distance to the {k}th neighbour (dense to sparse)"


def _diagonal(axes: Any) -> None:
    low, high = axes.get_xlim()
    axes.plot([low, high], [low, high], color="0.7", linewidth=0.8, zorder=0, label="as far as that neighbour")
    axes.set_xlim(low, high)
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top + 0.25 * (top - bottom))  # words lie everywhere: room above them for the legend
    axes.legend(fontsize=8, loc="upper left")


def _finish(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(visible=True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8)


# -- pictures of a page, as PNG bytes ----------------------------------------------------------------------------


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


def plane_figure(points: Sequence[tuple[str, Any]], *, axes_are: str) -> bytes:
    """Texts as points of a plane: one kind beside the other, the first ones behind.

    Args:
        points: names with (n, 2) coordinates, at most as many as there are styles.
        axes_are: what the two axes are.

    Raises:
        ParameterError: there is nothing to draw.
        MissingExtraError: matplotlib is not installed.
    """
    _check_any(points)
    styles: tuple[dict[str, Any], ...] = (
        {"s": 22, "color": "0.72", "marker": "."},
        {"s": 14, "facecolors": "none", "edgecolors": "0.4", "marker": "o", "linewidths": 0.6},
        {"s": 16, "color": "black", "marker": "x", "linewidths": 0.8},
    )

    def draw(axes: Any) -> None:
        for style, (name, values) in zip(styles[len(styles) - len(points) :], points, strict=True):
            axes.scatter(values[:, 0], values[:, 1], label=name, **style)
        axes.set_xlabel(axes_are)
        axes.set_xticks([])
        axes.set_yticks([])

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
    figure = _figure(8.0, 1.5 + 0.42 * max(rows, 1))
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


def _figure(width: float, height: float) -> Any:
    """An empty figure without a window or a state of its own."""
    figure = extra("matplotlib.figure", "report", "a figure").Figure(figsize=(width, height), layout="constrained")
    extra("matplotlib.backends.backend_agg", "report", "a figure").FigureCanvasAgg(figure)
    return figure
