"""Tables, curves and the page, from the rows that are there."""

from __future__ import annotations

from pathlib import Path

from papers.dptext import methods
from papers.dptext.curves import draw
from papers.dptext.methods import NAMES
from papers.dptext.page import write_page
from papers.dptext.printed import PRINTED, SET
from papers.dptext.rows import ATTRIBUTES, Rows, files_of, signed, spelled
from papers.reports import write_between
from papers.sweeps import Row

from dptext.errors import DataError

START, END = "<!-- tables: written by papers.dptext.experiment -->", "<!-- end of the tables -->"


def write_report(out: Path, *, readme: Path | None) -> None:
    """``tables.md``, ``curves.png`` and ``page.html`` beside the rows; what matters most also in a README.

    Raises:
        DataError: there are no rows.
    """
    rowses = [rows for path in files_of(out) if (rows := Rows(path)).rows]
    if not rowses:
        raise DataError(f"no rows in {str(out)!r}: run the experiment first")
    brief = [_printed_table(rowses)]
    whole = [_printed_table(rowses)]
    for rows in rowses:
        brief += [_head(rows), _reached(rows), _main_table(rows), _weights_table(rows)]
        whole += [_head(rows), _reached(rows), _main_table(rows), _attackers_table(rows), _weights_table(rows)]
    cells = sum(len(rows.rows) for rows in rowses)
    seconds = sum(row.seconds for rows in rowses for row in rows.rows)
    took = f"{cells} cells took {seconds / 60:.0f} minutes of a core that was shared with others."
    (out / "tables.md").write_text(_text([*whole, took]), encoding="utf-8")
    write_between(readme, START, END, _text([*brief, took]))
    draw(rowses, out / "curves.png")
    write_page(rowses, out / "page.html")


def _printed_table(found: list[Rows]) -> str:
    """Table 1, and its rows on the blogs: accuracy of the task, the best attacker's macro-F1."""
    head = ["", "epsilon", "TrustPilot, printed: sentiment", "age F1", "gender F1"]
    for rows in found:
        head += [f"{rows.task}, {rows.encoder}: accuracy", "age F1", "gender F1"]
    lines = [head, ["---"] * len(head)]
    ours = {
        "ORIGINAL": (methods.ORIGINAL, None),
        "DIFPRIV": (methods.DIFPRIV, methods.CAP),
        "ADV-ALL": (methods.ADV_ALL, None),
        "DPTEXT": (methods.PRINTED, methods.CAP),
        f"ours, true epsilon {methods.MAIN:g}": (methods.OURS, methods.MAIN),
    }
    blind = ["guessing", "", "", "", ""]
    for rows in found:
        numbers, attacker = rows.any, rows.attackers[0]
        blind.append(f"{numbers['task accuracy blind']:.3f}")
        blind += [f"{numbers[f'{entry} {attacker} macro-F1 blind']:.3f}" for entry in ("age", "gender")]
    lines.append(blind)
    for name, (method, epsilon) in ours.items():
        theirs = PRINTED.get(name)
        visible = ["", "", ""] if theirs is None else [f"{theirs[0]:.3f}", f"{theirs[1]:.3f}", f"{theirs[3]:.3f}"]
        line = [name, "", *visible]
        for rows in found:
            row = next(iter(rows.of(method, epsilon=epsilon, alpha=_weight(method))), None)
            if row is None:
                line += ["", "", ""]
                continue
            line[1] = rows.promise(row)
            line.append(f"{row.numbers['task accuracy']:.3f}")
            line += [f"{rows.largest(row, entry, 'macro-F1'):.3f}" for entry in ("age", "gender")]
        lines.append(line)
    return (
        f"**Table 1**, printed ({SET}; the attackers are those that it trained against) and on blogs (fresh attackers, "
        f"the best of {', '.join(found[0].attackers)}).\n\n{_joined(lines)}"
    )


def _weight(method: str) -> float | None:
    return None if NAMES[method].trained is None else 1.0


def _head(rows: Rows) -> str:
    text, numbers = rows.constants, rows.any
    shares = [
        f"{name.removeprefix('age ').removeprefix('gender ')} {100 * value:.0f}%"
        for name, value in text.items()
        if name.startswith(("gender ", "age "))
    ]
    return (
        f"### Task: {rows.task}; stored vectors: {rows.encoder}\n\n{text['posts']:,} posts of {text['bloggers']:,} "
        f"bloggers, {text['classes']} classes, {text['folds']} folds; "
        f"**majority {numbers['task accuracy blind']:.3f}**; {', '.join(shares)} of the posts."
    )


def _reached(rows: Rows) -> str:
    """Whether ours does what was asked for."""
    text = "task within 3 points of ADV-ALL, attackers nearer to the majority on both attributes, 95% each"
    verdicts = [(row, rows.verdict(row)) for row in rows.table if not rows.promise(row).startswith("none")]
    lines = []
    for verdict in ("yes", "by accuracy only"):
        results = [
            f"{row.settings['method']} at {row.settings['epsilon']:g}" for row, entry in verdicts if entry == verdict
        ]
        if results:
            only = "" if verdict == "yes" else "; by accuracy only, for macro-F1 falls by more"
            lines.append(f"{', '.join(results)}{only}")
    of = f"of {len(verdicts)} rows with a promise"
    reached = f"reached by {'. Reached by '.join(lines)} ({of})." if lines else f"not reached by any {of}."
    (base,) = rows.of(methods.ADV_ALL, alpha=1.0)
    if base.numbers["task accuracy low"] <= base.numbers["task accuracy blind"]:
        reached += " ADV-ALL itself is not above the majority here, so that little is asked of the task's accuracy."
    return f"**Asked for** ({text}): {reached}"


def _main_table(rows: Rows) -> str:
    """A line a method: promise, task, the best attacker on each attribute, authors, gaps."""
    head = ["", "true epsilon of a post", "task", "less ADV-ALL", "macro-F1"]
    for attribute in ATTRIBUTES:
        head += [f"{attribute}, best attacker", "less ADV-ALL"]
    head += ["author named", *(rows.gap(attribute).replace(" gap", ":") for attribute in ATTRIBUTES)]
    lines = [head, ["---"] * len(head)]
    numbers = rows.any
    line = ["majority", "", f"{numbers['task accuracy blind']:.3f}", "", f"{numbers['task macro-F1 blind']:.3f}"]
    for attribute in ATTRIBUTES:
        line += [f"{numbers[f'{attribute} best blind']:.3f}", ""]
    lines.append([*line, f"{numbers['authors blind']:.3f}", "", ""])
    for row in rows.table:
        line = [_name(row), rows.promise(row), spelled(row, "task accuracy"), signed(row, "task less ADV-ALL")]
        line.append(f"{row.numbers['task macro-F1']:.3f}")
        for attribute in ATTRIBUTES:
            line += [_told(row, f"{attribute} best"), signed(row, f"{attribute} less ADV-ALL")]
        line += [_told(row, "authors"), *(signed(row, rows.gap(attribute)) for attribute in ATTRIBUTES)]
        lines.append(line)
    return (
        "Task: logistic regression; attack: the best of the fresh attackers, a post at a time; author: nearest mean of "
        "their other posts, first fold; gaps: of the accuracy of the task. Bold: an attack above the majority (the "
        f"blind guess), a difference that leaves 0 out.\n\n{_joined(lines)}"
    )


def _attackers_table(rows: Rows) -> str:
    """Accuracy and macro-F1 of each attacker."""
    names = [(attribute, attacker) for attribute in ATTRIBUTES for attacker in rows.attackers]
    head = ["", "true epsilon", "task, macro-F1", *(f"{attribute}, {entry}" for attribute, entry in names)]
    lines = [head, ["---"] * len(head)]
    line = ["guessing", "", f"{rows.any['task macro-F1 blind']:.3f}"]
    for attribute, entry in names:
        blind = [rows.any[f"{attribute} {entry} {which} blind"] for which in ("accuracy", "macro-F1")]
        line.append("; ".join(f"{value:.3f}" for value in blind))
    lines.append(line)
    for row in rows.table:
        line = [_name(row), rows.promise(row), spelled(row, "task macro-F1")]
        for attribute, entry in names:
            line.append(
                f"{_told(row, f'{attribute} {entry} accuracy')}; {row.numbers[f'{attribute} {entry} macro-F1']:.3f}"
            )
        lines.append(line)
    return f"**Attackers**: accuracy; macro-F1.\n\n{_joined(lines)}"


def _weights_table(rows: Rows) -> str:
    """What the weight of the adversaries does; nothing where none but 1 was tried."""
    if not rows.alphas:
        return ""
    head = ["", "alpha", "true epsilon", "task", *(f"{attribute}, best attacker" for attribute in ATTRIBUTES)]
    lines = [head, ["---"] * len(head)]
    for name, epsilon in ((methods.ADV_ALL, None), (methods.OURS, methods.MAIN)):
        for row in rows.of(name, epsilon=epsilon):
            told = [_told(row, f"{attribute} best") for attribute in ATTRIBUTES]
            alpha = f"{row.settings['alpha']:g}"
            lines.append([name, alpha, rows.promise(row), spelled(row, "task accuracy"), *told])
    return f"**Weight of the adversaries**.\n\n{_joined(lines)}"


def _name(row: Row) -> str:
    return str(row.settings["method"])


def _told(row: Row, name: str) -> str:
    """Bold where an attacker knows more than a blind guess, beyond his interval."""
    is_told = row.numbers[f"{name} low"] > row.numbers[f"{name} blind"]
    return f"**{spelled(row, name)}**" if is_told else spelled(row, name)


def _text(sections: list[str]) -> str:
    return "\n\n".join(section for section in sections if section) + "\n"


def _joined(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
