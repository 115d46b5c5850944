"""What the rows of a sweep say: a mean and an interval for each setting, and how two settings differ seed by seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dptext.errors import ParameterError
from dptext.estimates import Estimate, mean_over_runs
from dptext.evaluation.sweep_file import Row, Setting, cell_name

__all__ = ["Summary", "Sweep"]


@dataclass(frozen=True)
class Summary:
    """One number of one setting, over its seeds.

    Attributes:
        settings: which.
        estimate: the mean with Student's interval.
        seconds: the mean time of a row.
    """

    settings: Mapping[str, Setting]
    estimate: Estimate
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The rows of a sweep.

    Attributes:
        rows: one for each setting and seed.
        experiment: what was held constant, and by which software it was done.
    """

    rows: tuple[Row, ...]
    experiment: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """What was measured."""
        return tuple(self.rows[0].numbers) if self.rows else ()

    @property
    def seconds(self) -> float:
        """The time of all rows together."""
        return sum(row.seconds for row in self.rows)

    def summary(self, number: str, *, confidence: float = 0.95) -> list[Summary]:
        """The mean of one number for each setting, with its interval over seeds.

        Raises:
            ParameterError: nothing of this name, or a setting with fewer than two seeds.
        """
        self._check(number)
        found = []
        for rows in self._by_setting().values():
            _check_runs(rows)
            estimate = mean_over_runs([row.numbers[number] for row in rows], confidence=confidence)
            found.append(Summary(rows[0].settings, estimate, sum(row.seconds for row in rows) / len(rows)))
        return found

    def difference(
        self, number: str, first: Mapping[str, Setting], second: Mapping[str, Setting], *, confidence: float = 0.95
    ) -> Estimate:
        """How much larger a number is for the first setting than for the second, seed by seed.

        What a seed decides for both (folds, samples) cancels, so the interval is narrower than that of two means.

        Args:
            number: which.
            first, second: settings; those that single out one setting of the sweep suffice.
            confidence: of the interval.

        Raises:
            ParameterError: settings that fit none or several, or fewer than two seeds in common.
        """
        self._check(number)
        ones, others = (
            {row.seed: row.numbers[number] for row in self._only(name, each)}
            for name, each in (("first", first), ("second", second))
        )
        common = sorted(ones.keys() & others.keys())
        if len(common) < 2:
            raise ParameterError(f"first and second must have at least two seeds in common, got {len(common)}")
        return mean_over_runs([ones[seed] - others[seed] for seed in common], confidence=confidence)

    def table(self, *numbers: str) -> str:
        """Settings, means with their intervals, and seconds a row, in Markdown."""
        wanted = numbers or self.names
        columns = [self.summary(number) for number in wanted]
        names = list(self.rows[0].settings)
        lines = [[*names, *wanted, "seconds"], ["---"] * (len(names) + len(wanted) + 1)]
        for each in zip(*columns, strict=True):
            found = [str(summary.estimate) for summary in each]
            lines.append([*(str(each[0].settings[name]) for name in names), *found, f"{each[0].seconds:.3g}"])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _check(self, number: str) -> None:
        if number not in self.names:
            raise ParameterError(f"number must be one of {', '.join(self.names) or 'none'}, got {number!r}")

    def _by_setting(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(cell_name(row.settings, 0), []).append(row)
        return found

    def _only(self, name: str, wanted: Mapping[str, Setting]) -> list[Row]:
        missing = object()
        fitting = [
            rows
            for rows in self._by_setting().values()
            if all(rows[0].settings.get(key, missing) == value for key, value in wanted.items())
        ]
        if len(fitting) != 1:
            raise ParameterError(f"{name} must single out one setting, it fits {len(fitting)}")
        return fitting[0]


def _check_runs(rows: list[Row]) -> None:
    if len(rows) < 2:
        raise ParameterError("seeds must be at least two for an interval over runs, a setting has 1")
