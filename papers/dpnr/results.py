"""The rows of one part on one data set, and numbers computed from them."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from papers.dpnr.servers import TOKEN, true_epsilon

from dptext.intervals import Estimate, mean_over_runs
from papers import reports

_ROUNDING = 0.005  # of numbers printed with two digits


class Rows(reports.Rows):
    """The rows of one file."""

    @property
    def names(self) -> list[str]:
        return [name for name in self.rows[0].numbers if not name.startswith(TOKEN)]

    @property
    def has_token_masks(self) -> bool:
        return any(name.startswith(TOKEN) for name in self.rows[0].numbers)

    def use_token_masks(self) -> Rows:
        """Return rows with the masks suggested by the study's numbers (`papers.dpnr.servers.measure_both`)."""
        result = copy(self)
        numbers = [
            row.numbers | {name: row.numbers.get(TOKEN + name, value) for name, value in row.numbers.items()}
            for row in self.rows
        ]
        result.rows = tuple(replace(row, numbers=entry) for row, entry in zip(self.rows, numbers, strict=True))
        return result

    def add(self, other: Rows | None, **settings: Any) -> Rows:
        """Return these rows and the missing ones of another part with these settings."""
        result = copy(self)
        cells = {(tuple(row.settings.items()), row.seed) for row in self.rows}
        result.rows += tuple(
            row
            for row in (() if other is None else other.rows)
            if settings.items() <= row.settings.items() and (tuple(row.settings.items()), row.seed) not in cells
        )
        return result

    def seed_numbers(self, number: str, **settings: Any) -> dict[int, float]:
        """Return a number by seed."""
        return {row.seed: row.numbers[number] for row in self.select(**settings)}


def server_settings(mechanism: str, dimension: int, training: str, epsilon: float) -> dict[str, Any]:
    """Return the settings of a server; only robust training has an epsilon."""
    server = {"mechanism": mechanism, "dimension": dimension, "training": training}
    return server | ({"epsilon": epsilon} if training == "robust" else {})


def is_reproduced(runs: list[float], printed: float, *, of: int = 5) -> bool:
    """Return whether a printed mean of ``of`` runs lies in the range that these runs predict (95%), after rounding.

    The difference of two means of n and m runs with one deviation s is within t s sqrt(1/n + 1/m).
    """
    spread = mean_over_runs(runs)
    half = (spread.high - spread.value) * math.sqrt(1 + len(runs) / of)
    return abs(spread.value - printed) <= half + _ROUNDING


def decision_accuracy(clean: Estimate, epsilon: float, classes: int) -> float:
    """Return the accuracy of a class that a device sends by randomised response (Kairouz et al. 2016).

    The class is kept with probability e^epsilon / (e^epsilon + k - 1), and otherwise replaced uniformly: pure epsilon
    for any two texts.
    """
    kept = 1 / (1 + (classes - 1) * math.exp(-epsilon))
    return clean.value * kept + (1 - clean.value) * (1 - kept) / (classes - 1)


def at_true_epsilon(rows: Rows, mechanism: str, dimension: int, training: str) -> tuple[list[float], list[Estimate]]:
    """Return (true epsilons, accuracies) of a mechanism; robust servers have the epsilon of their users."""
    result: dict[float, Estimate] = {}
    for name in rows.names:
        kind, _, number = name.partition(" ")
        if kind == "epsilon":
            mean = rows.over_runs(name, **server_settings(mechanism, dimension, training, float(number)))
            if mean is not None:
                result[true_epsilon(mechanism, float(number), dimension)] = mean
    order = np.argsort(list(result))
    return [list(result)[place] for place in order], [list(result.values())[place] for place in order]
