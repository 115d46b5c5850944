"""A printed table with ours beside it, and how it is written down.

A cell of a paper's table or a point of its figure is a `Cell`: the printed number, and ours or the reason why there is
none. `Table` holds them as the paper does, so that what is missing shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dptext.intervals import Estimate

NO_CLAIM = "none claimed, infinite"


@dataclass(frozen=True)
class Cell:
    """One printed number.

    Attributes:
        printed: as the paper spells it; "" where the text of the paper has none.
        ours: an estimate with its interval (NaN: one run), or why there is none.
        digits: of ours.
    """

    printed: str
    ours: Estimate | str
    digits: int = 1

    @property
    def is_run(self) -> bool:
        return not isinstance(self.ours, str)

    def __str__(self) -> str:
        if isinstance(self.ours, str):
            return f"{self.printed} / {self.ours}" if self.printed else self.ours
        value = f"{self.ours.value:.{self.digits}f}"
        if self.ours.low == self.ours.high:
            return f"{self.printed} / **{value}**"  # counted or computed, not estimated
        if math.isnan(self.ours.high) or self.ours.count == 1:
            return f"{self.printed} / **{value}** (1 {self.ours.of.removesuffix('s')})"
        low, high = f"{self.ours.low:.{self.digits}f}", f"{self.ours.high:.{self.digits}f}"
        return f"{self.printed} / **{value}** [{low}, {high}]{_count(self.ours)}"


def _count(found: Estimate) -> str:
    return f" ({found.count:,} {found.of})" if found.count else ""


@dataclass(frozen=True)
class Line:
    """A row of a printed table.

    Attributes:
        name: what the paper calls it.
        epsilon: claimed and true, in words; "" where there is no mechanism.
        cells: in the order of the table's columns.
    """

    name: str
    epsilon: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Table:
    """A printed table, or a figure whose points are numbers in the text of the paper.

    Attributes:
        place: "Table 1", and what it is of.
        columns: of the printed numbers.
        lines: its rows.
        baselines: what one has who looks at no text (the majority class, guessing, the mean), by column.
        said: what is replaced, and where our numbers come from.
    """

    place: str
    columns: Sequence[str]
    lines: Sequence[Line]
    baselines: Sequence[tuple[str, Sequence[str]]] = ()
    said: str = ""

    @property
    def cells(self) -> list[Cell]:
        return [cell for line in self.lines for cell in line.cells if cell.printed]

    def __str__(self) -> str:
        has_epsilon = any(line.epsilon for line in self.lines)
        head = ["", *(["claimed, true epsilon"] if has_epsilon else []), *self.columns]
        rows = [head, ["---"] * len(head)]
        rows += [[line.name, *([line.epsilon] if has_epsilon else []), *map(str, line.cells)] for line in self.lines]
        rows += [[f"*{name}*", *([""] if has_epsilon else []), *values] for name, values in self.baselines]
        run = sum(cell.is_run for cell in self.cells)
        count = f"{run} of {len(self.cells)} printed numbers have one of ours beside them."
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        return f"**{self.place}.** {' '.join(filter(None, [self.said, count]))}\n\n{table}"


@dataclass(frozen=True)
class Note:
    """A figure or table without a number in the text of the paper.

    Attributes:
        place: "Figure 1", and what it is of.
        said: why there is nothing to put beside, and what of ours answers it.
    """

    place: str
    said: str

    def __str__(self) -> str:
        return f"**{self.place}.** {self.said}"


def text_of(heading: str, said: str, parts: Sequence[Table | Note]) -> str:
    """The section of a paper."""
    return "\n\n".join([f"## {heading}", *filter(None, [said]), *map(str, parts)])
