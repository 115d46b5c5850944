"""Estimates with intervals from a noisy two-way table, and tests of change. They only post-process released numbers.

Derivation: docs/mechanisms/summary.md#summary-estimates
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from dptext.intervals import CONFIDENCE, Estimate, Floats, shares_of_total

_NORMAL = NormalDist()


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyTable:
    """Noisy (T, B) table of weights of people by topic and time, its margins and its total; B = 1 without times.

    Each part has independent normal noise with its own variance; infinite: the part was not released.
    """

    cells: Floats
    topics: Floats
    bins: Floats
    total: float
    variances: Mapping[str, float]

    @cached_property
    def _eigenvalues(self) -> list[float]:
        """Precision of the best estimate in orthogonal subspaces: (mean or rest of T) x (mean or rest of B)."""
        rows, columns = self.cells.shape
        cells, topics, bins, people = (1 / self.variances[name] for name in ("cells", "topics", "bins", "people"))
        of_means = [cells + topics * columns + bins * rows + people * rows * columns, cells + topics * columns]
        return of_means if columns == 1 else [*of_means, cells + bins * rows, cells]

    @cached_property
    def values(self) -> Floats:
        """(T, B) best linear unbiased estimate from all parts.  (1)"""
        right: Floats = self.cells / self.variances["cells"] + self.topics[:, None] / self.variances["topics"]
        right = right + self.bins / self.variances["bins"] + self.total / self.variances["people"]
        mean, rows, columns = right.mean(), right.mean(axis=1, keepdims=True), right.mean(axis=0, keepdims=True)
        projections = (mean, rows - mean, columns - mean, right - rows - columns + mean)
        estimates = (part / value for part, value in zip(projections, self._eigenvalues, strict=False))
        return sum(estimates, np.zeros_like(self.cells))

    def covariance(self, first: Floats, other: Floats, times: Floats) -> float:
        """Return the covariance of two sums of `values`, with weights first x times and other x times.  (2)"""
        rows, columns = self.cells.shape
        topics_mean = float(first.sum() * other.sum()) / rows
        times_mean = float(times.sum() ** 2) / columns
        topics_rest, times_rest = float(first @ other) - topics_mean, float(times @ times) - times_mean
        squares = (
            topics_mean * times_mean,
            topics_rest * times_mean,
            topics_mean * times_rest,
            topics_rest * times_rest,
        )
        return float(sum(square / value for square, value in zip(squares, self._eigenvalues, strict=False)))

    def times(self, place: int | None = None) -> Floats:
        """Return the weights of all times, or of one bin."""
        count = self.cells.shape[1]
        return np.ones(count) if place is None else np.eye(count)[place]

    def total_variance(self) -> float:
        """Return the variance of the number of people."""
        everyone = np.ones(len(self.topics))
        return self.covariance(everyone, everyone, self.times())

    def shares(self, place: int | None = None) -> list[Estimate]:
        """Return the share of each topic, at all times or in one bin, with intervals of Fieller.

        They are simultaneous for all topics, and in a bin for all bins. The shares are at least 0 and sum to 1 (the
        nearest such point).
        """
        times, everyone, one = self.times(place), np.ones(len(self.topics)), np.eye(len(self.topics))[0]
        variance, with_total, of_total = (
            self.covariance(first, other, times) for first, other in ((one, one), (one, everyone), (everyone, everyone))
        )
        quantile = critical(len(one) if place is None else self.cells.size)
        ends = shares_of_total(self.values @ times, variance, with_total, of_total, quantile=quantile)  # (3)
        return [
            Estimate(point, min(low, point), max(high, point), 1, "releases")
            for point, (_, low, high) in zip(_on_simplex(ends[:, 0]).tolist(), ends.tolist(), strict=True)
        ]

    def transposed(self) -> NoisyTable:
        """Return the table of times by topics."""
        names = {"topics": "bins", "bins": "topics"}
        variances = {names.get(name, name): value for name, value in self.variances.items()}
        return replace(self, cells=self.cells.T, topics=self.bins, bins=self.topics, variances=variances)

    def trends(self) -> list[tuple[Estimate, float]]:
        """Return the slope of the share of each topic over all bins but the last (other times), and its p-value.

        The null hypothesis is a population whose shares are the same in all bins; the people are a sample of it.
        """
        people, numbers = np.maximum(self.values.sum(axis=0)[:-1], 0.0), np.arange(self.cells.shape[1] - 1)
        places = numbers - np.average(numbers, weights=people) if people.sum() > 0 else 0.0 * numbers
        spread = float(people @ places**2)
        times, everyone, result = np.r_[places, 0.0], np.ones(len(self.topics)), []
        for row, unit in enumerate(np.eye(len(self.topics))):
            share = min(max(float(self.values[row, :-1].sum() / max(people.sum(), 1e-9)), 0.0), 1.0)
            contrast = unit - share * everyone
            variance = self.covariance(contrast, contrast, times) + spread * share * (1 - share)
            result.append(self._tested(float(contrast @ self.values @ times), variance, spread))  # (4)
        return result

    def changes(self, earlier: NoisyTable) -> list[tuple[Estimate, float]]:
        """Return the difference of each share from an earlier release, and its p-value.

        The null hypothesis is that both are samples of populations with the same share. People who are in both
        releases make the test conservative.
        """
        everyone, result = np.ones(len(self.topics)), []
        for unit in np.eye(len(self.topics)):
            value, variance = 0.0, 0.0
            for table, sign in ((self, 1.0), (earlier, -1.0)):
                total = max(float(table.values.sum()), 1e-9)
                share = min(max(float(unit @ table.values.sum(axis=1)) / total, 0.0), 1.0)
                contrast = unit - share * everyone
                noise = table.covariance(contrast, contrast, table.times())
                value += sign * share
                variance += (noise + total * share * (1 - share)) / total**2
            result.append(self._tested(value, variance, 1.0))
        return result

    def _tested(self, value: float, variance: float, scale: float) -> tuple[Estimate, float]:
        """Return a number, divided by a scale, with its simultaneous interval and the p-value of 0."""
        if scale <= 0:
            return Estimate(0.0, -1.0, 1.0, 1, "releases"), 1.0
        reach, point = critical(len(self.topics)) * math.sqrt(variance) / scale, value / scale
        p_value = math.erfc(abs(value) / math.sqrt(2 * variance))
        return Estimate(point, max(point - reach, -1.0), min(point + reach, 1.0), 1, "releases"), p_value


def positive(value: float, variance: float, count: int) -> Estimate:
    """Return one of ``count`` numbers that cannot be negative, with its simultaneous interval."""
    reach = critical(count) * math.sqrt(variance)
    return Estimate(max(value, 0.0), max(value - reach, 0.0), max(value + reach, 0.0), 1, "releases")


def critical(count: int) -> float:
    """Return the number of standard deviations of simultaneous intervals for ``count`` numbers (Sidak 1967)."""
    return _NORMAL.inv_cdf((1 + CONFIDENCE ** (1 / count)) / 2)


def _on_simplex(shares: Floats) -> Floats:
    """Return the nearest numbers that are at least 0 and sum to 1 (Duchi et al. 2008)."""
    ordered = np.sort(shares)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(ordered) + 1)
    return np.asarray(np.maximum(shares - excess[np.flatnonzero(ordered > excess)[-1]], 0.0))
