"""Estimates from noisy tables: the best linear ones, with intervals that cover and tests that keep their error."""

import math

import numpy as np
import pytest

from dptext.intervals import share, significant
from dptext.summary.estimates import NoisyTable, critical

RUNS = 600
DEVIATIONS = {"cells": 3.0, "topics": 2.0, "bins": 5.0, "people": 4.0}


def noisy(true, random, deviations=DEVIATIONS):
    rows, columns = true.shape
    return NoisyTable(
        cells=true + deviations["cells"] * random.normal(size=true.shape)
        if math.isfinite(deviations["cells"])
        else 0 * true,
        topics=true.sum(axis=1) + deviations["topics"] * random.normal(size=rows),
        bins=true.sum(axis=0) + deviations["bins"] * random.normal(size=columns)
        if math.isfinite(deviations["bins"])
        else np.zeros(columns),
        total=float(true.sum() + deviations["people"] * random.normal()),
        variances={name: value**2 for name, value in deviations.items()},
    )


def dense(table):
    """The least squares problem, with one row for each released number."""
    rows, columns = table.cells.shape
    eye = np.eye(rows * columns).reshape(rows, columns, -1)
    design = [eye.reshape(rows * columns, -1), eye.sum(axis=1), eye.sum(axis=0), eye.sum(axis=(0, 1))[None]]
    values = [table.cells.ravel(), table.topics, table.bins, np.array([table.total])]
    precision = [np.full(len(part), 1 / table.variances[name]) for part, name in zip(values, DEVIATIONS, strict=True)]
    return np.concatenate(design), np.concatenate(values), np.concatenate(precision)


def test_values_and_covariances_are_those_of_generalised_least_squares():
    random = np.random.default_rng(1)
    table = noisy(random.uniform(0, 50, size=(5, 4)), random)
    design, values, precision = dense(table)
    covariance = np.linalg.inv(design.T @ (precision[:, None] * design))
    assert np.allclose(table.values.ravel(), covariance @ design.T @ (precision * values))
    first, other, times = random.normal(size=5), random.normal(size=5), random.normal(size=4)
    weights = [np.outer(entry, times).ravel() for entry in (first, other)]
    assert table.covariance(first, other, times) == pytest.approx(weights[0] @ covariance @ weights[1])


def test_a_release_without_times_uses_topics_and_people():
    random = np.random.default_rng(2)
    deviations = {**DEVIATIONS, "cells": math.inf, "bins": math.inf}
    table = noisy(random.uniform(0, 50, size=(5, 1)), random, deviations)
    design, values, precision = dense(table)
    covariance = np.linalg.inv(design.T @ (precision[:, None] * design))
    assert np.allclose(table.values.ravel(), covariance @ design.T @ (precision * values))
    ones = np.ones(5)
    assert table.covariance(ones, ones, np.ones(1)) == pytest.approx(ones @ covariance @ ones)


@pytest.mark.statistical
@pytest.mark.parametrize("place", [None, 1])
def test_all_intervals_of_shares_cover_at_95_percent(place):
    """Wrong with probability below 1e-6: the number of releases whose intervals all cover is binomial."""
    random = np.random.default_rng(3)
    true = np.array([[60.0, 50, 40], [30, 80, 20], [9, 5, 7], [0, 0, 0], [2, 20, 3]])
    sums = true.sum(axis=1) if place is None else true[:, place]
    exact, covered = sums / sums.sum(), 0
    for _ in range(RUNS):
        shares = noisy(true, random).shares(place)
        covered += all(entry.low <= value <= entry.high for entry, value in zip(shares, exact, strict=True))
        assert sum(entry.value for entry in shares) == pytest.approx(1)
        assert min(entry.value for entry in shares) >= 0
    coverage = share(covered, RUNS, confidence=1 - 1e-6)
    assert coverage.high >= 0.95
    assert coverage.low <= 0.985  # they are hardly longer than they need to be


def test_intervals_without_the_factor_for_simultaneous_coverage_are_rejected():
    random = np.random.default_rng(4)
    true, covered = np.full((20, 1), 30.0), 0
    for _ in range(RUNS):
        table = noisy(true, random, {**DEVIATIONS, "cells": math.inf, "bins": math.inf})
        narrow = critical(1) / critical(20)
        covered += all(abs(entry.value - 0.05) <= (entry.high - entry.low) / 2 * narrow for entry in table.shares())
    assert share(covered, RUNS, confidence=1 - 1e-6).high < 0.95


def test_noise_that_may_hide_everybody_gives_the_whole_range():
    table = noisy(np.full((4, 1), 0.5), np.random.default_rng(5), {**DEVIATIONS, "cells": math.inf, "bins": math.inf})
    assert [(entry.low, entry.high) for entry in table.shares()] == [(0.0, 1.0)] * 4


@pytest.mark.statistical
def test_trends_of_random_times_are_rarely_significant_and_real_ones_are_found():
    """The bound on false alarms is exceeded with probability below 1e-6."""
    random = np.random.default_rng(6)
    alarms = 0
    for _ in range(RUNS):
        counts = random.multinomial(3000, np.outer([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]).ravel()).reshape(3, 3)
        true = np.c_[counts, [5, 3, 2]].astype(float)
        alarms += any(significant([p for _, p in noisy(true, random).trends()]))
    assert share(alarms, RUNS, confidence=1 - 2e-6).low <= 0.05
    rising = np.array([[300.0, 500, 700, 0], [600, 500, 300, 0], [100, 100, 100, 0]])
    trends = noisy(rising, random).trends()
    assert trends[0][0].low > 0 > trends[1][0].high
    assert significant([p for _, p in trends]) == [True, True, False]


@pytest.mark.statistical
def test_changes_between_samples_of_one_population_are_rarely_significant():
    random = np.random.default_rng(7)
    alarms, shares = 0, np.array([0.5, 0.3, 0.15, 0.05])
    deviations = {**DEVIATIONS, "cells": math.inf, "bins": math.inf}
    for _ in range(RUNS):
        one, other = (
            noisy(random.multinomial(size, shares)[:, None].astype(float), random, deviations) for size in (800, 2000)
        )
        alarms += any(significant([p for _, p in other.changes(one)]))
    false_alarms = share(alarms, RUNS, confidence=1 - 2e-6)
    assert (
        false_alarms.low <= 0.05 <= false_alarms.high
    )  # the people differ, so the test is exact up to the normal approximation


def test_holm_rejects_step_by_step():
    assert significant([0.01, 0.5, 0.02, 0.001]) == [True, False, True, True]
    assert significant([0.02, 0.02, 0.02]) == [False, False, False]
