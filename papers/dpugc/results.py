"""The rows of the experiment as they are reported: by model, with every run of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from papers.dpugc.intervals import crossed
from papers.dpugc.models import LARGER, Model
from papers.sweeps import Row, Setting, read_sweep

from dptext.intervals import Estimate, share

__all__ = ["ORDER", "Rows", "over_things", "share_over_things"]

ORDER = (
    *("public", "public words", "public words and characters", "public, centred", "public, processed", "only noise"),
    *("private", *LARGER, "no noise", "word2vec", "another word2vec"),
)

Floats = npt.NDArray[np.float64]


class Rows:
    """The rows of one file; none where it is missing.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        sweep = read_sweep(path) if path.exists() else None
        self._rows: tuple[Row, ...] = () if sweep is None else sweep.rows
        self.constants: dict[str, Setting] = {} if sweep is None else dict(sweep.experiment["constants"])

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self._rows)

    @property
    def count(self) -> int:
        return len(self._rows)

    def models(self) -> list[Model]:
        """Those that have a row, in the order of tables."""
        results = {_model_of(row) for row in self._rows}
        return sorted(results, key=lambda each: (ORDER.index(each.kind), each.epsilon or 0.0))

    def values(self, name: str) -> list[Setting]:
        """The values of a setting, as they came."""
        return list(dict.fromkeys(row.settings[name] for row in self._rows))

    def runs(self, model: Model, **settings: Setting) -> list[Row]:
        """The rows of a model, by seed."""
        target = model.settings | settings
        return sorted((row for row in self._rows if row.settings.items() >= target.items()), key=lambda row: row.seed)

    def mean(self, model: Model, number: str, **settings: Setting) -> float | None:
        """Over runs."""
        results = [row.numbers[number] for row in self.runs(model, **settings)]
        return float(np.mean(results)) if results else None

    def estimate(self, model: Model, number: str, **settings: Setting) -> Estimate | None:
        """A number that was stored with its interval."""
        for row in self.runs(model, **settings):
            low, high = (row.numbers[name] for name in _bounds(number))
            return Estimate(row.numbers[number], low, high, 0, "things")
        return None

    def table(self, model: Model, numbers: Iterable[str], **settings: Setting) -> Floats:
        """(runs, numbers)."""
        names = list(numbers)
        return np.array([[row.numbers[name] for name in names] for row in self.runs(model, **settings)])


def over_things(values: Floats, *, of: str) -> Estimate:
    """The mean of (runs, things), with its interval over both."""
    return crossed(lambda things, runs: float(values[np.ix_(runs, things)].mean()), values.shape[1], len(values), of=of)


def share_over_things(hits: npt.NDArray[np.bool_], *, of: str) -> Estimate:
    """The share of (runs, things) that are hits; where all or none are, no resample differs, and things are counted."""
    result = over_things(hits.astype(np.float64), of=of)
    if result.low < result.high:
        return result
    counted = share(round(result.value * hits.shape[1]), hits.shape[1])  # Clopper and Pearson 1934
    return replace(result, low=counted.low, high=counted.high)


def _model_of(row: Row) -> Model:
    epsilon = row.settings["epsilon"]
    return Model(str(row.settings["model"]), None if epsilon is None else float(epsilon))


def _bounds(number: str) -> tuple[str, str]:
    return ("low", "high") if number == "difference" else (f"{number} low", f"{number} high")
