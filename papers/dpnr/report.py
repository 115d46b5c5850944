"""Tables and the figure of the experiment, from its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from papers.dpnr.figure import draw
from papers.dpnr.mismatch import Mismatch
from papers.dpnr.printed import CLEAN, ROWS, TRAININGS, printed
from papers.dpnr.results import Rows, at_true_epsilon, decided, reproduced
from papers.dpnr.servers import DROPOUT_AT, SCHEDULES, true_epsilon
from papers.dpnr.sets import AG_NEWS, AS_LARGE, PRINTED_AS, SETS
from papers.reports import write_between

from dptext.errors import DataError
from dptext.intervals import Estimate, mean_over_runs

START, END = "<!-- tables: written by the experiment -->", "<!-- end of the tables -->"
PARTS = ("study", "printed", "dropout", "ours", "epochs")
PUBLISHED = "DPNR"
RUNS = 5  # of all that is compared with a printed mean of as many
_EMPTY = "-"  # a number that there is none of: neither printed nor measured


def write_report(out: Path, *, readme: Path | None) -> None:
    """``tables.md`` and ``figure.png`` beside the rows; the tables that matter most also between marks of a README.

    Raises:
        DataError: there are no rows.
    """
    result = {name: {part: rows for part in PARTS if (rows := Rows(out / f"{part} {name}.jsonl"))} for name in SETS}
    result = {name: parts for name, parts in result.items() if parts}
    if not result:
        raise DataError(f"no rows in {str(out)!r}: run the experiment first")
    whole, brief = [], []
    for name in SETS:
        sections = _sections(name, result[name]) if name in result else _not_run(name)
        # samples of a set that is there as large as the study's: what was done with them alone
        is_sample = name == AG_NEWS and AS_LARGE in result
        whole += [text for _, text in sections]
        brief += [text for part, text in sections if part not in ("more", *(["study"] if is_sample else []))]
    every = [rows for parts in result.values() for rows in parts.values()]
    seconds, cells = sum(rows.seconds for rows in every), sum(len(rows.rows) for rows in every)
    took = f"{cells:,} cells took {seconds / 3600:.1f} hours of one core that was shared with others."
    (out / "tables.md").write_text(_text([*whole, took]), encoding="utf-8")
    write_between(readme, START, END, _text([*brief, took]))
    draw(result, out / "figure.png")


def _sections(name: str, parts: Mapping[str, Rows]) -> list[tuple[str, str]]:
    """The tables of a set, each with its part; ``more`` is in ``tables.md`` only."""
    constants = next(iter(parts.values())).constants
    head = (
        f"### {name}\n\n{constants['trained']:,} public training texts, {constants['tested']:,} tested, "
        f"{constants['classes']} classes; **majority class {constants['majority']:.3f}**."
    )
    sections = [("head", head)]
    study = parts.get("study")
    if study is not None:
        sections += [("study", study_table(study, name, entry)) for entry in study.values("dimension")]
    as_printed = parts.get("printed")
    if as_printed is None and study is not None and study.has_token_masks:
        as_printed = study.with_token_masks()
    if as_printed is not None:
        nearer = "nearer to how the study seems to have done it"
        sections += [
            ("study", study_table(as_printed, name, entry, title=nearer)) for entry in as_printed.values("dimension")
        ]
    if "dropout" in parts and study is not None:
        rows = parts["dropout"]
        sections += [("dropout", dropout_table(rows, study, row)) for row in rows.values("dimension")]
    if study is not None:
        sections += [("scalar", one_scalar_table(study))]
        sections += [("more", mismatch_table(study, PUBLISHED, max(study.values("dimension"))))]
    if "ours" in parts:
        rows = parts["ours"]
        sections += [("ours", ours_table(rows, study))]
        sections += [("more", mismatch_table(rows, "PrivUnit", min(rows.values("dimension"))))]
    if "epochs" in parts:
        rows = parts["epochs"]
        largest = {"mechanism": PUBLISHED, "dimension": rows.values("dimension")[0]}
        sections += [("epochs", epochs_table(rows.and_of(study, **largest)))]
    return sections


def _not_run(name: str) -> list[tuple[str, str]]:
    """A set of the study that nothing was run on: its printed numbers all the same."""
    data = PRINTED_AS.get(name)
    if data is None or name == AS_LARGE:
        return []
    why = f"### {name}\n\nNot run: no file of it is at hand (`--{name.lower()} FILE` or `--hub` runs it)."
    return [("head", why), *(("study", study_table(None, name, entry)) for entry in (32, 64))]


def study_table(rows: Rows | None, name: str, dimension: int, *, title: str = "the study's rows") -> str:
    """A half of figure 7 or 8: our number [interval], the printed one, and a star where it is not what ours expect.

    Of None there are the printed numbers alone.
    """
    data = PRINTED_AS.get(name, "")
    lines = [["", "claimed epsilon", "true epsilon", *(f"{entry} (printed)" for entry in TRAININGS), "majority class"]]
    lines.append(["---"] * len(lines[0]))
    counted: list[bool] = []

    def cell(number: str, training: str, epsilon: float, theirs: float | None) -> str:
        runs = [] if rows is None else _runs(rows, number, dimension, training, epsilon)
        if len(runs) < 2:
            return _EMPTY if theirs is None else f"not run (printed {theirs:.2f})"
        text = _spelled(mean_over_runs(runs))
        if theirs is None:
            return text
        if len(runs) < RUNS:  # so few lead one to expect nearly anything
            return f"{text} ({theirs:.2f})"
        counted.append(reproduced(runs, theirs))
        return f"{text} ({theirs:.2f})" if counted[-1] else f"{text} ({theirs:.2f}\\*)"

    majority = _EMPTY if rows is None else f"{rows.constants['majority']:.3f}"
    clean = cell("clean", "plain", math.nan, CLEAN.get((data, dimension)))
    lines.append(["no noise", "", "inf", clean, _EMPTY, cell("clean", "adaptive", math.nan, None), majority])
    for number in rows.names[1:] if rows is not None else ROWS:
        kind, _, value = number.partition(" ")
        epsilon = float(value) if kind == "epsilon" else DROPOUT_AT
        line = ["" if kind == "epsilon" else f"mu {value}", f"{epsilon:g}", _true(PUBLISHED, epsilon, dimension)]
        line += [cell(number, entry, epsilon, printed(data, dimension, entry, number)) for entry in TRAININGS]
        lines.append([*line, majority])
    text = (
        f" {sum(counted)} of {len(counted)} printed numbers are what these runs lead one to expect of five others "
        "(95%); a star marks the others."
        if counted
        else ""
        if data
        else " The study has no numbers for this set."
    )
    return f"**DPNR, d = {dimension}**, {title}.{text}\n\n{_joined(lines)}"


def dropout_table(rows: Rows, study: Rows, dimension: int) -> str:
    """Servers that mask words while they train, for users who mask as many; the study's servers do not."""
    kinds = [(training, DROPOUT_AT if training == "robust" else None) for training in TRAININGS]
    lines = [["mu of users", "claimed epsilon", "true epsilon"]]
    for training, epsilon in kinds:
        label = training if epsilon is None else f"{training} at {epsilon:g}"
        lines[0] += [f"{label}, masks too", "less without masks"]
    lines[0].append("majority class")
    lines.append(["---"] * len(lines[0]))
    for mu in rows.values("word_dropout"):
        line = [f"{mu:g}", f"{DROPOUT_AT:g}", _true(PUBLISHED, DROPOUT_AT, dimension)]
        for training, epsilon in kinds:
            server = {"mechanism": PUBLISHED, "dimension": dimension, "training": training, "epsilon": epsilon}
            masked = rows.by_seed(f"mu {mu:g}", word_dropout=mu, **server)
            whole = study.by_seed(f"mu {mu:g}", **server)
            both = sorted(masked.keys() & whole.keys())
            if len(both) < 2:
                line += ["not run", "not run"]
                continue
            less = mean_over_runs([masked[seed] - whole[seed] for seed in both])
            line += [_spelled(mean_over_runs(list(masked.values())))]
            line += [f"{less.value:+.3f} [{less.low:+.3f}, {less.high:+.3f}]"]
        lines.append([*line, f"{rows.constants['majority']:.3f}"])
    return (
        f"**Words masked while the server trains** (DPNR, d = {dimension}), at the users' mu; *less without masks*: "
        "the same seeds without, run by run. True epsilon is the same with and without: masks take nothing off it for "
        f"two texts, and the server's texts are public.\n\n{_joined(lines)}"
    )


def one_scalar_table(rows: Rows) -> str:
    """The authors' code: one draw of noise for all coordinates."""
    mechanism = "DPNR, one scalar"
    dimensions = dict.fromkeys(row.settings["dimension"] for row in rows.rows if row.settings["mechanism"] == mechanism)
    kinds = [(dimension, training) for dimension in dimensions for training in ("plain", "robust")]
    if not kinds:
        return ""
    lines = [["claimed epsilon", "true epsilon", *(f"d = {entry}, {training}" for entry, training in kinds)]]
    lines[0].append("majority class")
    lines.append(["---"] * len(lines[0]))
    for name in _epsilons(rows):
        epsilon = _number(name)
        cells = [_spelled(_server(rows, name, entry, training, epsilon, mechanism)) for entry, training in kinds]
        lines.append([f"{epsilon:g}", "inf", *cells, f"{rows.constants['majority']:.3f}"])
    return f"**One scalar of noise for all coordinates**, as the authors' code has it.\n\n{_joined(lines)}"


def mismatch_table(rows: Rows, mechanism: str, dimension: int) -> str:
    """Servers against users, for one mechanism."""
    names = _epsilons(rows)
    servers: dict[float | str, dict[str, Any]] = {"plain": {"training": "plain"}, "adaptive": {"training": "adaptive"}}
    servers |= {epsilon: {"training": "robust", "epsilon": epsilon} for epsilon in map(_number, names)}
    result = {}
    for server, settings in servers.items():
        row = [rows.mean(name, mechanism=mechanism, dimension=dimension, **settings) for name in names]
        if all(entry is not None for entry in row):
            result[server] = tuple(entry for entry in row if entry is not None)
    if not result:
        return ""
    matrix = Mismatch(
        servers=tuple(result),
        users=tuple(map(_number, names)),
        accuracies=tuple(result.values()),
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
    head = ["true epsilon", *(f"{name}, d = {entry}" for name, entry in kinds), "decision, randomised response"]
    lines = [[*head, "majority class"], ["---"] * (len(head) + 1)]
    smallest = min(rows.values("dimension"))
    clean = rows.mean("clean", mechanism=kinds[0][0], dimension=smallest, training="plain")
    for name in _epsilons(rows):
        epsilon = _number(name)
        cells = []
        for mechanism, entry in kinds:
            robust = rows.mean(name, mechanism=mechanism, dimension=entry, training="robust", epsilon=epsilon)
            plain = rows.mean(name, mechanism=mechanism, dimension=entry, training="plain")
            visible = "not run" if robust is None else _spelled(robust)
            cells.append(f"{visible} / {'not run' if plain is None else f'{plain.value:.3f}'}")
        decision = "" if clean is None else f"{decided(clean, epsilon, rows.constants['classes']):.3f}"
        lines.append([f"{epsilon:g}", *cells, decision, f"{rows.constants['majority']:.3f}"])
    text = (
        "**With a proof**: robust training at the users' epsilon / plain training; the Gaussian has delta = 1e-5 on "
        "top. *Decision*: the device classifies with the plain model and sends the class by randomised response "
        f"(computed from its accuracy without noise).\n\n{_joined(lines)}"
    )
    return text if study is None else f"{text}\n\n{_neighbour_index(rows, study, kinds)}"


def _neighbour_index(rows: Rows, study: Rows, kinds: list[tuple[str, int]]) -> str:
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
    for epochs in sorted(rows.values("epochs")):
        for training, epsilon, schedule in _kinds(rows):
            settings = {"epochs": epochs, "training": training, "epsilon": epsilon, "schedule": schedule}
            means = [rows.mean(name, **settings) for name in ("clean", *names)]
            label = training if epsilon is None else f"{training} at {epsilon:g}"
            if any(means):
                runs = min(mean.count for mean in means if mean)
                few = f" ({runs} runs)" if runs < RUNS else ""
                visible = (f"{mean.value:.3f}" if mean else _EMPTY for mean in means)
                lines.append([str(epochs), f"{schedule or label}{few}", *visible])
    lines.append(["", "majority class", *[f"{rows.constants['majority']:.3f}"] * (1 + len(names))])
    best = [
        f"{_number(name):g}: {label} ({value:.3f})"
        for name in names
        if (means := [(row.value, label) for label, row in _labelled(rows, name)])
        for value, label in [max(means)]
    ]
    text = f" Best for users at {'; '.join(best)}." if best else ""
    title = f"**More epochs, other schedules** (DPNR, d = {dimension}; users at claimed epsilons)."
    return f"{title}{text}\n\n{_joined(lines)}"


def _kinds(rows: Rows) -> list[tuple[str, float | None, str | None]]:
    results = {(row.settings["training"], row.settings["epsilon"], row.settings["schedule"]) for row in rows.rows}
    order = list(SCHEDULES)
    return sorted(
        results,  # type: ignore[arg-type]
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
    if estimate is None:
        return ""
    few = f"; {estimate.count} runs" if estimate.count < RUNS else ""
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}{few}]"


def _text(sections: list[str]) -> str:
    return "\n\n".join(filter(None, sections)) + "\n"


def _joined(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
