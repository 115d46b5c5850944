"""Intervals of what was measured on things (pairs of words, queries, people) in several runs of one mechanism.

**Why things and runs are drawn, and no cosines are averaged.** What is released is one run. Averaging the vectors or
the cosines of five runs first would describe an ensemble that nobody releases (it has less noise, and costs five
budgets). So a number is the mean over runs of what one run scores, and it is uncertain for two reasons: other runs
would have other noise, and people could have been asked about other pairs. The bootstrap draws both, independently
and with replacement: the same things for every run and for what they are compared with, since these answered the
same questions. Drawing both sides of a table overstates its variance a little (Owen 2007, "The pigeonhole
bootstrap"), drawing so few runs understates their part by a fifth; the things decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.intervals import Estimate, over_people, resampled_rows

__all__ = ["crossed"]

Rows = npt.NDArray[np.int64]


def crossed(
    statistic: Callable[[Rows, Rows], float],
    things: int,
    runs: int,
    *,
    of: str,
    resamples: int = 1000,
    seed: int = 1,
) -> Estimate:
    """A statistic with its 95% interval over things and runs.

    Args:
        statistic: (indices of things, indices of runs) -> number.
        things, runs: how many there are; a single run is not drawn.
        of: what the things are.
        resamples, seed: of the bootstrap.
    """
    everything, every_run = np.arange(things), np.arange(runs)
    draws: Any = resampled_rows(every_run, resamples=resamples, seed=seed + 1) if runs > 1 else repeat(every_run)

    def of_things(rows: Rows) -> float:
        if np.array_equal(rows, everything):  # the value itself, not a resample of it
            return statistic(rows, every_run)
        return statistic(rows, next(draws))

    return replace(over_people(of_things, everything, resamples=resamples, seed=seed), of=of)
