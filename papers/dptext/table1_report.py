"""Tables of `papers.dptext.table1`, from its rows."""

from __future__ import annotations

from pathlib import Path

from papers.dptext import methods
from papers.dptext.methods import NAMES
from papers.dptext.rows import PRINTED, Rows, best_f1
from papers.reports import above, duration, interval, require_rows, stored, stored_interval, table, write_tables
from papers.sweeps import Row

NAME, LEARNT = "table 1", "learnt budget"
START, END = "<!-- table 1: written by papers.dptext.table1 -->", "<!-- end of table 1 -->"
_PRINTED_COLUMNS = {"age": 1, "country": 2, "industry": 2, "gender": 3}
_PRINTED_NAMES = {methods.ORIGINAL: "ORIGINAL", methods.DIFPRIV: "DIFPRIV", methods.ADV_ALL: "ADV-ALL"}
_PRINTED_NAMES |= {methods.PRINTED: "DPTEXT", methods.LEARNT_PRINTED: "DPTEXT"}


def write_report(out: Path, *, readme: Path | None) -> None:
    """Write ``table1.md`` next to the rows, and the same into a README."""
    tables, budgets = ([Rows(path) for path in sorted(out.glob(f"{part}, *.jsonl"))] for part in (NAME, LEARNT))
    require_rows(tables or budgets, out)
    sections = [part for rows in tables for part in (_head(rows), _table(rows), _claims(rows), _repeated(rows))]
    sections += [part for rows in budgets for part in (_head(rows), _budgets(rows))]
    every = [row for rows in (*tables, *budgets) for row in (*rows.rows, *rows.repeated)]
    sections.append(duration(len(every), sum(row.seconds for row in every)))
    write_tables(out / "table1.md", sections, readme=readme, start=START, end=END)


def _head(rows: Rows) -> str:
    constants = rows.constants
    part, task = rows.task.split(", ", 1)
    return (
        f"### {part.capitalize()}: {task}, {rows.encoder}\n\n{constants['posts']:,} texts of "
        f"{constants['bloggers']:,} people, {constants['classes']} classes, {constants['folds']} folds, three "
        f"attributes hidden together; attackers: {', '.join(rows.attackers)}."
    )


def _attributes(rows: Rows) -> list[str]:
    """Return age, country (or industry) and gender, in the order of the paper."""
    return [name for name in _PRINTED_COLUMNS if f"{name} best" in rows.any]


def _table(rows: Rows) -> str:
    names = _attributes(rows)
    head = ["", "true epsilon", "task: accuracy", "printed"]
    line = ["majority; for F1 a guess", "", f"{rows.any['task accuracy blind']:.3f}", ""]
    for name in names:
        head += [f"{name}{' (replaces location)' if name == 'industry' else ''}: macro-F1", "printed"]
        line += [f"{rows.any[f'{name} {rows.attackers[0]} macro-F1 blind']:.3f}", ""]
    lines = [line]
    for row in rows.table:
        is_printed = row.settings["epsilon"] in (None, methods.CAP)
        printed = PRINTED.get(_PRINTED_NAMES.get(_name(row), "")) if is_printed else None
        line = [_name(row), rows.guarantee(row), stored_interval(row.numbers, "task accuracy")]
        line.append("" if printed is None else f"{printed[0]:.3f}")
        for name in names:
            line += [best_f1(rows, row, name), "" if printed is None else f"{printed[_PRINTED_COLUMNS[name]]:.3f}"]
        lines.append(line)
    return (
        "**Utility and attributes**. Intervals over people, 95%; F1 in bold: above a guess beyond its interval. "
        "Printed: TrustPilot, without intervals, by the discriminators that the encoder was trained to fool.\n\n"
        + table(head, lines, text_columns=2)
    )


def _repeated(rows: Rows) -> str:
    """Return the same rows in other runs."""
    if not rows.repeated:
        return ""
    names = _attributes(rows)
    head = ["", "run", "task: accuracy", *(f"{name}: macro-F1" for name in names)]
    head += ["in the release: AUC", "in the encoder's training: AUC", "words recovered"]
    lines = [
        [_name(row), row.seed, stored_interval(row.numbers, "task accuracy")]
        + [best_f1(rows, row, name) for name in names]
        + _attacks(row)
        for row in rows.repeated
    ]
    return (
        "**Run again**, in other folds, with other trainings and other noise. Columns as in the two tables above.\n\n"
        + table(head, lines)
    )


def _claims(rows: Rows) -> str:
    head = ["", "true epsilon", "in the release: AUC", "in the encoder's training: AUC"]
    head += ["words recovered, of 10 named", "the most frequent words instead", "author named"]
    lines = []
    for row in rows.table:
        numbers = row.numbers
        authors = above(numbers, "authors") if numbers["authors blind"] else "all have one text"
        blind = f"{numbers['words precision blind']:.3f}"
        lines.append([_name(row), rows.guarantee(row), *_attacks(row), blind, authors])
    return (
        "**The first claim, on the same vectors**. Means over folds with Student's interval (authors: first fold, over "
        f"people; blind {rows.any['authors blind']:.3f}). Blind for AUC: .5. Bold: above blind beyond the interval.\n\n"
        + table(head, lines, text_columns=2)
    )


def _attacks(row: Row) -> list[str]:
    numbers = row.numbers
    aucs = [above(numbers, f"{name} AUC", 0.5) for name in ("released", "trained")]
    return [*aucs, above(numbers, "words precision", numbers["words precision blind"])]


def _budgets(rows: Rows) -> str:
    """Return the learned budget as a share of its cap, and the slopes that moved it."""
    learned = [row for row in rows.rows if (NAMES[_name(row)].trained or {}).get("learn_epsilon")]
    if not learned:
        return "**The learned budget**: not run."
    after = [name for name in rows.any if name.startswith("share after ") and not name.endswith((" low", " high"))]
    head = ["", "cap", "alpha", "true epsilon", *(name.removeprefix("share ") for name in after), "minimum"]
    head += ["slope of the task's loss", "slope of the adversaries' term", "task", *_attributes(rows)]
    lines = []
    for row in learned:
        numbers = row.numbers
        line = [_name(row), f"{row.settings['epsilon']:g}", f"{row.settings['alpha']:g}", rows.guarantee(row)]
        line += [*(f"{numbers[name]:.3f}" for name in after[:-1]), stored_interval(numbers, after[-1])]
        line.append(f"{numbers['share, least']:.3f}")
        line += [interval(stored(numbers, f"slope of {name}"), 4, sign=True) for name in ("task", "attributes")]
        names = ("task accuracy", *(f"{name} best" for name in _attributes(rows)))
        lines.append([*line, *(f"{numbers[name]:.3f}" for name in names)])
    return (
        "**The learned budget**, as a share of the cap after a number of epochs (it starts at .881), means over folds; "
        "slopes by ln epsilon, means over all steps: negative ones reduce the noise. Attributes: accuracy of the "
        f"attacker.\n\n{table(head, lines)}"
    )


def _name(row: Row) -> str:
    return str(row.settings["method"])
