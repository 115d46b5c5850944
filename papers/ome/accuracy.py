"""Accuracy at true epsilon on Sentiment Labelled Sentences: rows, tables and the figure.

Command: ``python -m papers.ome.accuracy [--data FOLDER] [--encoders glove] [--perceptron] [--quick] [--report]``
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

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
from papers.ome.tables import FIELDS, read_rows, write_tables
from papers.reports import parse_options

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
    main()
