"""Paper 004 on TP-US and AG: the other columns of its figures 4 and 5, and the other half of figure 6. See README.md.

Command: ``python -m papers.dpnr.reviews [--data ../shared/data] [--trustpilot FILE] [--quick] [--report]``

As `papers.dpnr.blogs`: the same devices, cells and attackers, on other texts. TP-US are the TrustPilot reviews of the
United States (`papers.dptext.trustpilot` says how a file of them looks): stars to be learnt, gender and age to be
hidden. AG are the 7,600 rows of its official test set, of which the paper prints the task alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from papers.ag_news import CLASSES, ag_news
from papers.dpnr.blogs import QUICK, VECTORS, WORDS, Plan, cells
from papers.dpnr.blogs_cells import Device, measure
from papers.dpnr.blogs_printed import ACCURACY, AG, BLOG, FAIRNESS, TP_US
from papers.dpnr.blogs_report import Rows, main_table
from papers.dptext.attributed import Attributed
from papers.dptext.trustpilot import AGES, read_reviews
from papers.reports import parse_options, write_between
from papers.sweeps import sweep

from dptext import load_vectors

HERE = Path(__file__).resolve().parent
START, END = "<!-- reviews: written by papers.dpnr.reviews -->", "<!-- end of the reviews -->"
_ALL = 10**9
_COUNTRY = "United States"
_QUICK_ROWS = 400


def tp_us(path: Path) -> Attributed:
    """The reviews of the United States by people under 35 or over 45, as the paper's two groups of age."""
    reviews = read_reviews(path, a_country=_ALL, country=_COUNTRY)
    kept = np.flatnonzero(reviews.attributes["age"] != AGES[1])
    return _some(replace(reviews, attributes={name: reviews.attributes[name] for name in ("gender", "age")}), kept)


def ag(data: Path) -> Attributed:
    """The official test rows of AG News, each somebody's own."""
    _, test = ag_news(data)
    return Attributed(AG, test.texts, np.arange(len(test.texts)), np.array(CLASSES)[test.labels], {})


def _some(texts: Attributed, rows: npt.NDArray[np.intp]) -> Attributed:
    return replace(
        texts,
        texts=tuple(texts.texts[row] for row in rows),
        people=np.unique(texts.people[rows], return_inverse=True)[1].astype(np.int64),
        labels=texts.labels[rows],
        attributes={name: values[rows] for name, values in texts.attributes.items()},
    )


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if not options.report:
        run(QUICK if options.quick else Plan(), options)
    write_report(options.out, readme=options.readme)
    print(options.out / "reviews.md")


def run(plan: Plan, options: argparse.Namespace) -> None:
    """All cells of AG News, and of TP-US where a file is given."""
    result = {AG: partial(ag, options.data)}
    if options.trustpilot is not None:
        result[TP_US] = partial(tp_us, options.trustpilot)
    vectors = load_vectors(VECTORS, limit=WORDS)
    device = Device(vectors, smallest_group=plan.smallest_group, folds=plan.folds)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, read in result.items():
        texts = read()
        if options.quick:
            texts = _some(texts, np.arange(min(_QUICK_ROWS, len(texts.texts))))
        sweep(
            partial(measure, device=device, posts=texts),  # type: ignore[arg-type]  # which has all that it takes
            cells(plan, BLOG),
            [1],
            path=options.out / f"reviews {name}.jsonl",
            name=f"dpnr reviews, {name}",
            constants={"vectors": vectors.fingerprint, "width": vectors.dimension, "folds": plan.folds} | texts.facts,
            packages=("scikit-learn",),
            processes=options.processes,
        )


def write_report(out: Path, *, readme: Path | None) -> None:
    """``reviews.md`` beside the rows, and the same between the marks of a README."""
    sections = []
    for name in (AG, TP_US):
        rows = Rows(out / f"reviews {name}.jsonl")
        sections.append(f"### Task: {name}")
        if not rows:
            sections.append(_not_run(name))
            continue
        constants = rows.constants
        shares = [
            f"{key} {100 * value:.0f}%" for key, value in constants.items() if key.startswith(("gender ", "age "))
        ]
        sections.append(
            f"{constants['posts']:,} texts, {constants['classes']} classes, **majority "
            f"{rows.any['task accuracy blind']:.3f}**{'; ' if shares else ''}{', '.join(shares)}."
        )
        sections.append(main_table(name, rows))
    text = "\n\n".join(sections) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    (out / "reviews.md").write_text(text, encoding="utf-8")
    write_between(readme, START, END, text)


def _not_run(name: str) -> str:
    """All that is printed of a task."""
    lines = ["| | accuracy |", "| --- | --- |"]
    lines += [f"| {row} | not run (printed {value / 100:.4f}) |" for row, value in ACCURACY[name].items()]
    for row, groups in FAIRNESS.get(name, {}).items():
        for attribute, (first, gap) in groups.items():
            label = {"gender": "women, men less women", "age": "young, old less young"}[attribute]
            lines.append(f"| {row}: {label} | not run (printed {first / 100:.4f}, {gap / 100:+.4f}) |")
    why = "the reviews may not be passed on, `--trustpilot FILE` runs them" if name == TP_US else "the command runs it"
    return f"Not run: {why}.\n\n" + "\n".join(lines)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Noisy representations of reviews and news, as of blogs.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of ag_news/")
    parser.add_argument("--trustpilot", type=Path, help="TrustPilot reviews: papers/dptext/trustpilot.py says how")
    parser.add_argument("--quick", action="store_true", help="few texts and mechanisms: does it run?")
    parser.add_argument("--report", action="store_true", help="tables from the rows that are there")
    parser.add_argument("--processes", type=int, default=1)
    return parse_options(parser, arguments, HERE)


if __name__ == "__main__":
    main()
