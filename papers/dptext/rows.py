"""The rows of one task and kind of stored vectors, and the printed numbers of table 1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from papers.dptext import methods
from papers.dptext.methods import METHODS, NAMES
from papers.reports import above
from papers.sweeps import Row

from papers import reports

ATTRIBUTES = ("gender", "age")
TOLERANCE = 0.03  # of the task's accuracy
PRINTED_SET = "TrustPilot, English, 10,000 reviews per country; about 75% have five stars"
PRINTED = {
    "ORIGINAL": (0.7493, 0.3449, 0.1539, 0.5301),
    "DIFPRIV": (0.7397, 0.3177, 0.1411, 0.5118),
    "ADV-ALL": (0.7165, 0.3076, 0.1080, 0.4716),
    "DPTEXT": (0.7318, 0.1994, 0.0581, 0.3911),
}
"""Table 1 of the paper (TrustPilot, 10 folds): accuracy of the sentiment; F1 of age, location and gender."""
_ORDER = [method.name for method in METHODS]


class Rows(reports.Rows):
    """The rows of one file in the order of tables; ``repeated`` are those of further runs, with other folds."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.task, self.encoder = path.stem.rsplit(", ", 1)
        rows = sorted(self.rows, key=_place)
        first = min((row.seed for row in rows), default=0)
        self.rows = tuple(row for row in rows if row.seed == first)
        self.repeated = tuple(row for row in rows if row.seed != first)

    @property
    def table(self) -> Iterator[Row]:
        """The rows whose adversaries have the weight 1."""
        return (row for row in self.rows if row.settings["alpha"] in (None, 1.0))

    def get(self, method: str, epsilon: float | None) -> Row | None:
        """Return the row of a method in the table."""
        settings = {"method": method, "epsilon": epsilon}.items()
        return next((row for row in self.table if row.settings.items() >= settings), None)

    @property
    def attackers(self) -> list[str]:
        return str(self.constants["attackers"]).split(", ")

    def best_attack(self, row: Row, attribute: str) -> str:
        """Return the name of the largest macro-F1 of the attackers."""
        return max((f"{attribute} {entry} macro-F1" for entry in self.attackers), key=row.numbers.__getitem__)

    def gap(self, attribute: str) -> str:
        """Return the name of the gap between the first and the last group."""
        start = f"{attribute} gap "
        names = [entry for entry in self.any if entry.startswith(start) and not entry.endswith((" low", " high"))]
        groups = [name.removeprefix(start).split(" less ") for name in names]
        return f"{start}{max(group[0] for group in groups)} less {min(group[1] for group in groups)}"

    def guarantee(self, row: Row) -> str:
        """Return the true epsilon, or "none" with the claimed one."""
        method, epsilon = NAMES[str(row.settings["method"])], row.settings["epsilon"]
        if epsilon is None:
            return "none"
        true = method.true_epsilon(float(epsilon), int(self.constants["width"]))
        if math.isinf(true):
            return f"none ({epsilon:g} claimed)"
        return f"{true:g}, delta {methods.DELTA:g}" if method.noise == "Gaussian" else f"{true:g}"

    def verdict(self, row: Row) -> str:
        """Return whether a row reaches the goal: "yes", "by accuracy only" (macro-F1 falls by more), or "no"."""
        if not is_goal(row):
            return "no"
        reference = self.get(methods.ADV_ALL, None)
        assert reference is not None
        fall = reference.numbers["task macro-F1"] - row.numbers["task macro-F1"]
        return "yes" if fall <= TOLERANCE else "by accuracy only"


def is_goal(row: Row) -> bool:
    """Return whether the task is within `TOLERANCE` of ADV-ALL and both attacks succeed less often, at 95% each."""
    numbers = row.numbers
    attacks = (numbers[f"{attribute} less ADV-ALL high"] for attribute in ATTRIBUTES)
    return numbers["task less ADV-ALL low"] >= -TOLERANCE and all(attack < 0 for attack in attacks)


def best_f1(rows: Rows, row: Row, attribute: str) -> str:
    return above(row.numbers, rows.best_attack(row, attribute))


def _place(row: Row) -> tuple[int, float, float]:
    settings = row.settings
    return _ORDER.index(str(settings["method"])), float(settings["epsilon"] or 0.0), float(settings["alpha"] or 0.0)
