"""Tables and the figure of the experiment, from its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from papers.dpnr.figure import draw
from papers.dpnr.printed import CLEAN, TRAININGS, printed
from papers.dpnr.results import Rows, at_true_epsilon, decided, reproduced
from papers.dpnr.servers import DROPOUT_AT, SCHEDULES, true_epsilon
from papers.running import write_between

from dptext.errors import DataError
from dptext.estimates import Estimate, mean_over_runs
from dptext.evaluation.mismatch import Mismatch

__all__ = ["write_report"]

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
SETS = ("AG News", "IMDb", "Yelp")
PARTS = ("study", "printed", "ours", "epochs")
PUBLISHED = "DPNR"


def write_report(out: Path, *, readme: Path | None) -> None:
    """``tables.md`` and ``figure.png`` beside the rows; the tables also between the marks of a README.

    Raises:
        DataError: there are no rows.
    """
    found = {name: {part: rows for part in PARTS if (rows := Rows(out / f"{part} {name}.jsonl"))} for name in SETS}
    found = {name: parts for name, parts in found.items() if parts}
    if not found:
        raise DataError(f"no rows in {str(out)!r}: run the experiment first")
    sections: list[str] = []
    for name, parts in found.items():
        constants = next(iter(parts.values())).constants
        sections.append(
            f"### {name}\n\n{constants['trained']:,} public training texts, {constants['tested']:,} tested, "
            f"{constants['classes']} classes; **majority class {constants['majority']:.3f}**."
        )
        if "study" in parts:
            sections += [study_table(parts["study"], name, each) for each in parts["study"].values("dimension")]
        if "printed" in parts:
            rows = parts["printed"]
            sections += [
                study_table(rows, name, each, title="nearer to how the study seems to have done it (below)")
                for each in rows.values("dimension")
            ]
        if "study" in parts:
            rows = parts["study"]
            sections += [one_scalar_table(rows), mismatch_table(rows, PUBLISHED, max(rows.values("dimension")))]
        if "ours" in parts:
            rows = parts["ours"]
            sections += [
                ours_table(rows, parts.get("study")),
                mismatch_table(rows, "PrivUnit", min(rows.values("dimension"))),
            ]
        if "epochs" in parts:
            sections.append(epochs_table(parts["epochs"]))
    every = [rows for parts in found.values() for rows in parts.values()]
    seconds, cells = sum(rows.seconds for rows in every), sum(len(rows.rows) for rows in every)
    sections.append(f"{cells:,} cells took {seconds / 3600:.1f} hours of one core.")
    text = "\n\n".join(filter(None, sections)) + "\n"
    (out / "tables.md").write_text(text, encoding="utf-8")
    write_between(readme, START, END, text)
    draw(found, out / "figure.png")


def study_table(rows: Rows, data: str, dimension: int, *, title: str = "the study's rows") -> str:
    """A half of figure 7 or 8: our number [interval], the printed one, and a star where it is not what ours expect."""
    lines = [["", "claimed epsilon", "true epsilon", *(f"{each} (printed)" for each in TRAININGS), "majority class"]]
    lines.append(["---"] * len(lines[0]))
    clean = _spelled(_server(rows, "clean", dimension, "plain"))
    if (data, dimension) in CLEAN:
        clean += f" ({CLEAN[data, dimension]:.2f})"
    lines.append(["no noise", "", "inf", clean, "", "", f"{rows.constants['majority']:.3f}"])
    counted = [0, 0]
    for name in rows.names[1:]:
        kind, _, number = name.partition(" ")
        epsilon = float(number) if kind == "epsilon" else DROPOUT_AT
        line = ["" if kind == "epsilon" else f"mu {number}", f"{epsilon:g}", _true(PUBLISHED, epsilon, dimension)]
        for training in TRAININGS:
            runs = _runs(rows, name, dimension, training, epsilon)
            theirs = printed(data, dimension, training, name)
            cell = _spelled(mean_over_runs(runs) if len(runs) > 1 else None)
            if theirs is not None and len(runs) > 1:
                expected = reproduced(runs, theirs)
                counted = [counted[0] + expected, counted[1] + 1]
                cell += f" ({theirs:.2f})" if expected else f" ({theirs:.2f}\\*)"
            line.append(cell)
        lines.append([*line, f"{rows.constants['majority']:.3f}"])
    said = (
        f" {counted[0]} of {counted[1]} printed numbers are what these runs lead one to expect of five others (95%); a "
        "star marks the others."
        if counted[1]
        else " The study has no numbers for this set."
    )
    return f"**DPNR, d = {dimension}**, {title}.{said}\n\n{_joined(lines)}"


def one_scalar_table(rows: Rows) -> str:
    """The authors' code: one draw of noise for all coordinates."""
    mechanism = "DPNR, one scalar"
    dimensions = dict.fromkeys(row.settings["dimension"] for row in rows.rows if row.settings["mechanism"] == mechanism)
    kinds = [(each, training) for each in dimensions for training in ("plain", "robust")]
    if not kinds:
        return ""
    lines = [["claimed epsilon", "true epsilon", *(f"d = {each}, {training}" for each, training in kinds)]]
    lines[0].append("majority class")
    lines.append(["---"] * len(lines[0]))
    for name in _epsilons(rows):
        epsilon = _number(name)
        cells = [_spelled(_server(rows, name, each, training, epsilon, mechanism)) for each, training in kinds]
        lines.append([f"{epsilon:g}", "inf", *cells, f"{rows.constants['majority']:.3f}"])
    return f"**One scalar of noise for all coordinates**, as the authors' code has it.\n\n{_joined(lines)}"


def mismatch_table(rows: Rows, mechanism: str, dimension: int) -> str:
    """Servers against users, for one mechanism."""
    names = _epsilons(rows)
    servers: dict[float | str, dict[str, Any]] = {"plain": {"training": "plain"}, "adaptive": {"training": "adaptive"}}
    servers |= {epsilon: {"training": "robust", "epsilon": epsilon} for epsilon in map(_number, names)}
    found = {}
    for server, settings in servers.items():
        row = [rows.mean(name, mechanism=mechanism, dimension=dimension, **settings) for name in names]
        if all(each is not None for each in row):
            found[server] = tuple(each for each in row if each is not None)
    if not found:
        return ""
    matrix = Mismatch(
        servers=tuple(found),
        users=tuple(map(_number, names)),
        accuracies=tuple(found.values()),
        baseline=rows.constants["majority"],
        rows=rows.constants["tested"],
    )
    best = ", ".join(f"{user:g}: {_label(matrix.best_server(user))}" for user in matrix.users)
    which = (
        f"claimed epsilons, of which true ones are {dimension} times as large"
        if mechanism == PUBLISHED
        else "true epsilons"
    )
    return (
        f"**Servers and users that do not know of each other** ({mechanism}, d = {dimension}, {which}). The best "
        f"server for users at {best}.\n\n{matrix.table(intervals=False)}"
    )


def _label(server: float | str) -> str:
    return server if isinstance(server, str) else f"robust at {server:g}"


def ours_table(rows: Rows, study: Rows | None) -> str:
    """Mechanisms with a proof, at true epsilons; DPNR where it comes closest from below."""
    kinds = list(dict.fromkeys((row.settings["mechanism"], row.settings["dimension"]) for row in rows.rows))
    head = ["true epsilon", *(f"{name}, d = {each}" for name, each in kinds), "decision, randomised response"]
    lines = [[*head, "majority class"], ["---"] * (len(head) + 1)]
    smallest = min(rows.values("dimension"))
    clean = rows.mean("clean", mechanism=kinds[0][0], dimension=smallest, training="plain")
    for name in _epsilons(rows):
        epsilon = _number(name)
        cells = []
        for mechanism, each in kinds:
            robust = rows.mean(name, mechanism=mechanism, dimension=each, training="robust", epsilon=epsilon)
            plain = rows.mean(name, mechanism=mechanism, dimension=each, training="plain")
            cells.append(f"{_spelled(robust)}{'' if plain is None else f' / {plain.value:.3f}'}")
        decision = "" if clean is None else f"{decided(clean, epsilon, rows.constants['classes']):.3f}"
        lines.append([f"{epsilon:g}", *cells, decision, f"{rows.constants['majority']:.3f}"])
    text = (
        "**With a proof**: robust training at the users' epsilon / plain training; the Gaussian has delta = 1e-5 on "
        "top. *Decision*: the device classifies with the plain model and sends the class by randomised response "
        f"(computed from its accuracy without noise).\n\n{_joined(lines)}"
    )
    return text if study is None else f"{text}\n\n{_beside(rows, study, kinds)}"


def _beside(rows: Rows, study: Rows, kinds: list[tuple[str, int]]) -> str:
    """The smallest true epsilon at which something with a proof does as well as the best of DPNR."""
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
    """More epochs and other schedules."""
    names, dimension = _epsilons(rows), rows.values("dimension")[0]
    lines = [["epochs", "training", "no noise", *(f"{_number(name):g}" for name in names)]]
    lines.append(["---"] * len(lines[0]))
    for epochs in rows.values("epochs"):
        for training, epsilon, schedule in _kinds(rows):
            settings = {"epochs": epochs, "training": training, "epsilon": epsilon, "schedule": schedule}
            means = [rows.mean(name, **settings) for name in ("clean", *names)]
            label = training if epsilon is None else f"{training} at {epsilon:g}"
            if any(means):
                lines.append([str(epochs), schedule or label, *(f"{each.value:.3f}" if each else "" for each in means)])
    lines.append(["", "majority class", *[f"{rows.constants['majority']:.3f}"] * (1 + len(names))])
    best = [
        f"{_number(name):g}: {label} ({value:.3f})"
        for name in names
        for value, label in [max((row.value, label) for label, row in _labelled(rows, name))]
    ]
    return (
        f"**More epochs, other schedules** (DPNR, d = {dimension}; users at claimed epsilons). Best for users at "
        f"{'; '.join(best)}.\n\n{_joined(lines)}"
    )


def _kinds(rows: Rows) -> list[tuple[str, float | None, str | None]]:
    found = {(row.settings["training"], row.settings["epsilon"], row.settings["schedule"]) for row in rows.rows}
    order = list(SCHEDULES)
    return sorted(
        found,  # type: ignore[arg-type]
        key=lambda each: (TRAININGS.index(each[0]), each[1] or 0.0, order.index(each[2]) if each[2] in order else 0),
    )


def _labelled(rows: Rows, name: str) -> Iterable[tuple[str, Estimate]]:
    for epochs in rows.values("epochs"):
        for training, epsilon, schedule in _kinds(rows):
            mean = rows.mean(name, epochs=epochs, training=training, epsilon=epsilon, schedule=schedule)
            if mean is not None:
                label = schedule or (training if epsilon is None else f"{training} at {epsilon:g}")
                yield f"{label}, {epochs} epochs", mean


def _runs(
    rows: Rows, name: str, dimension: int, training: str, epsilon: float, mechanism: str = PUBLISHED
) -> list[float]:
    own = {"epsilon": epsilon} if training == "robust" else {}
    return rows.runs(name, mechanism=mechanism, dimension=dimension, training=training, **own)


def _server(
    rows: Rows, name: str, dimension: int, training: str, epsilon: float = math.nan, mechanism: str = PUBLISHED
) -> Estimate | None:
    runs = _runs(rows, name, dimension, training, epsilon, mechanism)
    return mean_over_runs(runs) if len(runs) > 1 else None


def _epsilons(rows: Rows) -> list[str]:
    return [name for name in rows.names if name.startswith("epsilon ")]


def _number(name: str) -> float:
    return float(name.partition(" ")[2])


def _true(mechanism: str, epsilon: float, dimension: int) -> str:
    return f"{true_epsilon(mechanism, epsilon, dimension):g}"


def _spelled(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _joined(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
