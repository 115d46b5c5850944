"""Tables and the figure of the experiment, from its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from papers.reports import (
    Rows,
    error_bars,
    estimate_of,
    group_by_settings,
    mean_of,
    new_figure,
    number_of,
    save_figure,
    seeds_of,
    table,
    write_between,
    write_tables,
)
from papers.sweeps import Row

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
QUESTIONS_START, QUESTIONS_END = "<!-- questions: written by the experiment -->", "<!-- end of the questions -->"
TITLES = {
    "sentences": "300 sentences of restaurant reviews, a sentence is protected",
    "news": "AG News, a document is protected",
    "reviews": "IMDb, a document is protected",
}
COLUMNS = {
    "sentences": {
        "cosine": "cosine",
        "sentiment": "sentiment",
        "relinked": "relinked, by similarity",
        "relinked at most": "relinked, best attacker",
    },
    "news": {"words": "TF-IDF", "sentences": "MiniLM", "words, labelled anew": "TF-IDF, bank relabelled"},
}
COLUMNS["reviews"] = COLUMNS["news"]
METHODS = {
    "real": "the private texts themselves",
    "random": "bank texts at random",
    "bank labels": "the bank with its own labels, no private texts",
    "bank": "bank",
    "PrivUnit": "PrivUnit on the vector, then the nearest bank text",
    "TEM on vectors": "TEM's exponential mechanism over sentence vectors",
    "words": "words by subset selection",
    "TEM": "words by TEM",
    "Madlib": "words by Madlib",
}
BANKS = {
    ("sentences", "20,000"): "20,000 other sentences",
    ("sentences", "all"): "148,000 other sentences",
    ("sentences", "wiki and news"): "newswire and Wikipedia",
    ("news", "wiki and news"): "newswire, Wikipedia, restaurants",
    ("news", "own"): "9,000 other news",
    ("reviews", "own"): "6,000 other reviews",
}
FEATURES = {"sentences": "sentences", "news": "sentences", "reviews": "both", "": ""}
_CURVES = (
    ("bank: 20,000 other sentences", "o", "black"),
    ("bank: 20,000 other sentences, thinned", "s", "white"),
    ("bank: 148,000 other sentences", "^", "black"),
    ("bank: newswire and Wikipedia", "D", "white"),
    ("words by subset selection", "x", "black"),
    ("words by TEM", "+", "black"),
)


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``tables.md`` and the figure into a folder; tables, and questions with their outputs, into the README."""
    parts = {part: rows.rows for part in TITLES if (rows := Rows(out / f"{part}.jsonl"))}
    sections = [_table(part, rows) for part, rows in parts.items()]
    write_tables(out / "tables.md", sections, readme=readme, start=START, end=END)
    if (out / "shown.json").exists():
        rows = json.loads((out / "shown.json").read_text(encoding="utf-8"))
        write_between(readme, QUESTIONS_START, QUESTIONS_END, _questions(rows))
    if "sentences" in parts:
        draw(parts["sentences"], out / "figure.png")


def _table(part: str, rows: Sequence[Row]) -> str:
    columns = COLUMNS[part]
    lines = []
    for settings, runs in sorted(group_by_settings(rows), key=lambda group: _place(group[0])):
        numbers = [number_of(runs, name) if mean_of(runs, name) else "" for name in columns]
        k, texts = mean_of(runs, "k"), mean_of(runs, "candidates")
        numbers += [f"{k:,.0f} of {texts:,.0f}" if k else "", f"{mean_of(runs, 'distinct'):.2f}"]
        epsilon = f"{settings['epsilon']:g}" if settings["epsilon"] else ""
        lines.append([epsilon, f"{_label(settings)}{seeds_of(runs)}", *numbers])
    head = ["epsilon", "output", *columns.values(), "k of N", "distinct"]
    return f"**{TITLES[part]}.**\n\n{table(head, lines, text_columns=2)}"


def _changes(settings: Mapping[str, Any]) -> list[str]:
    texts, factor = settings["texts"], settings["factor"]
    changes = {
        "thinned": settings["thinned"],
        f"encoder {settings['features']!r}": settings["features"] not in ("", FEATURES[settings["data"]]),
        f"{factor:g} times the best k": factor != 1,
        f"{texts} texts for a document, epsilon / {texts} each": texts != 1,
        f"{settings['directions']} directions": settings["directions"],
    }
    return [text for text, is_changed in changes.items() if is_changed]


def _place(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Order: without privacy, banks by epsilon, changed settings, other mechanisms."""
    method, changes = settings["method"], _changes(settings)
    banks = [name for _, name in BANKS]
    bank = banks.index(settings["bank"]) if settings["bank"] in banks else -1
    if method == "real":
        return (0,)
    if method in ("random", "bank labels"):
        return (1, method, bank)
    if method == "bank":
        is_usual = not changes or changes == ["thinned"]
        change = [] if is_usual else changes[:1]
        return (2 if is_usual else 3, bank, settings["thinned"], *change, settings["epsilon"])
    return (4, list(METHODS).index(method), settings["epsilon"], settings["directions"] or 0)


def _label(settings: Mapping[str, Any]) -> str:
    method = settings["method"]
    text = METHODS[method]
    if method in ("bank", "random"):
        name = BANKS[settings["data"], settings["bank"]]
        text = f"bank: {name}" if method == "bank" else f"{text} ({name})"
    return ", ".join([text, *_changes(settings)])


def _questions(rows: Sequence[Mapping[str, Any]]) -> str:
    names = [name for name in rows[0] if name.startswith("epsilon")]
    lines = [
        [row["question"], *(row[name] + ("" if row[f"same intent, {name}"] else " ✗") for name in names)]
        for row in rows
    ]
    counts = ", ".join(f"{sum(row[f'same intent, {name}'] for row in rows)} at {name}" for name in names)
    questions = table(["question", *names], lines, text_columns=1 + len(names))
    return f"{questions}\n\nThe same intent: {counts}, of {len(rows)}. ✗: another one."


def draw(rows: Sequence[Row], path: Path) -> None:
    figure, panels = new_figure(8.8, 4.2, 1, 2)
    ticks = [4, 8, 16, 50, 100, 250]
    for axes, name, title in zip(
        panels[0], ("cosine", "relinked"), ("cosine to the original", "relinked among 300, by similarity"), strict=True
    ):
        for label, marker, fill in _CURVES:
            groups = [
                (settings["epsilon"], runs) for settings, runs in group_by_settings(rows) if _label(settings) == label
            ]
            estimates = [(epsilon, estimate_of(runs, name)) for epsilon, runs in groups]
            known = [(epsilon, estimate) for epsilon, estimate in estimates if estimate is not None]
            if known:
                known.sort(key=lambda point: point[0])
                style = {"color": "black", "marker": marker, "markerfacecolor": fill, "linewidth": 0.8}
                error_bars(axes, known, capsize=2, label=label, **style)
        axes.set_xscale("log", base=2)
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("pure epsilon for a sentence")
        axes.set_title(title, fontsize=9)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), fontsize=7, ncols=3, loc="outside lower center")
    save_figure(figure, path, svg=True)
