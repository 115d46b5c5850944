"""How much of TEM's gain over Madlib is its threshold's, from 0 to where nothing is cut; see README.md.

Command: ``python -m papers.tem.threshold [--quick] [--data ../shared/data]``

Every cell is a line of ``results-threshold/threshold.jsonl``, written when it is done: run it again to go on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from papers.imdb import reviews
from papers.reports import Rows, by_settings, estimate_of, mean_of, number_of, write_between
from papers.sweeps import Sweep, read_sweep
from papers.tem.cells import Settings, recovered, trained
from papers.tem.corpus import Corpus, quarters, read_corpus
from papers.tem.fasttext import Ragged
from papers.tem.trials import run_trials

from dptext import TEM, Madlib, WordVectors
from dptext.errors import extra
from dptext.privacy.randomness import RandomBits
from dptext.words.mechanism import WordMechanism

START, END = "<!-- thresholds: written by the experiment -->", "<!-- end of thresholds -->"
EPSILON = 3.0
THRESHOLDS = (0.0, 2.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 15.0)
"""Between them stands the default (beta = .001). The last is the largest that is drawn exactly at this epsilon: farther
words have odds below e^-22.5, so nothing is cut that shows. The diameter of the vocabulary is below 22.9."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="TEM over its threshold.")
    parser.add_argument("--quick", action="store_true", help="two trials, 600 reviews a quarter: does it run?")
    name = "TEM over its threshold"
    options = run_trials(parser, "threshold", ImdbReviews, settings_of, name=name, arguments=arguments)
    write_report(options.out, readme=options.readme)


def settings_of(*, quick: bool) -> Iterator[dict[str, Any]]:
    """All settings; a threshold of None is the default of TEM, and what other rows do not have."""
    yield {"mechanism": "none", "threshold": None}
    yield {"mechanism": "Madlib", "threshold": None}
    yield {"mechanism": "TEM", "threshold": None}
    for threshold in THRESHOLDS[::9] if quick else THRESHOLDS:
        yield {"mechanism": "TEM", "threshold": threshold}


@dataclass(frozen=True)
class ImdbReviews:
    """Reviews that are privatised word by word, and a classifier that learns from them.

    Attributes:
        data: the folder of the archive.
        vectors: the vocabulary.
        most: reviews a quarter.
    """

    data: Path
    vectors: WordVectors
    most: int

    @cached_property
    def corpus(self) -> Corpus:
        return read_corpus(reviews(self.data), self.vectors)

    def cell(self, settings: Mapping[str, Any], seed: int) -> dict[str, float]:
        """The numbers of one setting and trial."""
        shared = Settings(self.most, 0)
        corpus, mechanism = self.corpus, mechanism_of(settings, self.vectors)
        parts = quarters(corpus, reviews=self.most, seed=shared.seed_of("quarters", seed))
        text, labels = corpus.ids.take(parts.tr1), corpus.positive[parts.tr1]
        own = shared.seed_of("threshold", seed, *settings.values())
        noisy = text
        if mechanism is not None:
            noisy = Ragged(mechanism.sample_rows(text.values, RandomBits(own)), text.starts)
        target = trained(noisy, labels, self.vectors, shared, own)
        matrix = self.vectors.matrix
        return {
            "stays": float((noisy.values == text.values).mean()),
            "guessed": recovered(text.values, noisy.values, len(self.vectors)),
            "moved": float(np.linalg.norm(matrix[noisy.values] - matrix[text.values], axis=1).mean()),
            "accuracy": target.score(corpus.ids.take(parts.te1), corpus.positive[parts.te1]),
            "threshold": mechanism.threshold if isinstance(mechanism, TEM) else 0.0,
            "bound": 0.0 if mechanism is None else mechanism.statement.epsilon,
        }


def mechanism_of(settings: Mapping[str, Any], vectors: WordVectors) -> WordMechanism | None:
    """At a threshold of 0 every word is equally likely; the smallest that TEM takes stands for it."""
    if settings["mechanism"] == "none":
        return None
    if settings["mechanism"] == "Madlib":
        return Madlib(vectors, epsilon=EPSILON)
    threshold = settings["threshold"]
    return TEM(vectors, epsilon=EPSILON, threshold=threshold if threshold is None else max(threshold, 1e-6))


# -- table and figure ------------------------------------------------------------------------------------------


def write_report(out: Path, *, readme: Path | None) -> None:
    """``table.md`` and ``figure.png`` in a folder; the table also in the README."""
    sweep = read_sweep(out / "threshold.jsonl")
    text = _table(sweep)
    (out / "table.md").write_text(text + "\n", encoding="utf-8")
    write_between(readme, START, END, text)
    draw(sweep.rows, out / "figure.png")


def _ordered(rows: Rows) -> list[tuple[Mapping[str, Any], list[Any]]]:
    """TEM's settings by ascending threshold."""
    tem = [setting for setting in by_settings(rows) if setting[0]["mechanism"] == "TEM"]
    return sorted(tem, key=lambda each: mean_of(each[1], "threshold"))


def _others(rows: Rows) -> dict[str, list[Any]]:
    return {entry["mechanism"]: runs for entry, runs in by_settings(rows) if entry["mechanism"] != "TEM"}


def _table(found: Sweep) -> str:
    rows, reviews_of = found.rows, found.experiment["constants"]["reviews"]
    lines = [
        f"**The threshold, epsilon {EPSILON:g}.** The bound is pure: for any two words.",
        "",
        "| mechanism | threshold | bound of a word | stays | guessed | mean distance moved | accuracy |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    ordered = _ordered(rows)
    for place, (settings, runs) in enumerate(ordered):
        name = "TEM, default" if settings["threshold"] is None else "TEM"
        if place == 0:
            name = "uniform words"
        elif place == len(ordered) - 1:
            name = "TEM, nothing cut"
        lines.append(_line(name, f"{mean_of(runs, 'threshold'):.1f}", runs))
    others = _others(rows)
    lines += [_line(name, "", others[name]) for name in ("Madlib", "none") if name in others]
    first = len(next(iter(others.values()), rows))
    return "\n".join([*lines, "", f"{first} trials, {reviews_of:,} reviews a quarter; majority .500."])


def _line(name: str, threshold: str, runs: Rows) -> str:
    bound = "" if name == "none" else f"{mean_of(runs, 'bound'):.1f}"
    visible = [number_of(runs, entry) for entry in ("stays", "guessed", "moved", "accuracy")]
    return f"| {name} | {threshold} | {bound} | {' | '.join(visible)} |"


def draw(rows: Rows, path: Path) -> None:
    """Accuracy and the share of words that stay over the threshold. Readable in grey."""
    figure = extra("matplotlib.figure", "report", "a figure").Figure(figsize=(9.0, 4.2), layout="constrained")
    extra("matplotlib.backends.backend_agg", "report", "a figure").FigureCanvasAgg(figure)  # no window
    left, right = figure.subplots(1, 2)
    ordered, others = _ordered(rows), _others(rows)
    position = [mean_of(runs, "threshold") for _, runs in ordered]
    for axes, name, label, where in (
        (left, "accuracy", "accuracy on raw reviews", "lower right"),
        (right, "stays", "share of words that stay", "center right"),
    ):
        results = [estimate_of(runs, name) for _, runs in ordered]
        values = [mean_of(runs, name) for _, runs in ordered]
        reach = [[0.0 if entry is None else (entry.high - entry.low) / 2 for entry in results]] * 2
        axes.errorbar(position, values, yerr=reach, color="black", marker="o", capsize=2.5, markersize=4.5, label="TEM")
        default = [mean_of(runs, "threshold") for settings, runs in ordered if settings["threshold"] is None]
        for place in default:
            axes.axvline(place, color="0.75", linestyle="-.", zorder=0, label="the default, beta = .001")
        for mechanism, style in (("Madlib", "--"), ("none", ":")):
            if mechanism in others and (mechanism, name) != ("none", "stays"):
                label_of = "unprotected" if mechanism == "none" else mechanism
                axes.axhline(mean_of(others[mechanism], name), color="0.45", linestyle=style, label=label_of)
        axes.set_xlabel("threshold (at 15 nothing is cut that shows)")
        axes.set_ylabel(label)
        axes.grid(visible=True, color="0.93", linewidth=0.6)
        axes.legend(fontsize=8, frameon=False, loc=where)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
