"""Tables and the figure of part one, from its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpugc.age import LEARNERS, WORDS, WORDS_AND_CHARACTERS
from papers.dpugc.models import Model
from papers.dpugc.probes import AS_NEW, AS_PUBLIC, PAIRS
from papers.dpugc.results import Rows, over_units, share_over_units
from papers.dpugc.similarity import BENCHMARKS, NEW_BENCHMARKS
from papers.reports import duration, interval, new_figure, plain, require_rows, save_figure, table, write_tables

from dptext.intervals import Estimate

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``tables.md`` and the figure next to the rows, and the tables into a README."""
    rows = {name: Rows(out / f"{name}.jsonl") for name in TABLES}
    require_rows(any(rows.values()), out)
    parts: list[str] = []
    for name, tables in TABLES.items():
        parts += [make_table(rows[name]) for make_table in tables if rows[name]]
        if name == "neighbours" and (out / "neighbours.md").exists():
            nearest = (out / "neighbours.md").read_text(encoding="utf-8").strip()
            parts += ["**The nearest words** (first run).", nearest]
    constants = next(part.constants for part in rows.values() if part)
    held_out = f" ({rows['age'].constants['held out']} of them held out for their age)" if rows["age"] else ""
    parts.append(
        f"{constants['bloggers']:,} bloggers{held_out}, {constants['documents']:,} posts. {duration(rows.values())} "
        "The time excludes vectors that existed before."
    )
    write_tables(out / "tables.md", parts, readme=readme, start=START, end=END)
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


def difference_tables(rows: Rows) -> str:
    """Return differences to public vectors, and the smallest epsilon with a gain that every larger one has too."""
    parts, smallest = [], []
    for public in rows.values("beside"):
        name = {"public": "unprocessed public vectors", "public, processed": "public vectors, processed"}[public]
        estimates = {
            model: [rows.estimate("difference", **model.settings, beside=public, benchmark=name) for name in BENCHMARKS]
            for model in rows.models()
        }
        lines = [
            [model, *(interval(entry, sign=True) for entry in row)] for model, row in estimates.items() if any(row)
        ]
        head = f"**Difference to the {name}**, on the same pairs [95% over pairs and runs]."
        parts.append(f"{head}\n\n{table(['model', *BENCHMARKS], lines)}")
        private = sorted((model for model in estimates if model.kind == "private"), key=lambda model: -model.epsilon)
        gains = []
        for place, benchmark in enumerate(BENCHMARKS):
            with_gain = takewhile(lambda model, row=estimates, place=place: _is_positive(row[model][place]), private)
            gains.append(f"{benchmark} {next((f'{model.epsilon:g}' for model in reversed([*with_gain])), 'none')}")
        smallest.append(f"compared with the {name}: {', '.join(gains)}")
    text = f"**Smallest epsilon with a gain** (interval above 0 at it and every larger one), {'; '.join(smallest)}."
    return "\n\n".join([*parts, text])


def _is_positive(estimate: Estimate | None) -> bool:
    return estimate is not None and estimate.low > 0


def new_words_table(rows: Rows) -> str:
    benchmarks = NEW_BENCHMARKS
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
        random_words, per_100, random_characters = (
            rows.mean(name, **model.settings) for name in ("MAP-Word random", "MAP-Word per 100", "MAP-Char random")
        )
        maps = [interval(rows.precision(measure, **model.settings)) for measure in ("MAP-Word", "MAP-Char")]
        lines.append([model, maps[0], plain(random_words), plain(per_100), maps[1], plain(random_characters)])
    head = ["model", "MAP-Word", "random words", "MAP-Word per 100", "MAP-Char", "random words"]
    text = "**Neighbours against the gold model**, 11 queries, K = 100 [95% over queries and runs]."
    return f"{text}\n\n{table(head, lines)}"


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


TABLES = {
    "similarity": (similarity_table,),
    "difference": (difference_tables,),
    "new_words": (new_words_table,),
    "neighbours": (map_table,),
    "probes": (nearest_secrets_table, change_table),
    "age": (age_table,),
}
"""Tables by the name of the file of their rows."""


def _people(count: int) -> str:
    return {0: "none", 1: "1 person"}.get(count, f"{count:,} people")


# -- the figure ------------------------------------------------------------------------------------------------------

STYLES: tuple[dict[str, Any], ...] = (
    {"color": "black", "linestyle": "-", "marker": "o"},
    {"color": "0.35", "linestyle": "--", "marker": "s"},
    {"color": "0.55", "linestyle": ":", "marker": "^"},
    {"color": "0.2", "linestyle": "-.", "marker": "D", "markerfacecolor": "white"},
)
SHIFT = 0.11  # distance of two curves at one place; places are 1 apart
_DRAWN = ("WordSim-353", "MEN", "SimLex-999")
PROCESSED, NO_NOISE = Model("public, processed"), Model("no noise")
LAST_PLACES = {NO_NOISE: "no\nnoise", PROCESSED: "public\nvectors"}  # to the right of the epsilons
PLANTED = (
    (AS_PUBLIC, Model("word2vec"), "word2vec"),
    (AS_NEW, NO_NOISE, "no noise, new words"),
    (AS_NEW, Model("private", 8.0), "private, epsilon 8, new words"),
    (AS_PUBLIC, Model("private", 8.0), "private, epsilon 8, public words"),
)

Curve = Callable[[Model], Estimate | None]


def draw(rows: Mapping[str, Rows], path: Path) -> None:
    figure, panels = new_figure(11.0, 9.6, 2, 2)

    def difference(name: str) -> Curve:
        settings = {"beside": PROCESSED.kind, "benchmark": name}
        return lambda model: rows["difference"].estimate("difference", **model.settings, **settings)

    def new_words(name: str) -> Curve:
        return lambda model: rows["new_words"].estimate(name, **model.settings)

    _draw_over_epsilons(panels[0, 0], rows["difference"], {name: difference(name) for name in _DRAWN})
    panels[0, 0].set_title("Similarity: gain over public vectors, processed")
    panels[0, 0].set_ylabel("difference of Spearman's correlations\n(95% over pairs and runs)")
    curves = {name: new_words(name) for name in _DRAWN if name in NEW_BENCHMARKS}
    _draw_over_epsilons(panels[0, 1], rows["new_words"], curves)
    panels[0, 1].set_title("Words without public vectors")
    panels[0, 1].set_ylabel("Spearman's correlation, pairs with such a word\n(95% over pairs and runs)")
    for axes in panels[0]:
        axes.axhline(0.0, color="0.75", zorder=0)
    _neighbours(panels[1, 0], rows["neighbours"])
    _planted(panels[1, 1], rows["probes"])
    for axes in panels.ravel():
        axes.grid(visible=True, color="0.93", linewidth=0.6)
        labels = zip(*axes.get_legend_handles_labels(), strict=True)
        ordered = sorted(labels, key=lambda label: hasattr(label[0], "get_xdata"))  # curves with intervals first
        if ordered:
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18), "ncols": 3, "frameon": False}
            axes.legend(*zip(*ordered, strict=True), fontsize=8, **below)
    save_figure(figure, path, svg=True)


def _neighbours(axes: Any, rows: Rows) -> None:
    axes.set_title("Neighbours of the gold model")
    axes.set_ylabel("MAP-Word (95% over queries and runs)")
    if rows:
        random = np.mean([rows.mean("MAP-Word random", **model.settings) or 0.0 for model in rows.models()])
        axes.axhline(random, color="0.75", label="random words", zorder=0)
    repeated = rows.precision("MAP-Word", model="another word2vec")
    if repeated is not None:
        axes.axhline(repeated.value, color="0.4", linestyle="--", linewidth=1.0, label="another word2vec")
    _draw_over_epsilons(axes, rows, {"private vectors": lambda model: rows.precision("MAP-Word", **model.settings)})


def _planted(axes: Any, rows: Rows) -> None:
    axes.set_title("Planted pairs: is the secret the nearest of ten?")
    axes.set_ylabel("share of names (95% over pairs and runs)")
    axes.axhline(0.1, color="0.75", label="chance", zorder=0)
    names = [f"place {pair}" for pair in range(PAIRS)]
    people = rows.values("people")

    def share(secrets: str, model: Model, count: int) -> Estimate | None:
        places = rows.table(names, **model.settings, people=count, secrets=secrets)
        return share_over_units(places == 1, of="pairs") if places.size else None

    curves = {name: [share(secrets, model, count) for count in people] for secrets, model, name in PLANTED}
    _draw(axes, curves, len(people))
    axes.set_xticks(range(len(people)), [f"{count:,}" for count in people])
    axes.set_xlabel("people who write each pair")


def _draw_over_epsilons(axes: Any, rows: Rows, curves: Mapping[str, Curve]) -> None:
    """Draw the private model at each epsilon, and then the models without one."""
    private = [model for model in rows.models() if model.kind == "private"]
    models = [*private, *(model for model in LAST_PLACES if any(curve(model) for curve in curves.values()))]
    _draw(axes, {name: [curve(model) for model in models] for name, curve in curves.items()}, len(private))
    labels = [LAST_PLACES.get(model) or f"{model.epsilon:g}" for model in models]
    axes.set_xticks(range(len(models)), labels, fontsize=8.5)
    axes.set_xlabel("epsilon (users, delta = 1e-6)")


def _draw(axes: Any, curves: Mapping[str, list[Estimate | None]], joined: int) -> None:
    """Draw estimates at 0, 1, ...; a line joins the first ``joined`` of them."""
    for place, ((label, estimates), style) in enumerate(zip(curves.items(), STYLES, strict=False)):
        numbers = [(np.nan,) * 3 if entry is None else (entry.value, entry.low, entry.high) for entry in estimates]
        values, low, high = np.array(numbers).reshape(-1, 3).T
        position = np.arange(len(estimates), dtype=np.float64) + SHIFT * (place - (len(curves) - 1) / 2)
        single = np.arange(joined, len(estimates))  # a NaN in front of each of these interrupts the line
        position, values, low, high = (np.insert(column, single, np.nan) for column in (position, values, low, high))
        errors = np.fmax([values - low, high - values], 0)
        axes.errorbar(position, values, errors, label=label, capsize=2.5, markersize=4.5, **style)
