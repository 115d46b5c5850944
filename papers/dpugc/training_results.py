"""The rows of part two as they are reported."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from papers.dpugc.neighbours import PAPER_QUERIES
from papers.dpugc.results import over_things
from papers.sweep_file import Row, Setting
from papers.sweeps import read_sweep

from dptext.intervals import Estimate

__all__ = ["Found"]


class Found:
    """The rows of one file; none where it is missing.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        found = read_sweep(path) if path.exists() else None
        self.rows: tuple[Row, ...] = () if found is None else found.rows
        self.constants: dict[str, Setting] = {} if found is None else dict(found.experiment["constants"])

    def __bool__(self) -> bool:
        return bool(self.rows)

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self.rows)

    def values(self, name: str, **settings: Setting) -> list[Setting]:
        """The values of a setting, in the order of rows."""
        return list(dict.fromkeys(row.settings[name] for row in self.of(**settings)))

    def of(self, **settings: Setting) -> list[Row]:
        """All rows with these settings, by seed."""
        found = (row for row in self.rows if row.settings.items() >= settings.items())
        return sorted(found, key=lambda row: row.seed)

    def mean(self, number: str, **settings: Setting) -> float | None:
        """Over seeds."""
        found = [row.numbers[number] for row in self.of(**settings)]
        return float(np.mean(found)) if found else None

    def precision(self, measure: str, **settings: Setting) -> Estimate | None:
        """A MAP score, with its interval over queries and runs."""
        found = [[row.numbers[f"{measure} {query}"] for query in PAPER_QUERIES] for row in self.of(**settings)]
        return over_things(np.array(found), of="queries") if found else None

    def estimate(self, number: str, **settings: Setting) -> Estimate | None:
        """A number that was stored with its interval."""
        for row in self.of(**settings):
            low, high = (row.numbers[f"{number} {bound}"] for bound in ("low", "high"))
            return Estimate(row.numbers[number], low, high, 0, "things")
        return None

    def models(self, order: Iterable[str]) -> list[tuple[str, float | None]]:
        """(model, epsilon) of all rows, in this order."""
        places = {name: place for place, name in enumerate(order)}
        found = {(str(row.settings["model"]), _number(row.settings["epsilon"])) for row in self.rows}
        return sorted(found, key=lambda each: (places.get(each[0], len(places)), each[1] or 0.0))


def _number(value: Setting) -> float | None:
    return None if value is None else float(value)
