"""Accuracy at true epsilon on Sentiment Labelled Sentences: rows, tables and the figure.

Command: ``python -m papers.ome.accuracy [--data FOLDER] [--encoders glove] [--perceptron] [--quick] [--report]``
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from papers.data_sets import LabelledTexts, sentiment_labelled
from papers.ome.settings import (
    ENCODERS,
    EPSILONS,
    RUNS,
    Task,
    Texts,
    baselines,
    encode,
    perceptron,
    plain,
    projected,
    public_alone,
)
from papers.reports import new_figure, parse_options, run_command, save_figure

FIELDS = ("encoder", "set", "run", "batch", "setting", "meets", "epsilon", "dimension", "accuracy")
LEVEL = {"IMDb": 67.0, "Amazon": 66.0, "Yelp": 65.0}  # OME, lambda 100, with a linear model
STUDENT = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 19: 2.093}
"""Two-sided 95% points of Student's t by degrees of freedom."""
CURVES = (
    ("minilm", "supervised", "clean", "MiniLM, model sent back (use reveals nothing)", "black", "-", "o"),
    ("minilm", "supervised", "noisy", "MiniLM, supervised public projection", "black", "--", "s"),
    ("glove", "supervised", "noisy", "GloVe, supervised public projection", "0.35", "--", "^"),
    ("glove", "centred, noise known", "noisy", "GloVe, 50 dimensions, centred", "0.35", ":", "D"),
    ("glove", "raw, noise known", "noisy", "GloVe, 50 dimensions, not centred", "0.6", ":", "v"),
)
LINES = (
    ("minilm", "public alone", "clean", "MiniLM, public\ntexts alone"),
    ("glove", "not private", "clean", "GloVe, no noise"),
    ("glove", "OME as published", "noisy", "OME, true\nepsilon {epsilon}"),
    ("glove", "majority", "clean", "majority class"),
)

Key = tuple[str, str, str, str]  # encoder, setting, tested, epsilon
Sets = dict[str, dict[int, float]]  # accuracy in per cent by set and run
Accuracies = dict[Key, Sets]


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def group_rows(rows: Iterable[dict[str, str]]) -> Accuracies:
    result: Accuracies = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        key = (row["encoder"], row["setting"], row["meets"], row["epsilon"])
        result[key][row["set"]][int(row["run"])] = 100 * float(row["accuracy"])
    return result


def interval(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean, and half the width of its 95% interval (Student's t over splits)."""
    numbers = list(values)
    if len(numbers) < 2:
        return float(np.mean(numbers)), math.nan
    half = STUDENT.get(len(numbers) - 1, 1.96) * float(np.std(numbers, ddof=1)) / len(numbers) ** 0.5
    return float(np.mean(numbers)), half


def over_sets(sets: Sets) -> list[float]:
    """Return the mean over the three sets for each run."""
    runs = set.intersection(*(set(entry) for entry in sets.values()))
    return [float(np.mean([entry[run] for entry in sets.values()])) for run in sorted(runs)]


def write_tables(rows: Sequence[dict[str, str]], folder: Path) -> None:
    """Write summary, gain, dimensions and smallest as CSV, and the figure."""
    accuracies = group_rows(rows)
    names = ("encoder", "setting", "meets", "epsilon", "set")
    summary = [
        (*key, name, len(runs), *_digits(interval(runs[run] for run in sorted(runs))))
        for key, sets in accuracies.items()
        for name, runs in sets.items()
    ]
    dimensions = {
        (row["encoder"], row["setting"], row["meets"], float(row["epsilon"]), row["set"]): row["dimension"]
        for row in rows
        if row["setting"] in ("principal", "supervised")
    }
    smallest_head = ("encoder", "level", "set", "accuracy_wanted", "accuracy_without_noise", "epsilon")
    for file, head, lines in (
        ("summary", (*names, "runs", "mean", "half_interval"), summary),
        ("gain", (*names, "mean_gain", "half_interval"), _gains(accuracies)),
        ("dimensions", (*names, "dimension"), [(*key, dimension) for key, dimension in sorted(dimensions.items())]),
        ("smallest", smallest_head, _smallest_epsilons(accuracies)),
    ):
        with (folder / f"{file}.csv").open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerows([head, *lines])
    draw(accuracies, folder.parent if folder.name == "results" else folder)


def _digits(values: Iterable[float]) -> list[str]:
    return [f"{value:.2f}" for value in values]


def _gains(accuracies: Accuracies) -> list[tuple[Any, ...]]:
    """Return the gain of private training over the public sets alone, on the same splits."""
    lines: list[tuple[Any, ...]] = []
    for (encoder, setting, tested, epsilon), sets in accuracies.items():
        is_clean = tested == "clean"
        control = (encoder, "public alone", "clean" if is_clean else "one bit", "0" if is_clean else epsilon)
        if setting in ("public alone", "majority") or control not in accuracies:
            continue
        for name, runs in sets.items():
            gains = [runs[run] - accuracies[control][name][run] for run in sorted(runs)]
            lines.append((encoder, setting, tested, epsilon, name, *_digits(interval(gains))))
    return lines


def _smallest_epsilons(accuracies: Accuracies) -> list[tuple[str, ...]]:
    """Return the epsilon at which one bit of the public model reaches OME's level, as measured before and here.

    A decision that is right with probability A and kept with p = e^epsilon / (1 + e^epsilon) is right with
    1/2 + (A - 1/2) tanh(epsilon / 2), solved for epsilon; A is the mean over the splits.
    """
    measured = next((sets for key, sets in accuracies.items() if key[1] == "OME as published"), None)
    lines: list[tuple[str, ...]] = []
    for encoder in ("glove", "minilm"):
        right = accuracies.get((encoder, "public alone", "one bit", "64"))
        if right is None or measured is None:
            continue
        for name in right:
            best = interval(right[name].values())[0]
            levels = {"measured before": LEVEL[name], "measured here": interval(measured[name].values())[0]}
            for level, target in levels.items():
                ratio = (target - 50) / (best - 50)
                epsilon = f"{2 * math.atanh(ratio):.2f}" if ratio < 1 else "inf"
                lines.append((encoder, level, name, f"{target:.1f}", f"{best:.1f}", epsilon))
    return lines


def draw(accuracies: Accuracies, folder: Path) -> None:
    figure, panels = new_figure(8.4, 5.2)
    axes = panels[0][0]
    for *setting, label in LINES:
        for key, sets in accuracies.items():
            if list(key[:3]) == setting:
                level = interval(over_sets(sets))[0]
                axes.axhline(level, color="0.7", linewidth=1.0, zorder=0)
                text = f"{label.replace('{epsilon}', f'{float(key[3]):,.0f}')}: {level:.1f}"
                axes.text(1.01, level, text, transform=axes.get_yaxis_transform(), fontsize=8, va="center")
    for *setting, label, color, line, marker in CURVES:
        keys = sorted((key for key in accuracies if list(key[:3]) == setting), key=lambda key: float(key[3]))
        points = [(float(key[3]), *interval(over_sets(accuracies[key]))) for key in keys]
        if points:
            style = {"color": color, "linestyle": line, "marker": marker, "markersize": 5, "linewidth": 1.4}
            axes.errorbar(*zip(*points, strict=True), label=label, capsize=2.5, **style)
    ticks = [1, 2, 4, 8, 16, 32, 64]
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, labels=[str(tick) for tick in ticks])
    axes.set_xlabel("true epsilon of each text (local, any two texts)")
    axes.set_ylabel("accuracy, per cent: mean of IMDb, Amazon and Yelp\n(bars: 95% over 20 splits)")
    axes.set_ylim(46, 92)
    axes.grid(visible=True, axis="x", color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    save_figure(figure, folder / "accuracy.png", svg=True, dpi=150)


HERE = Path(__file__).resolve().parent


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(
        "Accuracy at true epsilon on three sets of sentences.",
        HERE,
        arguments,
        encoders={"nargs": "+", "choices": ENCODERS, "default": ENCODERS},
        perceptron={"action": "store_true", "help": "the paper's classifier too (torch)"},
    )
    runs, epsilons = (2, (1.0, 16.0)) if options.quick else (RUNS, EPSILONS)
    rows = options.out / "accuracy.csv"
    if not options.report:
        sets = sentiment_labelled(options.data)
        for encoder in options.encoders:
            for task in _tasks(encoder, sets):
                _run(task, rows, runs, epsilons, with_perceptron=options.perceptron)
    write_tables(read_rows(rows), options.out)


def _tasks(encoder: str, sets: dict[str, LabelledTexts]) -> Iterator[Task]:
    vectors = encode_sets(encoder, sets)
    texts = {name: Texts(vectors[name], sets[name].labels) for name in sets}
    for name, private in texts.items():
        yield Task(encoder, name, private, tuple(entry for other, entry in texts.items() if other != name))


def encode_sets(encoder: str, sets: dict[str, LabelledTexts]) -> dict[str, np.ndarray]:
    every = [text for entry in sets.values() for text in entry.texts]
    ends = np.cumsum([len(entry.texts) for entry in sets.values()])[:-1]
    return dict(zip(sets, np.split(encode(encoder, every), ends), strict=True))


def _run(task: Task, path: Path, runs: int, epsilons: tuple[float, ...], *, with_perceptron: bool) -> None:
    """Append missing batches; a batch is appended as a whole."""
    done = {(row["encoder"], row["set"], row["run"], row["batch"]) for row in read_rows(path)} if path.is_file() else ()
    for run in range(runs):
        batches = {"baselines": partial(baselines, task, run)}
        if with_perceptron:
            batches["perceptron"] = partial(perceptron, task, run)
        for measure in (plain, projected, public_alone):
            batches |= {f"{measure.__name__} {epsilon:g}": partial(measure, task, run, epsilon) for epsilon in epsilons}
        for batch, rows in batches.items():
            if (task.encoder, task.name, str(run), batch) not in done:
                lines = [
                    (row.encoder, task.name, run, batch, row.setting, row.tested, *numbers)
                    for row in rows()
                    for numbers in [(f"{row.epsilon:g}", row.dimension, f"{row.accuracy:.4f}")]
                ]
                is_new = not path.is_file()
                with path.open("a", newline="", encoding="utf-8") as stream:
                    csv.writer(stream, lineterminator="\n").writerows([FIELDS, *lines] if is_new else lines)
        print(f"{task.encoder} {task.name}: run {run + 1} of {runs}", flush=True)


if __name__ == "__main__":
    run_command(main)
