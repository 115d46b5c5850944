"""Accuracy at true epsilon on Sentiment Labelled Sentences: rows as they come, then the table and the figure.

python -m papers.ome.accuracy                 # from the root of the repository; what is done is not done again
python -m papers.ome.accuracy --tables-only   # the tables and the figure from results/accuracy.csv
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from papers.data_sets import LabelledTexts, data_folder, sentiment_labelled
from papers.ome.settings import EPSILONS, RUNS, Row, Task, Texts, baselines, perceptron, plain, projected, public_alone
from papers.ome.tables import FIELDS, read, write_tables
from papers.ome.vectors import ENCODERS, encode

HERE = Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", help="folder that holds sentiment_labelled/ (default: ../shared/data)")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="where rows, tables and figure go")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "dptext-papers", help="for vectors")
    parser.add_argument("--encoders", nargs="+", choices=ENCODERS, default=ENCODERS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--quick", action="store_true", help="two runs, two epsilons, into a folder of their own")
    parser.add_argument("--perceptron", action="store_true", help="the paper's classifier too (torch; some minutes)")
    parser.add_argument("--tables-only", action="store_true")
    options = parser.parse_args()
    epsilons = EPSILONS
    if options.quick:
        options.runs, epsilons, options.results = 2, (1.0, 16.0), options.cache / "quick"
    options.results.mkdir(parents=True, exist_ok=True)
    rows = options.results / "accuracy.csv"
    if not options.tables_only:
        sets = sentiment_labelled(data_folder(options.data))
        for encoder in options.encoders:
            for task in _tasks(encoder, sets, options.cache):
                _run(task, rows, options.runs, epsilons, with_perceptron=options.perceptron)
    write_tables(read(rows), options.results)


def _tasks(encoder: str, sets: dict[str, LabelledTexts], cache: Path) -> Iterable[Task]:
    every = [text for entry in sets.values() for text in entry.texts]
    parts = np.split(encode(encoder, every, cache), np.cumsum([len(entry.texts) for entry in sets.values()])[:-1])
    known = {name: Texts(part, sets[name].labels) for name, part in zip(sets, parts, strict=True)}
    for name in known:
        yield Task(encoder, name, known[name], tuple(texts for other, texts in known.items() if other != name))


def _run(task: Task, path: Path, runs: int, epsilons: tuple[float, ...], *, with_perceptron: bool) -> None:
    """Append what is missing, a batch at a time: a batch that is there is there as a whole."""
    done = {(row["encoder"], row["set"], row["run"], row["batch"]) for row in read(path)} if path.is_file() else set()
    for run in range(runs):
        batches = {"baselines": partial(baselines, task, run)}
        if with_perceptron:
            batches["perceptron"] = partial(perceptron, task, run)
        for make, epsilon in product((plain, projected, public_alone), epsilons):
            batches[f"{make.__name__} {epsilon:g}"] = partial(make, task, run, epsilon)
        for batch, rows in batches.items():
            if (task.encoder, task.name, str(run), batch) not in done:
                _append(path, task.name, run, batch, list(rows()))
        print(f"{task.encoder} {task.name}: run {run + 1} of {runs}", flush=True)


def _append(path: Path, name: str, run: int, batch: str, rows: list[Row]) -> None:
    fresh = not path.is_file()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if fresh:
            writer.writerow(FIELDS)
        writer.writerows(
            (
                row.encoder,
                name,
                run,
                batch,
                row.setting,
                row.meets,
                f"{row.epsilon:g}",
                row.dimension,
                f"{row.accuracy:.4f}",
            )
            for row in rows
        )


if __name__ == "__main__":
    main()
