"""The rows of one file by model, and intervals over units (word pairs, queries, people) and over runs of one mechanism.

A release is one run. The mean of the vectors or cosines of five runs would describe an ensemble that is never
released: it has less noise and uses five budgets. A number is therefore the mean over runs of the score of one run. It
is uncertain because other runs have other noise and because other word pairs could have been rated. The bootstrap
resamples both, independently, with the same units for every run and for every model that is compared, because they
answered the same questions. Resampling both sides of a table slightly overstates its variance (Owen 2007, "The
pigeonhole bootstrap"); resampling so few runs understates their part by a fifth. The units dominate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.bootstrap import over_people, resampled_rows
from papers.dpugc.models import LARGER, Model
from papers.dpugc.neighbours import PAPER_QUERIES
from papers.reports import estimate_numbers

from dptext.intervals import Estimate, share
from papers import reports

ORDER = (
    *("public", "public words", "public words and characters", "public, centred", "public, processed", "only noise"),
    *("private", *LARGER, "no noise", "word2vec", "another word2vec"),
)

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Statistic = Callable[[Indices, Indices], float]


class Rows(reports.Rows):
    """The rows of one file."""

    def models(self, order: Iterable[str] = ORDER) -> list[Model]:
        """Return the models that have rows, in the order of tables."""
        places = {name: place for place, name in enumerate(order)}
        models = {Model(row.settings["model"], row.settings["epsilon"]) for row in self.rows}  # type: ignore[arg-type]
        return sorted(models, key=lambda model: (places.get(model.kind, len(places)), model.epsilon or 0.0))

    def precision(self, measure: str, **settings: Any) -> Estimate | None:
        """Return MAP-Word or MAP-Char with its interval over queries and runs."""
        values = self.table([f"{measure} {query}" for query in PAPER_QUERIES], **settings)
        return over_units(values, of="queries") if values.size else None


def crossed_bootstrap(
    statistic: Statistic, units: int, runs: int, *, of: str, resamples: int = 1000, seed: int = 1
) -> Estimate:
    """Return a statistic of (indices of units, indices of runs) with its 95% interval; one run is not resampled."""
    all_units, all_runs = np.arange(units), np.arange(runs)
    draws: Any = resampled_rows(all_runs, resamples=resamples, seed=seed + 1) if runs > 1 else repeat(all_runs)

    def resampled(rows: Indices) -> float:
        if np.array_equal(rows, all_units):  # the value itself, not a resample
            return statistic(rows, all_runs)
        return statistic(rows, next(draws))

    return replace(over_people(resampled, all_units, resamples=resamples, seed=seed), of=of)


def bootstrap_numbers(name: str, statistic: Statistic, units: int, runs: int, **options: Any) -> dict[str, float]:
    """Return a statistic with its interval as numbers of a row."""
    return estimate_numbers(name, crossed_bootstrap(statistic, units, runs, of="units", **options))


def mean_numbers(name: str, values: Floats, **options: Any) -> dict[str, float]:
    """Return the mean of (runs, units) with its interval as numbers of a row."""
    return bootstrap_numbers(name, _mean_of(values), values.shape[1], len(values), **options)


def over_units(values: Floats, *, of: str) -> Estimate:
    """Return the mean of (runs, units) with its interval over both."""
    return crossed_bootstrap(_mean_of(values), values.shape[1], len(values), of=of)


def _mean_of(values: Floats) -> Statistic:
    return lambda units, runs: float(values[np.ix_(runs, units)].mean())


def share_over_units(hits: npt.NDArray[np.bool_], *, of: str) -> Estimate:
    """Return the share of hits among (runs, units); if all or none are hits, units are counted instead."""
    result = over_units(hits.astype(np.float64), of=of)
    if result.low < result.high:
        return result
    counted = share(round(result.value * hits.shape[1]), hits.shape[1])  # Clopper and Pearson 1934
    return replace(result, low=counted.low, high=counted.high)
