"""Tables and the figure of the study's experiment, from its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from papers.dpnr.figure import draw
from papers.dpnr.printed import AG_NEWS, AS_LARGE, CLEAN, PRINTED_AS, ROWS, SETS, TRAININGS, printed
from papers.dpnr.results import Rows, at_true_epsilon, decision_accuracy, is_reproduced, server_settings
from papers.dpnr.servers import DROPOUT_AT, SCHEDULES, true_epsilon
from papers.reports import duration, interval, join_sections, require_rows, table, write_between

from dptext.intervals import Estimate, mean_over_runs

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
PARTS = ("study", "printed", "dropout", "ours", "epochs")
PUBLISHED = "DPNR"
ONE_SCALAR = "DPNR, one scalar"
RUNS = 5  # of all results that are compared with a printed mean of as many
_EMPTY = "-"  # neither printed nor measured


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``tables.md`` and ``figure.png`` next to the rows, and the main tables into a README."""
    result = {name: {part: rows for part in PARTS if (rows := Rows(out / f"{part} {name}.jsonl"))} for name in SETS}
    result = {name: parts for name, parts in result.items() if parts}
    require_rows(result, out)
    whole, brief = [], []
    for name in SETS:
        sections = _sections(name, result[name]) if name in result else _not_run(name)
        # the samples of a set that also exists in the study's size: only what was measured on them alone
        is_sample = name == AG_NEWS and AS_LARGE in result
        whole += [text for _, text in sections]
        brief += [text for part, text in sections if part not in ("more", *(["study"] if is_sample else []))]
    every = [rows for parts in result.values() for rows in parts.values()]
    took = duration(sum(len(rows.rows) for rows in every), sum(rows.seconds for rows in every))
    (out / "tables.md").write_text(join_sections([*whole, took]), encoding="utf-8")
    write_between(readme, START, END, join_sections([*brief, took]))
    draw(result, out / "figure.png")


def _sections(name: str, parts: Mapping[str, Rows]) -> list[tuple[str, str]]:
    """Return (part, table) for a set; the part ``more`` is in ``tables.md`` only."""
    constants = next(iter(parts.values())).constants
    head = (
        f"### {name}\n\n{constants['trained']:,} public training texts, {constants['tested']:,} test texts, "
        f"{constants['classes']} classes; **majority class {constants['majority']:.3f}**."
    )
    sections = [("head", head)]
    study = parts.get("study")
    if study is not None:
        sections += [("study", study_table(study, name, dimension)) for dimension in study.values("dimension")]
    as_printed = parts.get("printed")
    if as_printed is None and study is not None and study.has_token_masks:
        as_printed = study.use_token_masks()
    if as_printed is not None:
        title = "nearer to how the study seems to have done it"
        sections += [
            ("study", study_table(as_printed, name, dimension, title=title))
            for dimension in as_printed.values("dimension")
        ]
    if "dropout" in parts and study is not None:
        rows = parts["dropout"]
        sections += [("dropout", dropout_table(rows, study, dimension)) for dimension in rows.values("dimension")]
    if study is not None:
        sections += [("scalar", one_scalar_table(study))]
        sections += [("more", servers_table(study, PUBLISHED, max(study.values("dimension"))))]
    if "ours" in parts:
        rows = parts["ours"]
        sections += [("ours", proof_table(rows, study))]
        sections += [("more", servers_table(rows, "PrivUnit", min(rows.values("dimension"))))]
    if "epochs" in parts:
        rows = parts["epochs"]
        largest = {"mechanism": PUBLISHED, "dimension": rows.values("dimension")[0]}
        sections += [("epochs", epochs_table(rows.add(study, **largest)))]
    return sections


def _not_run(name: str) -> list[tuple[str, str]]:
    """Return the printed numbers of a set without rows."""
    if name == AS_LARGE or name not in PRINTED_AS:
        return []
    why = f"### {name}\n\nNot run: no file is available (`--{name.lower()} FILE` or `--hub` runs it)."
    return [("head", why), *(("study", study_table(None, name, dimension)) for dimension in (32, 64))]


def study_table(rows: Rows | None, name: str, dimension: int, *, title: str = "the study's rows") -> str:
    """Return a half of figure 7 or 8: number [interval] (printed), with a star if it is not reproduced."""
    data = PRINTED_AS.get(name, "")
    reproduced: list[bool] = []

    def cell(number: str, training: str, epsilon: float, target: float | None) -> str:
        runs = [] if rows is None else rows.runs(number, **server_settings(PUBLISHED, dimension, training, epsilon))
        if len(runs) < 2:
            return _EMPTY if target is None else f"not run (printed {target:.2f})"
        text = _spell(mean_over_runs(runs))
        if target is None:
            return text
        if len(runs) < RUNS:  # the range that so few runs predict is too wide
            return f"{text} ({target:.2f})"
        reproduced.append(is_reproduced(runs, target))
        return f"{text} ({target:.2f})" if reproduced[-1] else f"{text} ({target:.2f}\\*)"

    majority = _EMPTY if rows is None else f"{rows.constants['majority']:.3f}"
    clean = cell("clean", "plain", math.nan, CLEAN.get((data, dimension)))
    lines = [["no noise", "", "inf", clean, _EMPTY, cell("clean", "adaptive", math.nan, None), majority]]
    for number in rows.names[1:] if rows is not None else ROWS:
        kind, _, value = number.partition(" ")
        epsilon = float(value) if kind == "epsilon" else DROPOUT_AT
        line = ["" if kind == "epsilon" else f"mu {value}", f"{epsilon:g}", _true(PUBLISHED, epsilon, dimension)]
        line += [cell(number, entry, epsilon, printed(data, dimension, entry, number)) for entry in TRAININGS]
        lines.append([*line, majority])
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
        line = [f"{mu:g}", f"{DROPOUT_AT:g}", _true(PUBLISHED, DROPOUT_AT, dimension)]
        for training, epsilon in kinds:
            server = {"mechanism": PUBLISHED, "dimension": dimension, "training": training, "epsilon": epsilon}
            masked = rows.seed_numbers(f"mu {mu:g}", word_dropout=mu, **server)
            whole = study.seed_numbers(f"mu {mu:g}", **server)
            both = sorted(masked.keys() & whole.keys())
            if len(both) < 2:
                line += ["not run", "not run"]
                continue
            change = mean_over_runs([masked[seed] - whole[seed] for seed in both])
            line += [_spell(mean_over_runs(list(masked.values()))), interval(change, sign=True)]
        lines.append([*line, f"{rows.constants['majority']:.3f}"])
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
    """Return the authors' code: one draw of noise for all coordinates."""
    kinds = [
        (dimension, training)
        for dimension in rows.values("dimension", mechanism=ONE_SCALAR)
        for training in ("plain", "robust")
    ]
    if not kinds:
        return ""
    lines = []
    for name in _epsilons(rows):
        epsilon = _number(name)
        servers = [server_settings(ONE_SCALAR, dimension, training, epsilon) for dimension, training in kinds]
        cells = [_spell(rows.over_runs(name, **server)) for server in servers]
        lines.append([f"{epsilon:g}", "inf", *cells, f"{rows.constants['majority']:.3f}"])
    head = ["claimed epsilon", "true epsilon", *(f"d = {entry}, {training}" for entry, training in kinds)]
    return "**One noise scalar for all coordinates**, as in the authors' code.\n\n" + table(
        [*head, "majority class"], lines
    )


def servers_table(rows: Rows, mechanism: str, dimension: int) -> str:
    """Return the accuracy of each server for users at each epsilon."""
    names = _epsilons(rows)
    servers = {"plain": {"training": "plain"}, "adaptive": {"training": "adaptive"}} | {
        f"{_number(name):g}": {"training": "robust", "epsilon": _number(name)} for name in names
    }
    accuracies: dict[str, list[float]] = {}
    for server, settings in servers.items():
        means = [rows.over_runs(name, mechanism=mechanism, dimension=dimension, **settings) for name in names]
        if all(means):
            accuracies[server] = [mean.value for mean in means if mean]
    if not accuracies:
        return ""
    users = [f"{_number(name):g}" for name in names]
    best = [max(accuracies, key=lambda server, place=place: accuracies[server][place]) for place in range(len(users))]
    labels = [server if server in ("plain", "adaptive") else f"robust at {server}" for server in best]
    which = "true epsilons"
    if mechanism == PUBLISHED:
        which = f"claimed epsilons, of which true ones are {dimension} times as large"
    lines = [[server, *(f"{value:.3f}" for value in values)] for server, values in accuracies.items()]
    lines.append(["majority class", *[f"{rows.constants['majority']:.3f}"] * len(users)])
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
    for name in _epsilons(rows):
        epsilon = _number(name)
        cells = []
        for mechanism, dimension in kinds:
            robust, plain = (
                rows.over_runs(name, **server_settings(mechanism, dimension, training, epsilon))
                for training in ("robust", "plain")
            )
            cells.append(f"{_spell(robust) or 'not run'} / {f'{plain.value:.3f}' if plain else 'not run'}")
        decision = f"{decision_accuracy(clean, epsilon, rows.constants['classes']):.3f}" if clean else ""
        lines.append([f"{epsilon:g}", *cells, decision, f"{rows.constants['majority']:.3f}"])
    head = ["true epsilon", *(f"{name}, d = {dimension}" for name, dimension in kinds)]
    text = (
        "**With a proof**: robust training at the users' epsilon / plain training; the Gaussian also has delta = 1e-5. "
        "*Decision*: the device classifies with the plain model and sends the class by randomised response (computed "
        "from its accuracy without noise).\n\n"
        + table([*head, "decision, randomised response", "majority class"], lines)
    )
    return text if study is None else f"{text}\n\n{_comparison(rows, study, kinds)}"


def _comparison(rows: Rows, study: Rows, kinds: list[tuple[str, int]]) -> str:
    """Return the smallest true epsilon at which a mechanism with a proof reaches the best of DPNR."""
    best, where = 0.0, ""
    for dimension in study.values("dimension"):
        for training in TRAININGS:
            for epsilon, mean in zip(*at_true_epsilon(study, PUBLISHED, dimension, training), strict=True):
                if mean.value > best:
                    best, where = mean.value, f"d = {dimension}, {training}, true epsilon {epsilon:g}"
    for mechanism, dimension in kinds:
        for epsilon, mean in zip(*at_true_epsilon(rows, mechanism, dimension, "robust"), strict=True):
            if mean.value >= best:
                reached = f"{mechanism} with d = {dimension} reaches it at epsilon {epsilon:g} ({mean.value:.3f})"
                return f"The best of DPNR is {best:.3f} ({where}); {reached}."
    return f"The best of DPNR, {best:.3f} ({where}), is above all of these."


def epochs_table(rows: Rows) -> str:
    """Return more epochs and other schedules."""
    names, dimension = _epsilons(rows), rows.values("dimension")[0]
    lines = []
    best: dict[str, tuple[float, str]] = {}
    for epochs in sorted(rows.values("epochs")):
        for training, epsilon, schedule in _trainings(rows):
            settings = {"epochs": epochs, "training": training, "epsilon": epsilon, "schedule": schedule}
            means = [rows.over_runs(name, **settings) for name in ("clean", *names)]
            if not any(means):
                continue
            label = schedule or (training if epsilon is None else f"{training} at {epsilon:g}")
            runs = min(mean.count for mean in means if mean)
            few = f" ({runs} runs)" if runs < RUNS else ""
            lines.append([str(epochs), f"{label}{few}", *(f"{mean.value:.3f}" if mean else _EMPTY for mean in means)])
            for name, mean in zip(names, means[1:], strict=True):
                if mean:
                    best[name] = max(best.get(name, (0.0, "")), (mean.value, f"{label}, {epochs} epochs"))
    lines.append(["", "majority class", *[f"{rows.constants['majority']:.3f}"] * (1 + len(names))])
    text = "; ".join(f"{_number(name):g}: {label} ({value:.3f})" for name, (value, label) in best.items())
    title = f"**More epochs, other schedules** (DPNR, d = {dimension}; users at claimed epsilons)."
    head = ["epochs", "training", "no noise", *(f"{_number(name):g}" for name in names)]
    return f"{title}{f' Best for users at {text}.' if text else ''}\n\n{table(head, lines, text_columns=2)}"


def _trainings(rows: Rows) -> Iterable[tuple[str, float | None, str | None]]:
    trainings = {(row.settings["training"], row.settings["epsilon"], row.settings["schedule"]) for row in rows.rows}
    order = [None, *SCHEDULES]

    def place(kind: tuple[str, float | None, str | None]) -> tuple[int, float, int]:
        training, epsilon, schedule = kind
        return TRAININGS.index(training), epsilon or 0.0, order.index(schedule) if schedule in order[1:] else 0

    return sorted(trainings, key=place)  # type: ignore[arg-type]


def _epsilons(rows: Rows) -> list[str]:
    return [name for name in rows.names if name.startswith("epsilon ")]


def _number(name: str) -> float:
    return float(name.partition(" ")[2])


def _true(mechanism: str, epsilon: float, dimension: int) -> str:
    return f"{true_epsilon(mechanism, epsilon, dimension):g}"


def _spell(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    few = f"; {estimate.count} runs" if estimate.count < RUNS else ""
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}{few}]"
