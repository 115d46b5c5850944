"""Table 1 of paper 001 in ten folds, with three attributes, a budget that is learnt, and the paper's first claim.

Command: ``python -m papers.dptext.table1 [--data ../shared/data] [--trustpilot FILE] [--quick] [--report]``

On TrustPilot where a file of its reviews is given (`papers.dptext.trustpilot`); without one on posts of bloggers, where
*their industry stands in for the country* of a reviewer: an attribute of several classes. Every cell is a row of a file
of ``results``, written when it is done: run it again to go on where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from papers.blogs import bloggers
from papers.blogs_posts import TASKS, posts_for
from papers.dptext import methods
from papers.dptext.attributed import Attributed, with_industry
from papers.dptext.cells import REFERENCE, SMALLEST_GROUP, Setting, arrived_in, measure, split
from papers.dptext.first_claim import first_claim
from papers.dptext.stored import ENCODERS, GLOVE, stored_vectors
from papers.dptext.table1_report import NAME, write_table1
from papers.dptext.trustpilot import read_reviews
from papers.numbers_of import named
from papers.running import options_of, say

from dptext.attacks.learners import ATTACKERS
from dptext.estimates import mean_over_runs
from dptext.evaluation.sweep import sweep

__all__ = ["cell", "cells", "learnt", "main"]

HERE = Path(__file__).resolve().parent
SEED = 1
FOLDS = 10  # of the paper
SMALLEST_INDUSTRY = 25  # bloggers
ALPHAS = (0.0, 0.3, 3.0, 10.0)  # beside 1
LARGE_CAP = 500.0  # at which the published noise leaves something: of scale .26 in 64 dimensions
LOOKED_AT = (1, 10, 20, 30, 40)  # epochs


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if not options.report:
        run(options)
    write_table1(options.out, readme=None if options.quick else options.readme)
    print(f"{options.out / 'table1.md'}")


def run(options: argparse.Namespace) -> None:
    """All cells on all encoders that are asked for."""
    texts = _texts(options)
    options.out.mkdir(parents=True, exist_ok=True)
    folds, attackers = (3, ATTACKERS[:1]) if options.quick else (options.folds, ATTACKERS)
    public = [each for each, _, _ in split(texts, folds, SEED)]
    for encoder in options.encoders:
        setting = Setting(
            f"{encoder} {texts.digest}",
            texts,
            stored_vectors(encoder, texts, options.work, public, seed=SEED),
            folds=folds,
            resamples=100 if options.quick else 1000,
            attackers=attackers,
            smallest_group=options.smallest_group,
            work=options.work,
        )
        sweep(
            partial(cell, setting=setting),
            cells(quick=options.quick)[: options.first],
            [SEED],
            path=options.out / f"{NAME}, {texts.task}, {encoder}.jsonl",
            name=f"dptext, table 1, {texts.task}, {encoder}",
            constants={"encoder": encoder, "width": setting.stored[0].shape[1], "folds": folds}
            | {"resamples": setting.resamples, "attackers": ", ".join(attackers)}
            | texts.facts,
            packages=("scikit-learn", "torch"),
            not_compared=("setting",),
            processes=options.processes,
            progress=say,
            stop_at_error=True,
        )


def cell(settings: Mapping[str, Any], seed: int, *, setting: Setting) -> dict[str, float]:
    """Task and attributes as in the other tables, the first claim, and the budget where it is learnt."""
    numbers = measure(settings, seed, setting=setting)
    return numbers | first_claim(settings, seed, setting=setting) | learnt(settings, seed, setting=setting)


def learnt(settings: Mapping[str, Any], seed: int, *, setting: Setting) -> dict[str, float]:
    """The budget as a share of the cap through training, and what moved it; means over folds with Student's interval.

    Where none is learnt shares are 1 and slopes 0. A slope is that of a term of the loss over ln epsilon, its mean over
    all steps of a training.
    """
    found: dict[str, list[float]] = {}
    for place in range(setting.folds):
        fold = arrived_in(place, settings["method"], settings["epsilon"], settings["alpha"], seed, setting)
        budgets = fold.sender.budgets
        shares = [each.share for each in budgets] or [1.0]
        for epoch in LOOKED_AT:
            found.setdefault(f"share after {epoch}", []).append(shares[min(epoch, len(shares)) - 1])
        found.setdefault("share, least", []).append(min(shares))
        for name in ("task", "attributes"):
            slopes = [getattr(each, name) for each in budgets] or [0.0]
            found.setdefault(f"slope of {name}", []).append(float(np.mean(slopes)))
    numbers: dict[str, float] = {}
    for name, values in found.items():
        numbers |= named(name, mean_over_runs(values))
    return numbers


def cells(*, quick: bool = False) -> list[dict[str, Any]]:
    """The rows of table 1, the most telling ones first; then the weights of the adversaries and the regulariser."""
    found = [dict(REFERENCE), *(_cells(ALPHAS) if not quick else _quick())]
    return list({repr(each): each for each in found}.values())


def _cells(alphas: Sequence[float]) -> Iterator[dict[str, Any]]:
    yield _cell(methods.ORIGINAL)
    yield _cell(methods.PRINTED, methods.CAP)
    yield _cell(methods.LEARNT_PRINTED, methods.CAP)
    yield _cell(methods.LEARNT_L2, methods.MAIN)
    yield _cell(methods.DIFPRIV, methods.CAP)
    yield _cell(methods.OURS, methods.MAIN)
    yield _cell(methods.LEARNT_L2, methods.MAIN, 10.0)
    yield _cell(methods.LEARNT_PRINTED, methods.CAP, 10.0)
    for name, epsilon in ((methods.LEARNT_L2, methods.MAIN), (methods.LEARNT_PRINTED, methods.CAP)):
        yield _cell(methods.OF_PRINT[name], epsilon)
    yield _cell(methods.OF_PRINT[methods.ADV_ALL])
    yield _cell(methods.OURS_L2, methods.MAIN)
    yield _cell(methods.LEARNT_PRINTED, LARGE_CAP)
    yield _cell(methods.LABEL)
    for alpha in alphas:
        yield _cell(methods.LEARNT_L2, methods.MAIN, alpha)
    for alpha in alphas:
        yield _cell(methods.LEARNT_PRINTED, methods.CAP, alpha)
    yield _cell(methods.LEARNT_PRINTED, LARGE_CAP, 10.0)


def _quick() -> Iterator[dict[str, Any]]:
    yield _cell(methods.ORIGINAL)
    yield _cell(methods.LEARNT_PRINTED, methods.CAP)
    yield _cell(methods.LEARNT_L2, methods.MAIN)


def _cell(name: str, epsilon: float | None = None, alpha: float = 1.0) -> dict[str, Any]:
    return {
        "method": name,
        "epsilon": epsilon,
        "alpha": alpha if methods.NAMES[name].trained is not None else None,
    }


def _texts(options: argparse.Namespace) -> Attributed:
    if options.trustpilot is not None:
        return read_reviews(options.trustpilot, user=options.user, language=options.language)
    people = list(bloggers(options.data))
    some = {"most": 3, "smallest": 30, "passes": 2} if options.quick else {"most": 6, "smallest": 50}
    return with_industry(posts_for(TASKS[0], people, work=options.work, **some), smallest=SMALLEST_INDUSTRY)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Table 1 with three attributes, a learnt budget, membership and words."
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of blog_authorship/")
    parser.add_argument("--trustpilot", type=Path, metavar="FILE", help="reviews, in place of the blogs")
    parser.add_argument("--user", metavar="COLUMN", help="of FILE: who wrote a review; else everybody wrote one")
    parser.add_argument("--language", metavar="COLUMN", help="of FILE: the language; else all are English")
    parser.add_argument("--quick", action="store_true", help="3 folds, few methods, one attacker: does it run?")
    parser.add_argument("--report", action="store_true", help="tables from the rows that are there")
    parser.add_argument("--first", type=int, default=None, help="so many rows of each table; the others another time")
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--encoders", nargs="*", choices=ENCODERS, default=[GLOVE])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--smallest-group", type=int, default=SMALLEST_GROUP, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, default=HERE / "work", help="stored vectors of posts; not kept by git")
    return options_of(parser, arguments, HERE)


if __name__ == "__main__":
    main()
