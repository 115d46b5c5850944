"""Tables and a figure from the rows that are there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from papers.reports import Rows, by_settings, estimate_of, mean_of, number_of, seeds_of, write_between
from papers.sweeps import read_sweep

from dptext.errors import extra

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
SHOWN_START, SHOWN_END = "<!-- questions: written by the experiment -->", "<!-- end of the questions -->"
TITLES = {
    "sentences": "300 sentences of restaurant reviews, a sentence is protected",
    "news": "AG News, a document is protected",
    "reviews": "IMDb, a document is protected",
}
COLUMNS = {
    "sentences": {
        "cosine": "cosine",
        "sentiment": "sentiment",
        "relinked": "relinked, by likeness",
        "relinked at most": "relinked, best attacker",
    },
    "news": {"words": "TF-IDF", "sentences": "MiniLM", "words, labelled anew": "TF-IDF, bank labelled anew"},
}
COLUMNS["reviews"] = COLUMNS["news"]
METHODS = {
    "real": "the private texts themselves",
    "random": "bank texts at random",
    "bank labels": "the bank with its own labels, nothing private",
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


def write_report(out: Path, *, readme: Path | None) -> None:
    """``tables.md`` and the figure in a folder; tables, and questions that were read, in the README."""
    read = {part: read_sweep(out / f"{part}.jsonl").rows for part in TITLES if (out / f"{part}.jsonl").exists()}
    result = {part: rows for part, rows in read.items() if rows}
    text = "\n\n".join(_table(part, rows) for part, rows in result.items())
    (out / "tables.md").write_text(text + "\n", encoding="utf-8")
    write_between(readme, START, END, text)
    if (out / "shown.json").exists():
        data = json.loads((out / "shown.json").read_text(encoding="utf-8"))
        write_between(readme, SHOWN_START, SHOWN_END, _questions(data))
    if "sentences" in result:
        _figure(result["sentences"], out / "figure.png")


def _table(part: str, rows: Rows) -> str:
    columns = COLUMNS[part]
    head = ["epsilon", "what comes out", *columns.values(), "k of N", "distinct"]
    lines = [f"**{TITLES[part]}.**", "", f"| {' | '.join(head)} |", f"|---:|---|{'---:|' * (len(head) - 2)}"]
    for settings, runs in sorted(by_settings(rows), key=lambda each: _place(each[0])):
        numbers = [number_of(runs, name) if mean_of(runs, name) else "" for name in columns]
        k, texts = mean_of(runs, "k"), mean_of(runs, "candidates")
        numbers.append(f"{k:,.0f} of {texts:,.0f}" if k else "")
        numbers.append(f"{mean_of(runs, 'distinct'):.2f}")
        epsilon = f"{settings['epsilon']:g}" if settings["epsilon"] else ""
        lines.append(f"| {epsilon} | {_described(settings)}{seeds_of(runs)} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def _changed(settings: Mapping[str, Any]) -> list[str]:
    """What is not as usual."""
    result = []
    if settings["thinned"]:
        result.append("thinned")
    if settings["features"] and settings["features"] != FEATURES[settings["data"]]:
        result.append(f"encoder {settings['features']!r}")
    if settings["factor"] != 1:
        result.append(f"{settings['factor']:g} times the best k")
    if settings["texts"] != 1:
        result.append(f"{settings['texts']} texts for a document, epsilon / {settings['texts']} each")
    if settings["directions"]:
        result.append(f"{settings['directions']} directions")
    return result


def _place(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Where a row stands: no privacy or none needed, banks by epsilon, what was changed, other mechanisms."""
    method, changed = settings["method"], _changed(settings)
    banks = [name for _, name in BANKS]
    bank = banks.index(settings["bank"]) if settings["bank"] in banks else -1
    if method == "real":
        return (0,)
    if method in ("random", "bank labels"):
        return (1, method, bank)
    if method == "bank":
        plain = not changed or changed == ["thinned"]
        return (2 if plain else 3, bank, settings["thinned"], *([] if plain else changed[:1]), settings["epsilon"])
    return (4, list(METHODS).index(method), settings["epsilon"], settings["directions"] or 0)


def _described(settings: Mapping[str, Any]) -> str:
    method = settings["method"]
    lines = [METHODS[method]]
    if settings["bank"]:
        name = BANKS[settings["data"], settings["bank"]]
        lines = [f"bank: {name}"] if method == "bank" else [f"{lines[0]} ({name})"] if method == "random" else lines
    return ", ".join([*lines, *_changed(settings)])


def _questions(shown: Sequence[Mapping[str, Any]]) -> str:
    names = [name for name in shown[0] if name.startswith("epsilon")]
    lines = [f"| question | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for row in shown:
        cells = [row[name] + ("" if row[f"same intent, {name}"] else " ✗") for name in names]
        lines.append(f"| {row['question']} | {' | '.join(cells)} |")
    same = [f"{sum(row[f'same intent, {name}'] for row in shown)} at {name}" for name in names]
    lines += ["", f"The same intent: {', '.join(same)}, of {len(shown)}. ✗: another one."]
    return "\n".join(lines)


# -- the figure ------------------------------------------------------------------------------------------------

_CURVES = (
    ("bank: 20,000 other sentences", "o", "black"),
    ("bank: 20,000 other sentences, thinned", "s", "white"),
    ("bank: 148,000 other sentences", "^", "black"),
    ("bank: newswire and Wikipedia", "D", "white"),
    ("words by subset selection", "x", "black"),
    ("words by TEM", "+", "black"),
)


def _figure(rows: Rows, path: Path) -> None:
    """Cosine and relinking against epsilon; readable in grey."""
    figures = extra("matplotlib.figure", "report", "a figure")
    figure = figures.Figure(figsize=(8.8, 4.2), layout="constrained")
    extra("matplotlib.backends.backend_agg", "report", "a figure").FigureCanvasAgg(figure)  # no window
    for axes, name, title in zip(
        figure.subplots(1, 2),
        ("cosine", "relinked"),
        ("cosine to the original", "relinked among 300, by likeness"),
        strict=True,
    ):
        for described, marker, fill in _CURVES:
            curve = sorted(
                (
                    (settings["epsilon"], runs)
                    for settings, runs in by_settings(rows)
                    if _described(settings) == described and len(runs) > 1
                ),
                key=lambda each: each[0],
            )
            known = [(place, result) for place, runs in curve if (result := estimate_of(runs, name)) is not None]
            axes.errorbar(
                [place for place, _ in known],
                [entry.value for _, entry in known],
                yerr=[(entry.high - entry.low) / 2 for _, entry in known],
                color="black",
                linewidth=0.8,
                marker=marker,
                markerfacecolor=fill,
                capsize=2,
                label=described,
            )
        axes.set_xscale("log", base=2)
        axes.set_xticks([4, 8, 16, 50, 100, 250], ["4", "8", "16", "50", "100", "250"])
        axes.minorticks_off()
        axes.set_xlabel("pure epsilon for a sentence")
        axes.set_title(title, fontsize=9)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), fontsize=7, ncols=3, loc="outside lower center")
    figure.savefig(path, dpi=130)
    figure.savefig(path.with_suffix(".svg"))
