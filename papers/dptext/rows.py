"""The rows of a file of results, in the order of tables, and how they are spelled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from papers.blogs_posts import TASKS
from papers.dptext import methods
from papers.dptext.methods import METHODS, NAMES, true_epsilon
from papers.dptext.stored import ENCODERS
from papers.sweeps import Row, read_sweep

ATTRIBUTES = ("gender", "age")
POINTS = 0.03  # that the task may lose
_ORDER = [method.name for method in METHODS]


class Rows:
    """All rows of one task on one kind of stored vectors.

    Attributes:
        task, encoder: which.
        rows: of the first run, in the order of tables: methods, then epsilons, then alphas.
        again: of other runs, in the same order; in other folds, with other trainings and other noise.
        constants: what was the same for all.
    """

    def __init__(self, path: Path) -> None:
        self.task, self.encoder = path.stem.rsplit(", ", 1)
        sweep = read_sweep(path)
        first = min(row.seed for row in sweep.rows)
        rows = sorted(sweep.rows, key=_place)
        self.rows = tuple(row for row in rows if row.seed == first)
        self.again = tuple(row for row in rows if row.seed != first)
        self.constants: dict[str, Any] = dict(sweep.experiment["constants"])

    @property
    def any(self) -> Mapping[str, float]:
        """The numbers of some row: baselines are the same in all."""
        return self.rows[0].numbers

    @property
    def table(self) -> Iterator[Row]:
        """Those of the table: adversaries have the weight 1."""
        return (row for row in self.rows if row.settings["alpha"] in (None, 1.0))

    def of(self, method: str, *, alpha: float | None = None, epsilon: float | None = None) -> list[Row]:
        """The rows of a method, with these settings where they are given."""
        return [
            row
            for row in self.rows
            if row.settings["method"] == method
            and alpha in (None, row.settings["alpha"])
            and epsilon in (None, row.settings["epsilon"])
        ]

    @property
    def attackers(self) -> list[str]:
        return str(self.constants["attackers"]).split(", ")

    def largest(self, row: Row, attribute: str, which: str) -> float:
        """Of the attackers."""
        return max(row.numbers[f"{attribute} {attacker} {which}"] for attacker in self.attackers)

    def gap(self, attribute: str) -> str:
        """The name of the gap of the first group and the last."""
        start = f"{attribute} gap "
        names = [entry for entry in self.any if entry.startswith(start) and not entry.endswith((" low", " high"))]
        groups = [name.removeprefix(start).split(" less ") for name in names]
        first, last = min(group[1] for group in groups), max(group[0] for group in groups)
        return f"{start}{last} less {first}"

    def promise(self, row: Row) -> str:
        """Epsilon as it is true, and as it is printed where that is something else."""
        method, epsilon = NAMES[row.settings["method"]], row.settings["epsilon"]
        if epsilon is None:
            return "none"
        true = true_epsilon(method, epsilon, int(self.constants["width"]))
        if math.isinf(true):
            return f"none ({epsilon:g} claimed)"
        return f"{true:g}, delta {methods.DELTA:g}" if method.noise == "Gaussian" else f"{true:g}"

    def verdict(self, row: Row) -> str:
        """Whether a row does what was asked for: yes, by accuracy only (macro-F1 falls by more), or no."""
        if not reaches(row):
            return "no"
        base = next(iter(self.of(methods.ADV_ALL, alpha=1.0)))
        falls = base.numbers["task macro-F1"] - row.numbers["task macro-F1"]
        return "yes" if falls <= POINTS else "by accuracy only"

    @property
    def alphas(self) -> bool:
        """Whether other weights than 1 were tried."""
        return len(list(self.table)) < len(self.rows)


def reaches(row: Row) -> bool:
    """Accuracy of the task within `POINTS` of ADV-ALL, less told of both attributes; at 95% each."""
    numbers = row.numbers
    told = (numbers[f"{attribute} less ADV-ALL high"] for attribute in ATTRIBUTES)
    return numbers["task less ADV-ALL low"] >= -POINTS and all(entry < 0 for entry in told)


def files_of(out: Path) -> list[Path]:
    """Those of results, tasks and encoders in the order of the plan."""
    places = [f"{task}, {encoder}" for task in TASKS for encoder in ENCODERS]
    return [path for place in places if (path := out / f"{place}.jsonl").exists()]


def spelled(row: Row, name: str) -> str:
    numbers = row.numbers
    return f"{numbers[name]:.3f} [{numbers[f'{name} low']:.3f}, {numbers[f'{name} high']:.3f}]"


def signed(row: Row, name: str) -> str:
    """A difference; bold where 0 lies outside of its interval."""
    low, high = row.numbers[f"{name} low"], row.numbers[f"{name} high"]
    text = f"{row.numbers[name]:+.3f} [{low:+.3f}, {high:+.3f}]"
    return f"**{text}**" if low > 0 or high < 0 else text


def _place(row: Row) -> tuple[int, float, float]:
    return _ORDER.index(row.settings["method"]), row.settings["epsilon"] or 0.0, row.settings["alpha"] or 0.0
