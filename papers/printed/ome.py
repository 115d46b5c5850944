"""Paper 003, "Towards Differentially Private Text Representations" (OME)."""

from __future__ import annotations

from pathlib import Path

from papers.ome.printed_report import PRINTED, SETS, Found, Setting
from papers.printed.cells import NO_CLAIM, Cell, Line, Note, Table

RESULTS = Path(__file__).resolve().parents[1] / "ome" / "results"
_BY_EPSILON = [("OME", epsilon, 100.0) for epsilon in (0.5, 1.0, 5.0, 10.0)]
_BY_LAMBDA = [("OME", 1.0, factor) for factor in (1.0, 10.0, 50.0, 100.0)]
_PROTOCOLS: list[Setting] = [("SUE", 1.0, None), ("OUE", 1.0, None), ("OME", 1.0, 100.0)]


def sections() -> list[Table | Note]:
    result = Found(RESULTS)
    first = [Line("NPNN", NO_CLAIM, _cells(result, ("none", None, None)))]
    first += [Line(f"epsilon {entry[1]:g}", _epsilons(result, entry), _cells(result, entry)) for entry in _BY_EPSILON]
    first += [Line(f"lambda {entry[2]:g}", _epsilons(result, entry), _cells(result, entry)) for entry in _BY_LAMBDA]
    second = [Line(protocol[0], _epsilons(result, protocol, 3), _cells(result, protocol, 3)) for protocol in _PROTOCOLS]
    return [
        Note("Figures 1 and 2, drawings", "Nothing to run."),
        Table(
            "Table 1, accuracy in per cent",
            SETS,
            first,
            [_majority(result, 5)],
            "True epsilon of sentiment / Intent / MRPC. MiniLM stands in for BERT on Intent and MRPC "
            "([papers/ome](ome/README.md#the-papers-own-tables)). Lambda 100 is the row of epsilon 1 again.",
        ),
        Table("Table 2, accuracy in per cent", SETS[:3], second, [_majority(result, 3)]),
        Note(
            "Figure 3, chances of a bit over epsilon and lambda",
            "Curves without numbers in the text; ours, from the printed formulas: "
            "[figure3.png](ome/results/figure3.png).",
        ),
    ]


def _cells(found: Found, setting: Setting, columns: int = 5) -> list[Cell]:
    printed = PRINTED[setting]
    cells = []
    for name, theirs in list(zip(SETS, printed, strict=False))[:columns]:
        cells.append(Cell(f"{theirs:.2f}", found.estimate(name, setting) or "not run"))
    return cells


def _epsilons(found: Found, setting: Setting, columns: int = 5) -> str:
    true = dict.fromkeys(_spelled(found.true(name, setting)) for name in SETS[:columns])
    return f"{setting[1]:g}, {' / '.join(true)}"


def _spelled(epsilon: float) -> str:
    return f"{epsilon:,.0f}" if epsilon >= 1000 else f"{epsilon:.4g}"


def _majority(found: Found, columns: int) -> tuple[str, list[str]]:
    estimates = [found.estimate(name, ("none", None, None), "majority") for name in SETS[:columns]]
    return "majority class", ["" if estimate is None else f"{estimate.value:.1f}" for estimate in estimates]
