"""Tables and the figure of part two, from its rows: neighbours over the steps, and the delta column of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpugc.age import WORDS_AND_CHARACTERS
from papers.dpugc.models import Model
from papers.dpugc.report import STYLES
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

from dptext.errors import extra
from dptext.privacy.gaussian import gaussian_epsilon

PRINTED = {
    20: 0.0184,
    200: 0.0189,
    500: 0.0197,
    1_000: 0.0211,
    5_000: 0.0372,
    10_000: 0.0755,
    50_000: 0.5929,
    90_000: 0.7681,
    100_000: 0.7926,
}
"""Deltas of table 3 by the number of steps, of (0.125, delta).

The authors' code (https://github.com/sonvx/dpText, `codes/word2vec/tf_dp_word_embedding.py`) calls the moments
accountant of Abadi et al. 2016 with N = the size of the *vocabulary* instead of the number of training examples.
"""
EPSILON, SIGMA, LOT, VOCABULARY, MAX_ORDER = 0.125, 5.0, 128, 50_000, 32
TEXT8_PAIRS = 2 * 17_005_207  # two pairs a word (table 1; `num_skips` of the code)
MYPER_WORDS, MYPER_USERS = 416_862_367, 153_727  # table 1, the private part
USER_PAIRS = round(2 * MYPER_WORDS / MYPER_USERS)
CLIP = 0.01  # C of the code, whose noise has a standard deviation of sigma C^2: so sigma C clipping norms
DELTA = 1e-6
LOSSES = {
    "a pair of 50,000": (1, VOCABULARY),
    "a pair of text8": (1, TEXT8_PAIRS),
    "a user of myPersonality": (USER_PAIRS, 2 * MYPER_WORDS),
}
"""Privacy units: their number of pairs, and the number of all pairs."""


def moments_delta(steps: int, *, rate: float, sigma: float, epsilon: float, orders: int) -> tuple[float, int]:
    """Return (delta, its order) of the moments accountant, for whole orders from 1 to ``orders``.

    For zero loss it still returns  min over lambda of e^(-lambda epsilon) = e^(-orders epsilon).
    """
    result = []
    for order in range(1, orders + 1):
        moment = steps * _log_moment(order, rate, sigma)  # Abadi et al. 2016, theorem 2.1: they add up
        result.append((math.exp(min(0.0, moment - order * epsilon)), order))  # theorem 2.2
    return min(result)


def measure_costs(settings: Mapping[str, Any], _seed: int) -> dict[str, float]:
    """Return the accountant's delta and the exact loss for ``steps`` and ``of``, one of `LOSSES`.

    The deltas are upper bounds, exact up to the grid.
    """
    steps = settings["steps"]
    user_pairs, all_pairs = LOSSES[settings["of"]]
    loss = _loss(user_pairs, all_pairs, steps)
    moments, order = moments_delta(steps, rate=LOT / all_pairs, sigma=SIGMA, epsilon=EPSILON, orders=MAX_ORDER)
    return {
        "moments delta": moments,
        "moments order": float(order),
        "delta": float(loss.get_delta_for_epsilon(EPSILON)),
        "epsilon": float(loss.get_epsilon_for_delta(DELTA)),
    }


def epsilon_of_a_step_as_coded() -> float:
    """Return the epsilon of one step for a pair in it, with the noise sigma C^2 of the code instead of sigma C.

    This is a lower bound, attained if a changed pair moves the sum by C. (The code clips the mean of a lot instead of
    its pairs, separately for three tables, so one pair can reverse it, by twice C each.)
    """
    return gaussian_epsilon(sigma=SIGMA * CLIP, delta=DELTA, sensitivity=1.0)


def _log_moment(order: int, rate: float, sigma: float) -> float:
    """Return ln E[(mixture / N(0, sigma^2))^(order + 1)] under N(0, sigma^2), the larger of the two moments of a step.

    The sum of binomial terms of Mironov, Talwar and Zhang 2019, section 3.3.
    """
    power = order + 1
    terms = [
        math.log(math.comb(power, k))
        + (power - k) * math.log1p(-rate)
        + (k * math.log(rate) if k else 0.0)
        + (k * k - k) / (2 * sigma**2)
        for k in range(power + 1)
    ]
    maximum = max(terms)
    return maximum + math.log(sum(math.exp(term - maximum) for term in terms))


@cache
def _loss(user_pairs: int, all_pairs: int, steps: int) -> Any:
    """Return the loss of all steps for a user whose pairs are sampled independently.

    With k pairs in a lot the sum moves by k: a mixture of Gaussians (Ganesh 2024, "Tight group-level DP guarantees for
    DP-SGD with sampling via mixture of Gaussians mechanisms").
    """
    accounting = extra("dp_accounting.pld.privacy_loss_distribution", "accounting", "accounting of samples")
    rate = LOT / all_pairs
    chances = [_binomial(user_pairs, count, rate) for count in range(min(user_pairs, 6))]
    chances.append(max(0.0, 1 - math.fsum(chances)))  # 6 pairs or more, of which there are none to speak of
    one = accounting.from_mixture_gaussian_mechanism(
        standard_deviation=SIGMA,
        sensitivities=[float(count) for count in range(len(chances))],
        sampling_probs=chances,
        value_discretization_interval=1e-5,
    )
    return one.self_compose(steps) if steps > 1 else one


def _binomial(tries: int, count: int, chance: float) -> float:
    return math.comb(tries, count) * chance**count * (1 - chance) ** (tries - count)


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
    parts.append(duration(files))
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
