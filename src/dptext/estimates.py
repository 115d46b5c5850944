"""A measured number with its interval: shares, means over runs, and statistics of rows that share people.

Intervals are two-sided at 95 per cent unless another level is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import MissingExtraError, ParameterError
from dptext.privacy.randomness import RandomBits

__all__ = ["Estimate", "mean_over_runs", "over_people", "resampled_rows", "share", "share_over_people"]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number, its interval, and what it was computed from.

    Attributes:
        value: the estimate.
        low, high: its interval.
        count: how many runs, rows or people it comes from.
        of: what is counted: "runs", "rows", "people", "inputs".
    """

    value: float
    low: float
    high: float
    count: int
    of: str

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def share(successes: int, trials: int, *, confidence: float = CONFIDENCE) -> Estimate:
    """A share of rows, with the interval of Clopper and Pearson 1934.

    Raises:
        ParameterError: no trials, or more successes than trials.

    >>> print(share(50, 100))
    0.500 [0.398, 0.602]
    """
    if not 0 <= successes <= trials or trials < 1:
        raise ParameterError(f"expected 0 to {trials} successes in at least 1 trial, got {successes}")
    interval = _stats().binomtest(successes, trials).proportion_ci(confidence)
    return Estimate(successes / trials, float(interval.low), float(interval.high), trials, "rows")


def mean_over_runs(values: Sequence[float] | npt.NDArray[np.float64], *, confidence: float = CONFIDENCE) -> Estimate:
    """The mean of independent runs, with Student's interval.

    Raises:
        ParameterError: fewer than two runs, or a run without a number.

    >>> print(mean_over_runs([0.70, 0.72, 0.71]))
    0.710 [0.685, 0.735]
    """
    runs = _finite("values", values)
    if runs.size < 2:
        raise ParameterError(f"an interval needs at least two runs, got {runs.size}")
    reach = float(_stats().t.ppf((1 + confidence) / 2, runs.size - 1)) * runs.std(ddof=1) / np.sqrt(runs.size)
    mean = float(runs.mean())
    return Estimate(mean, mean - float(reach), mean + float(reach), runs.size, "runs")


def over_people(
    statistic: Callable[[npt.NDArray[np.int64]], float],
    people: npt.ArrayLike,
    *,
    resamples: int = 1000,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Estimate:
    """A statistic of rows, with the percentile interval of a bootstrap over *people*, not rows.

    Rows of one author are alike: an interval over rows would be too narrow. So would the plain percentiles be where
    people are few: their tails are widened as Student's are against the normal's (Hesterberg 2015, the expanded
    percentile interval). Of fewer than about five people no interval says much.

    Args:
        statistic: (n,) indices of rows -> number.
        people: (rows,) whose row each is; ``range(rows)`` where everybody has one.
        resamples: how often people are drawn with replacement.
        confidence: of the interval.
        seed: None for fresh randomness.

    Raises:
        ParameterError: fewer than two people, or a statistic that is no number.
    """
    whose = np.asarray(people)
    value = float(statistic(np.arange(len(whose))))
    found = [statistic(rows) for rows in resampled_rows(whose, resamples=resamples, seed=seed)]
    # a resample without any row of a class has no value: it says nothing
    values = np.array([each for each in found if np.isfinite(each)])
    if not np.isfinite(value) or not values.size:
        raise ParameterError("the statistic must give a finite number for all rows, it gave none")
    everybody = len(np.unique(whose))
    tail = 100 * _tail_of(everybody, confidence)
    low, high = np.percentile(values, [tail, 100 - tail])
    return Estimate(value, float(low), float(high), everybody, "people")


def _tail_of(people: int, confidence: float) -> float:
    """How much of a bootstrap distribution to cut off at each end: Phi(-sqrt(n / (n - 1)) t), n people, t Student's.

    The bootstrap divides by n where n - 1 is right, and knows no doubt about the spread.
    """
    stats = _stats()
    reach = float(stats.t.ppf((1 + confidence) / 2, people - 1)) * np.sqrt(people / (people - 1))
    return float(stats.norm.sf(reach))


def share_over_people(
    statistic: Callable[[npt.NDArray[np.int64]], float],
    people: npt.ArrayLike,
    *,
    resamples: int = 1000,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Estimate:
    """`over_people` for a statistic from 0 to 1 that may be the same in every resample.

    Where all are right, or all wrong, no resample differs, and the bootstrap knows no doubt: five people of whom nobody
    was found do not show that nobody can be. People are counted instead (Clopper and Pearson 1934).
    """
    found = over_people(statistic, people, resamples=resamples, confidence=confidence, seed=seed)
    if found.low < found.high:
        return found
    counted = share(round(found.value * found.count), found.count, confidence=confidence)
    return replace(found, low=min(found.low, counted.low), high=max(found.high, counted.high))


def resampled_rows(
    people: npt.ArrayLike, *, resamples: int = 1000, seed: int | None = None
) -> Iterator[npt.NDArray[np.int64]]:
    """The rows of as many people as there are, drawn with replacement, again and again: what `over_people` looks at.

    Args:
        people: (rows,) whose row each is.
        resamples: how often.
        seed: None for fresh randomness.

    Raises:
        ParameterError: fewer than two people.
    """
    names, whose = np.unique(np.asarray(people), return_inverse=True)
    if len(names) < 2:
        raise ParameterError(f"an interval over people needs at least two of them, got {len(names)}")
    order = np.argsort(whose, kind="stable")
    sizes = np.bincount(whose)
    starts = np.cumsum(sizes) - sizes
    bounds = np.full(len(names), len(names), dtype=np.uint64)
    bits = RandomBits(seed)
    return (_rows_of(bits.below(bounds).astype(np.int64), order, starts, sizes) for _ in range(resamples))


def _rows_of(
    drawn: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """The rows of the people drawn, one person after the other."""
    places = starts[drawn]
    if len(sizes) < len(order):  # somebody has several rows
        many = sizes[drawn]
        within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        places = np.repeat(places, many) + within
    rows: npt.NDArray[np.int64] = order[places]
    return rows


def _finite(name: str, values: Any) -> npt.NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ParameterError(f"{name} must be a row of finite numbers, got something else")
    return array


def _stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise MissingExtraError(
            'intervals need the package scipy; install it with: pip install "dptext[audit]"'
        ) from None
    return stats
