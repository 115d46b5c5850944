"""Printed tables and figures with our results: the cells, and their Markdown.

A `Cell` is a number of a printed table or a point of a printed figure, with our result or the reason why there is none.
`Table` keeps the order of the paper, so that missing results are visible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dptext.intervals import Estimate, mean_over_runs

NO_CLAIM = "none claimed, infinite"


@dataclass(frozen=True)
class Cell:
    """One printed number ("" if the text of the paper has none) and our estimate, or why there is none."""

    printed: str
    result: Estimate | str
    digits: int = 1

    @property
    def is_run(self) -> bool:
        return not isinstance(self.result, str)

    def __str__(self) -> str:
        result = self.result
        if isinstance(result, str):
            return f"{self.printed} / {result}" if self.printed else result
        value, low, high = (f"{number:.{self.digits}f}" for number in (result.value, result.low, result.high))
        text = f"{self.printed} / **{value}**"
        if result.low == result.high:  # counted or computed, not estimated
            return text
        if math.isnan(result.high) or result.count == 1:
            return f"{text} (1 {result.of.removesuffix('s')})"
        return f"{text} [{low}, {high}]" + (f" ({result.count:,} {result.of})" if result.count else "")


def over_runs(values: Sequence[float]) -> Estimate:
    """Return the mean over runs; a single run has no interval."""
    return mean_over_runs(values) if len(values) > 1 else Estimate(values[0], math.nan, math.nan, 1, "runs")


@dataclass(frozen=True)
class Line:
    """A row of a printed table: its name, the claimed and true epsilon ("" without a mechanism), and the cells."""

    name: str
    epsilon: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Table:
    """A printed table, or a figure whose points are numbers in the text of the paper.

    Attributes:
        place: "Table 1", and its topic.
        columns: of the printed numbers.
        lines: its rows.
        baselines: results without any text (the majority class, guessing, the mean), by column.
        note: replacements, and the source of our numbers.
    """

    place: str
    columns: Sequence[str]
    lines: Sequence[Line]
    baselines: Sequence[tuple[str, Sequence[str]]] = ()
    note: str = ""

    @property
    def cells(self) -> list[Cell]:
        return [cell for line in self.lines for cell in line.cells if cell.printed]

    def __str__(self) -> str:
        has_epsilon = any(line.epsilon for line in self.lines)
        head = ["", *(["claimed, true epsilon"] if has_epsilon else []), *self.columns]
        rows = [head, ["---"] * len(head)]
        rows += [[line.name, *([line.epsilon] if has_epsilon else []), *map(str, line.cells)] for line in self.lines]
        rows += [[f"*{name}*", *([""] if has_epsilon else []), *values] for name, values in self.baselines]
        count = f"{sum(cell.is_run for cell in self.cells)} of {len(self.cells)} printed numbers have a result of ours."
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        return f"**{self.place}.** {' '.join(filter(None, [self.note, count]))}\n\n{table}"


@dataclass(frozen=True)
class Note:
    """A figure or table without a number in the text of the paper, and our counterpart."""

    place: str
    note: str

    def __str__(self) -> str:
        return f"**{self.place}.** {self.note}"
