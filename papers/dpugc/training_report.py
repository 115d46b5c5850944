"""Tables and the figure of part two, from its rows: neighbours over the steps, and the delta column of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpugc.age import WORDS_AND_CHARACTERS
from papers.dpugc.figure import STYLES
from papers.dpugc.models import Model
from papers.dpugc.published import EPSILON, LOSSES, MAX_ORDER, PRINTED, epsilon_of_a_step_as_coded
from papers.dpugc.results import Rows
from papers.dpugc.trained import KINDS, PAIRS, USERS
from papers.reports import (
    duration,
    error_bars,
    interval,
    new_figure,
    plain,
    require_rows,
    save_figure,
    table,
    write_tables,
)

START, END = "<!-- tables of part two: written by the experiment -->", "<!-- end of the tables of part two -->"
TIMES = 10
SKIP_GRAM, SKIP_GRAM_CLIPPED = "skip-gram", "skip-gram, no noise"
SKIP_GRAM_LARGER = f"skip-gram, simulated: {TIMES} times the people"
CORPORA = ("WikiText-2", "text8", "blogs", "IMDb")
BENCHMARKS = ("WordSim-353", "MEN", "MTurk-771", "SimLex-999")
ORDER = ("private", SKIP_GRAM, "simulated: 8 times the people", SKIP_GRAM_LARGER, "no noise", SKIP_GRAM_CLIPPED)
RELEASE = "Cooccurrence"
CURVES = {
    "users": (
        ("plain", None, "another word2vec"),
        ("clipped, farther", None, "users clipped, no noise, larger steps"),
        ("clipped", None, "users clipped, no noise"),
        ("private", 8.0, "users, epsilon 8"),
    ),
    "pairs": (
        ("clipped pairs, farther", None, "pairs clipped, no noise, larger steps"),
        ("private pairs, farther", 8.0, "pairs, epsilon 8, larger steps"),
        ("private pairs", 8.0, "pairs, epsilon 8"),
        ("pairs as printed", None, "pairs, sigma = 5"),
    ),
}


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``training.md`` and the figure next to the rows, and the tables into a README."""
    none = Rows(out / "none")
    steps, spent, frequent, compared = (
        {name: rows for name in CORPORA if (rows := Rows(out / f"{part}_{name}.jsonl"))}
        for part in ("steps", "spent", "frequent", "compare")
    )
    age, delta = Rows(out / "training_age.jsonl"), Rows(out / "delta.jsonl")
    require_rows(steps or compared or age or delta, out)
    parts: list[str] = []
    for name, rows in steps.items():
        for kinds, unit in ((USERS, "users"), (PAIRS, "pairs")):
            parts += [
                neighbours_table(name, rows, spent.get(name, none), frequent.get(name, none), measure, kinds, unit)
                for measure in ("MAP-Word", "MAP-Char")
            ]
    if age:
        parts.append(age_table(age, spent.get("blogs", none)))
    if delta:
        parts.append(delta_table(delta))
    if compared:
        parts += [compared_table(compared), between_table(compared)]
    files = [*steps.values(), *spent.values(), *frequent.values(), *compared.values(), age, delta]
    parts.append(duration(sum(len(rows.rows) for rows in files), sum(rows.seconds for rows in files)))
    write_tables(out / "training.md", parts, readme=readme, start=START, end=END)
    draw(steps, frequent, delta, out / "training.png")


def neighbours_table(
    corpus: str, rows: Rows, spent: Rows, frequent: Rows, measure: str, kinds: tuple[str, ...], unit: str
) -> str:
    models = [model for model in rows.models(kinds) if model.kind in kinds]
    if not models:
        return ""
    marks = rows.values("steps", model=models[0].kind)
    lines = []
    for model in models:
        means = [plain(rows.mean(measure, **model.settings, steps=mark)) for mark in marks]
        last = rows.precision(measure, **model.settings, steps=marks[-1])
        cost = spent.mean("spent", **model.settings, steps=marks[-1])
        lines.append([_label(model), *means, f"[{last.low:.3f}, {last.high:.3f}]" if last else "", _spent(model, cost)])
    random = plain(rows.mean(f"{measure} random"))
    lines.append(["random words", *(random for _ in marks), "", ""])
    if (blind := frequent.precision(measure)) is not None:
        means = [plain(blind.value) for _ in marks]
        lines.append(["the most frequent words", *means, f"[{blind.low:.3f}, {blind.high:.3f}]", ""])
    head = ["model", *(f"{mark:,}" for mark in marks), "95% interval, last step", "epsilon spent"]
    return (
        f"**{measure}, {corpus}, noise for {unit}**, by the number of steps, against the gold model; "
        f"{rows.constants['users']:,} users [95% over queries and runs].\n\n{table(head, lines)}"
    )


def age_table(rows: Rows, spent: Rows) -> str:
    models = [model for model in rows.models(("private", "clipped", "plain")) if model.kind in KINDS]
    learners = rows.values("learner")
    private = [model for model in models if model.epsilon is not None]
    lines = []
    for mark in (steps for steps in rows.values("steps") if steps is not None):
        errors = [
            interval(rows.estimate("RMSE", learner=learner, **model.settings, steps=mark), 2)
            for learner in learners
            for model in models
        ]
        costs = [_spent(model, spent.mean("spent", **model.settings, steps=mark)) for model in private]
        lines.append([f"{mark:,}", *errors, *costs])
    blind = rows.estimate("mean age", learner=learners[0], model=WORDS_AND_CHARACTERS)
    public = "; ".join(
        f"{learner} {interval(rows.estimate('RMSE', learner=learner, model=model), 2)} with {model}"
        for learner in learners
        for model in rows.values("model")
        if model not in KINDS
    )
    head = ["steps", *(f"{learner}, {_label(model)}" for learner in learners for model in models)]
    head += [f"epsilon spent, {_label(model)}" for model in private]
    return (
        f"**Table 3's layout: age.** RMSE in years of {rows.constants['held out']} held-out bloggers "
        f"[95% over people and runs]. Mean age (baseline): {interval(blind, 2)}. Baselines: {public}. The columns add "
        f"vectors after the number of steps to words and characters.\n\n{table(head, lines)}"
    )


def delta_table(rows: Rows) -> str:
    first, *_ = LOSSES
    lines = []
    for steps, printed in PRINTED.items():
        numbers = {name: rows.select(of=name, steps=steps)[0].numbers for name in LOSSES}
        line = [f"{steps:,}", f"{printed:.4f}", f"{numbers[first]['moments delta']:.4f}"]
        line.append(f"{numbers[first]['moments order']:.0f}")
        line += ["below 1e-14" if entry["delta"] < 1e-14 else f"{entry['delta']:.2g}" for entry in numbers.values()]
        lines.append([*line, *(f"{entry['epsilon']:.4f}" for entry in numbers.values())])
    head = ["steps", "printed", f"moments accountant, N = {first.rpartition(' ')[2]}", "order"]
    head += [f"delta, {name}" for name in LOSSES] + [f"epsilon, {name}" for name in LOSSES]
    return (
        f"**The delta column.** The paper's delta at epsilon {EPSILON}, the value of its accountant, and the exact "
        "privacy loss if lots were drawn at random and the noise were as stated: delta at that epsilon, and epsilon at "
        f"delta 1e-6. With the noise of the code one step has epsilon {epsilon_of_a_step_as_coded():.0f} for a pair "
        f"that is in it.\n\n{table(head, lines)}"
    )


def compared_table(compared: dict[str, Rows]) -> str:
    lines = []
    for name, rows in compared.items():
        lines.append([f"{name}, {rows.constants['users']:,} users", "public, processed", *_public_scores(rows)])
        for model in rows.models(ORDER):
            settings = model.settings | {"beside": "public, processed"}
            cells = []
            for benchmark in BENCHMARKS:
                score = plain(rows.mean("score", **settings, benchmark=benchmark))
                difference = interval(rows.estimate("difference", **settings, benchmark=benchmark), sign=True)
                cells.append(f"{score} ({difference})" if score else "")
            lines.append(["", _released(model), *cells])
    return (
        "**Skip-gram and the one release**, from the same public vectors: Spearman's correlation with human ratings, "
        "and the difference to processed public vectors [95% over pairs and runs].\n\n"
        + table(["corpus", "model", *BENCHMARKS], lines, text_columns=2)
    )


def between_table(compared: dict[str, Rows]) -> str:
    lines = []
    for name, rows in compared.items():
        for model in rows.models(ORDER):
            other = {SKIP_GRAM: "private", SKIP_GRAM_CLIPPED: "no noise"}.get(model.kind)
            if other is not None:
                settings = model.settings | {"beside": other}
                cells = [
                    interval(rows.estimate("difference", **settings, benchmark=benchmark), sign=True)
                    for benchmark in BENCHMARKS
                ]
                lines.append([name, "no noise" if model.epsilon is None else f"epsilon {model.epsilon:g}", *cells])
    head = ["corpus", "both at", *BENCHMARKS]
    return f"**Skip-gram minus {RELEASE}** at equal epsilon, same pairs and runs [95%].\n\n" + table(
        head, lines, text_columns=2
    )


def _public_scores(rows: Rows) -> list[str]:
    """Return the scores of processed public vectors: score minus difference of any row."""
    cells = []
    for benchmark in BENCHMARKS:
        first = rows.select(beside="public, processed", benchmark=benchmark)[:1]
        cells += [plain(row.numbers["score"] - row.numbers["difference"]) for row in first] or [""]
    return cells


def _label(model: Model) -> str:
    return str(model).replace("farther", "larger steps")


def _released(model: Model) -> str:
    if model.kind.startswith(SKIP_GRAM):
        return str(model)
    return str(Model(RELEASE if model.kind == "private" else f"{RELEASE}, {model.kind}", model.epsilon))


def _spent(model: Model, cost: float | None) -> str:
    if KINDS[model.kind].mode != "private":
        return "no guarantee"
    if cost is None:
        return ""
    return "a simulation" if KINDS[model.kind].times > 1 else f"{cost:.3g}"


# -- the figure ------------------------------------------------------------------------------------------------


def draw(steps: Mapping[str, Rows], frequent: Mapping[str, Rows], delta: Rows, path: Path) -> None:
    """Draw a panel for each corpus and unit, and one for the deltas; readable in grey."""
    curves = [
        (name, unit)
        for name, rows in steps.items()
        for unit in CURVES
        if any(rows.select(model=model, epsilon=epsilon) for model, epsilon, _ in CURVES[unit])
    ]
    count = len(curves) + bool(delta)
    if not count:
        return
    columns = min(2, count)
    lines = -(-count // columns)
    figure, grid = new_figure(5.6 * columns, 4.6 * lines, lines, columns)
    panels = grid.ravel()
    for axes, (name, unit) in zip(panels, curves, strict=False):
        _neighbours(axes, name, steps[name], frequent.get(name), unit)
    if delta:
        _deltas(panels[len(curves)], delta)
    for axes in panels[:count]:
        axes.grid(visible=True, color="0.93", linewidth=0.6)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 2, "frameon": False}
        axes.legend(fontsize=8, **below)
    for axes in panels[count:]:
        axes.set_visible(False)
    save_figure(figure, path, svg=True)


def _neighbours(axes: Any, corpus: str, rows: Rows, frequent: Rows | None, unit: str) -> None:
    axes.set_title(f"{corpus}: neighbours of the gold model")
    axes.set_ylabel("MAP-Word (95% over queries and runs)")
    axes.set_xlabel("steps" if unit == "users" else "steps, noise for pairs")
    axes.set_xscale("symlog", linthresh=10, linscale=0.4)
    axes.axhline(rows.mean("MAP-Word random") or 0.0, color="0.75", label="random words", zorder=0)
    blind = None if frequent is None else frequent.precision("MAP-Word")
    if blind is not None:
        axes.axhline(blind.value, color="0.6", linestyle=":", label="the most frequent words", zorder=0)
    for (model, epsilon, label), style in zip(CURVES[unit], STYLES, strict=False):
        points = [
            (mark, rows.precision("MAP-Word", model=model, epsilon=epsilon, steps=mark))
            for mark in rows.values("steps", model=model, epsilon=epsilon)
        ]
        if points:
            known = ((mark, estimate) for mark, estimate in points if estimate is not None)
            error_bars(axes, known, label=label, capsize=2.5, markersize=4.5, **style)
    axes.set_ylim(bottom=0)


def _deltas(axes: Any, rows: Rows) -> None:
    axes.set_title(f"The paper's delta at epsilon {EPSILON}")
    axes.set_xlabel("steps")
    axes.set_ylabel("delta (from 1e-12 on)")
    axes.set_xscale("log")
    axes.set_yscale("log")
    steps = list(PRINTED)
    first, *_ = LOSSES
    moments = [rows.mean("moments delta", of=first, steps=step) for step in steps]
    axes.plot(steps, moments, label=f"moments accountant, N = {first.rpartition(' ')[2]}", color="0.6", zorder=1)
    axes.plot(steps, list(PRINTED.values()), "ko", markersize=5, label="printed")
    floor = np.exp(-MAX_ORDER * EPSILON)
    axes.axhline(floor, color="0.75", linestyle=":", label=f"e^(-{MAX_ORDER} epsilon) = {floor:.4f}", zorder=0)
    for name, style in zip(LOSSES, STYLES[1:], strict=False):
        exact = [rows.mean("delta", of=name, steps=step) or 0.0 for step in steps]
        if max(exact) >= 1e-12:
            axes.plot(steps, exact, label=f"exact, {name}", markersize=4.5, **style)
    axes.set_ylim(1e-12, 2)
