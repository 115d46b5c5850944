"""Tables of `papers.dptext.table1`, from the rows that are there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from papers.dptext import methods
from papers.dptext.methods import NAMES
from papers.dptext.printed import PRINTED
from papers.dptext.rows import Rows, spelled
from papers.reports import write_between
from papers.sweeps import Row

from dptext.errors import DataError

NAME, LEARNT = "table 1", "learnt budget"
START, END = "<!-- table 1: written by papers.dptext.table1 -->", "<!-- end of table 1 -->"
_PLACES = {"age": 1, "country": 2, "industry": 2, "gender": 3}  # in what is printed
_OF_PRINTED = {methods.ORIGINAL: "ORIGINAL", methods.DIFPRIV: "DIFPRIV", methods.ADV_ALL: "ADV-ALL"}
_OF_PRINTED |= {methods.PRINTED: "DPTEXT", methods.LEARNT_PRINTED: "DPTEXT"}


def write_report(out: Path, *, readme: Path | None) -> None:
    """``table1.md`` beside the rows, and the same in a README.

    Raises:
        DataError: there are no rows.
    """
    tables, traces = (
        [rows for path in sorted(out.glob(f"{part}, *.jsonl")) if (rows := Rows(path)).rows] for part in (NAME, LEARNT)
    )
    if not tables and not traces:
        raise DataError(f"no rows of table 1 in {str(out)!r}: run papers.dptext.table1 first")
    sections = [part for rows in tables for part in (_head(rows), _table1(rows), _first_claim(rows), _again(rows))]
    sections += [part for rows in traces for part in (_head(rows), _learnt(rows))]
    result = [row for rows in (*tables, *traces) for row in (*rows.rows, *rows.again)]
    seconds, cells = sum(row.seconds for row in result), len(result)
    sections.append(f"{cells} cells took {seconds / 60:.0f} minutes of a core that was shared with others.")
    text = "\n\n".join(filter(None, sections)) + "\n"
    (out / "table1.md").write_text(text, encoding="utf-8")
    write_between(readme, START, END, text)


def _head(rows: Rows) -> str:
    counts = rows.constants
    part, task = rows.task.split(", ", 1)
    return (
        f"### {part.capitalize()}: {task}, {rows.encoder}\n\n{counts['posts']:,} texts of "
        f"{counts['bloggers']:,} people, {counts['classes']} classes, {counts['folds']} folds, three attributes hidden "
        f"at once; attackers: {', '.join(rows.attackers)}."
    )


def _attributes(rows: Rows) -> list[str]:
    """Age, country (or its stand-in), gender: as printed."""
    return [name for name in _PLACES if f"{name} best" in rows.any]


def _table1(rows: Rows) -> str:
    names = _attributes(rows)
    stand_in = " (in place of location)"
    head = ["", "true epsilon", "task: accuracy", "printed"]
    for name in names:
        head += [f"{name}{stand_in if name == 'industry' else ''}: macro-F1", "printed"]
    lines = [head, ["---"] * len(head)]
    line = ["majority; for F1 a guess", "", f"{rows.any['task accuracy blind']:.3f}", ""]
    for name in names:
        line += [f"{rows.any[f'{name} {rows.attackers[0]} macro-F1 blind']:.3f}", ""]
    lines.append(line)
    for row in rows.rows:
        if row.settings["alpha"] not in (None, 1.0):
            continue
        printed = PRINTED.get(_OF_PRINTED.get(str(row.settings["method"]), ""))
        if row.settings["epsilon"] not in (None, methods.CAP):
            printed = None
        line = [_name(row), rows.promise(row), spelled(row, "task accuracy"), _printed(printed, 0)]
        for name in names:
            line += [_best_f1(rows, row, name), _printed(printed, _PLACES[name])]
        lines.append(line)
    return (
        "**Utility and attributes**. Intervals over people, 95%; F1 in bold: above a guess beyond its interval. "
        "Printed: TrustPilot, without intervals, by the discriminators that the encoder was trained to fool.\n\n"
        f"{_joined(lines)}"
    )


def _again(rows: Rows) -> str:
    """What other runs found of the same rows; "" where there are none."""
    names = _attributes(rows)
    head = ["", "run", "task: accuracy", *(f"{name}: macro-F1" for name in names)]
    head += ["in what was released: AUC", "in the encoder's training: AUC", "words recovered"]
    lines = [head, ["---"] * len(head)]
    for row in rows.again:
        line = [_name(row), str(row.seed), spelled(row, "task accuracy")]
        line += [_best_f1(rows, row, name) for name in names]
        line += [_above(row, "released AUC", 0.5), _above(row, "trained AUC", 0.5)]
        lines.append([*line, _above(row, "words precision", row.numbers["words precision blind"])])
    text = "**Run again**, in other folds, with other trainings and other noise. Read as the two tables above.\n\n"
    return f"{text}{_joined(lines)}" if rows.again else ""


def _first_claim(rows: Rows) -> str:
    head = ["", "true epsilon", "in what was released: AUC", "in the encoder's training: AUC"]
    head += ["words recovered, of 10 named", "the most frequent words instead", "author named"]
    lines = [head, ["---"] * len(head)]
    for row in rows.rows:
        if row.settings["alpha"] not in (None, 1.0):
            continue
        numbers = row.numbers
        line = [_name(row), rows.promise(row), _above(row, "released AUC", 0.5)]
        line += [_above(row, "trained AUC", 0.5), _above(row, "words precision", numbers["words precision blind"])]
        authors = _above(row, "authors", numbers["authors blind"]) if numbers["authors blind"] else "all have one text"
        line += [f"{numbers['words precision blind']:.3f}", authors]
        lines.append(line)
    return (
        "**The first claim, on the same vectors**. Means over folds with Student's interval (authors: first fold, "
        f"over people; blind {rows.any['authors blind']:.3f}). Blind for AUC: .5. Bold: above blind beyond the "
        f"interval.\n\n{_joined(lines)}"
    )


def _learnt(rows: Rows) -> str:
    """The learnt budget as a share of its cap, and the slopes that moved it."""
    result = [row for row in rows.rows if (NAMES[str(row.settings["method"])].trained or {}).get("learn_epsilon")]
    if not result:
        return "**The learnt budget**: not run."
    after = [name for name in rows.any if name.startswith("share after ") and not name.endswith((" low", " high"))]
    head = ["", "cap", "alpha", "true epsilon", *(name.removeprefix("share ") for name in after), "least"]
    head += ["slope of the task's loss", "slope of the adversaries' term", "task", *_attributes(rows)]
    lines = [head, ["---"] * len(head)]
    for row in result:
        line = [_name(row), f"{row.settings['epsilon']:g}", f"{row.settings['alpha']:g}", rows.promise(row)]
        line += [f"{row.numbers[name]:.3f}" for name in after[:-1]]
        line += [spelled(row, after[-1]), f"{row.numbers['share, least']:.3f}"]
        line += [
            _slope(row, "slope of task"),
            _slope(row, "slope of attributes"),
            f"{row.numbers['task accuracy']:.3f}",
        ]
        line += [f"{row.numbers[f'{name} best']:.3f}" for name in _attributes(rows)]
        lines.append(line)
    return (
        "**The learnt budget**, as a share of the cap after so many epochs (it starts at .881), means over folds; "
        "slopes over ln epsilon, means over all steps: negative asks for less noise. Attributes: accuracy of the "
        f"attacker.\n\n{_joined(lines)}"
    )


def _name(row: Row) -> str:
    return str(row.settings["method"])


def _printed(values: tuple[float, ...] | None, place: int) -> str:
    return "" if values is None else f"{values[place]:.3f}"


def _best_f1(rows: Rows, row: Row, name: str) -> str:
    """Of the attacker with the largest."""
    best = max(rows.attackers, key=lambda each: row.numbers[f"{name} {each} macro-F1"])
    of = f"{name} {best} macro-F1"
    return _above(row, of, row.numbers[f"{of} blind"])


def _above(row: Row, name: str, blind: float) -> str:
    text = spelled(row, name)
    return f"**{text}**" if row.numbers[f"{name} low"] > blind else text


def _slope(row: Row, name: str) -> str:
    numbers: Mapping[str, float] = row.numbers
    return f"{numbers[name]:+.4f} [{numbers[f'{name} low']:+.4f}, {numbers[f'{name} high']:+.4f}]"


def _joined(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
