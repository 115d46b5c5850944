"""Tables and the figure of part one, from its rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from papers.dpugc.age import LEARNERS, WORDS, WORDS_AND_CHARACTERS
from papers.dpugc.figure import draw
from papers.dpugc.models import LARGER, Model
from papers.dpugc.probes import PAIRS
from papers.dpugc.results import Rows, over_units, share_over_units
from papers.reports import duration, interval, plain, require_rows, table, write_tables
from papers.word_similarity import BENCHMARKS

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
FILES = ("similarity", "difference", "new_words", "neighbours", "probes", "age")
BASELINE = {"WordSim-353": 0.579, "MEN": 0.705}  # public vectors with an earlier processing (README.md)
GOAL = {"WordSim-353": 0.020, "MEN": 0.013}  # gain over the baseline that was planned for epsilon 8


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``tables.md`` and the figure next to the rows, and the tables into a README."""
    rows = {name: Rows(out / f"{name}.jsonl") for name in FILES}
    require_rows(any(rows.values()), out)
    parts: list[str] = []
    if rows["similarity"]:
        parts += [similarity_table(rows["similarity"]), goal(rows["similarity"])]
    if rows["difference"]:
        parts += [difference_table(rows["difference"], public) for public in rows["difference"].values("beside")]
        parts += [smallest_epsilons(rows["difference"])]
    if rows["new_words"]:
        parts += [new_words_table(rows["new_words"])]
    if rows["neighbours"]:
        parts += [map_table(rows["neighbours"])]
    if (out / "neighbours.md").exists():
        parts += ["**The nearest words** (first run).", (out / "neighbours.md").read_text(encoding="utf-8").strip()]
    if rows["probes"]:
        parts += [nearest_secrets_table(rows["probes"]), change_table(rows["probes"])]
    if rows["age"]:
        parts += [age_table(rows["age"])]
    write_tables(out / "tables.md", [*parts, summary(rows)], readme=readme, start=START, end=END)
    draw(rows, out / "figure.png")


def similarity_table(rows: Rows) -> str:
    models = rows.models()
    lines = [[model, *(plain(rows.mean(name, **model.settings)) for name in BENCHMARKS)] for model in models]
    covered = {model: [rows.mean(f"{name} pairs", **model.settings) or 0.0 for name in BENCHMARKS] for model in models}
    full = max(covered.values(), key=lambda counts: counts[0])
    lines.append(["pairs", *(f"{count:.0f}" for count in full)])
    fewer = [
        f"{model}: {' / '.join(f'{count:.0f}' for count in counts)}"
        for model, counts in covered.items()
        if counts != full
    ]
    note = f"\n\nFewer pairs: {'; '.join(fewer)}." if fewer else ""
    head = "**Similarity.** Spearman's correlation with human ratings, mean of the runs."
    return f"{head}\n\n{table(['model', *BENCHMARKS], lines)}{note}"


def goal(rows: Rows) -> str:
    needed = {name: BASELINE[name] + gain for name, gain in GOAL.items()}
    reached = []
    for model in rows.models():
        scores = [rows.mean(name, **model.settings) or 0.0 for name in needed]
        if model.kind not in LARGER and all(a >= b for a, b in zip(scores, needed.values(), strict=True)):
            reached.append(f"{model} ({_slashed(scores)})")
    return (
        f"**Goal**: {_slashed(needed.values())} on {' / '.join(needed)} (baseline {_slashed(BASELINE.values())} plus "
        f"{_slashed(GOAL.values())}). Reached by: {', '.join(reached) or 'none'}."
    )


def difference_table(rows: Rows, public: str) -> str:
    lines = []
    for model in rows.models():
        estimates = [
            rows.estimate("difference", **model.settings, beside=public, benchmark=name) for name in BENCHMARKS
        ]
        if any(estimates):
            lines.append([model, *(interval(entry, sign=True) for entry in estimates)])
    head = f"**Difference to the {_public_name(public)}**, on the same pairs [95% over pairs and runs]."
    return f"{head}\n\n{table(['model', *BENCHMARKS], lines)}"


def smallest_epsilons(rows: Rows) -> str:
    lines = [
        f"compared with the {_public_name(public)}: "
        + ", ".join(f"{name} {_smallest_epsilon(rows, public, name)}" for name in BENCHMARKS)
        for public in rows.values("beside")
    ]
    return f"**Smallest epsilon with a gain** (interval above 0 at it and every larger one), {'; '.join(lines)}."


def _smallest_epsilon(rows: Rows, public: str, benchmark: str) -> str:
    smallest = None
    private = [model for model in rows.models() if model.kind == "private"]
    for model in sorted(private, key=lambda model: -(model.epsilon or 0)):
        estimate = rows.estimate("difference", **model.settings, beside=public, benchmark=benchmark)
        if estimate is None or estimate.low <= 0:
            break
        smallest = model.epsilon
    return "none" if smallest is None else f"{smallest:g}"


def new_words_table(rows: Rows) -> str:
    benchmarks = ("MEN", "WordSim-353")
    lines: list[list[object]] = [["no vector", *(plain(0.0) for _ in benchmarks), "10,000", plain(0.005)]]
    for model in rows.models():
        name = "true public vectors, processed" if model.kind.startswith("public") else model
        scores = [interval(rows.estimate(benchmark, **model.settings)) for benchmark in benchmarks]
        rank = interval(rows.estimate("median rank", **model.settings), 0)
        lines.append([name, *scores, rank, interval(rows.estimate("nearest", **model.settings))])
    first = rows.models()[0].settings
    counts = " and ".join(f"{rows.mean(f'{name} pairs', **first):.0f} of {name}" for name in benchmarks)
    head = ["model", *benchmarks, "median rank of the true word", "among the 100 nearest"]
    return (
        f"**Words without public vectors.** Spearman's correlation on the pairs with such a word ({counts}, over "
        f"{rows.constants['draws']} draws), and the rank of the true word by the cosine of its learned vector with "
        f"all public vectors [95% over pairs or words, and runs].\n\n{table(head, lines)}"
    )


def map_table(rows: Rows) -> str:
    lines = []
    for model in rows.models():
        cells: dict[str, list[str]] = {}
        for measure in ("MAP-Word", "MAP-Char"):
            random = plain(rows.mean(f"{measure} random", **model.settings))
            cells[measure] = [interval(rows.precision(measure, **model.settings)), random]
        per_100 = plain(rows.mean("MAP-Word per 100", **model.settings))
        lines.append([model, *cells["MAP-Word"], per_100, *cells["MAP-Char"]])
    head = ["model", "MAP-Word", "random words", "MAP-Word per 100", "MAP-Char", "random words"]
    return "**Neighbours against the gold model**, 11 queries, K = 100 [95% over queries and runs].\n\n" + table(
        head, lines
    )


def nearest_secrets_table(rows: Rows) -> str:
    people = rows.values("people")
    lines = []
    for secrets, model in _probed(rows):
        cells = []
        for count in people:
            settings = model.settings | {"people": count, "secrets": secrets}
            places, ranks = (
                rows.table([f"{number} {pair}" for pair in range(PAIRS)], **settings) for number in ("place", "rank")
            )
            if places.size:
                share = share_over_units(places == 1, of="pairs")
                cells.append(f"{interval(share, 2)}, {np.median(ranks):,.0f}")
            else:
                cells.append("")
        lines.append([secrets, model, *cells])
    return (
        "**Planted probes.** Share of the names whose secret is the nearest of the ten of its kind (chance: .1) "
        "[95% over pairs and runs], and the median rank of the secret among all words.\n\n"
        + table(["secrets", "model", *map(_people, people)], lines)
    )


def change_table(rows: Rows) -> str:
    people = [count for count in rows.values("people") if count]
    names = [f"rank {pair}" for pair in range(PAIRS)]
    lines = []
    for secrets, model in _probed(rows):
        settings = model.settings | {"secrets": secrets}
        without = rows.table(names, **settings, people=0)
        cells = []
        for count in people:
            ranks = rows.table(names, **settings, people=count)
            change = over_units(np.log2(without / ranks), of="pairs") if ranks.shape == without.shape else None
            cells.append(interval(change, 2, sign=True))
        lines.append([secrets, model, *cells])
    return (
        "**Change caused by the planted people**, in bits: mean over pairs of log2(rank without / rank with them), "
        "with the same noise in both [95% over pairs and runs].\n\n"
        + table(["secrets", "model", *map(_people, people)], lines)
    )


def _probed(rows: Rows) -> list[tuple[str, Model]]:
    cells = [(secrets, model) for secrets in rows.values("secrets") for model in rows.models()]
    return [(secrets, model) for secrets, model in cells if rows.select(**model.settings, secrets=secrets)]


def age_table(rows: Rows) -> str:
    lines = []
    baseline = ""
    for model in rows.models():
        cells = []
        for learner in LEARNERS:
            settings = model.settings | {"learner": learner}
            baseline = interval(rows.estimate("mean age", **settings), 2) or baseline
            change = interval(rows.estimate("change", **settings), 2, sign=True)
            cells += [
                interval(rows.estimate("RMSE", **settings), 2),
                "" if model.kind == WORDS_AND_CHARACTERS else change,
            ]
        is_public = model.kind in (WORDS, WORDS_AND_CHARACTERS)
        lines.append([model if is_public else f"words, characters and {model}", *cells])
    lines.insert(0, ["mean age (baseline)", *([baseline, ""] * len(LEARNERS))])
    head = ["features", *(f"{learner}{label}" for learner in LEARNERS for label in ("", ": change"))]
    return (
        "**Age.** RMSE in years, 10 folds; *change*: compared with public words and characters, negative is better "
        f"[95% over people and runs].\n\n{table(head, lines)}"
    )


def summary(rows: dict[str, Rows]) -> str:
    constants = next(part.constants for part in rows.values() if part)
    held_out = f" ({rows['age'].constants['held out']} of them held out for their age)" if rows["age"] else ""
    took = duration(sum(len(part.rows) for part in rows.values()), sum(part.seconds for part in rows.values()))
    return (
        f"{constants['bloggers']:,} bloggers{held_out}, {constants['documents']:,} posts. {took} "
        "The time excludes vectors that existed before."
    )


def _slashed(values: Iterable[float]) -> str:
    return " / ".join(map(plain, values))


def _people(count: int) -> str:
    return {0: "none", 1: "1 person"}.get(count, f"{count:,} people")


def _public_name(public: str) -> str:
    return {"public": "unprocessed public vectors", "public, processed": "public vectors, processed"}[public]
