"""Tables and the figure of the study's experiment, from its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpnr.printed import AG_NEWS, AS_LARGE, CLEAN, PRINTED_AS, SETS, TRAININGS, printed
from papers.dpnr.servers import DROPOUT_AT, SCHEDULES, TOKEN, true_epsilon
from papers.reports import (
    duration,
    error_bars,
    interval,
    join_sections,
    new_figure,
    require_rows,
    save_figure,
    table,
    write_between,
)

from dptext.intervals import Estimate, mean_over_runs
from papers import reports

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
PARTS = ("study", "printed", "dropout", "ours", "epochs")
DPNR, ONE_SCALAR = "DPNR", "DPNR, one scalar"
RUNS = 5  # of all results that are compared with a printed mean of as many
_ROUNDING = 0.005  # of numbers printed with two digits
_EMPTY = "-"  # neither printed nor measured


class Rows(reports.Rows):
    """The rows of one part on one data set."""

    @property
    def names(self) -> list[str]:
        return [name for name in self.rows[0].numbers if not name.startswith(TOKEN)]

    @property
    def epsilons(self) -> list[tuple[str, float]]:
        return [(name, float(name.partition(" ")[2])) for name in self.names if name.startswith("epsilon ")]

    @property
    def majority(self) -> str:
        return f"{self.constants['majority']:.3f}"

    @property
    def has_token_masks(self) -> bool:
        return any(name.startswith(TOKEN) for name in self.rows[0].numbers)

    def use_token_masks(self) -> Rows:
        """Return rows with the masks suggested by the study's numbers (`papers.dpnr.servers.BOTH`)."""
        result = copy(self)
        numbers = [
            row.numbers | {name: row.numbers.get(TOKEN + name, value) for name, value in row.numbers.items()}
            for row in self.rows
        ]
        result.rows = tuple(replace(row, numbers=entry) for row, entry in zip(self.rows, numbers, strict=True))
        return result


def server_settings(mechanism: str, dimension: int, training: str, epsilon: float) -> dict[str, Any]:
    """Return the settings of a server; only robust training has an epsilon."""
    server = {"mechanism": mechanism, "dimension": dimension, "training": training}
    return server | ({"epsilon": epsilon} if training == "robust" else {})


def is_reproduced(runs: list[float], printed: float, *, of: int = 5) -> bool:
    """Return whether a printed mean of ``of`` runs lies in the range that these runs predict (95%), after rounding.

    The difference of two means of n and m runs with one deviation s is within t s sqrt(1/n + 1/m).
    """
    spread = mean_over_runs(runs)
    half = (spread.high - spread.value) * math.sqrt(1 + len(runs) / of)
    return abs(spread.value - printed) <= half + _ROUNDING


def decision_accuracy(clean: Estimate, epsilon: float, classes: int) -> float:
    """Return the accuracy of a class that a device sends by randomised response (Kairouz et al. 2016).

    The class is kept with probability e^epsilon / (e^epsilon + k - 1), and otherwise replaced uniformly: pure epsilon
    for any two texts.
    """
    kept = 1 / (1 + (classes - 1) * math.exp(-epsilon))
    return clean.value * kept + (1 - clean.value) * (1 - kept) / (classes - 1)


def at_true_epsilon(rows: Rows, mechanism: str, dimension: int, training: str) -> list[tuple[float, Estimate]]:
    """Return (true epsilon, accuracy) of a mechanism; robust servers have the epsilon of their users."""
    result = [
        (true_epsilon(mechanism, epsilon, dimension), mean)
        for name, epsilon in rows.epsilons
        if (mean := rows.over_runs(name, **server_settings(mechanism, dimension, training, epsilon))) is not None
    ]
    return sorted(result, key=lambda point: point[0])


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``tables.md`` and ``figure.png`` next to the rows, and the main tables into a README."""
    result = {name: {part: rows for part in PARTS if (rows := Rows(out / f"{part} {name}.jsonl"))} for name in SETS}
    result = {name: parts for name, parts in result.items() if parts}
    require_rows(result, out)
    whole, brief = [], []
    for name, parts in result.items():
        sections = _sections(name, parts)
        # the samples of a set that also exists in the study's size: only what was measured on them alone
        is_sample = name == AG_NEWS and AS_LARGE in result
        whole += [text for _, text in sections]
        brief += [text for part, text in sections if part != "more" and not (is_sample and part == "study")]
    took = duration(rows for parts in result.values() for rows in parts.values())
    (out / "tables.md").write_text(join_sections([*whole, took]), encoding="utf-8")
    write_between(readme, START, END, join_sections([*brief, took]))
    draw(result, out / "figure.png")


def _sections(name: str, parts: Mapping[str, Rows]) -> list[tuple[str, str]]:
    """Return (part, table) for a set; the part ``more`` is in ``tables.md`` only."""
    any_rows = next(iter(parts.values()))
    constants = any_rows.constants
    head = (
        f"### {name}\n\n{constants['trained']:,} public training texts, {constants['tested']:,} test texts, "
        f"{constants['classes']} classes; **majority class {any_rows.majority}**."
    )
    sections = [("head", head)]
    study, as_printed = parts.get("study"), parts.get("printed")
    if study is not None:
        sections += [("study", study_table(study, name, dimension)) for dimension in study.values("dimension")]
        if as_printed is None and study.has_token_masks:
            as_printed = study.use_token_masks()
    if as_printed is not None:
        title = "nearer to how the study seems to have done it"
        dimensions = as_printed.values("dimension")
        sections += [("study", study_table(as_printed, name, dimension, title=title)) for dimension in dimensions]
    if study is not None:
        if rows := parts.get("dropout"):
            sections += [("dropout", dropout_table(rows, study, dimension)) for dimension in rows.values("dimension")]
        sections += [("scalar", one_scalar_table(study))]
        sections += [("more", servers_table(study, DPNR, max(study.values("dimension"))))]
    if rows := parts.get("ours"):
        sections += [("ours", proof_table(rows, study))]
        sections += [("more", servers_table(rows, "PrivUnit", min(rows.values("dimension"))))]
    if rows := parts.get("epochs"):
        sections += [("epochs", epochs_table(rows, study))]
    return sections


def study_table(rows: Rows, name: str, dimension: int, *, title: str = "the study's rows") -> str:
    """Return a half of figure 7 or 8: number [interval] (printed), with a star if it is not reproduced."""
    data = PRINTED_AS.get(name, "")
    reproduced: list[bool] = []

    def cell(number: str, training: str, epsilon: float, target: float | None) -> str:
        runs = rows.runs(number, **server_settings(DPNR, dimension, training, epsilon))
        if len(runs) < 2:
            return _EMPTY if target is None else f"not run (printed {target:.2f})"
        text = _spell(mean_over_runs(runs))
        if target is None:
            return text
        if len(runs) < RUNS:  # the range that so few runs predict is too wide
            return f"{text} ({target:.2f})"
        reproduced.append(is_reproduced(runs, target))
        return f"{text} ({target:.2f})" if reproduced[-1] else f"{text} ({target:.2f}\\*)"

    clean = cell("clean", "plain", math.nan, CLEAN.get((data, dimension)))
    lines = [["no noise", "", "inf", clean, _EMPTY, cell("clean", "adaptive", math.nan, None), rows.majority]]
    for number in rows.names[1:]:
        kind, _, value = number.partition(" ")
        epsilon = float(value) if kind == "epsilon" else DROPOUT_AT
        line = ["" if kind == "epsilon" else f"mu {value}", f"{epsilon:g}", _true(epsilon, dimension)]
        line += [cell(number, entry, epsilon, printed(data, dimension, entry, number)) for entry in TRAININGS]
        lines.append([*line, rows.majority])
    text = "" if data else " The study has no numbers for this set."
    if reproduced:
        text = (
            f" {sum(reproduced)} of {len(reproduced)} printed numbers lie in the range that these runs predict for "
            "five others (95%); a star marks the others."
        )
    head = ["", "claimed epsilon", "true epsilon", *(f"{entry} (printed)" for entry in TRAININGS), "majority class"]
    return f"**DPNR, d = {dimension}**, {title}.{text}\n\n{table(head, lines)}"


def dropout_table(rows: Rows, study: Rows, dimension: int) -> str:
    """Return servers that mask words during training, compared with the study's servers."""
    kinds = [(training, DROPOUT_AT if training == "robust" else None) for training in TRAININGS]
    lines = []
    for mu in rows.values("word_dropout"):
        line = [f"{mu:g}", f"{DROPOUT_AT:g}", _true(DROPOUT_AT, dimension)]
        for training, epsilon in kinds:
            server = {"mechanism": DPNR, "dimension": dimension, "training": training, "epsilon": epsilon}
            masked, whole = (
                {row.seed: row.numbers[f"mu {mu:g}"] for row in selected}
                for selected in (rows.select(word_dropout=mu, **server), study.select(**server))
            )
            both = sorted(masked.keys() & whole.keys())
            if len(both) < 2:
                line += ["not run", "not run"]
                continue
            change = mean_over_runs([masked[seed] - whole[seed] for seed in both])
            line += [_spell(mean_over_runs(list(masked.values()))), interval(change, sign=True)]
        lines.append([*line, rows.majority])
    head = ["mu of users", "claimed epsilon", "true epsilon"]
    for training, epsilon in kinds:
        label = training if epsilon is None else f"{training} at {epsilon:g}"
        head += [f"{label}, with masks", "minus without masks"]
    return (
        f"**Words masked during the server's training** (DPNR, d = {dimension}), with the users' mu. *Minus without "
        "masks*: difference to the same seeds without masks, run by run. The true epsilon is the same: masks do not "
        f"reduce it for two texts, and the server's texts are public.\n\n{table([*head, 'majority class'], lines)}"
    )


def one_scalar_table(rows: Rows) -> str:
    dimensions = rows.values("dimension", mechanism=ONE_SCALAR)
    if not dimensions:
        return ""
    kinds = [(dimension, training) for dimension in dimensions for training in ("plain", "robust")]
    lines = []
    for name, epsilon in rows.epsilons:
        servers = [server_settings(ONE_SCALAR, dimension, training, epsilon) for dimension, training in kinds]
        cells = [_spell(rows.over_runs(name, **server)) for server in servers]
        lines.append([f"{epsilon:g}", "inf", *cells, rows.majority])
    head = ["claimed epsilon", "true epsilon", *(f"d = {entry}, {training}" for entry, training in kinds)]
    numbers = table([*head, "majority class"], lines)
    return f"**One noise scalar for all coordinates**, as in the authors' code.\n\n{numbers}"


def servers_table(rows: Rows, mechanism: str, dimension: int) -> str:
    """Return the accuracy of each server for users at each epsilon."""
    users = [f"{epsilon:g}" for _, epsilon in rows.epsilons]
    servers: dict[str, dict[str, Any]] = {training: {"training": training} for training in ("plain", "adaptive")}
    servers |= {f"{epsilon:g}": {"training": "robust", "epsilon": epsilon} for _, epsilon in rows.epsilons}
    accuracies: dict[str, list[float]] = {}
    for server, settings in servers.items():
        options = settings | {"mechanism": mechanism, "dimension": dimension}
        means = [rows.over_runs(name, **options) for name, _ in rows.epsilons]
        if all(means):
            accuracies[server] = [mean.value for mean in means if mean]
    if not accuracies:
        return ""
    best = [max(accuracies, key=lambda server, place=place: accuracies[server][place]) for place in range(len(users))]
    labels = [server if server in ("plain", "adaptive") else f"robust at {server}" for server in best]
    which = "true epsilons"
    if mechanism == DPNR:
        which = f"claimed epsilons, of which true ones are {dimension} times as large"
    lines = [[server, *(f"{value:.3f}" for value in values)] for server, values in accuracies.items()]
    lines.append(["majority class", *[rows.majority] * len(users)])
    return (
        f"**Servers and users with different epsilons** ({mechanism}, d = {dimension}, {which}). Best server for users "
        f"at {', '.join(f'{user}: {label}' for user, label in zip(users, labels, strict=True))}.\n\n"
        + table(["server, by user", *users], lines)
    )


def proof_table(rows: Rows, study: Rows | None) -> str:
    """Return mechanisms with a proof at true epsilons, and their comparison with the best of DPNR."""
    kinds = list(dict.fromkeys((row.settings["mechanism"], row.settings["dimension"]) for row in rows.rows))
    smallest = min(rows.values("dimension"))
    clean = rows.over_runs("clean", mechanism=kinds[0][0], dimension=smallest, training="plain")
    lines = []
    for name, epsilon in rows.epsilons:
        cells = []
        for kind in kinds:
            robust, plain = (
                rows.over_runs(name, **server_settings(*kind, training, epsilon)) for training in ("robust", "plain")
            )
            cells.append(f"{_spell(robust) or 'not run'} / {f'{plain.value:.3f}' if plain else 'not run'}")
        decision = f"{decision_accuracy(clean, epsilon, rows.constants['classes']):.3f}" if clean else ""
        lines.append([f"{epsilon:g}", *cells, decision, rows.majority])
    head = ["true epsilon", *(f"{name}, d = {dimension}" for name, dimension in kinds)]
    text = (
        "**With a proof**: robust training at the users' epsilon / plain training; the Gaussian also has delta = 1e-5. "
        "*Decision*: the device classifies with the plain model and sends the class by randomised response (computed "
        "from its accuracy without noise).\n\n"
        + table([*head, "decision, randomised response", "majority class"], lines)
    )
    return text if study is None else f"{text}\n\n{_comparison(rows, study, kinds)}"


def _comparison(rows: Rows, study: Rows, kinds: list[Any]) -> str:
    """Return the smallest true epsilon at which a mechanism with a proof reaches the best of DPNR."""
    best, where = 0.0, ""
    for dimension in study.values("dimension"):
        for training in TRAININGS:
            for epsilon, mean in at_true_epsilon(study, DPNR, dimension, training):
                if mean.value > best:
                    best, where = mean.value, f"d = {dimension}, {training}, true epsilon {epsilon:g}"
    for mechanism, dimension in kinds:
        for epsilon, mean in at_true_epsilon(rows, mechanism, dimension, "robust"):
            if mean.value >= best:
                reached = f"{mechanism} with d = {dimension} reaches it at epsilon {epsilon:g} ({mean.value:.3f})"
                return f"The best of DPNR is {best:.3f} ({where}); {reached}."
    return f"The best of DPNR, {best:.3f} ({where}), is above all of these."


def epochs_table(rows: Rows, study: Rows | None) -> str:
    """Return more epochs and other schedules; servers that the study has too are in its rows."""
    dimension = rows.values("dimension")[0]
    if study is not None:
        cells = {row.key for row in rows.rows}
        known = (row for row in study.rows if row.key not in cells and row.settings["dimension"] == dimension)
        rows = copy(rows)
        rows.rows += tuple(row for row in known if row.settings["mechanism"] == DPNR)
    trainings = {(row.settings["training"], row.settings["epsilon"], row.settings["schedule"]) for row in rows.rows}
    schedules = [None, *SCHEDULES]
    order: Any = lambda kind: (TRAININGS.index(kind[0]), kind[1] or 0.0, schedules.index(kind[2]))  # noqa: E731
    lines = []
    best: dict[float, tuple[float, str]] = {}
    for epochs in sorted(rows.values("epochs")):
        for training, epsilon, schedule in sorted(trainings, key=order):
            settings = {"epochs": epochs, "training": training, "epsilon": epsilon, "schedule": schedule}
            means = [rows.over_runs(name, **settings) for name in ("clean", *(name for name, _ in rows.epsilons))]
            if not any(means):
                continue
            label = schedule or (training if epsilon is None else f"{training} at {epsilon:g}")
            runs = min(mean.count for mean in means if mean)
            few = f" ({runs} runs)" if runs < RUNS else ""
            lines.append([str(epochs), f"{label}{few}", *(f"{mean.value:.3f}" if mean else _EMPTY for mean in means)])
            for (_, user), mean in zip(rows.epsilons, means[1:], strict=True):
                if mean:
                    best[user] = max(best.get(user, (0.0, "")), (mean.value, f"{label}, {epochs} epochs"))
    lines.append(["", "majority class", *[rows.majority] * (1 + len(rows.epsilons))])
    text = "; ".join(f"{user:g}: {label} ({value:.3f})" for user, (value, label) in best.items())
    title = f"**More epochs, other schedules** (DPNR, d = {dimension}; users at claimed epsilons)."
    head = ["epochs", "training", "no noise", *(f"{epsilon:g}" for _, epsilon in rows.epsilons)]
    return f"{title}{f' Best for users at {text}.' if text else ''}\n\n{table(head, lines, text_columns=2)}"


def _true(epsilon: float, dimension: int) -> str:
    return f"{true_epsilon(DPNR, epsilon, dimension):g}"


def _spell(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    few = f"; {estimate.count} runs" if estimate.count < RUNS else ""
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}{few}]"


# -- the figure: accuracy against true epsilon, for DPNR and for mechanisms with a proof -------------------------------

_STYLES: dict[tuple[int, str], dict[str, Any]] = {
    (32, "plain"): {"color": "0.6", "linestyle": ":", "marker": "v"},
    (32, "robust"): {"color": "0.6", "linestyle": "--", "marker": "^"},
    (64, "plain"): {"color": "0.45", "linestyle": ":", "marker": "v", "markerfacecolor": "white"},
    (64, "robust"): {"color": "0.45", "linestyle": "--", "marker": "^", "markerfacecolor": "white"},
    (64, "adaptive"): {"color": "0.45", "linestyle": "-.", "marker": "D", "markerfacecolor": "white"},
}
_PROVED_STYLES: dict[str, dict[str, Any]] = {
    "PrivUnit": {"color": "black", "linestyle": "-", "marker": "o"},
    "L2Laplace": {"color": "black", "linestyle": "-", "marker": "s", "markerfacecolor": "white"},
    "Gaussian": {"color": "black", "linestyle": "-", "marker": "x"},
}
_LARGEST = 400.0


def draw(sets: Mapping[str, Mapping[str, Rows]], path: Path) -> None:
    figure, panels = new_figure(6.4 * len(sets), 5.6, 1, len(sets))
    for axes, (name, parts) in zip(panels[0], sets.items(), strict=True):
        _panel(axes, name, parts)
    save_figure(figure, path)


def _panel(axes: Any, name: str, parts: Mapping[str, Rows]) -> None:
    axes.set_xscale("log", base=2)
    axes.set(title=name, xlabel="true epsilon of a text, for any two texts (log scale)")
    axes.set_ylabel("accuracy (95% over runs)")
    constants = next(iter(parts.values())).constants
    _level(axes, constants["majority"], "majority class", -9)
    if study := parts.get("study"):
        for (dimension, training), style in _STYLES.items():
            if dimension in study.values("dimension"):
                points = at_true_epsilon(study, DPNR, dimension, training)
                _curve(axes, points, f"DPNR d={dimension}, {training}", style)
        clean = study.over_runs("clean", mechanism=DPNR, dimension=min(study.values("dimension")), training="plain")
        if clean is not None:
            _level(axes, clean.value, "no noise", 3, linestyle="--")
    if rows := parts.get("ours"):
        smallest = min(rows.values("dimension"))
        for mechanism, style in _PROVED_STYLES.items():
            points = at_true_epsilon(rows, mechanism, smallest, "robust")
            _curve(axes, points, f"{mechanism} d={smallest}, robust", style)
        points = at_true_epsilon(rows, "PrivUnit", smallest, "plain")
        _curve(axes, points, f"PrivUnit d={smallest}, plain", _PROVED_STYLES["PrivUnit"] | {"linestyle": "--"})
        clean = rows.over_runs("clean", mechanism="PrivUnit", dimension=smallest, training="plain")
        if clean is not None:
            epsilons = np.geomspace(1.0, _LARGEST, 60)
            shares = [decision_accuracy(clean, epsilon, constants["classes"]) for epsilon in epsilons]
            style = {"color": "black", "linestyle": (0, (1, 1)), "linewidth": 1.0}
            axes.plot(epsilons, shares, label="decision, randomised response", **style)
    axes.set_xlim(0.9, _LARGEST)
    axes.set_xticks(ticks := [2**power for power in range(9)], [str(tick) for tick in ticks])
    axes.grid(visible=True, color="0.93", linewidth=0.6)
    if axes.get_legend_handles_labels()[0]:  # none where every server was trained once
        axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False)


def _level(axes: Any, accuracy: float, text: str, offset: int, **style: Any) -> None:
    axes.axhline(accuracy, color="0.8", linewidth=1.2, zorder=0, **style)
    axes.annotate(text, (1.0, accuracy), xytext=(0, offset), textcoords="offset points", fontsize=7)


def _curve(axes: Any, points: list[tuple[float, Estimate]], label: str, style: dict[str, Any]) -> None:
    finite = [(epsilon, mean) for epsilon, mean in points if math.isfinite(epsilon)]
    if finite:
        error_bars(axes, finite, label=label, capsize=2, markersize=4, **style)
