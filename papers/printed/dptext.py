"""Paper 001, "Privacy Preserving Text Representation Learning" (DPText)."""

from __future__ import annotations

from pathlib import Path

from papers.dptext import methods
from papers.dptext.printed import PRINTED
from papers.dptext.rows import Rows
from papers.printed.cells import NO_CLAIM, Cell, Line, Note, Table

from dptext.intervals import Estimate

RESULTS = Path(__file__).resolve().parents[1] / "dptext" / "results"
FILE = "table 1, topic, GloVe.jsonl"
_OURS = {
    "ORIGINAL": (methods.ORIGINAL, None),
    "DIFPRIV": (methods.DIFPRIV, methods.CAP),
    "ADV-ALL": (methods.ADV_ALL, None),
    "DPTEXT": (methods.LEARNT_PRINTED, methods.CAP),
}


def sections() -> list[Table | Note]:
    rows = Rows(RESULTS / FILE)
    lines = []
    for name, (method, epsilon) in _OURS.items():
        weight = None if methods.NAMES[method].trained is None else 1.0
        (row,) = rows.of(method, epsilon=epsilon, alpha=weight)[:1]
        task, age, location, gender = (f"{entry:.4f}" for entry in PRINTED[name])
        cells = [Cell(task, _number(rows, row, "task accuracy"), 3)]
        cells.append(Cell(age, _attacked(rows, row, "age"), 3))
        cells.append(Cell(location, _attacked(rows, row, "industry"), 3))
        cells.append(Cell(gender, _attacked(rows, row, "gender"), 3))
        promise = "infinite" if rows.promise(row).startswith("none") else rows.promise(row)
        lines.append(Line(name, NO_CLAIM if epsilon is None else f"{epsilon:g}, {promise}", cells))
    numbers, attacker = rows.any, rows.attackers[0]
    blind = [f"{numbers['task accuracy blind']:.3f}"]
    blind += [f"{numbers[f'{entry} {attacker} macro-F1 blind']:.3f}" for entry in ("age", "industry", "gender")]
    industries = sum(name.startswith("industry ") for name in rows.constants)
    return [
        Table(
            "Table 1, sentiment (accuracy) and attributes (F1)",
            ["sentiment", "age", "location", "gender"],
            lines,
            [("majority; guessing", blind)],
            f"TrustPilot may not be passed on. Ours: the topic of {rows.constants['posts']:,} blog posts "
            f"({rows.constants['folds']} folds, GloVe; intervals over {rows.constants['bloggers']} bloggers); for "
            f"their location the industry of those who wrote, in {industries} groups; fresh attackers "
            "([papers/dptext](dptext/README.md#table-1-topic-glove)).",
        )
    ]


def _number(rows: Rows, row: object, name: str) -> Estimate:
    numbers = row.numbers  # type: ignore[attr-defined]
    return Estimate(
        numbers[name], numbers[f"{name} low"], numbers[f"{name} high"], int(rows.constants["folds"]), "folds"
    )


def _attacked(rows: Rows, row: object, attribute: str) -> Estimate:
    """The best of the attackers, by macro-F1."""
    numbers = row.numbers  # type: ignore[attr-defined]
    best = max(rows.attackers, key=lambda each: numbers[f"{attribute} {each} macro-F1"])
    return _number(rows, row, f"{attribute} {best} macro-F1")
