"""The DPText paper on blogs: the rows of table 1, other defences, and sound noise at a true epsilon. See README.md.

Command: ``python -m papers.dptext.experiment [--data FOLDER] [--quick] [--report]``. No post and no number of a blogger
is printed or stored in a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from papers.blogs import TASKS, TOPIC, bloggers, posts_for
from papers.dptext import methods
from papers.dptext.cells import REFERENCE, measure, run_cells
from papers.dptext.report import write_report
from papers.dptext.stored import ENCODERS, GLOVE
from papers.reports import parse_options

from dptext.attacks.base import ATTACKERS, Attacker

HERE = Path(__file__).resolve().parent
SEED = 1
_OF_TABLE_1_ONLY = (methods.LEARNT_PRINTED, methods.LEARNT_L2, *methods.PRINTED_LAMBDA.values())


@dataclass(frozen=True)
class Plan:
    """Size of the experiment."""

    tasks: tuple[str, ...] = TASKS
    names: tuple[str, ...] = tuple(name for name in methods.NAMES if name not in _OF_TABLE_1_ONLY)
    epsilons: tuple[float, ...] = (16.0, 8.0, 32.0, 4.0)  # of ours
    alphas: tuple[float, ...] = (0.0, 0.3, 3.0, 10.0)  # of ADV-ALL and ours, in addition to 1
    max_posts: int = 6  # of one blogger
    min_bloggers: int = 100  # of a label
    min_bloggers_of_topic: int = 50
    smallest_group: int = 30  # bloggers
    passes: int = 10  # of the topic model
    folds: int = 3
    resamples: int = 1000
    attackers: tuple[Attacker, ...] = ATTACKERS


QUICK = Plan(
    tasks=TASKS[:1],
    names=(methods.ORIGINAL, methods.ADV_ALL, methods.PRINTED, methods.OURS),
    epsilons=(methods.MAIN,),
    alphas=(),
    min_bloggers_of_topic=30,
    smallest_group=5,
    max_posts=3,
    passes=2,
    resamples=100,
    attackers=("linear",),
)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(
        "Representations of blogs that keep a task and hide attributes.",
        HERE,
        arguments,
        folds={"type": int, "default": Plan.folds},
        encoders={"nargs": "*", "choices": ENCODERS, "help": "kinds of stored vectors"},
    )
    if not options.report:
        plan = QUICK if options.quick else replace(Plan(), folds=options.folds)
        people = list(bloggers(options.data))
        for task in plan.tasks:
            smallest = plan.min_bloggers_of_topic if task == TOPIC else plan.min_bloggers
            posts = posts_for(task, people, max_posts=plan.max_posts, min_bloggers=smallest, passes=plan.passes)
            for encoder in options.encoders or (ENCODERS if not options.quick else (GLOVE,)):
                run_cells(
                    measure,
                    settings_of(plan),
                    posts,
                    seed=SEED,
                    encoder=encoder,
                    options=options,
                    folds=plan.folds,
                    resamples=plan.resamples,
                    attackers=plan.attackers,
                    smallest_group=plan.smallest_group,
                )
    write_report(options.out, readme=options.readme)


def settings_of(plan: Plan) -> list[dict[str, Any]]:
    """Return the rows of the table, then those of other weights."""
    return list({repr(cell): cell for cell in _settings(plan)}.values())


def _settings(plan: Plan) -> Iterator[dict[str, Any]]:
    cell = methods.settings_of_method
    yield dict(REFERENCE)
    for name in plan.names:
        noise = methods.NAMES[name].noise
        if name in (methods.OURS, methods.DECISION):
            yield from (cell(name, epsilon) for epsilon in plan.epsilons)
        elif name == methods.PRINTED:
            yield cell(name, methods.CAP)
        elif name == methods.DIFPRIV:
            yield from (cell(name, epsilon) for epsilon in (methods.CAP, methods.MAIN))
        else:
            yield cell(name, None if noise is None else methods.MAIN)
    for alpha in plan.alphas:
        yield cell(methods.ADV_ALL, None, alpha)
        if methods.OURS in plan.names:
            yield cell(methods.OURS, methods.MAIN, alpha)


if __name__ == "__main__":
    main()
