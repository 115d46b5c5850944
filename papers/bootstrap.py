"""Intervals of any statistic of rows, by a bootstrap over people (not rows)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, extra
from dptext.intervals import CONFIDENCE, Estimate, equal_people
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_float, check_int

_AT_ONCE = 1 << 14  # people drawn


def over_people(
    statistic: Callable[[npt.NDArray[np.int64]], float],
    people: npt.ArrayLike,
    *,
    bounds: tuple[float, float] | None = None,
    resamples: int = 1000,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Estimate:
    """Return a statistic of rows, with the percentile interval of a bootstrap over *people*, not rows."""
    error, owners = 1 - check_float("confidence", confidence, above=0, below=1), np.asarray(people)
    value = float(statistic(np.arange(len(owners))))
    results = [statistic(rows) for rows in resampled_rows(owners, resamples=resamples, seed=seed)]
    # a resample without any row of a class has no value
    values = np.array([entry for entry in results if np.isfinite(entry)])
    if not np.isfinite(value) or not values.size:
        raise ParameterError("the statistic must return a finite number for all rows")
    everybody = len(np.unique(owners))
    tail = 100 * _tail_of(everybody, error)
    low, high = (float(entry) for entry in np.percentile(values, [tail, 100 - tail]))
    if bounds is not None:
        seen = (error / 2) ** (1 / equal_people(owners))
        low = min(low, bounds[0] + (value - bounds[0]) * seen)
        high = max(high, bounds[1] - (bounds[1] - value) * seen)
    return Estimate(value, low, high, everybody, "people")


def _tail_of(people: int, error: float) -> float:
    """Return the tail to cut off a bootstrap distribution: Phi(-sqrt(n / (n - 1)) t), for n people and Student's t."""
    stats = extra("scipy.stats", "audit", "an interval")
    reach = float(stats.t.isf(error / 2, people - 1)) * np.sqrt(people / (people - 1))
    return float(stats.norm.sf(reach))


def resampled_rows(
    people: npt.ArrayLike, *, resamples: int = 1000, seed: int | None = None
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the rows of people drawn with replacement, as many as there are: the resamples of `over_people`."""
    names, owners = np.unique(np.asarray(people), return_inverse=True)
    if len(names) < 2:
        raise ParameterError(f"an interval over people needs at least two people, got {len(names)}")
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners)
    starts = np.cumsum(sizes) - sizes
    bits, resamples = RandomBits(seed), check_int("resamples", resamples, minimum=1)

    def draw() -> Iterator[npt.NDArray[np.int64]]:
        at_once = max(1, _AT_ONCE // len(names))  # drawing few people takes as long as drawing many
        for start in range(0, resamples, at_once):
            shape = min(at_once, resamples - start), len(names)
            for draws in (
                bits.below(np.full(shape[0] * shape[1], shape[1], dtype=np.uint64)).astype(np.int64).reshape(shape)
            ):
                places = starts[draws]
                if len(sizes) < len(order):  # some people have several rows
                    many = sizes[draws]
                    within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
                    places = np.repeat(places, many) + within
                yield order[places]

    return draw()
