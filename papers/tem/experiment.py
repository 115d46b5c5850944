"""TEM and Madlib on the IMDb reviews (paper 2107.07928, section 5 and appendix C): see README.md.

Command: ``python -m papers.tem.experiment [--quick] [--data ../shared/data] [--processes 2]``

Every cell is a row of ``results.csv``, written when it is done: run it again to go on where it stopped.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from papers.imdb import reviews
from papers.reports import parse_options
from papers.tem.cells import NONE, Cell, Settings, Trial, prepared_trial, run_cell
from papers.tem.corpus import Corpus, read_corpus
from papers.tem.report import write_report

from dptext import Madlib, WordVectors, calibrate, deniability, load_vectors
from dptext.errors import ParameterError
from dptext.threads import use_cores

HERE = Path(__file__).resolve().parent
EPSILONS = (1.0, 2.0, 3.0, 4.0, 6.0, 10.0)
ADAPTIVE = ("TEM", 4.0)
LEAST_KEPT = 0.003  # where fewer words stay nothing is left to match


@dataclass(frozen=True)
class Run:
    """Everything that decides the numbers of a run; it stands in each row."""

    vectors: str
    limit: int | None
    settings: Settings

    def columns(self, vectors: WordVectors) -> dict[str, Any]:
        shared = asdict(self.settings)
        base_seed = shared.pop("seed")
        shape = {"words": len(vectors), "dimension": vectors.dimension}
        return {"vectors_sha256": vectors.fingerprint, **shape, **shared, "base_seed": base_seed}


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    run = Run(options.vectors, options.limit, Settings(options.reviews, options.shadows, options.epochs))
    vectors = load_vectors(run.vectors, limit=run.limit)
    if not options.report:
        corpus = read_corpus(reviews(options.data), vectors)
        run_all(run, corpus, vectors, options)
    write_report(options.out / "results.csv", options.out, readme=options.readme)
    print(f"{options.out / 'table.md'}, {options.out / 'figure.png'}")


def run_all(run: Run, corpus: Corpus, vectors: WordVectors, options: argparse.Namespace) -> None:
    """All cells that the file does not hold yet, on some processes."""
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "results.csv"
    shared = run.columns(vectors)
    done = _done(file, shared)
    cells = [entry for entry in plan(options, corpus, vectors) if entry.key not in done]
    trials = sorted({cell.trial for cell in cells})
    start = time.perf_counter()
    with _workers(options.processes, corpus, run, options.out / "work") as (each_of, as_done):
        for place, _ in enumerate(each_of(_prepare, trials), 1):
            print(f"trial {place} of {len(trials)} prepared, {time.perf_counter() - start:.0f} s", flush=True)
        for place, result in enumerate(as_done(_run, cells), 1):
            row = shared | result
            _append(file, row)
            text = f"{row['mechanism']} {row['epsilon']} trial {row['trial']}: accuracy {row['accuracy']:.3f}"
            print(f"{place} of {len(cells)}, {time.perf_counter() - start:.0f} s: {text}", flush=True)


def plan(options: argparse.Namespace, corpus: Corpus, vectors: WordVectors) -> Iterator[Cell]:
    """All cells, a trial after the other, so that a run that is cut short has whole trials."""
    matched = dict(matched_epsilons(corpus, vectors, options.epsilons)) if options.matched else {}
    for trial in range(options.trials):
        yield Cell(trial, NONE, 0.0, "epsilon")
        for epsilon in options.epsilons:
            yield Cell(trial, "Madlib", epsilon, "epsilon")
            yield Cell(trial, "TEM", epsilon, "epsilon", adaptive=not options.quick and ("TEM", epsilon) == ADAPTIVE)
        for beside, epsilon in matched.items():
            yield Cell(trial, "TEM", epsilon, "keep", beside=beside)


def matched_epsilons(corpus: Corpus, vectors: WordVectors, epsilons: Sequence[float]) -> Iterator[tuple[float, float]]:
    """(Madlib's epsilon, TEM's at which as many words stay), by the frequencies of these reviews.

    The frequencies are those of a public collection and choose what is compared; nothing private is released.
    """
    weights = corpus.frequencies(len(vectors))
    for epsilon in epsilons:
        kept = deniability(Madlib(vectors, epsilon=epsilon), weights=weights, seed=1).mean("keep")
        if kept < LEAST_KEPT:
            continue
        try:
            calibration = calibrate(vectors, "tem", keep_rate=kept, weights=weights, seed=1)
        except ParameterError:
            continue  # so many words stay that TEM cannot: words on one point
        yield epsilon, calibration.epsilon


# -- processes -------------------------------------------------------------------------------------------------

_shared: dict[str, Any] = {}


@contextmanager
def _workers(processes: int, corpus: Corpus, run: Run, work: Path) -> Iterator[tuple[Any, Any]]:
    """(results in order, results as they come) of a function over a list: here, or in processes of one core each."""
    if processes == 1:
        _shared.update(corpus=corpus, run=run, work=work, vectors=load_vectors(run.vectors, limit=run.limit))
        yield map, map
        return
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of the processes that start now
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(corpus, run, work)) as pool:

        def as_done(work_on: Any, items: Sequence[Any]) -> Iterator[Any]:
            return (entry.result() for entry in as_completed([pool.submit(work_on, item) for item in items]))

        yield pool.map, as_done


def _begin(corpus: Corpus, run: Run, work: Path) -> None:
    use_cores(1)
    vectors = load_vectors(run.vectors, limit=run.limit)
    _shared.update(corpus=corpus, run=run, work=work, vectors=vectors)


def _prepare(number: int) -> None:
    _trial(number)


def _trial(number: int) -> Trial:
    return prepared_trial(
        number, _shared["corpus"], _shared["vectors"], _shared["run"].settings, folder=_shared["work"]
    )


def _run(cell: Cell) -> dict[str, Any]:
    return run_cell(cell, _trial(cell.trial), _shared["corpus"], _shared["vectors"], _shared["run"].settings)


# -- the file --------------------------------------------------------------------------------------------------


def _done(file: Path, shared: dict[str, Any]) -> set[tuple[int, str, str, str]]:
    if not file.exists():
        return set()
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        if any(row[name] != _text(value) for name, value in shared.items()):
            raise ParameterError(f"{str(file)!r} holds a run with other settings: give another folder with --out")
    return {(int(row["trial"]), row["mechanism"], row["epsilon"], row["arm"]) for row in rows}


def _append(file: Path, row: dict[str, Any]) -> None:
    names = _columns(row)
    new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow({name: _text(row.get(name, "")) for name in names})


def _columns(row: dict[str, Any]) -> list[str]:
    """The same for all rows: what only some cells have stands last."""
    adaptive = [f"adaptive_{entry}" for entry in ("auc", "accuracy", "tpr_1", "tpr_01")]
    return [name for name in row if name not in adaptive] + adaptive


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="TEM and Madlib on the IMDb reviews.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the archive")
    parser.add_argument(
        "--quick", action="store_true", help="500 reviews a quarter, 2 trials, 2 epsilons: does it run?"
    )
    parser.add_argument("--report", action="store_true", help="table and figure from the rows that are there")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--vectors", default="glove-6b-50d", help="a known name, or a path")
    parser.add_argument("--limit", type=int, default=None, help="words; 20,000 unless vectors are given")
    parser.add_argument("--epsilons", type=float, nargs="+", default=None)
    parser.add_argument("--trials", type=int, default=None, help="5; quick: 2")
    parser.add_argument("--reviews", type=int, default=None, help="a quarter; all: 12,500")
    parser.add_argument("--shadows", type=int, default=None, help="of the likelihood-ratio attack; even, or 0")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--no-matched", dest="matched", action="store_false", help="without equal keep rates")
    options = parse_options(parser, arguments, HERE)
    quick: dict[str, Any] = {"epsilons": (4.0, 10.0), "trials": 2, "reviews": 500, "shadows": 4}
    full: dict[str, Any] = {"epsilons": EPSILONS, "trials": 5, "reviews": None, "shadows": 16}
    for name, value in (quick if options.quick else full).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    if options.limit is None and options.vectors == "glove-6b-50d":
        options.limit = 20_000
    return options


if __name__ == "__main__":
    main()
