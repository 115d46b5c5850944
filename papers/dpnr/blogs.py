"""Paper 004 on blogs: the rows of its figures 4 and 5, the attribute attack, and the fairness table. See README.md.

Command: ``python -m papers.dpnr.blogs [--data ../shared/data] [--quick] [--report]``

Every cell is a row of a file of ``results``, written when it is done: run it again to go on where it stopped. No post
and no number of a blogger is printed or kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from papers.blogs import bloggers
from papers.blogs_posts import TASKS, posts_for
from papers.dpnr.blogs_cells import AS_SENT, DPNR, NARROW, NONE, OURS, SCALAR, SMALLEST_GROUP, Device, measure
from papers.dpnr.blogs_report import write_report
from papers.reports import parse_options
from papers.sweeps import sweep

from dptext import load_vectors

HERE = Path(__file__).resolve().parent
VECTORS, WORDS = "glove-6b-50d", 50_000
DROPOUT_AT = 1.0  # the epsilon at which figure 5 varies mu


@dataclass(frozen=True)
class Plan:
    """How much is done."""

    tasks: tuple[str, ...] = TASKS
    epsilons: tuple[float, ...] = (0.05, 0.1, 0.5, 1.0, 5.0)  # claimed
    mus: tuple[float, ...] = (0.1, 0.3, 0.5, 0.8)
    our_epsilons: tuple[float, ...] = (1.0, 4.0, 16.0, 50.0)  # true
    ours: tuple[str, ...] = OURS
    every: int = 1  # bloggers: one in so many
    most: int = 6  # posts of one blogger
    smallest_label: int = 100  # bloggers
    smallest_topic: int = 50
    smallest_group: int = SMALLEST_GROUP
    passes: int = 10  # of the topic model
    folds: int = 5


QUICK = Plan(
    tasks=TASKS[:2],
    epsilons=(1.0,),
    mus=(0.5,),
    our_epsilons=(16.0,),
    ours=("PrivUnit",),
    every=8,
    most=2,
    smallest_label=10,
    smallest_topic=5,
    smallest_group=5,
    passes=2,
    folds=2,
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if not options.report:
        run(QUICK if options.quick else Plan(), options)
    write_report(options.out, readme=options.readme)
    print(f"{options.out / 'blogs.md'}, {options.out / 'blogs.png'}")


def run(plan: Plan, options: argparse.Namespace) -> None:
    """All cells of all tasks that are asked for."""
    people = list(bloggers(options.data))[:: plan.every]
    device = Device(
        load_vectors(VECTORS, limit=WORDS),
        smallest_group=plan.smallest_group,
        folds=plan.folds,
    )
    options.out.mkdir(parents=True, exist_ok=True)
    for task in plan.tasks:
        posts = posts_for(
            task,
            people,
            most=plan.most,
            smallest=plan.smallest_topic if task == TASKS[0] else plan.smallest_label,
            passes=plan.passes,
        )
        sweep(
            partial(measure, device=device, posts=posts),
            cells(plan, task),
            [1],
            path=options.out / f"blogs {task}.jsonl",
            name=f"dpnr blogs, {task}",
            constants={"vectors": device.vectors.fingerprint, "width": device.vectors.dimension}
            | {"folds": plan.folds}
            | posts.facts,
            packages=("scikit-learn",),
            processes=options.processes,
        )


def cells(plan: Plan, task: str) -> list[dict[str, Any]]:
    """No noise; figure 4 with both noises; figure 5 with both; mechanisms with a proof.

    What is undone does not hang on epsilon: where there is nothing printed to stand beside, its two ends are enough.
    """
    ends = plan.epsilons if task == TASKS[0] else tuple(dict.fromkeys((plan.epsilons[0], plan.epsilons[-1])))
    result = [_cell(NONE), _cell(NARROW)]
    result += [_cell(DPNR, epsilon) for epsilon in plan.epsilons]
    result += [_cell(name, epsilon) for name in (SCALAR, AS_SENT) for epsilon in ends]
    result += [_cell(name, DROPOUT_AT, mu) for mu in plan.mus for name in (DPNR, SCALAR)]
    return result + [_cell(name, epsilon) for name in plan.ours for epsilon in plan.our_epsilons]


def _cell(mechanism: str, epsilon: float | None = None, mu: float = 0.0) -> dict[str, Any]:
    return {"mechanism": mechanism, "epsilon": epsilon, "mu": mu}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Noisy representations of blogs: what attackers and groups see.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of blog_authorship/")
    parser.add_argument("--quick", action="store_true", help="few bloggers and mechanisms: does it run?")
    parser.add_argument("--report", action="store_true", help="tables and figure from the rows that are there")
    parser.add_argument("--processes", type=int, default=1)
    return parse_options(parser, arguments, HERE)


if __name__ == "__main__":
    main()
