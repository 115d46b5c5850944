"""Paper 001 on blogs: table 1's rows, the defences beside them, and ours at a true epsilon. See README.md.

Command: ``python -m papers.dptext.experiment [--data ../shared/data] [--quick] [--report]``

Every cell is a row of a file of ``results``, written when it is done: run it again to go on where it stopped. No post
and no number of a blogger is printed or kept there.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from papers.blogs import bloggers
from papers.blogs_posts import TASKS, posts_for
from papers.dptext import methods
from papers.dptext.cells import REFERENCE, SMALLEST_GROUP, Setting, measure, run_cells, split
from papers.dptext.report import write_report
from papers.dptext.stored import ENCODERS, GLOVE, stored_vectors
from papers.reports import parse_options

from dptext.attacks.base import ATTACKERS, Attacker

HERE = Path(__file__).resolve().parent
SEED = 1


@dataclass(frozen=True)
class Plan:
    """How much is done."""

    tasks: tuple[str, ...] = TASKS
    encoders: tuple[str, ...] = ENCODERS
    names: tuple[str, ...] = methods.MOST_TELLING
    epsilons: tuple[float, ...] = (16.0, 8.0, 32.0, 4.0)  # of ours
    alphas: tuple[float, ...] = (0.0, 0.3, 3.0, 10.0)  # of ADV-ALL and ours, beside 1
    every: int = 1  # bloggers: one in so many
    most: int = 6  # posts of one blogger
    smallest_label: int = 100  # bloggers
    smallest_topic: int = 50
    smallest_group: int = SMALLEST_GROUP
    passes: int = 10  # of the topic model
    folds: int = 3
    resamples: int = 1000
    attackers: tuple[Attacker, ...] = ATTACKERS


QUICK = Plan(
    tasks=TASKS[:1],
    encoders=(GLOVE,),
    names=(methods.ORIGINAL, methods.ADV_ALL, methods.PRINTED, methods.OURS),
    epsilons=(methods.MAIN,),
    alphas=(),
    smallest_topic=30,
    smallest_group=5,
    most=3,
    passes=2,
    folds=3,
    resamples=100,
    attackers=("linear",),
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if not options.report:
        run(_plan(options), options)
    write_report(options.out, readme=options.readme)
    print(f"{options.out / 'page.html'}, {options.out / 'tables.md'}, {options.out / 'curves.png'}")


def run(plan: Plan, options: argparse.Namespace) -> None:
    """All cells of all tasks and encoders that are asked for."""
    people = list(bloggers(options.data))[:: plan.every]
    options.out.mkdir(parents=True, exist_ok=True)
    for task in plan.tasks:
        smallest = plan.smallest_topic if task == TASKS[0] else plan.smallest_label
        posts = posts_for(task, people, most=plan.most, smallest=smallest, passes=plan.passes, work=options.work)
        public = [entry for entry, _, _ in split(posts, plan.folds, SEED)]
        for encoder in plan.encoders:
            setting = Setting(
                f"{encoder} {posts.digest}",
                posts,
                stored_vectors(encoder, posts, options.work, public, seed=SEED),
                folds=plan.folds,
                resamples=plan.resamples,
                attackers=plan.attackers,
                smallest_group=plan.smallest_group,
            )
            run_cells(
                measure,
                cells(plan),
                [SEED],
                setting=setting,
                name=f"{task}, {encoder}",
                encoder=encoder,
                options=options,
            )


def cells(plan: Plan) -> list[dict[str, Any]]:
    """The rows of the table, the most telling ones first; then the curves."""
    return list({repr(cell): cell for cell in _cells(plan)}.values())


def _cells(plan: Plan) -> Iterator[dict[str, Any]]:
    def cell(name: str, epsilon: float | None = None, alpha: float | None = None) -> dict[str, Any]:
        trained = methods.NAMES[name].trained is not None
        return {"method": name, "epsilon": epsilon, "alpha": alpha if alpha is not None or not trained else 1.0}

    yield dict(REFERENCE)
    if methods.OURS in plan.names:
        yield from (cell(methods.OURS, epsilon) for epsilon in plan.epsilons)
    for name in plan.names:
        if name == methods.PRINTED:
            yield cell(name, methods.CAP)
        elif name == methods.DIFPRIV:
            yield from (cell(name, epsilon) for epsilon in (methods.CAP, methods.MAIN))
        elif name == methods.DECISION:
            yield from (cell(name, epsilon) for epsilon in plan.epsilons)
        elif name not in (methods.OURS, methods.ADV_ALL):
            yield cell(name, None if methods.NAMES[name].noise is None else methods.MAIN)
    for alpha in plan.alphas:
        yield cell(methods.ADV_ALL, None, alpha)
        if methods.OURS in plan.names:
            yield cell(methods.OURS, methods.MAIN, alpha)


def _plan(options: argparse.Namespace) -> Plan:
    if options.quick:
        return QUICK
    return Plan(tasks=tuple(options.tasks or TASKS), encoders=tuple(options.encoders or ENCODERS), folds=options.folds)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Representations of blogs that keep a task and hide attributes.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of blog_authorship/")
    parser.add_argument("--quick", action="store_true", help="3 folds, few methods, one attacker: does it run?")
    parser.add_argument("--report", action="store_true", help="tables, curves and page from the rows that are there")
    parser.add_argument("--first", type=int, default=None, help="so many rows of each table; the others another time")
    parser.add_argument("--folds", type=int, default=Plan.folds)
    parser.add_argument("--tasks", nargs="*", choices=TASKS)
    parser.add_argument("--encoders", nargs="*", choices=ENCODERS)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--work", type=Path, default=HERE / "work", help="stored vectors of posts; not kept by git")
    return parse_options(parser, arguments, HERE)


if __name__ == "__main__":
    main()
