"""Table 1 of "Privacy Preserving Text Representation Learning" (DPText)."""

from __future__ import annotations

from pathlib import Path

from papers.dptext import methods
from papers.dptext.rows import PRINTED, Rows
from papers.printed.tables import NO_CLAIM, Cell, Line, Table
from papers.sweeps import Row

from dptext.intervals import Estimate

RESULTS = Path(__file__).resolve().parents[1] / "dptext" / "results"
_METHODS = {
    "ORIGINAL": (methods.ORIGINAL, None),
    "DIFPRIV": (methods.DIFPRIV, methods.CAP),
    "ADV-ALL": (methods.ADV_ALL, None),
    "DPTEXT": (methods.LEARNT_PRINTED, methods.CAP),
}
_ATTRIBUTES = ("age", "industry", "gender")


def sections() -> list[Table]:
    rows = Rows(RESULTS / "table 1, topic, GloVe.jsonl")

    def estimate(row: Row, name: str) -> Estimate:
        values = [row.numbers[f"{name}{end}"] for end in ("", " low", " high")]
        return Estimate(*values, int(rows.constants["folds"]), "folds")

    lines = []
    for name, (method, epsilon) in _METHODS.items():
        row = rows.get(method, epsilon)
        assert row is not None
        results = [estimate(row, "task accuracy")]
        results += [estimate(row, rows.best_attack(row, attribute)) for attribute in _ATTRIBUTES]
        cells = [Cell(f"{value:.4f}", result, 3) for value, result in zip(PRINTED[name], results, strict=True)]
        true = "infinite" if rows.guarantee(row).startswith("none") else rows.guarantee(row)
        lines.append(Line(name, NO_CLAIM if epsilon is None else f"{epsilon:g}, {true}", cells))
    attacker = rows.attackers[0]
    blind = ["task accuracy blind", *(f"{entry} {attacker} macro-F1 blind" for entry in _ATTRIBUTES)]
    industries = sum(name.startswith("industry ") for name in rows.constants)
    return [
        Table(
            "Table 1, sentiment (accuracy) and attributes (F1)",
            ["sentiment", "age", "location", "gender"],
            lines,
            [("majority; guessing", [f"{rows.any[name]:.3f}" for name in blind])],
            f"TrustPilot may not be redistributed. Ours: the topic of {rows.constants['posts']:,} blog posts "
            f"({rows.constants['folds']} folds, GloVe; intervals over {rows.constants['bloggers']} bloggers); the "
            f"author's industry, in {industries} groups, replaces the location; fresh attackers "
            "([papers/dptext](dptext/README.md#table-1-topic-glove)).",
        )
    ]
