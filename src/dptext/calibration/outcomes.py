"""Measures of the outputs of one word: exact, from the distributions of a mechanism, or from draws with intervals.

Derivation: docs/understand/epsilon.md#calibration-outcomes
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.noise.selection import DistanceTable
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block
from dptext.words.mechanism import WordMechanism

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]

_ENTRIES = 1 << 20  # probabilities in memory at a time, about
_LEAST_BATCH = 32
_TILE = 4096
_SIDE = 0.025  # error of each side of an interval
_ROUNDING = 1e-12  # shares are sums of float64


@dataclass(frozen=True, eq=False)
class Outcomes:
    """(n,) float64 each, one entry a word; see `dptext.calibration.deniability.Deniability`."""

    keep: Floats
    keep_low: Floats
    keep_high: Floats
    support: Floats
    support_low: Floats
    support_high: Floats
    likely: Floats
    distance: Floats
    distance_variance: Floats
    rank: Floats
    median_rank: Floats
    neighbourhood: Floats

    @classmethod
    def empty(cls, size: int) -> Outcomes:
        """Zeros, to be filled."""
        return cls(**{field.name: np.zeros(size) for field in fields(cls)})

    def fill(self, place: int, **values: float) -> None:
        """Write the numbers of one word."""
        for name, value in values.items():
            getattr(self, name)[place] = value


def distributions_of(mechanism: WordMechanism) -> Callable[[list[str]], Floats] | None:
    """The mechanism's exact output distributions, (n words) -> (n, V); None where it can only be sampled."""
    value: Callable[[list[str]], Floats] | None = getattr(mechanism, "distributions", None)
    return value


def outcomes(
    mechanism: WordMechanism, rows: Rows, bits: RandomBits, *, draws: int, eta: float, neighbours: int
) -> Outcomes:
    """The outcomes of some words: from their distributions where there are any, else from ``draws`` draws of each."""
    result = Outcomes.empty(rows.size)
    words, table, distributions = mechanism.vectors.words, mechanism.distance_table(), distributions_of(mechanism)
    numbers = _outcome_from_draws if distributions is None else _outcome_from_distribution
    at_a_time = batch_for(len(table))
    for start in range(0, rows.size, at_a_time):
        batch = rows[start : start + at_a_time]
        if distributions is None:
            seen: Any = mechanism.sample_rows(np.repeat(batch, draws), bits).reshape(batch.size, draws)
        else:
            seen = distributions([words[row] for row in batch])
        distance = distances_from(table, batch)

        def look(
            index: int, start: int = start, batch: Rows = batch, seen: Any = seen, distances: Any = distance
        ) -> None:
            result.fill(
                start + index,
                **numbers(seen[index], distances[index], int(batch[index]), eta=eta, neighbours=neighbours),
            )

        for_each_block(look, range(batch.size))
    if distributions is None:
        kept = np.rint(result.keep * draws)
        result.keep_low[:], result.keep_high[:] = probability_interval(kept, draws, 2 * _SIDE)
    return result


def distances_from(table: DistanceTable, rows: Rows) -> npt.NDArray[np.float32]:
    """(n, V) public distances from some rows to all."""
    distance = np.empty((rows.size, len(table)), dtype=np.float32)
    left = table.rows(rows)
    for start in range(0, len(table), _TILE):
        stop = min(start + _TILE, len(table))
        distance[:, start:stop] = table.distances(left, table.columns(start, stop), math.inf)
    distance *= np.float32(table.step)
    return distance


def reach_of_masses(draws: int) -> float:
    """h of the module's docstring: no mass of nested sets is further below its true one, with probability 97.5%."""
    return math.sqrt(math.log(1 / _SIDE) / (2 * draws))


def batch_for(size: int) -> int:
    """How many rows of a vocabulary's size are worked on at a time: a few MiB."""
    return max(_LEAST_BATCH, _ENTRIES // size)


def smallest_support(shares: Floats, eta: float) -> float:
    """The size of the smallest set of outputs that holds a probability of at least 1 - eta; shares sum to 1."""
    return float(np.searchsorted(np.cumsum(np.sort(shares)[::-1]), 1 - eta - _ROUNDING) + 1)


def probability_interval(successes: npt.ArrayLike, trials: int, error: float) -> tuple[Floats, Floats]:
    """(low, high) around k / n: each side is wrong with probability at most error / 2 (Chernoff 1952)."""
    share: Floats = np.asarray(successes, dtype=np.float64) / trials
    maximum = math.log(2 / error) / trials
    inner_low, inner_high = np.zeros_like(share), share.copy()
    outer_low, outer_high = share.copy(), np.ones_like(share)
    for _ in range(50):
        low, high = (inner_low + inner_high) / 2, (outer_low + outer_high) / 2
        too_far = _relative_entropy(share, low) > maximum
        inner_low, inner_high = np.where(too_far, low, inner_low), np.where(too_far, inner_high, low)
        too_far = _relative_entropy(share, high) > maximum
        outer_low, outer_high = np.where(too_far, outer_low, high), np.where(too_far, high, outer_high)
    return np.where(share > 0, inner_low, 0.0), np.where(share < 1, outer_high, 1.0)


def _relative_entropy(share: Floats, other: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(share > 0, share * np.log(share / other), 0.0)
        rest = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - other)), 0.0)
    total: Floats = one + rest
    return np.where(np.isnan(total), np.inf, total)


def _nearest_first(distances: npt.NDArray[np.float32], row: int) -> Rows:
    """All rows, the word itself before any other that lies on its point."""
    distances = distances.copy()
    distances[row] = -1.0
    order: Rows = np.argsort(distances, kind="stable")
    return order


def _outcome_from_distribution(
    shares: Floats, distances: npt.NDArray[np.float32], row: int, *, eta: float, neighbours: int
) -> dict[str, float]:
    order = _nearest_first(distances, row)
    others = shares[order[1:]]
    summed = np.cumsum(others)
    leaves = float(summed[-1])
    support = smallest_support(shares, eta)
    return {
        "keep": float(shares[row]),
        "keep_low": float(shares[row]),
        "keep_high": float(shares[row]),
        "support": support,
        "support_low": support,
        "support_high": support,
        "likely": float((shares > eta).sum()),
        "distance": float(shares @ distances),
        "rank": float(others @ np.arange(1.0, shares.size)) / leaves if leaves > 0 else math.nan,
        "median_rank": float(np.searchsorted(summed, leaves / 2) + 1) if leaves > 0 else math.nan,
        "neighbourhood": float(distances[order[min(neighbours, shares.size - 1)]]),
    }


def _outcome_from_draws(
    draws: Rows, distances: npt.NDArray[np.float32], row: int, *, eta: float, neighbours: int
) -> dict[str, float]:
    order = _nearest_first(distances, row)
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    lengths = distances[draws].astype(np.float64)
    replaced = rank[draws[draws != row]]
    counts = np.sort(np.unique(draws, return_counts=True)[1])[::-1]
    shares = counts / draws.size
    reach = reach_of_masses(draws.size)
    return {
        "keep": float((draws == row).mean()),
        "support": smallest_support(shares, eta),
        "support_low": smallest_support(shares, eta + reach),
        "support_high": _largest_support(draws, rank, eta),
        "likely": float((counts > eta * draws.size).sum()),
        "distance": float(lengths.mean()),
        "distance_variance": float(lengths.var(ddof=1) / draws.size) if draws.size > 1 else math.inf,
        "rank": float(replaced.mean()) if replaced.size else math.nan,
        "median_rank": float(np.sort(replaced)[(replaced.size - 1) // 2]) if replaced.size else math.nan,
        "neighbourhood": float(distances[order[min(neighbours, order.size - 1)]]),
    }


def _largest_support(draws: Rows, rank: Rows, eta: float) -> float:
    """The upper bound of the module's docstring; the whole vocabulary where the draws are too few for one."""
    half = draws.size // 2
    tested = draws[half:]
    needed = math.ceil((1 - eta + reach_of_masses(tested.size)) * tested.size)
    if half == 0 or needed > tested.size:
        return float(rank.size)
    seen, counts = np.unique(draws[:half], return_counts=True)
    place = rank + seen.size  # ranked after the seen words
    place[seen[np.argsort(-counts, kind="stable")]] = np.arange(seen.size)
    last = int(np.sort(place[tested])[needed - 1])
    return float(min(last + 1, rank.size))
