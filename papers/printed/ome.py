"""Tables of "Towards Differentially Private Text Representations" (OME)."""

from __future__ import annotations

from pathlib import Path

from papers.ome.printed_report import CLEAN, PRINTED, SETS, Results, Setting, true_epsilons
from papers.printed.tables import NO_CLAIM, Cell, Line, Note, Table

RESULTS = Path(__file__).resolve().parents[1] / "ome" / "results"


def sections() -> list[Table | Note]:
    results = Results(RESULTS)

    def line(label: str, setting: Setting, columns: int = 5) -> Line:
        cells = []
        for name, printed in zip(SETS[:columns], PRINTED[setting], strict=False):
            cells.append(Cell(f"{printed:.2f}", results.estimate(name, setting) or "not run"))
        # SUE and OUE, and OME in their table, are about the sentiment sets only
        true = true_epsilons(results, setting).split(" / ")[: 1 if columns == 3 else None]
        return Line(label, NO_CLAIM if setting == CLEAN else f"{setting[1]:g}, {' / '.join(true)}", cells)

    def majority(columns: int) -> tuple[str, list[str]]:
        estimates = [results.estimate(name, CLEAN, "majority") for name in SETS[:columns]]
        return "majority class", ["" if estimate is None else f"{estimate.value:.1f}" for estimate in estimates]

    table1 = [line("NPNN", CLEAN)]
    table1 += [line(f"epsilon {epsilon:g}", ("OME", epsilon, 100.0)) for epsilon in (0.5, 1.0, 5.0, 10.0)]
    table1 += [line(f"lambda {factor:g}", ("OME", 1.0, factor)) for factor in (1.0, 10.0, 50.0, 100.0)]
    table2 = [line(name, (name, 1.0, factor), 3) for name, factor in (("SUE", None), ("OUE", None), ("OME", 100.0))]
    return [
        Note("Figures 1 and 2, drawings", "Nothing to run."),
        Table(
            "Table 1, accuracy in per cent",
            SETS,
            table1,
            [majority(5)],
            "True epsilon of sentiment / Intent / MRPC. MiniLM replaces BERT on Intent and MRPC "
            "([papers/ome](ome/README.md#the-papers-own-tables)). Lambda 100 is the row of epsilon 1 again.",
        ),
        Table("Table 2, accuracy in per cent", SETS[:3], table2, [majority(3)]),
        Note(
            "Figure 3, probabilities of a bit over epsilon and lambda",
            "Curves without numbers in the text; ours, from the printed formulas: "
            "[figure3.png](ome/results/figure3.png).",
        ),
    ]
