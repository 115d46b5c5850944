"""Tables of the experiment, from its rows."""

from __future__ import annotations

from pathlib import Path

from papers.blogs import TASKS
from papers.dptext import methods
from papers.dptext.rows import ATTRIBUTES, PRINTED, PRINTED_SET, Rows
from papers.dptext.stored import ENCODERS
from papers.reports import above, duration, join_sections, require_rows, signed, stored_interval, table, write_between

START, END = "<!-- tables: written by papers.dptext.experiment -->", "<!-- end of the tables -->"


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``tables.md`` next to the rows, and the main tables into a README."""
    files = [rows for task in TASKS for encoder in ENCODERS if (rows := Rows(out / f"{task}, {encoder}.jsonl"))]
    require_rows(files, out)
    brief, whole = [_printed_table(files)], [_printed_table(files)]
    for rows in files:
        sections = [_head(rows), _goal(rows), _main_table(rows)]
        brief += [*sections, _weights_table(rows)]
        whole += [*sections, _attackers_table(rows), _weights_table(rows)]
    took = duration(sum(len(rows.rows) for rows in files), sum(rows.seconds for rows in files))
    (out / "tables.md").write_text(join_sections([*whole, took]), encoding="utf-8")
    write_between(readme, START, END, join_sections([*brief, took]))


def _printed_table(files: list[Rows]) -> str:
    """Return table 1 and its rows on the blogs: accuracy of the task, macro-F1 of the best attacker."""
    head = ["", "epsilon", "TrustPilot, printed: sentiment", "age F1", "gender F1"]
    blind = ["guessing", "", "", "", ""]
    for rows in files:
        numbers, attacker = rows.any, rows.attackers[0]
        head += [f"{rows.task}, {rows.encoder}: accuracy", "age F1", "gender F1"]
        blind.append(f"{numbers['task accuracy blind']:.3f}")
        blind += [f"{numbers[f'{entry} {attacker} macro-F1 blind']:.3f}" for entry in ("age", "gender")]
    lines = [blind]
    for name, method, epsilon in (
        ("ORIGINAL", methods.ORIGINAL, None),
        ("DIFPRIV", methods.DIFPRIV, methods.CAP),
        ("ADV-ALL", methods.ADV_ALL, None),
        ("DPTEXT", methods.PRINTED, methods.CAP),
        (f"ours, true epsilon {methods.MAIN:g}", methods.OURS, methods.MAIN),
    ):
        printed = PRINTED.get(name)
        line = [name, "", *(["", "", ""] if printed is None else [f"{printed[place]:.3f}" for place in (0, 1, 3)])]
        for rows in files:
            row = rows.get(method, epsilon)
            if row is None:
                line += ["", "", ""]
                continue
            line[1] = rows.guarantee(row)
            names = ("task accuracy", rows.best_attack(row, "age"), rows.best_attack(row, "gender"))
            line += [f"{row.numbers[number]:.3f}" for number in names]
        lines.append(line)
    return (
        f"**Table 1**, printed ({PRINTED_SET}; the attackers are those that it trained against) and on blogs (fresh "
        f"attackers, the best of {', '.join(files[0].attackers)}).\n\n{table(head, lines)}"
    )


def _head(rows: Rows) -> str:
    constants = rows.constants
    shares = [
        f"{name.removeprefix('age ').removeprefix('gender ')} {100 * value:.0f}%"
        for name, value in constants.items()
        if name.startswith(("gender ", "age "))
    ]
    return (
        f"### Task: {rows.task}; stored vectors: {rows.encoder}\n\n{constants['posts']:,} posts of "
        f"{constants['bloggers']:,} bloggers, {constants['classes']} classes, {constants['folds']} folds; "
        f"**majority {rows.any['task accuracy blind']:.3f}**; {', '.join(shares)} of the posts."
    )


def _goal(rows: Rows) -> str:
    """Return the methods with a guarantee that reach the goal."""
    verdicts = [(row, rows.verdict(row)) for row in rows.table if not rows.guarantee(row).startswith("none")]
    lines = []
    for verdict, addition in (("yes", ""), ("by accuracy only", "; by accuracy only, because macro-F1 falls by more")):
        reaching = [row.settings for row, entry in verdicts if entry == verdict]
        names = ", ".join(f"{settings['method']} at {settings['epsilon']:g}" for settings in reaching)
        lines += [f"{names}{addition}"] if names else []
    count = f"of {len(verdicts)} rows with a guarantee"
    reached = f"reached by {'. Reached by '.join(lines)} ({count})." if lines else f"not reached by any {count}."
    reference = rows.get(methods.ADV_ALL, None)
    assert reference is not None
    if reference.numbers["task accuracy low"] <= reference.numbers["task accuracy blind"]:
        reached += " ADV-ALL itself is not above the majority here, so the goal for the task is low."
    return (
        "**Goal** (task within 3 points of ADV-ALL, attackers nearer to the majority on both attributes, 95% each): "
        f"{reached}"
    )


def _main_table(rows: Rows) -> str:
    """Return guarantee, task, best attackers, named authors and gaps of each method."""
    numbers = rows.any
    head = ["", "true epsilon of a post", "task", "minus ADV-ALL", "macro-F1"]
    line = ["majority", "", f"{numbers['task accuracy blind']:.3f}", "", f"{numbers['task macro-F1 blind']:.3f}"]
    for attribute in ATTRIBUTES:
        head += [f"{attribute}, best attacker", "minus ADV-ALL"]
        line += [f"{numbers[f'{attribute} best blind']:.3f}", ""]
    gaps = [rows.gap(attribute) for attribute in ATTRIBUTES]
    head += ["author named", *(gap.replace(" gap", ":").replace(" less ", " minus ") for gap in gaps)]
    lines = [[*line, f"{numbers['authors blind']:.3f}", "", ""]]
    for row in rows.table:
        numbers = row.numbers
        line = [str(row.settings["method"]), rows.guarantee(row), stored_interval(numbers, "task accuracy")]
        line += [signed(numbers, "task less ADV-ALL"), f"{numbers['task macro-F1']:.3f}"]
        for attribute in ATTRIBUTES:
            line += [above(numbers, f"{attribute} best"), signed(numbers, f"{attribute} less ADV-ALL")]
        lines.append([*line, above(numbers, "authors"), *(signed(numbers, gap) for gap in gaps)])
    return (
        "Task: logistic regression; attack: the best of the fresh attackers, on single posts; author: nearest mean of "
        "their other posts, first fold; gaps: in the accuracy of the task. Bold: an attack above the majority (a blind "
        f"guess), a difference whose interval excludes 0.\n\n{table(head, lines, text_columns=2)}"
    )


def _attackers_table(rows: Rows) -> str:
    """Return accuracy and macro-F1 of each attacker."""
    names = [f"{attribute} {attacker}" for attribute in ATTRIBUTES for attacker in rows.attackers]
    head = ["", "true epsilon", "task, macro-F1", *(name.replace(" ", ", ", 1) for name in names)]
    blind = [[rows.any[f"{name} {measure} blind"] for measure in ("accuracy", "macro-F1")] for name in names]
    line = ["guessing", "", f"{rows.any['task macro-F1 blind']:.3f}"]
    lines = [[*line, *("; ".join(f"{value:.3f}" for value in values) for values in blind)]]
    for row in rows.table:
        line = [str(row.settings["method"]), rows.guarantee(row), stored_interval(row.numbers, "task macro-F1")]
        line += [f"{above(row.numbers, f'{name} accuracy')}; {row.numbers[f'{name} macro-F1']:.3f}" for name in names]
        lines.append(line)
    return f"**Attackers**: accuracy; macro-F1.\n\n{table(head, lines, text_columns=2)}"


def _weights_table(rows: Rows) -> str:
    """Return the effect of the adversaries' weight, if others than 1 were tried."""
    if len(list(rows.table)) == len(rows.rows):
        return ""
    lines = []
    for name, epsilon in ((methods.ADV_ALL, None), (methods.OURS, methods.MAIN)):
        for row in rows.rows:
            if (row.settings["method"], row.settings["epsilon"]) == (name, epsilon):
                line = [name, f"{row.settings['alpha']:g}", rows.guarantee(row)]
                line.append(stored_interval(row.numbers, "task accuracy"))
                lines.append([*line, *(above(row.numbers, f"{attribute} best") for attribute in ATTRIBUTES)])
    head = ["", "alpha", "true epsilon", "task", *(f"{attribute}, best attacker" for attribute in ATTRIBUTES)]
    return f"**Weight of the adversaries**.\n\n{table(head, lines)}"
