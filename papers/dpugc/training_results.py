"""The rows of part two as they are reported."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from papers.dpugc.neighbours import PAPER_QUERIES
from papers.dpugc.results import over_things
from papers.sweeps import Row, Setting, read_sweep

from dptext.intervals import Estimate

__all__ = ["Found"]


class Found:
    """The rows of one file; none where it is missing.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        sweep = read_sweep(path) if path.exists() else None
        self.rows: tuple[Row, ...] = () if sweep is None else sweep.rows
        self.constants: dict[str, Setting] = {} if sweep is None else dict(sweep.experiment["constants"])

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
        rows = (row for row in self.rows if row.settings.items() >= settings.items())
        return sorted(rows, key=lambda row: row.seed)

    def mean(self, number: str, **settings: Setting) -> float | None:
        """Over seeds."""
        results = [row.numbers[number] for row in self.of(**settings)]
        return float(np.mean(results)) if results else None

    def precision(self, measure: str, **settings: Setting) -> Estimate | None:
        """A MAP score, with its interval over queries and runs."""
        results = [[row.numbers[f"{measure} {query}"] for query in PAPER_QUERIES] for row in self.of(**settings)]
        return over_things(np.array(results), of="queries") if results else None

    def estimate(self, number: str, **settings: Setting) -> Estimate | None:
        """A number that was stored with its interval."""
        for row in self.of(**settings):
            low, high = (row.numbers[f"{number} {bound}"] for bound in ("low", "high"))
            return Estimate(row.numbers[number], low, high, 0, "things")
        return None

    def models(self, order: Iterable[str]) -> list[tuple[str, float | None]]:
        """(model, epsilon) of all rows, in this order."""
        places = {name: place for place, name in enumerate(order)}
        results = {(str(row.settings["model"]), _number(row.settings["epsilon"])) for row in self.rows}
        return sorted(results, key=lambda each: (places.get(each[0], len(places)), each[1] or 0.0))


def _number(value: Setting) -> float | None:
    return None if value is None else float(value)
