"""The share of TEM's gain over Madlib that is due to its threshold; see README.md.

Command: ``python -m papers.tem.threshold [--quick] [--data FOLDER]``. Rows: ``results-threshold/threshold.jsonl``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from papers.data_sets import imdb_reviews
from papers.reports import (
    Rows,
    error_bars,
    estimate_of,
    group_by_settings,
    mean_of,
    new_figure,
    number_of,
    run_command,
    save_figure,
    table,
    write_tables,
)
from papers.sweeps import Row
from papers.tem.corpus import Corpus, measure_trial, read_corpus, run_trials

from dptext import TEM, Madlib, WordVectors
from dptext.intervals import Estimate
from dptext.words.mechanism import WordMechanism

HERE = Path(__file__).resolve().parent
START, END = "<!-- thresholds: written by the experiment -->", "<!-- end of thresholds -->"
EPSILON = 3.0
THRESHOLDS = (0.0, 2.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 15.0)
"""The default (beta = .001) is in this range. 15 is the largest threshold with exact sampling at this epsilon: words
farther away have odds below e^-22.5, so it truncates nothing noticeable. The vocabulary's diameter is below 22.9."""

Group = tuple[Mapping[str, Any], list[Row]]


def main(arguments: Sequence[str] | None = None) -> None:
    options = run_trials(
        "TEM over its threshold.",
        HERE,
        arguments,
        part="threshold",
        bench=lambda *bench: ThresholdBench(*bench).cell,
        settings_of=settings_of,
    )
    write_report(options.out, readme=options.readme)


def settings_of(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield all settings; a threshold of None is the default of TEM, and that of other mechanisms."""
    for mechanism in ("none", "Madlib", "TEM"):
        yield {"mechanism": mechanism, "threshold": None}
    for threshold in THRESHOLDS[::9] if quick else THRESHOLDS:
        yield {"mechanism": "TEM", "threshold": threshold}


@dataclass(frozen=True)
class ThresholdBench:
    """Reviews that are privatized word by word, and a classifier that learns from them."""

    data: Path
    vectors: WordVectors
    reviews: int

    @cached_property
    def _corpus(self) -> Corpus:
        return read_corpus(imdb_reviews(self.data), self.vectors)

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        mechanism, matrix = mechanism_of(settings, self.vectors), self.vectors.matrix
        names = ("threshold", *settings.values())
        numbers, text, noisy = measure_trial(
            self._corpus, mechanism, self.vectors, reviews=self.reviews, trial=seed, names=names
        )
        return numbers | {
            "moved": float(np.linalg.norm(matrix[noisy.values] - matrix[text.values], axis=1).mean()),
            "threshold": mechanism.threshold if isinstance(mechanism, TEM) else 0.0,
            "bound": 0.0 if mechanism is None else mechanism.statement.epsilon,
        }


def mechanism_of(settings: Mapping[str, Any], vectors: WordVectors) -> WordMechanism | None:
    """Return the mechanism; at a threshold of 0, where all words are equally likely, it has the smallest of TEM."""
    if settings["mechanism"] == "none":
        return None
    if settings["mechanism"] == "Madlib":
        return Madlib(vectors, epsilon=EPSILON)
    threshold = settings["threshold"]
    return TEM(vectors, epsilon=EPSILON, threshold=threshold if threshold is None else max(threshold, 1e-6))


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``table.md`` and ``figure.png`` into a folder, and the table into the README."""
    rows = Rows(out / "threshold.jsonl")
    groups = list(group_by_settings(rows.rows))
    tem = sorted((group for group in groups if group[0]["mechanism"] == "TEM"), key=_threshold)
    others = {settings["mechanism"]: runs for settings, runs in groups if settings["mechanism"] != "TEM"}
    lines = []
    for place, (settings, runs) in enumerate(tem):
        name = "TEM, default" if settings["threshold"] is None else "TEM"
        name = {0: "uniform words", len(tem) - 1: "TEM, no truncation"}.get(place, name)
        lines.append(_line(name, f"{mean_of(runs, 'threshold'):.1f}", runs))
    lines += [_line(name, "", others[name]) for name in ("Madlib", "none") if name in others]
    trials = max(len(runs) for _, runs in groups)
    head = ["mechanism", "threshold", "bound of a word", "stays", "guessed", "mean distance moved", "accuracy"]
    sections = [
        f"**The threshold, epsilon {EPSILON:g}.** The bound is pure: for any two words.",
        table(head, lines),
        f"{trials} trials, {rows.constants['reviews']:,} reviews per quarter; majority .500.",
    ]
    write_tables(out / "table.md", sections, readme=readme, start=START, end=END)
    draw(tem, others, out / "figure.png")


def _threshold(group: Group) -> float:
    return mean_of(group[1], "threshold")


def _line(name: str, threshold: str, runs: Sequence[Row]) -> list[str]:
    bound = "" if name == "none" else f"{mean_of(runs, 'bound'):.1f}"
    return [name, threshold, bound, *(number_of(runs, entry) for entry in ("stays", "guessed", "moved", "accuracy"))]


def draw(tem: Sequence[Group], others: Mapping[str, Sequence[Row]], path: Path) -> None:
    figure, panels = new_figure(9.0, 4.2, 1, 2)
    for axes, name, label, place in (
        (panels[0][0], "accuracy", "accuracy on raw reviews", "lower right"),
        (panels[0][1], "stays", "share of words that stay", "center right"),
    ):
        points = []
        for group in tem:
            mean = mean_of(group[1], name)
            estimate = estimate_of(group[1], name) or Estimate(mean, mean, mean, 1, "runs")
            points.append((_threshold(group), estimate))
        error_bars(axes, points, color="black", marker="o", capsize=2.5, markersize=4.5, label="TEM")
        for group in tem:
            if group[0]["threshold"] is None:
                axes.axvline(
                    _threshold(group), color="0.75", linestyle="-.", zorder=0, label="the default, beta = .001"
                )
        for mechanism, style in (("Madlib", "--"), ("none", ":")):
            if mechanism in others and (mechanism, name) != ("none", "stays"):
                text = "unprotected" if mechanism == "none" else mechanism
                axes.axhline(mean_of(others[mechanism], name), color="0.45", linestyle=style, label=text)
        axes.set_xlabel("threshold (15 truncates nothing noticeable)")
        axes.set_ylabel(label)
        axes.grid(visible=True, color="0.93", linewidth=0.6)
        axes.legend(fontsize=8, frameon=False, loc=place)
    save_figure(figure, path, dpi=150)


if __name__ == "__main__":
    run_command(main)
