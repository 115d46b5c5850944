"""The rows of one part on one data set, as they are reported: a number of a server, over its runs."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from papers.dpnr.servers import TOKEN, true_epsilon
from papers.sweeps import read_sweep

from dptext.intervals import Estimate, mean_over_runs

_ROUNDING = 0.005  # of numbers printed with two digits


class Rows:
    """The rows of one file; none where it is missing."""

    def __init__(self, path: Path) -> None:
        sweep = read_sweep(path) if path.exists() else None
        self.rows = () if sweep is None else sweep.rows
        self.constants: dict[str, Any] = {} if sweep is None else dict(sweep.experiment["constants"])

    def __bool__(self) -> bool:
        return bool(self.rows)

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self.rows)

    @property
    def names(self) -> list[str]:
        """Of the numbers, in their order."""
        return [name for name in self.rows[0].numbers if not name.startswith(TOKEN)]

    @property
    def has_token_masks(self) -> bool:
        return any(name.startswith(TOKEN) for name in self.rows[0].numbers)

    def with_token_masks(self) -> Rows:
        """The rows with masks as the study's numbers suggest (`papers.dpnr.servers.measure_both`) for the others."""
        result = copy(self)
        numbers = [
            row.numbers | {name: row.numbers.get(TOKEN + name, value) for name, value in row.numbers.items()}
            for row in self.rows
        ]
        result.rows = tuple(replace(row, numbers=entry) for row, entry in zip(self.rows, numbers, strict=True))
        return result

    def and_of(self, other: Rows | None, **settings: Any) -> Rows:
        """These rows and those of another part that have these settings and are not among them."""
        result = copy(self)
        there = {(tuple(row.settings.items()), row.seed) for row in self.rows}
        more = () if other is None else other.rows
        result.rows = self.rows + tuple(
            row
            for row in more
            if settings.items() <= row.settings.items() and (tuple(row.settings.items()), row.seed) not in there
        )
        return result

    def values(self, name: str) -> list[Any]:
        """Of a setting, as they came."""
        return list(dict.fromkeys(row.settings[name] for row in self.rows))

    def runs(self, number: str, **settings: Any) -> list[float]:
        """A number of a server, for each run that is done."""
        return [row.numbers[number] for row in self.rows if settings.items() <= row.settings.items()]

    def by_seed(self, number: str, **settings: Any) -> dict[int, float]:
        """The same with the seed of each."""
        return {row.seed: row.numbers[number] for row in self.rows if settings.items() <= row.settings.items()}

    def mean(self, number: str, **settings: Any) -> Estimate | None:
        """Its mean; None with fewer than two runs."""
        result = self.runs(number, **settings)
        return mean_over_runs(result) if len(result) > 1 else None


def reproduced(runs: list[float], printed: float, *, of: int = 5) -> bool:
    """Whether a printed mean of so many runs is one that these runs lead one to expect (95%), to its rounding.

    The difference of two means of n and m runs with one deviation s is within t s sqrt(1/n + 1/m).
    """
    spread = mean_over_runs(runs)
    half = (spread.high - spread.value) * math.sqrt(1 + len(runs) / of)
    return abs(spread.value - printed) <= half + _ROUNDING


def decided(clean: Estimate, epsilon: float, classes: int) -> float:
    """The accuracy of a class that a device decides on and sends by randomised response (Kairouz et al. 2016).

    It keeps the class with chance e^epsilon / (e^epsilon + k - 1), else it sends one of the others, all alike: pure
    epsilon for any two texts.
    """
    kept = 1 / (1 + (classes - 1) * math.exp(-epsilon))
    return clean.value * kept + (1 - clean.value) * (1 - kept) / (classes - 1)


def at_true_epsilon(rows: Rows, mechanism: str, dimension: int, training: str) -> tuple[list[float], list[Estimate]]:
    """(true epsilons, accuracies) of a mechanism at what users ask for; robust servers are at the users' own."""
    result: dict[float, Estimate] = {}
    for name in rows.names:
        kind, _, number = name.partition(" ")
        if kind != "epsilon":
            continue
        own = {"epsilon": float(number)} if training == "robust" else {}
        mean = rows.mean(name, mechanism=mechanism, dimension=dimension, training=training, **own)
        if mean is not None:
            result[true_epsilon(mechanism, float(number), dimension)] = mean
    order = np.argsort(list(result))
    return [list(result)[place] for place in order], [list(result.values())[place] for place in order]
