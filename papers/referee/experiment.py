"""Copies of private texts planted in a corpus of other real texts: how often `dptext.judge` finds them.

Private, held-out and output texts are a random split of the distinct texts of one source, so without copies every
finding is a false alarm. Copies replace output texts, verbatim or with one word in ten replaced by a random one.

Command: ``python -m papers.referee.experiment [--data FOLDER]``
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from papers.blogs import bloggers, documents_of
from papers.data_sets import ag_news, snips
from papers.reports import (
    Rows,
    estimate_numbers,
    group_by_settings,
    interval,
    number_of,
    parse_options,
    run_command,
    table,
    write_between,
)
from papers.sweeps import Row, sweep
from papers.synthesis.corpus import shuffled

import dptext
from dptext import Document
from dptext.attacks.copies import smallest_finding
from dptext.intervals import share
from dptext.reports.judgement import ERROR, Judgement

HERE = Path(__file__).resolve().parent
START, END = "<!-- copies: written by papers.referee.experiment -->", "<!-- end of the copies -->"
TEXTS = 5000  # private; as many of output
HELD_OUT = {"AG News": 5000, "SNIPS": 4200, "blogs": 833}  # blogs: people, and as many private ones
SHARES = (0.0, 0.001, 0.01, 0.05)
SIZES = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
TESTS = 5  # of a judgement
FALSE_ALARMS, SEEDS = 100, 20
POSTS, WORDS = 3, 60  # of a blogger, of a post
EDITED = 10  # words per replaced word
ATTACKS = {
    "copies (verbatim)": "share beyond chance",
    "copies (half of the word sequences)": "share beyond chance",
    "copies (nearest neighbour)": "share beyond chance",
    "membership (nearest neighbour)": "AUC",
    "membership (n-gram likelihood)": "AUC",
}


def main(arguments: Sequence[str] | None = None) -> None:
    only = {"choices": HELD_OUT, "help": "a single data set"}
    options = parse_options("Planted copies, and how often they are found.", HERE, arguments, only=only)
    texts = 100 if options.quick else TEXTS
    constants = {"texts": texts, "tests": TESTS}
    for data in () if options.report else [options.only] if options.only else HELD_OUT:
        cell = partial(measure, data=options.data, texts=texts)
        for part in SHARES:
            kinds = (False, True) if part else (False,)
            held_out = HELD_OUT[data] * texts // TEXTS
            settings = [{"data": data, "held-out": held_out, "share": part, "edited": edited} for edited in kinds]
            seeds = range(1, 1 + (2 if options.quick else SEEDS if part else FALSE_ALARMS))
            path = options.out / "copies.jsonl"
            sweep(cell, settings, seeds, path=path, name="planted copies", constants=constants)
    write_report(options.out, readme=options.readme)


def measure(settings: Mapping[str, Any], seed: int, *, data: Path, texts: int) -> dict[str, float]:
    author = "author" if settings["data"] == "blogs" else None
    return numbers_of(dptext.judge(*planted(settings, seed, data, texts), user=author))


@cache
def distinct_texts(name: str, data: Path) -> dict[str, int]:
    """Return the label of every distinct text."""
    parts = ag_news(data) if name == "AG News" else (snips(data).train, snips(data).test)
    return {text: label for part in parts for text, label in zip(part.texts, part.labels.tolist(), strict=True)}


@cache
def people_of(name: str, data: Path) -> list[list[str]]:
    """Return the texts of each person: a text of its own, or up to three posts of at most 60 words."""
    if name != "blogs":
        return [[text] for text in distinct_texts(name, data)]
    posts: dict[str, list[str]] = {}
    for document in documents_of(bloggers(data)):
        posts.setdefault(str(document.user), []).append(" ".join((document.text or "").split()[:WORDS]))
    return [texts[:POSTS] for texts in posts.values()]


def planted(settings: Mapping[str, Any], seed: int, data: Path, texts: int) -> tuple[Any, Any, list[str]]:
    """Return private and held-out documents, and output texts."""
    people, people_each = people_of(settings["data"], data), texts if settings["data"] != "blogs" else texts // 6
    order = shuffled(len(people), seed).tolist()
    parts = [
        [Document(text, user=str(person)) for person in rows for text in people[person]]
        for rows in np.split(order[: 2 * people_each + settings["held-out"]], [people_each, 2 * people_each])
    ]
    draw = np.random.default_rng(seed)  # noqa: TID251  of the experiment, not of a release
    private, others, held_out = (draw.permutation(np.array(part, dtype=object)).tolist() for part in parts)
    copies = [document.text for document in private[: round(settings["share"] * len(others))]]
    output = [document.text for document in others]
    if settings["edited"]:
        copies = [edit(text, output, draw) for text in copies]
    return private, held_out, copies + output[len(copies) :]


def edit(text: str, others: Sequence[str], draw: Any) -> str:
    """Replace one word in ten, at least one, by words of other texts."""
    words = text.split() or [""]
    for place in draw.choice(len(words), math.ceil(len(words) / EDITED), replace=False).tolist():
        words[place] = draw.choice(others[draw.integers(len(others))].split() or [""])
    return " ".join(words)


def numbers_of(judgement: Judgement, *, baselines: bool = False) -> dict[str, float]:
    """Return the findings and scores of a judgement as numbers of a row."""
    result = {"found": float(bool(judgement.findings)), "smallest": float(judgement.smallest)}
    for score in (*judgement.scores, *judgement.row_scores):
        name = f"{score.attack}, {score.measure}"
        result[f"found, {score.attack}"] = float(score.attack in judgement.findings)
        result |= estimate_numbers(name, score.score, score.baseline if baselines else None)
    return {name: round(float(value), 5) for name, value in result.items() if math.isfinite(value)}


def write_report(out: Path, *, readme: Path | None = None) -> None:
    """Write the tables of the rows in a folder into a README."""
    rates, estimates = [], []
    for settings, runs in group_by_settings(Rows(out / "copies.jsonl").rows):
        kind = "edited" if settings["edited"] else "verbatim" if settings["share"] else "none"
        row = [settings["data"], f"{100 * settings['share']:g}%", kind, len(runs)]
        rates.append([*row, *(_rate(runs, name) for name in ("found", *(f"found, {attack}" for attack in ATTACKS)))])
        estimates.append([*row, *(number_of(runs, f"{attack}, {measure}") for attack, measure in ATTACKS.items())])
    head = ["data", "copies", "kind", "runs"]
    counts = [smallest_finding(TEXTS, size, ERROR / TESTS) for size in SIZES]
    sections = [
        table([*head, "found", *ATTACKS], rates, text_columns=3),
        table([*head, *(f"{attack}: {measure}" for attack, measure in ATTACKS.items())], estimates, text_columns=3),
        table(["held-out texts", *(f"{size:,}" for size in SIZES)], [["smallest number of copies", *counts]]),
    ]
    write_between(readme, START, END, "\n\n".join(sections))


def _rate(runs: Sequence[Row], name: str) -> str:
    return interval(share(int(sum(row.numbers[name] for row in runs)), len(runs)), 2)


if __name__ == "__main__":
    run_command(main)
