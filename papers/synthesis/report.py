"""Tables and figures from the rows that are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from papers.reports import Rows, by_settings, estimate_of, mean_of, number_of, seeds_of, write_between
from papers.sweeps import Row, read_sweep

from dptext.errors import extra

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
TITLES = {
    "news": "AG News, a document is protected",
    "reviews": "IMDb, a document is protected",
    "blogs-age": "Blogs, a person is protected: age group",
    "blogs-gender": "Blogs, a person is protected: gender",
    "blogs-topic": "Blogs, a person is protected: topic",
}
USUAL = {"epsilon": 1.0, "variety": 0.5, "rarest": None}
NAMES = {
    "described": "synthetic",
    "real": "the private texts themselves",
    "released": "no text: the description itself as a classifier",
    "votes": "Private Evolution, one round of votes",
    "names of labels": "public texts nearest to the names of the labels",
    "random labels": "random public texts with random labels",
    "nobody": "synthetic, from the description of nobody (noise alone)",
}


def write_report(out: Path, *, readme: Path | None) -> None:
    """``tables.md`` and the figures in a folder, and the tables in the README."""
    files = {part: out / f"{part}.jsonl" for part in TITLES}
    read = {part: read_sweep(file).rows for part, file in files.items() if file.exists()}
    result = {part: rows for part, rows in read.items() if rows}
    text = "\n\n".join(_table(part, rows) for part, rows in result.items())
    (out / "tables.md").write_text(text + "\n", encoding="utf-8")
    write_between(readme, START, END, text)
    if result:
        _figure(result, out / "figure.png")


def _table(part: str, rows: Rows) -> str:
    sentences = not part.startswith("blogs")
    head = [
        "what is learnt from",
        "TF-IDF",
        *(["MiniLM"] if sentences else []),
        "labels right",
        *(["spread"] if sentences else []),
    ]
    lines = [f"**{TITLES[part]}.**", "", f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for settings, runs in sorted(by_settings(rows), key=lambda each: _place(part, each[0])):
        cells = [number_of(runs, "words")]
        if sentences:
            cells.append("" if settings["method"] == "released" else number_of(runs, "sentences"))
        right = 0.0 if settings["method"] in ("real", "released") else mean_of(runs, "right")
        cells.append("" if not right else f"{right:.2f}")
        if sentences:
            spread = mean_of(runs, "spread")
            cells.append("" if not spread else f"{spread:.2f}")
        lines.append(f"| {_described(part, settings)}{seeds_of(runs)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _place(part: str, settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Where a row stands: the texts themselves, synthetic ones by epsilon, what is beside them, what was changed."""
    method = settings["method"]
    if method != "described":
        return (2 * (method != "real"), list(NAMES).index(method), settings["epsilon"])
    changed = [
        settings["variety"] != USUAL["variety"],
        not part.startswith("blogs") and settings["features"] != "both",
        settings["people"] not in (0, 5000) and not settings["rarest"],
        bool(settings["rarest"]),
        settings["pool"] not in ("", part),
    ]
    if not any(changed):
        return (1, 0, settings["epsilon"])
    return (3, changed.index(True), settings["variety"], settings["people"], settings["pool"])


def _described(part: str, settings: Mapping[str, Any]) -> str:
    """A row's name: what is not as usual."""
    method = settings["method"]
    lines = [NAMES[method]]
    if method in ("described", "released", "votes"):
        lines.append(f"epsilon {settings['epsilon']:g}")
    if method in ("described", "votes", "released", "real") and settings["people"] not in (0, 5000):
        lines.append(f"{settings['people']:,} documents")
    if settings["rarest"]:
        lines.append(f"one label has {settings['rarest']} of them")
    if settings["variety"] != USUAL["variety"]:
        lines.append(f"variety {settings['variety']:g}")
    if method == "described" and not part.startswith("blogs") and settings["features"] != "both":
        lines.append(f"features {settings['features']!r}")
    if settings["pool"] not in ("", part):
        lines.append(f"pool: {settings['pool']}")
    return ", ".join(lines)


# -- the figure ------------------------------------------------------------------------------------------------

_LINES = (
    ("real", {"color": "0.45", "linestyle": "-", "linewidth": 1.0}),
    ("names of labels", {"color": "0.45", "linestyle": "--", "linewidth": 1.0}),
    ("random labels", {"color": "0.45", "linestyle": ":", "linewidth": 1.0}),
)


def _figure(found: Mapping[str, Rows], path: Path) -> None:
    """Accuracy against epsilon, and against spread along the dial; readable in grey."""
    figures = extra("matplotlib.figure", "report", "a figure")
    parts = [part for part in found if all(len(_curve(found[part], entry)) > 2 for entry in (_epsilon, _variety))]
    if not parts:
        return
    figure = figures.Figure(figsize=(4.4 * len(parts), 7.6), layout="constrained")
    extra("matplotlib.backends.backend_agg", "report", "a figure").FigureCanvasAgg(figure)  # no window
    panels = figure.subplots(2, len(parts), squeeze=False)
    for column, part in enumerate(parts):
        _against_epsilon(panels[0][column], part, found[part])
        _against_spread(panels[1][column], found[part])
    figure.savefig(path, dpi=130)
    figure.savefig(path.with_suffix(".svg"))


def _epsilon(settings: Mapping[str, Any], part: str) -> bool:
    return _plain(settings, part) and settings["variety"] == USUAL["variety"]


def _variety(settings: Mapping[str, Any], part: str) -> bool:
    return _plain(settings, part) and settings["epsilon"] == USUAL["epsilon"]


def _plain(settings: Mapping[str, Any], part: str) -> bool:
    usual = settings["people"] in (0, 5000) and settings["pool"] in ("", part) and not settings["rarest"]
    return (
        usual and settings["method"] == "described" and settings["features"] == ("words" if "blogs" in part else "both")
    )


def _curve(rows: Rows, chosen: Callable[[Mapping[str, Any], str], bool]) -> list[tuple[Mapping[str, Any], list[Row]]]:
    part = rows[0].settings["data"]
    return [(settings, runs) for settings, runs in by_settings(rows) if chosen(settings, part)]


def _against_epsilon(axes: Any, part: str, rows: Rows) -> None:
    axes.set_title(TITLES[part], fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("epsilon (delta 1e-6)")
    axes.set_ylabel("accuracy on real texts (95% over seeds)")
    curve = sorted(_curve(rows, _epsilon), key=lambda each: each[0]["epsilon"])
    for name, label, marker in (("words", "TF-IDF", "o"), ("sentences", "MiniLM", "s")):
        if part.startswith("blogs") and name == "sentences":
            continue
        estimates = [(settings["epsilon"], estimate_of(runs, name)) for settings, runs in curve]
        known = [(place, entry) for place, entry in estimates if entry is not None and entry.count > 2]
        axes.errorbar(
            [place for place, _ in known],
            [entry.value for _, entry in known],
            yerr=[(entry.high - entry.low) / 2 for _, entry in known],
            color="black",
            marker=marker,
            markerfacecolor="black" if name == "words" else "white",
            capsize=2,
            label=f"synthetic, {label}",
        )
    for method, style in _LINES:
        runs = [row for row in rows if row.settings["method"] == method]
        if runs:
            axes.axhline(mean_of(runs, "words"), zorder=0, **style)
            axes.annotate(
                f"{method}, TF-IDF",
                (8.0, mean_of(runs, "words")),
                xytext=(0, 3),
                textcoords="offset points",
                fontsize=7,
                ha="right",
            )
    ticks = [settings["epsilon"] for settings, _ in curve]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.legend(fontsize=7, loc="center right")


def _against_spread(axes: Any, rows: Rows) -> None:
    curve = sorted(_curve(rows, _variety), key=lambda each: each[0]["variety"])
    measured = "spread" if mean_of(curve[0][1], "spread") else "distinct words"
    axes.set_xlabel(
        "spread: mean distance of a text to its nearest other one"
        if measured == "spread"
        else "distinct words in 1,000 texts"
    )
    axes.set_ylabel("accuracy, epsilon 1")
    across = [mean_of(runs, measured) for _, runs in curve]
    axes.plot(across, [mean_of(runs, "words") for _, runs in curve], color="black", marker="o", label="TF-IDF")
    if measured == "spread":
        axes.plot(
            across,
            [mean_of(runs, "sentences") for _, runs in curve],
            color="black",
            marker="s",
            markerfacecolor="white",
            label="MiniLM",
        )
    for place, (settings, runs) in zip(across, curve, strict=True):
        axes.annotate(
            f"{settings['variety']:g}",
            (place, mean_of(runs, "words")),
            xytext=(0, 6),
            textcoords="offset points",
            fontsize=7,
            ha="center",
        )
    axes.legend(fontsize=7, title="numbers: variety", title_fontsize=7)
