"""The DPNR paper on TP-US and AG: the other columns of its figures 4 to 6. See README.md.

Command: ``python -m papers.dpnr.reviews [--data FOLDER] [--trustpilot FILE] [--quick] [--report]``

TP-US are the TrustPilot reviews of the United States (`papers.dptext.trustpilot` describes the file), with stars as
task, gender and age as attributes. AG are the 7,600 official test rows of AG News, without attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from papers.blogs import Posts
from papers.data_sets import AG_NEWS_CLASSES, ag_news
from papers.dpnr.blogs import QUICK, VECTORS, WORDS, Device, Plan, run_task, settings_of
from papers.dpnr.blogs_report import Rows, main_table
from papers.dpnr.printed import AG, BLOG, TP_US
from papers.dptext.trustpilot import AGES, read_reviews
from papers.reports import parse_options, run_command, write_tables

from dptext import load_vectors

HERE = Path(__file__).resolve().parent
START, END = "<!-- reviews: written by papers.dpnr.reviews -->", "<!-- end of the reviews -->"
_QUICK_ROWS = 400


def main(arguments: Sequence[str] | None = None) -> None:
    trustpilot = {"type": Path, "help": "TrustPilot reviews, see papers/dptext/trustpilot.py"}
    options = parse_options("Noisy representations of reviews and news.", HERE, arguments, trustpilot=trustpilot)
    if not options.report:
        plan = QUICK if options.quick else Plan()
        device = Device(load_vectors(VECTORS, limit=WORDS), plan.smallest_group, plan.folds)
        sources = {AG: partial(read_ag, options.data)}
        if options.trustpilot is not None:
            sources[TP_US] = partial(read_tp_us, options.trustpilot)
        for name, read in sources.items():
            texts = read()
            if options.quick:
                texts = texts.take(np.arange(min(_QUICK_ROWS, len(texts.texts))))
            run_task(device, texts, settings_of(plan, BLOG), options.out / f"reviews {name}.jsonl")
    write_report(options.out, readme=options.readme)


def read_tp_us(path: Path) -> Posts:
    """Return the reviews of the United States by people under 35 or over 45, the paper's two age groups."""
    reviews = read_reviews(path, per_country=10**9, country="United States")
    del reviews.attributes["country"]
    return reviews.take(np.flatnonzero(reviews.attributes["age"] != AGES[1]))


def read_ag(data: Path) -> Posts:
    """Return the official test rows of AG News, each by its own author."""
    _, test = ag_news(data)
    return Posts(AG, test.texts, np.arange(len(test.texts)), np.array(AG_NEWS_CLASSES)[test.labels], {})


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``reviews.md`` next to the rows, and the tables into a README."""
    sections = []
    for name in (AG, TP_US):
        rows = Rows(out / f"reviews {name}.jsonl")
        sections.append(f"### Task: {name}")
        if not rows:
            why = "the reviews may not be redistributed; `--trustpilot FILE` runs them"
            sections.append(f"Not run: {why if name == TP_US else 'run the command'}.")
            continue
        sections.append(
            f"{rows.constants['posts']:,} texts, {rows.constants['classes']} classes, **majority "
            f"{rows.any['task accuracy blind']:.3f}**{''.join(f'; {share}' for share in rows.group_shares)}."
        )
        sections.append(main_table(name, rows))
    write_tables(out / "reviews.md", sections, readme=readme, start=START, end=END)


if __name__ == "__main__":
    run_command(main)
