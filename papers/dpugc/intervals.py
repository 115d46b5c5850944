"""Intervals over units (word pairs, queries, people) and over runs of one mechanism.

A release is one run. The mean of the vectors or cosines of five runs would describe an ensemble that is never
released: it has less noise and uses five budgets. A number is therefore the mean over runs of the score of one run. It
is uncertain because other runs have other noise and because other word pairs could have been rated. The bootstrap
resamples both, independently, with the same units for every run and for every model that is compared, because they
answered the same questions. Resampling both sides of a table slightly overstates its variance (Owen 2007, "The
pigeonhole bootstrap"); resampling so few runs understates their part by a fifth. The units dominate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.intervals import Estimate, over_people, resampled_rows, share

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


def crossed_bootstrap(
    statistic: Callable[[Rows, Rows], float],
    units: int,
    runs: int,
    *,
    of: str,
    resamples: int = 1000,
    seed: int = 1,
) -> Estimate:
    """Return a statistic of (indices of units, indices of runs) with its 95% interval; one run is not resampled."""
    all_units, all_runs = np.arange(units), np.arange(runs)
    draws: Any = resampled_rows(all_runs, resamples=resamples, seed=seed + 1) if runs > 1 else repeat(all_runs)

    def resampled(rows: Rows) -> float:
        if np.array_equal(rows, all_units):  # the value itself, not a resample
            return statistic(rows, all_runs)
        return statistic(rows, next(draws))

    return replace(over_people(resampled, all_units, resamples=resamples, seed=seed), of=of)


def over_units(values: Floats, *, of: str) -> Estimate:
    """Return the mean of (runs, units) with its interval over both."""
    statistic = lambda units, runs: float(values[np.ix_(runs, units)].mean())  # noqa: E731
    return crossed_bootstrap(statistic, values.shape[1], len(values), of=of)


def share_over_units(hits: npt.NDArray[np.bool_], *, of: str) -> Estimate:
    """Return the share of hits among (runs, units); if all or none are hits, units are counted instead."""
    result = over_units(hits.astype(np.float64), of=of)
    if result.low < result.high:
        return result
    counted = share(round(result.value * hits.shape[1]), hits.shape[1])  # Clopper and Pearson 1934
    return replace(result, low=counted.low, high=counted.high)


def numbers_of(name: str, estimate: Estimate) -> dict[str, float]:
    """Return an estimate as numbers of a row."""
    return {name: estimate.value, f"{name} low": estimate.low, f"{name} high": estimate.high}
