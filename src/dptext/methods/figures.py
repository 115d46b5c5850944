"""Figures, readable in grey, drawn by matplotlib (extra ``report``): files of a calibration, pictures of a page."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dptext.audits.verdict import Verdict
from dptext.calibration.deniability import Deniability, draw_density, draw_keep, draw_support
from dptext.errors import ParameterError, extra
from dptext.intervals import Estimate
from dptext.io.atomic import check_target, hashed_file
from dptext.plotting import add_score_row

FORMATS = (".png", ".pdf", ".svg")


def figure_format(path: Path) -> str:
    """The format that the name of a figure asks for, and whether it can be drawn at all, before any work is done."""
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
    """Keep rate and support over epsilon, and how far replacements go in dense and in sparse regions."""
    kind = figure_format(path)
    figure = _figure(13.0, 4.4)
    left, middle, right = figure.subplots(1, 3)
    for name, result in curves.items():
        draw_keep(left, name, result)
        draw_support(middle, name, result)
    for entry in at_half.values():
        draw_density(right, entry)
    figure.suptitle(source)
    draws = io.BytesIO()
    figure.savefig(draws, format=kind, dpi=150)
    with hashed_file(path) as stream:
        stream.write(draws.getvalue())


def promise_figure(verdicts: Sequence[tuple[str, Verdict]]) -> bytes:
    """For each audit: the epsilon that is promised, the loss that was shown, and the most that could have been."""

    def draw(axes: Any) -> None:
        for name, verdict in verdicts:
            verdict.draw_row(axes, name)

    return _picture(draw, len(verdicts))


def scores_figure(scores: Sequence[tuple[str, Estimate, float]], *, measure: str) -> bytes:
    """A row each: name, share with its interval, and what is reached without the data."""

    def draw(axes: Any) -> None:
        for name, score, baseline in scores:
            add_score_row(axes, name, value=score.value, low=score.low, high=score.high, baseline=baseline)
        axes.set_xlabel(measure)
        axes.set_xlim(-0.02, 1.02)

    lines = sum(1 + name.count("\n") for name, _, _ in scores)
    return _picture(draw, max(round(0.55 * lines), 2))


def plane_figure(points: Sequence[tuple[str, Any]], *, axes_are: str) -> bytes:
    """Texts as points of a plane: one kind beside the other, the first ones behind."""
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
