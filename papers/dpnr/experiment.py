"""Noisy representations as a later study reproduced them (paper 004, DPNR), at their true price. See README.md.

Command: ``python -m papers.dpnr.experiment [--data ../shared/data] [--ag-news FILE] [--yelp FILE] [--quick]``

Every cell is a row of a file of ``results``, written when it is done: run it again to go on where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from papers.dpnr.corpus import prepare, read
from papers.dpnr.report import write_report
from papers.dpnr.servers import DROPOUT_AT, SCHEDULES, measure, measure_as_printed, measure_both
from papers.dpnr.sets import AS_LARGE, IMDB, PRINTED_AS, SETS, Sources
from papers.reports import parse_options
from papers.sweeps import sweep

HERE = Path(__file__).resolve().parent
PARTS = ("study", "printed", "dropout", "scalar", "ours", "epochs")


@dataclass(frozen=True)
class Plan:
    """How much is done."""

    epsilons: tuple[float, ...] = (0.05, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)  # claimed, of servers and users
    mus: tuple[float, ...] = (0.1, 0.3, 0.5, 0.8)
    dimensions: tuple[int, ...] = (32, 64)
    runs: tuple[int, ...] = (1, 2, 3, 4, 5)
    epochs: int = 5
    more_epochs: tuple[int, ...] = (5, 20, 50)
    more_epochs_of_reviews: tuple[int, ...] = (5, 20)  # each takes seven times as long
    robust_at: tuple[float, ...] = (1.0, 3.0, 5.0)  # in the part about epochs
    our_epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # true
    ours: tuple[tuple[str, int], ...] = (("PrivUnit", 8), ("PrivUnit", 32), ("L2Laplace", 8), ("Gaussian", 8))
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
    our_epsilons=(4.0, 16.0),
    ours=(("PrivUnit", 8), ("L2Laplace", 8), ("Gaussian", 8)),
    train_rows=1_000,
    test_rows=500,
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if not options.report:
        plan = QUICK if options.quick else Plan()
        plan = replace(plan, runs=plan.runs[: options.runs])
        for part in options.parts:
            for name in options.sets:
                Run(plan, name, options).part(part)
    write_report(options.out, readme=options.readme)
    print(f"{options.out / 'tables.md'}, {options.out / 'figure.png'}")


class Run:
    """The parts of the experiment on one data set."""

    def __init__(self, plan: Plan, name: str, options: argparse.Namespace) -> None:
        self.plan, self.name, self.options = plan, name, options
        source = partial(options.sources.read, name, least=plan.train_rows if name == AS_LARGE else 0)
        work = options.out / "work"
        self.file = prepare(name, source, work, train_rows=plan.train_rows, test_rows=plan.test_rows)
        corpus = read(self.file)
        self.is_as_large = corpus.times(plan.train_rows) == 1
        self.constants = {
            "texts": corpus.digest,
            "trained": len(corpus.train),
            "tested": len(corpus.test),
            "classes": corpus.classes,
            "majority": corpus.majority,
        }

    def part(self, name: str) -> None:
        """A part of the experiment; what the study's texts are trained on twice for is one with its rows otherwise."""
        is_printed = self.name in PRINTED_AS
        if name == "printed" and (not is_printed or self.is_as_large):
            return
        parts = {"study": self.study, "printed": self.as_printed, "dropout": self.dropout, "scalar": self.scalar}
        settings = (parts | {"ours": self.ours, "epochs": self.epochs})[name]()
        name = "study" if name == "scalar" else name  # one file: all is measured alike
        users = self.plan.our_epsilons if name == "ours" else self.plan.epsilons
        mus = self.plan.mus if name in ("study", "printed", "dropout") else ()
        cell: Any = partial(measure, file=self.file, users=users, mus=mus)
        if name == "printed" or (name == "study" and is_printed and self.is_as_large):
            function = measure_as_printed if name == "printed" else measure_both
            cell = partial(function, file=self.file, users=users, mus=mus, texts=self.plan.train_rows)
        sweep(
            cell,
            settings,
            self.plan.runs,
            path=self.options.out / f"{name} {self.name}.jsonl",
            name=f"dpnr {name}",
            constants=self.constants | {"users": repr(users), "mus": repr(mus)},
            processes=self.options.processes,
        )

    def study(self) -> list[dict[str, Any]]:
        """Figures 7 and 8: DPNR as printed."""
        return self._trainings("DPNR", self.plan.dimensions)

    def scalar(self) -> list[dict[str, Any]]:
        """The same with the one scalar of its authors' code."""
        return self._trainings("DPNR, one scalar", self.plan.dimensions[:1])

    def as_printed(self) -> list[dict[str, Any]]:
        """Figures 7 and 8 once more, as near to how the study seems to have done it as can be."""
        return self._trainings("DPNR", self.plan.dimensions)

    def _trainings(self, mechanism: str, dimensions: Sequence[int]) -> list[dict[str, Any]]:
        result = []
        for dimension in dimensions:
            result += [self._server(mechanism, dimension, "plain"), self._server(mechanism, dimension, "adaptive")]
            result += [self._server(mechanism, dimension, "robust", epsilon) for epsilon in self.plan.epsilons]
        return result

    def dropout(self) -> list[dict[str, Any]]:
        """What the study suggests: servers that mask words while they train, as their users do at `DROPOUT_AT`."""
        result = []
        for dimension in self.plan.dimensions:
            for mu in self.plan.mus:
                server = partial(self._server, "DPNR", dimension)
                servers = [server("plain"), server("robust", DROPOUT_AT), server("adaptive")]
                result += [entry | {"word_dropout": mu} for entry in servers]
        return result

    def ours(self) -> list[dict[str, Any]]:
        """Mechanisms with a proof, robust at the users' epsilon, and plain."""
        result = []
        for mechanism, dimension in self.plan.ours:
            result.append(self._server(mechanism, dimension, "plain"))
            result += [self._server(mechanism, dimension, "robust", epsilon) for epsilon in self.plan.our_epsilons]
        return result

    def epochs(self) -> list[dict[str, Any]]:
        """What its authors propose to look at: more epochs, other schedules; in the larger of their dimensions.

        A server that is one of `study` is not trained again: the table takes its row from there.
        """
        plan, result = self.plan, []
        for epochs in plan.more_epochs_of_reviews if self.name == IMDB else plan.more_epochs:
            server = partial(self._server, "DPNR", max(plan.dimensions), epochs=epochs)
            result += [server("plain"), *(server("robust", epsilon) for epsilon in plan.robust_at)]
            result += [server("adaptive", schedule=schedule) for schedule in SCHEDULES]
        there = self._trainings("DPNR", plan.dimensions)
        return [entry for entry in result if entry not in there]

    def _server(
        self,
        mechanism: str,
        dimension: int,
        training: str,
        epsilon: float | None = None,
        *,
        epochs: int | None = None,
        schedule: str | None = None,
    ) -> dict[str, Any]:
        if training == "adaptive" and schedule is None:
            schedule = "noise-rises-10/n"
        return {
            "mechanism": mechanism,
            "dimension": dimension,
            "training": training,
            "epsilon": epsilon,
            "epochs": epochs or self.plan.epochs,
            "schedule": schedule,
        }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Noisy representations: what they are good for at their true price.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of ag_news/ and imdb_acl/")
    parser.add_argument("--ag-news", type=Path, help="AG News' train.csv: class, title, description")
    parser.add_argument("--yelp", type=Path, help="Yelp polarity's train.csv: class, review; test.csv beside it")
    parser.add_argument("--hub", action="store_true", help="whole sets from the Hugging Face hub in place of files")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=None)
    parser.add_argument("--quick", action="store_true", help="few rows, two runs: does it run?")
    parser.add_argument("--report", action="store_true", help="tables and figure from the rows that are there")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--runs", type=int, default=None, help="the first so many of five runs: others add to them")
    parser.add_argument("--processes", type=int, default=1)
    options = parse_options(parser, arguments, HERE)
    options.sources = Sources(options.data, ag_news=options.ag_news, yelp=options.yelp, hub=options.hub)
    options.sets = options.sets or options.sources.there
    if missing := options.sources.missing(options.sets):
        parser.error(f"nothing is named to read {', '.join(missing)} from: --ag-news, --yelp or --hub does")
    return options


if __name__ == "__main__":
    main()
