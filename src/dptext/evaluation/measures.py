"""Predictions measured: accuracy, macro-F1, RMSE and MAE, each with its interval and beside the best blind guess.

**Baselines.** Whoever sees no features can still answer the same for every row, or draw an answer. The baseline is the
best that he can do, *knowing how the tested targets are distributed*: a model that is below it has learnt nothing.

* accuracy: the most frequent class of the tested rows;
* macro-F1 over c classes: 1 / c. A guess that says class k for a share q_k of the rows, where a share p_k is right,
  has F1_k = 2 p_k q_k / (p_k + q_k) (rows many); the sum is greatest at q = p, where it is sum p_k = 1. The
  majority class alone has less (one third instead of one half for two equal classes), so it would flatter the model;
* RMSE: the mean of the tested targets; MAE: their median.

**Gain.** Model and baseline answer the same rows, so their difference is more certain than either: its interval comes
from the same resamples of people. It is what decides whether a score is above its baseline.

**Intervals** are about other people like those tested, *for the models as they were trained*: how much a score changes
when other people train is seen over seeds and folds only (`dptext.evaluation.sweep`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.estimates import Estimate, over_people, share, share_over_people
from dptext.evaluation.folds import codes_of

__all__ = ["CLASS_MEASURES", "NUMBER_MEASURES", "Measured", "checked_numbers", "measure", "statistic_of"]

Rows: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Statistic: TypeAlias = Callable[[Rows], float]

CLASS_MEASURES = ("accuracy", "macro-F1")
NUMBER_MEASURES = ("RMSE", "MAE")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measure of predictions, beside the best blind guess.

    Attributes:
        name: of the measure.
        score: with its interval.
        baseline: of the best blind guess.
        baseline_name: which guess that is.
        gain: how much better than the baseline, on the same rows; positive is better whatever the measure.
    """

    name: str
    score: Estimate
    baseline: float
    baseline_name: str
    gain: Estimate


def measure(
    name: str,
    true: npt.ArrayLike,
    predicted: npt.ArrayLike,
    *,
    people: npt.ArrayLike | None = None,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int | None = None,
) -> Measured:
    """Measure predictions.

    Args:
        name: one of `CLASS_MEASURES` (true and predicted are labels) or `NUMBER_MEASURES` (numbers).
        true: (rows,) what is right.
        predicted: (rows,) what was predicted.
        people: (rows,) whose row each is; None: everybody has one, and accuracy gets the exact interval of Clopper
            and Pearson.
        resamples: of people, for the intervals.
        confidence: of the intervals.
        seed: of the resamples; None for fresh randomness.

    Raises:
        ParameterError: an unknown measure, no rows, unequal lengths, NaN; the argument is named.

    >>> found = measure("accuracy", ["a", "a", "b", "b"] * 10, ["a", "a", "a", "b"] * 10, seed=1)
    >>> print(found.score, found.baseline, found.baseline_name)
    0.750 [0.588, 0.873] 0.5 majority class
    """
    statistic, baseline, baseline_name = statistic_of(name, true, predicted)
    count = len(np.asarray(true))
    whose = np.arange(count) if people is None else codes_of("people", people)
    if whose.size != count:
        raise ParameterError(f"people must have one entry for each of {count} rows, got {whose.size}")
    sign = -1.0 if name in NUMBER_MEASURES else 1.0

    def gain(rows: Rows) -> float:
        return sign * (statistic(rows) - baseline(rows))

    everything = np.arange(count)
    if name == "accuracy" and people is None:
        score = share(round(statistic(everything) * count), count, confidence=confidence)
    else:
        interval = share_over_people if name in CLASS_MEASURES else over_people
        score = interval(statistic, whose, resamples=resamples, confidence=confidence, seed=seed)
    return Measured(
        name=name,
        score=score,
        baseline=baseline(everything),
        baseline_name=baseline_name,
        gain=over_people(gain, whose, resamples=resamples, confidence=confidence, seed=seed),
    )


def statistic_of(name: str, true: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[Statistic, Statistic, str]:
    """The measure as a function of rows, that of the best blind guess, and the name of this guess.

    Raises:
        ParameterError: see `measure`.
    """
    if name in CLASS_MEASURES:
        return _of_classes(name, true, predicted)
    if name in NUMBER_MEASURES:
        return _of_numbers(name, checked_numbers("true", true), checked_numbers("predicted", predicted))
    raise ParameterError(f"measure must be one of {', '.join((*CLASS_MEASURES, *NUMBER_MEASURES))}, got {name!r}")


def checked_numbers(name: str, values: npt.ArrayLike) -> Floats:
    """(rows,) float64.

    Raises:
        ParameterError: not one finite number a row.
    """
    try:
        numbers: Floats = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be one number a row, got something else") from None
    if numbers.ndim != 1 or not numbers.size:
        raise ParameterError(f"{name} must be one number a row, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise ParameterError(f"{name} must be finite numbers, row {int(np.argmin(np.isfinite(numbers)))} is not")
    return numbers


def _of_classes(name: str, true: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[Statistic, Statistic, str]:
    told, answered = _labels(true), _labels(predicted)
    _check_lengths(told, answered)
    both = codes_of("predicted", np.concatenate([told, answered]))
    right, answer = both[: told.size], both[told.size :]
    counts = np.bincount(right, minlength=int(both.max()) + 1)
    majority = int(counts.argmax())
    if name == "accuracy":
        hits, blind = right == answer, right == majority
        return (lambda rows: float(hits[rows].mean())), (lambda rows: float(blind[rows].mean())), "majority class"
    occurring = np.flatnonzero(counts)
    chance = 1.0 / occurring.size
    statistic = _MacroF1(right, answer, counts.size, occurring)
    return statistic, (lambda _rows: chance), "classes guessed as often as they occur"


def _of_numbers(name: str, true: Floats, predicted: Floats) -> tuple[Statistic, Statistic, str]:
    _check_lengths(true, predicted)
    if name == "RMSE":
        errors, blind = (true - predicted) ** 2, (true - true.mean()) ** 2
        return (lambda rows: float(errors[rows].mean() ** 0.5)), (lambda rows: float(blind[rows].mean() ** 0.5)), "mean"
    errors, blind = np.abs(true - predicted), np.abs(true - np.median(true))
    return (lambda rows: float(errors[rows].mean())), (lambda rows: float(blind[rows].mean())), "median"


class _MacroF1:
    """The mean over classes of F1 = 2 hits / (rows of the class + rows predicted as it)."""

    def __init__(self, right: Rows, answer: Rows, classes: int, occurring: Rows) -> None:
        self._cells, self._classes, self._occurring = right * classes + answer, classes, occurring

    def __call__(self, rows: Rows) -> float:
        return self.of_counts(np.bincount(self._cells[rows], minlength=self._classes**2))

    def of_counts(self, counts: Rows) -> float:
        """NaN where a class has no rows: such a resample says nothing about it."""
        table = counts.reshape(self._classes, self._classes)
        rows, answers = table.sum(axis=1)[self._occurring], table.sum(axis=0)[self._occurring]
        if not rows.all():
            return float("nan")
        return float((2 * table.diagonal()[self._occurring] / (rows + answers)).mean())


def _labels(values: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind == "U" else array


def _check_lengths(true: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> None:
    if true.ndim != 1 or true.shape != predicted.shape:
        raise ParameterError(f"predicted must have one entry for each of {true.size} rows, got shape {predicted.shape}")
