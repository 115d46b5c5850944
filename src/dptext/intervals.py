"""Estimates with confidence intervals: proportions, AUCs, means over runs, and statistics of rows grouped by person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, extra
from dptext.validation import check_float, check_int

Floats: TypeAlias = npt.NDArray[np.float64]
Ids: TypeAlias = npt.NDArray[np.int64]

CONFIDENCE = 0.95
_ROUNDING = 1e-9  # tolerance for a sum of fractions that exceeds 1
_NO_SPREAD = 1e-24  # a variance below this fraction of a binomial variance is a rounding error


@dataclass(frozen=True)
class Estimate:
    """Estimate with its confidence interval, and the number and kind of observations."""

    value: float
    low: float
    high: float
    count: int
    of: str

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def share(successes: int, trials: int, *, confidence: float = CONFIDENCE) -> Estimate:
    """Return a proportion of rows with its Clopper-Pearson interval (1934)."""
    trials = check_int("trials", trials, minimum=1)
    successes = check_int("successes", successes, minimum=0, maximum=trials)
    low, high = _clopper_pearson(successes, trials, _error(confidence))
    return Estimate(successes / trials, low, high, trials, "rows")


def mean_over_runs(values: Sequence[float] | npt.NDArray[np.float64], *, confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean of independent runs with Student's t interval."""
    runs = _finite("values", values)
    if runs.size < 2:
        raise ParameterError(f"an interval needs at least two runs, got {runs.size}")
    reach = float(_stats().t.isf(_error(confidence) / 2, runs.size - 1) * runs.std(ddof=1) / np.sqrt(runs.size))
    mean = float(runs.mean())
    return Estimate(mean, mean - reach, mean + reach, runs.size, "runs")


def mean_of_people(values: npt.ArrayLike, people: npt.ArrayLike, **interval: float) -> Estimate:
    """Return the mean of values from 0 to 1 over rows that are grouped by person."""
    rows = _finite("values", values)
    if not rows.size or rows.min() < 0 or rows.max() > 1 + _ROUNDING:
        raise ParameterError("values must be a non-empty array of numbers from 0 to 1")
    value = min(float(rows.mean()), 1.0)
    influence, units = (rows - value) / rows.size, equal_people(people)
    return estimate_from_influence(value, influence, people, units=units, **interval)


def macro_f1(true: npt.ArrayLike, named: npt.ArrayLike, people: npt.ArrayLike, **interval: float) -> Estimate:
    """Return the mean F1 = 2 hits / (rows of the class + predictions of the class) over the classes that occur."""
    truth, answer, owners = (np.asarray(person) for person in (true, named, people))
    if not truth.size or truth.shape != answer.shape:
        raise ParameterError(f"named must have one class for each of {truth.size} rows, got shape {answer.shape}")
    result, influence, weights = 0.0, np.zeros(truth.size), np.zeros(truth.size)
    classes = np.unique(truth)
    for class_name in classes:
        occurs, answered = truth == class_name, answer == class_name
        hits, total = occurs & answered, int(occurs.sum()) + int(answered.sum())
        f1 = 2 * int(hits.sum()) / total
        result += f1 / classes.size
        # the derivative of the ratio: 2 dh / t - f1 dt / t
        influence += (2.0 * hits - f1 * (1.0 * occurs + answered)) / total / classes.size
        weights += occurs / occurs.sum()  # classes have equal weight, so people in a rare class have a larger weight
    units = equal_people(owners, weights)
    return estimate_from_influence(result, influence, owners, units=units, **interval)


def area(
    scores: npt.ArrayLike,
    positive: npt.ArrayLike,
    people: npt.ArrayLike | None = None,
    *,
    parts: npt.ArrayLike | None = None,
    **interval: float,
) -> Estimate:
    """Return the AUC: the probability that a positive row has a higher score than a negative one; ties count half."""
    values, inside = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    owners = np.arange(values.size) if people is None else np.asarray(people)
    value, influence, units = _area(values, inside, owners, parts)
    return estimate_from_influence(value, influence, owners, units=units, **interval)


def area_of_classes(
    scores: npt.ArrayLike,
    classes: npt.ArrayLike,
    people: npt.ArrayLike,
    *,
    parts: npt.ArrayLike | None = None,
    **interval: float,
) -> Estimate:
    """Return the mean of the one-versus-rest AUCs of all classes; for two classes, the `area` of the second."""
    values, codes, owners = np.asarray(scores, dtype=np.float64), np.asarray(classes), np.asarray(people)
    count = values.shape[1]
    if count == 2:
        value, influence, units = _area(values[:, 1], codes == 1, owners, parts)
        return estimate_from_influence(value, influence, owners, units=units, **interval)
    results = [_area(values[:, index], codes == index, owners, parts) for index in range(count)]
    value = float(np.mean([entry for entry, _, _ in results]))
    influence = np.mean([entry for _, entry, _ in results], axis=0)
    # 1 / units is proportional to a variance: the variance of a mean is the sum of variances over count^2
    units = count**2 / sum(1 / entry for _, _, entry in results)
    return estimate_from_influence(value, influence, owners, units=units, **interval)


def _area(values: Floats, inside: npt.NDArray[np.bool_], owners: Ids, parts: npt.ArrayLike | None) -> Any:
    """Return the AUC, the influence of each row, and the equivalent number of independent people."""
    within = np.zeros(values.size, dtype=np.int64) if parts is None else np.asarray(parts)
    rankdata = _stats().rankdata
    placement, weight, used, pairs = np.zeros(values.size), np.zeros(values.size), [], 0
    for entry in np.unique(within):
        rows_of_part = np.flatnonzero(within == entry)
        inside_rows, others = rows_of_part[inside[rows_of_part]], rows_of_part[~inside[rows_of_part]]
        n, m = inside_rows.size, others.size
        if not n or not m:
            continue
        ranks = rankdata(values[np.concatenate([inside_rows, others])])
        # fraction of negative rows below each positive row, and of positive rows above each negative row
        placement[inside_rows] = (ranks[:n] - rankdata(values[inside_rows])) / m
        placement[others] = 1 - (ranks[n:] - rankdata(values[others])) / n
        weight[inside_rows], weight[others] = m, n
        used.append(rows_of_part)
        pairs += n * m
    if not pairs:
        raise ParameterError("positive must be true for some rows and false for others in at least one part")
    rows = np.concatenate(used)
    value = float((placement * weight)[inside].sum() / pairs)
    influence = (placement - value) * weight / pairs
    units = min(equal_people(owners[rows[inside[rows]]]), equal_people(owners[rows[~inside[rows]]]))
    return value, influence, units


def estimate_from_influence(
    value: float,
    influence: Floats,
    people: npt.ArrayLike,
    *,
    units: float,
    confidence: float = CONFIDENCE,
    design_effect: float = 1.0,
) -> Estimate:
    """Return the estimate of a statistic from 0 to 1 that is approximately a sum over people."""
    names, owners = np.unique(np.asarray(people), return_inverse=True)
    count = len(names)
    if count < 2:
        raise ParameterError(f"an interval over people needs at least two people, got {count}")
    error, influence = _error(confidence), influence * np.sqrt(check_float("design_effect", design_effect, above=0))
    effective = _effective(value, influence, np.bincount(owners, influence).astype(np.float64), units, error)
    low, high = _clopper_pearson(value * effective, effective, error)
    seen = (error / 2) ** (1 / units)
    return Estimate(value, min(low, value * seen), max(high, 1 - (1 - value) * seen), count, "people")


def _error(confidence: float) -> float:
    return 1 - check_float("confidence", confidence, above=0, below=1)


def _clopper_pearson(successes: float, trials: float, error: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval; counts may be fractional."""
    beta, failures = _stats().beta, trials - successes
    low = float(beta.ppf(error / 2, successes, failures + 1)) if successes > 0 else 0.0
    high = float(beta.isf(error / 2, successes + 1, failures)) if failures > 0 else 1.0
    return low, high


def _effective(value: float, influence: Floats, of_people: Floats, units: float, error: float) -> float:
    """Return the number of independent people for whom a proportion ``value`` has the same uncertainty."""
    variance, count = float((of_people**2).sum()), of_people.size
    # if rows of one person cancel by chance, the result must not be more certain than with independent rows
    assumed = max(variance, float((influence**2).sum()))
    spread = value * (1 - value)
    if assumed <= _NO_SPREAD * max(spread, _NO_SPREAD) or spread <= 0:
        return units
    similar = spread / assumed
    freedom = count - 1.0
    if variance > 0:
        # Satterthwaite 1946: 2 E[v]^2 / Var[v], v a sum of squares
        shared = float((of_people**4).sum()) / variance**2 - 1 / count
        freedom = min(max(2 / max(shared, 2 / freedom), 1.0), freedom)
    stats = _stats()
    doubt = (count - 1) / count * (stats.norm.isf(error / 2) / stats.t.isf(error / 2, freedom)) ** 2
    # at least the number for equal rows per person, or fewer if people with many rows differ from others
    minimum = units if similar >= units else similar**2 / units
    return float(max(similar * doubt, minimum))


def equal_people(people: npt.ArrayLike, weights: Floats | None = None) -> float:
    """Return (sum w)^2 / sum w^2 (Kish 1965), the number of people of equal weight with the same uncertainty."""
    owners = np.unique(np.asarray(people), return_inverse=True)[1]
    of_people = np.bincount(owners, weights).astype(np.float64)
    return float(of_people.sum() ** 2 / (of_people**2).sum())


def difference(one: Estimate, other: Estimate, *, correlation: float = 0.0) -> Estimate:
    """Return ``one - other`` with an interval from both intervals, possibly asymmetric (Zou and Donner 2008)."""
    value = one.value - other.value
    reaches = []
    for first, second in (
        (one.value - one.low, other.high - other.value),
        (one.high - one.value, other.value - other.low),
    ):
        squared = first**2 + second**2 - 2 * correlation * first * second
        reaches.append(float(np.sqrt(max(squared, 0.0))))
    return Estimate(value, value - reaches[0], value + reaches[1], one.count + other.count, one.of)


def shares_of_total(
    counts: Floats, variances: Floats | float, with_total: Floats | float, variance_of_total: float, *, quantile: float
) -> Floats:
    """Return (C, 3) shares of normal counts in their sum, with the ends of their intervals (Fieller 1954), in [0, 1].

    ``with_total``: covariances of the counts with their sum. If the sum is within its noise, nothing is known.
    """
    total = float(counts.sum())
    square = total**2 - quantile**2 * variance_of_total
    if total <= 0 or square <= 0:
        return np.tile([1 / counts.size, 0.0, 1.0], (counts.size, 1))
    middle = counts * total - quantile**2 * with_total
    reach = np.sqrt(np.maximum(middle**2 - square * (counts**2 - quantile**2 * variances), 0.0))
    ends = np.column_stack([counts / total, (middle - reach) / square, (middle + reach) / square])
    return np.asarray(np.clip(ends, 0.0, 1.0))


def paired_difference(
    one: npt.ArrayLike, other: npt.ArrayLike, people: npt.ArrayLike, *, confidence: float = CONFIDENCE
) -> Estimate:
    """Return the difference between two accuracies on the same rows."""
    first, second = np.asarray(one, dtype=bool), np.asarray(other, dtype=bool)
    sides = [entry.astype(np.float64) for entry in (first & ~second, second & ~first)]
    estimates = [mean_of_people(side, people, confidence=confidence) for side in sides]
    owners = np.unique(np.asarray(people), return_inverse=True)[1]
    inside_rows, right = (np.bincount(owners, side - side.mean()) for side in sides)
    size = float(np.sqrt((inside_rows @ inside_rows) * (right @ right)))
    result = difference(*estimates, correlation=float(inside_rows @ right) / size if size else 0.0)
    return Estimate(result.value, result.low, result.high, estimates[0].count, "people")


def significant(p_values: Sequence[float], error: float = 1 - CONFIDENCE) -> list[bool]:
    """Return which null hypotheses are rejected, with a family-wise error (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    result = np.zeros(len(order), dtype=np.bool_)
    result[order] = np.logical_and.accumulate(np.asarray(p_values)[order] <= error / np.arange(len(order), 0, -1))
    return list(map(bool, result))


def _finite(name: str, values: Any) -> npt.NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ParameterError(f"{name} must be a sequence of finite numbers")
    return array


def _stats() -> Any:
    return extra("scipy.stats", "audit", "an interval")
