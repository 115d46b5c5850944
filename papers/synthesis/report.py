"""Tables and the figure of the experiment, from its rows."""

from __future__ import annotations

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
    write_tables,
)
from papers.sweeps import Row

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
TITLES = {
    "news": "AG News, a document is protected",
    "reviews": "IMDb, a document is protected",
    "blogs-age": "Blogs, a person is protected: age group",
    "blogs-gender": "Blogs, a person is protected: gender",
    "blogs-topic": "Blogs, a person is protected: topic",
}
USUAL = {"epsilon": 1.0, "variety": 0.5}
NAMES = {
    "described": "synthetic",
    "real": "the private texts themselves",
    "released": "no text: the released distribution as a classifier",
    "votes": "Private Evolution, one round of votes",
    "names of labels": "public texts nearest to the names of the labels",
    "random labels": "random public texts with random labels",
    "nobody": "synthetic, from a release without users (noise alone)",
}
_LINES = {
    "real": {"color": "0.45", "linestyle": "-", "linewidth": 1.0},
    "names of labels": {"color": "0.45", "linestyle": "--", "linewidth": 1.0},
    "random labels": {"color": "0.45", "linestyle": ":", "linewidth": 1.0},
}

Group = tuple[Mapping[str, Any], list[Row]]


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``tables.md`` and the figure into a folder, and the tables into the README."""
    parts = {part: rows.rows for part in TITLES if (rows := Rows(out / f"{part}.jsonl"))}
    sections = [_table(part, rows) for part, rows in parts.items()]
    write_tables(out / "tables.md", sections, readme=readme, start=START, end=END)
    draw(parts, out / "figure.png")


def _table(part: str, rows: Sequence[Row]) -> str:
    is_blog = part.startswith("blogs")
    lines = []
    for settings, runs in sorted(group_by_settings(rows), key=lambda group: _place(part, group[0])):
        method = settings["method"]
        right = "" if method in ("real", "released") else _share(runs, "right")
        sentences = "" if method == "released" else number_of(runs, "sentences")
        cells = [right] if is_blog else [sentences, right, _share(runs, "spread")]
        lines.append([f"{_label(part, settings)}{seeds_of(runs)}", number_of(runs, "words"), *cells])
    more = ["labels right"] if is_blog else ["MiniLM", "labels right", "spread"]
    return f"**{TITLES[part]}.**\n\n{table(['training texts', 'TF-IDF', *more], lines)}"


def _share(runs: Sequence[Row], name: str) -> str:
    mean = mean_of(runs, name)
    return f"{mean:.2f}" if mean else ""


def _place(part: str, settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Order: the private texts, synthetic ones by epsilon, other methods, changed settings."""
    method = settings["method"]
    if method != "described":
        return (2 * (method != "real"), list(NAMES).index(method), settings["epsilon"])
    changes = [
        settings["variety"] != USUAL["variety"],
        not part.startswith("blogs") and settings["features"] != "both",
        settings["people"] not in (0, 5000) and not settings["rarest"],
        bool(settings["rarest"]),
        settings["pool"] not in ("", part),
    ]
    if not any(changes):
        return (1, 0, settings["epsilon"])
    return (3, changes.index(True), settings["variety"], settings["people"], settings["pool"])


def _label(part: str, settings: Mapping[str, Any]) -> str:
    """Return the method and its unusual settings."""
    method = settings["method"]
    texts = [NAMES[method]]
    if method in ("described", "released", "votes"):
        texts.append(f"epsilon {settings['epsilon']:g}")
    if method in ("described", "votes", "released", "real") and settings["people"] not in (0, 5000):
        texts.append(f"{settings['people']:,} documents")
    if settings["rarest"]:
        texts.append(f"one label has {settings['rarest']} of them")
    if settings["variety"] != USUAL["variety"]:
        texts.append(f"variety {settings['variety']:g}")
    if method == "described" and not part.startswith("blogs") and settings["features"] != "both":
        texts.append(f"features {settings['features']!r}")
    if settings["pool"] not in ("", part):
        texts.append(f"pool: {settings['pool']}")
    return ", ".join(texts)


# -- the figure ------------------------------------------------------------------------------------------------


def draw(parts: Mapping[str, Sequence[Row]], path: Path) -> None:
    curves = {part: (_curve(rows, "epsilon"), _curve(rows, "variety")) for part, rows in parts.items()}
    curves = {part: pair for part, pair in curves.items() if min(map(len, pair)) > 2}
    if not curves:
        return
    figure, panels = new_figure(4.4 * len(curves), 7.6, 2, len(curves))
    for column, (part, (by_epsilon, by_variety)) in enumerate(curves.items()):
        _draw_epsilons(panels[0][column], part, by_epsilon, parts[part])
        _draw_varieties(panels[1][column], by_variety)
    save_figure(figure, path, svg=True)


def _curve(rows: Sequence[Row], name: str) -> list[Group]:
    """Return the synthetic corpora whose settings are the usual ones except for one."""
    part = str(rows[0].settings["data"])
    usual = {"method": "described", "rarest": None, "features": "words" if "blogs" in part else "both"}
    usual |= {key: value for key, value in USUAL.items() if key != name}

    def is_usual(settings: Mapping[str, Any]) -> bool:
        is_whole = settings["people"] in (0, 5000) and settings["pool"] in ("", part)
        return is_whole and settings.items() >= usual.items()

    return sorted((group for group in group_by_settings(rows) if is_usual(group[0])), key=lambda group: group[0][name])


def _draw_epsilons(axes: Any, part: str, curve: Sequence[Group], rows: Sequence[Row]) -> None:
    for name, label, marker in (("words", "TF-IDF", "o"), ("sentences", "MiniLM", "s")):
        if part.startswith("blogs") and name == "sentences":
            continue
        estimates = [(settings["epsilon"], estimate_of(runs, name)) for settings, runs in curve]
        known = [(epsilon, estimate) for epsilon, estimate in estimates if estimate is not None and estimate.count > 2]
        style = {"color": "black", "marker": marker, "markerfacecolor": "black" if name == "words" else "white"}
        error_bars(axes, known, capsize=2, label=f"synthetic, {label}", **style)
    for method, line in _LINES.items():
        if runs := [row for row in rows if row.settings["method"] == method]:
            level = mean_of(runs, "words")
            axes.axhline(level, zorder=0, **line)
            place: dict[str, Any] = {"xytext": (0, 3), "textcoords": "offset points", "fontsize": 7, "ha": "right"}
            axes.annotate(f"{method}, TF-IDF", (8.0, level), **place)
    ticks = [settings["epsilon"] for settings, _ in curve]
    axes.set_title(TITLES[part], fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("epsilon (delta 1e-6)")
    axes.set_ylabel("accuracy on real texts (95% over seeds)")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.legend(fontsize=7, loc="center right")


def _draw_varieties(axes: Any, curve: Sequence[Group]) -> None:
    labels = {"spread": "spread: mean distance of a text to its nearest other one"}
    measure = "spread" if mean_of(curve[0][1], "spread") else "distinct words"
    places = [mean_of(runs, measure) for _, runs in curve]
    for name, label, marker, fill in (("words", "TF-IDF", "o", "black"), ("sentences", "MiniLM", "s", "white")):
        if name == "words" or measure == "spread":
            means = [mean_of(runs, name) for _, runs in curve]
            axes.plot(places, means, color="black", marker=marker, markerfacecolor=fill, label=label)
    for place, (settings, runs) in zip(places, curve, strict=True):
        point = place, mean_of(runs, "words")
        axes.annotate(f"{settings['variety']:g}", point, (0, 6), textcoords="offset points", fontsize=7, ha="center")
    axes.set_xlabel(labels.get(measure, "distinct words in 1,000 texts"))
    axes.set_ylabel("accuracy, epsilon 1")
    axes.legend(fontsize=7, title="numbers: variety", title_fontsize=7)
