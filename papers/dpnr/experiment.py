"""Noisy representations as a later study reproduced them (DPNR), at their true epsilon. See README.md.

Command: ``python -m papers.dpnr.experiment [--data FOLDER] [--ag-news FILE] [--yelp FILE] [--quick] [--report]``, or
``--data FILE`` for figures 4 to 8 on own texts; figure 6 and the attacks need ``--attribute``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from papers.data_sets import (
    FEWEST_AUTHORS,
    LabelledTexts,
    TrainAndTest,
    ag_news,
    from_hub,
    imdb_reviews,
    own_texts,
    yelp_polarity,
)
from papers.dpnr import blogs, blogs_report
from papers.dpnr.printed import AG_NEWS, AS_LARGE, IMDB, PRINTED_AS, YELP
from papers.dpnr.report import Rows, write_report
from papers.dpnr.servers import BOTH, DROPOUT_AT, REMOVED, REPLACED, SCHEDULES, Corpus, measure
from papers.printed import dpnr_tables, print_own
from papers.reports import parse_options, run_command
from papers.sweeps import sweep

from dptext import load_vectors
from dptext.errors import DataError
from dptext.evaluation.measures import make_folds

HERE = Path(__file__).resolve().parent
PARTS = ("study", "printed", "dropout", "scalar", "ours", "epochs")


@dataclass(frozen=True)
class Plan:
    epsilons: tuple[float, ...] = (0.05, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)  # claimed, of servers and users
    mus: tuple[float, ...] = (0.1, 0.3, 0.5, 0.8)
    dimensions: tuple[int, ...] = (32, 64)
    runs: tuple[int, ...] = (1, 2, 3, 4, 5)
    epochs: int = 5
    more_epochs: tuple[int, ...] = (5, 20, 50)
    more_epochs_of_reviews: tuple[int, ...] = (5, 20)  # one takes seven times as long
    robust_at: tuple[float, ...] = (1.0, 3.0, 5.0)  # in the part about epochs
    true_epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
    proved: tuple[tuple[str, int], ...] = (("PrivUnit", 8), ("PrivUnit", 32), ("L2Laplace", 8), ("Gaussian", 8))
    train_rows: int = 28_500  # the study's: 95 per cent of 30,000
    test_rows: int | None = None


QUICK = Plan(
    epsilons=(1.0, 4.0),
    mus=(0.3,),
    dimensions=(32,),
    runs=(1, 2),
    epochs=2,
    more_epochs=(2,),
    more_epochs_of_reviews=(2,),
    robust_at=(4.0,),
    true_epsilons=(4.0, 16.0),
    proved=(("PrivUnit", 8), ("L2Laplace", 8), ("Gaussian", 8)),
    train_rows=1_000,
    test_rows=500,
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(
        "Noisy representations: their utility at the true epsilon.",
        HERE,
        arguments,
        parts=PARTS,
        takes_file=True,
        sets={"nargs": "+", "help": "names of data sets"},
        ag_news={"type": Path, "help": "AG News' train.csv: class, title, description"},
        yelp={"type": Path, "help": "Yelp polarity's train.csv: class, review; test.csv is in the same folder"},
        hub={"action": "store_true", "help": "load whole sets from the Hugging Face hub"},
        runs={"type": int, "help": "only the first of five runs; later runs add to them"},
    )
    plan = QUICK if options.quick else Plan()
    plan = replace(plan, runs=plan.runs[: options.runs])
    if options.own:
        rows = {"epsilons": Plan.epsilons, "mus": Plan.mus, "dimensions": Plan.dimensions, "epochs": Plan.epochs}
        plan = replace(plan, runs=Plan.runs[: options.runs or 3], **rows)
        run_own(plan, options)
        return
    if not options.report:
        run(plan, options)
    write_report(options.out, readme=options.readme)


def run_own(plan: Plan, options: argparse.Namespace) -> None:
    """Measure the paper's rows and the study's on the user's own texts, and print them."""
    paper, study = f"blogs {options.own}", f"study {options.own}"
    if not options.report:
        posts = own_texts(options, rows=1_000 if options.quick else plan.train_rows)
        vectors = load_vectors(blogs.VECTORS, limit=blogs.WORDS)
        device = blogs.Device(vectors, FEWEST_AUTHORS, folds=2 if options.quick else 5)
        settings = blogs.settings_of(blogs.Plan(true_epsilons=(16.0,), proved=("PrivUnit",)), options.own)
        blogs.run_task(device, posts, settings, options.out / f"{paper}.jsonl")
        labels = np.unique(posts.labels, return_inverse=True)[1]
        fold = make_folds(labels, people=posts.people, seed=1)[0]
        texts = LabelledTexts(posts.texts, labels)
        parts = texts.take(fold.train), texts.take(fold.test)
        corpus = Corpus.of(parts, train_rows=plan.train_rows, test_rows=None).repeat(plan.train_rows)
        _run_part("study", options.own, corpus, plan, options.out)
    rows = blogs_report.Rows(options.out / f"{paper}.jsonl")
    print_own(options, dpnr_tables(options.own, rows, Rows(options.out / f"{study}.jsonl")))


def run(plan: Plan, options: argparse.Namespace) -> None:
    sources = sources_of(options)
    names = options.sets or [name for name in sources if name != AG_NEWS or AS_LARGE not in sources]
    if missing := [name for name in names if name not in sources]:
        raise DataError(f"there is no source of {', '.join(missing)}: name one with --ag-news, --yelp or --hub")
    for name in names:
        texts = sources[name]()
        if name == AS_LARGE and len(texts[0].texts) < plan.train_rows:
            raise DataError(
                f"expected {plan.train_rows:,} training texts of AG News that are not test texts, got "
                f"{len(texts[0].texts):,}: name the train.csv of its publishers, or leave out --ag-news"
            )
        corpus = Corpus.of(texts, train_rows=plan.train_rows, test_rows=plan.test_rows)
        for part in options.parts:
            _run_part(part, name, corpus, plan, options.out)


def sources_of(options: argparse.Namespace) -> dict[str, Callable[[], TrainAndTest]]:
    """Return the available sets by name; AG News has samples, and with ``train.csv`` the study's size."""
    if options.hub:
        return {name: partial(from_hub, PRINTED_AS.get(name, name)) for name in (AS_LARGE, YELP, IMDB)}
    sources: dict[str, Callable[[], TrainAndTest]] = {}
    if options.ag_news is not None or (options.data / "ag_news" / "train.csv").exists():
        sources[AS_LARGE] = partial(ag_news, options.data, options.ag_news)
    sources[AG_NEWS] = partial(ag_news, options.data)
    if options.yelp is not None:
        sources[YELP] = partial(yelp_polarity, options.yelp)
    return sources | {IMDB: partial(_imdb, options.data)}


def _imdb(data: Path) -> TrainAndTest:
    reviews = list(imdb_reviews(data))
    train, test = (
        LabelledTexts.of((review.text, review.label) for review in reviews if review.train is is_train)
        for is_train in (True, False)
    )
    return train, test


def _run_part(part: str, name: str, corpus: Corpus, plan: Plan, out: Path) -> None:
    """Measure a part on a set; in a set of the study's size, the study's servers have both kinds of masks."""
    is_as_large = corpus.repetitions(plan.train_rows) == 1
    if part == "printed" and (name not in PRINTED_AS or is_as_large):
        return
    masks, trained_on = REMOVED, corpus
    if part == "printed":
        masks, trained_on = REPLACED, corpus.repeat(plan.train_rows)
    elif part in ("study", "scalar") and name in PRINTED_AS and is_as_large:
        masks = BOTH
    file = "study" if part == "scalar" else part
    users = plan.true_epsilons if part == "ours" else plan.epsilons
    mus = plan.mus if file in ("study", "printed", "dropout") else ()
    sweep(
        partial(measure, corpus=trained_on, users=users, mus=mus, masks=masks),
        settings_of(part, name, plan),
        plan.runs,
        path=out / f"{file} {name}.jsonl",
        name=f"dpnr {file}",
        constants=corpus.facts | {"users": repr(users), "mus": repr(mus)},
    )


def settings_of(part: str, name: str, plan: Plan) -> list[dict[str, Any]]:
    """Return the servers of a part."""
    if part in ("study", "printed"):  # figures 7 and 8: DPNR as printed
        return _trainings(plan, "DPNR", plan.dimensions)
    if part == "scalar":  # the same with the one scalar of its authors' code
        return _trainings(plan, "DPNR, one scalar", plan.dimensions[:1])
    result = []
    if part == "dropout":  # the study suggests that servers mask words in training, as their users do
        for dimension in plan.dimensions:
            servers = [
                _server(plan, "DPNR", dimension, "plain"),
                _server(plan, "DPNR", dimension, "robust", epsilon=DROPOUT_AT),
                _server(plan, "DPNR", dimension, "adaptive"),
            ]
            result += [server | {"word_dropout": mu} for mu in plan.mus for server in servers]
        return result
    if part == "ours":  # mechanisms with a proof: plain, and robust at the users' epsilon
        for mechanism, dimension in plan.proved:
            result.append(_server(plan, mechanism, dimension, "plain"))
            result += [_server(plan, mechanism, dimension, "robust", epsilon=value) for value in plan.true_epsilons]
        return result
    for epochs in plan.more_epochs_of_reviews if name == IMDB else plan.more_epochs:  # proposed by its authors
        server = partial(_server, plan, "DPNR", max(plan.dimensions), epochs=epochs)
        result += [server("plain"), *(server("robust", epsilon=epsilon) for epsilon in plan.robust_at)]
        result += [server("adaptive", schedule=schedule) for schedule in SCHEDULES]
    study = _trainings(plan, "DPNR", plan.dimensions)  # the report takes their rows from the part `study`
    return [entry for entry in result if entry not in study]


def _trainings(plan: Plan, mechanism: str, dimensions: Sequence[int]) -> list[dict[str, Any]]:
    result = []
    for dimension in dimensions:
        result += [_server(plan, mechanism, dimension, "plain"), _server(plan, mechanism, dimension, "adaptive")]
        result += [_server(plan, mechanism, dimension, "robust", epsilon=epsilon) for epsilon in plan.epsilons]
    return result


def _server(
    plan: Plan,
    mechanism: str,
    dimension: int,
    training: str,
    *,
    epsilon: float | None = None,
    epochs: int | None = None,
    schedule: str | None = None,
) -> dict[str, Any]:
    return {
        "mechanism": mechanism,
        "dimension": dimension,
        "training": training,
        "epsilon": epsilon,
        "epochs": epochs or plan.epochs,
        "schedule": schedule or ("noise-rises-10/n" if training == "adaptive" else None),
    }


if __name__ == "__main__":
    run_command(main)
