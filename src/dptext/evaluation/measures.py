"""Predictions measured: accuracy, macro-F1, RMSE and MAE, each with its interval and beside the best blind guess.

Derivation: docs/understand/utility.md#evaluation-measures
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.checks import choice
from dptext.errors import ParameterError
from dptext.estimates import Estimate, macro_f1, mean_of_people, over_people, paired_difference, share
from dptext.evaluation.folds import codes_of, people_of

Rows: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

CLASS_MEASURES = ("accuracy", "macro-F1")
NUMBER_MEASURES = ("RMSE", "MAE")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measure of predictions, beside the best blind guess.

    Attributes:
        measure: what the number is ("accuracy", "macro-F1", "RMSE", "MAE").
        score: the number with its interval.
        baseline: what the best blind guess reaches on the same rows.
        baseline_name: which guess that is ("majority class", "mean").
        gain: how much better than the baseline, on the same rows; positive is better for every measure.
    """

    measure: str
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
    """Measure predictions."""
    choice("measure", name, (*CLASS_MEASURES, *NUMBER_MEASURES))
    if name in NUMBER_MEASURES:
        numbers = (checked_numbers("true", true), checked_numbers("predicted", predicted))
        whose = people_of(people, numbers[0].size)
        return _of_numbers(name, *numbers, whose, {"resamples": resamples, "confidence": confidence, "seed": seed})
    right, answer = codes_of_answers(true, predicted)
    whose = people_of(people, right.size)
    score = class_score(name, right, answer, None if people is None else whose, confidence=confidence)
    if name == "macro-F1":
        chance = 1.0 / np.unique(right).size
        gain = replace(score, value=score.value - chance, low=score.low - chance, high=score.high - chance)
        blind_name = "classes guessed as often as they occur"
        return Measured(measure=name, score=score, baseline=chance, baseline_name=blind_name, gain=gain)
    blind = right == np.bincount(right).argmax()
    gain = paired_difference(right == answer, blind, whose, confidence=confidence)
    return Measured(measure=name, score=score, baseline=float(blind.mean()), baseline_name="majority class", gain=gain)


def class_score(name: str, right: Rows, answer: Rows, people: Rows | None, *, confidence: float = 0.95) -> Estimate:
    """Accuracy or macro-F1 of checked codes (`codes_of_answers`), with its interval."""
    hits = right == answer
    if name == "accuracy" and people is None:
        return share(int(hits.sum()), hits.size, confidence=confidence)
    whose = np.arange(hits.size) if people is None else people
    if name == "accuracy":
        return mean_of_people(hits, whose, confidence=confidence)
    return macro_f1(right, answer, whose, confidence=confidence)


def codes_of_answers(true: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[Rows, Rows]:
    """Codes of labels and answers; an answer that is no label gets a code of its own."""
    right, answered = _labels(true), _labels(predicted)
    _check_lengths(right, answered)
    both = codes_of("predicted", np.concatenate([right, answered]))
    return both[: right.size], both[right.size :]


def checked_numbers(name: str, values: npt.ArrayLike) -> Floats:
    """(rows,) float64."""
    try:
        numbers: Floats = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be one number a row, got something else") from None
    if numbers.ndim != 1 or not numbers.size:
        raise ParameterError(f"{name} must be one number a row, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise ParameterError(f"{name} must be finite numbers, row {int(np.argmin(np.isfinite(numbers)))} is not")
    return numbers


def _of_numbers(name: str, true: Floats, predicted: Floats, whose: Rows, options: dict[str, Any]) -> Measured:
    _check_lengths(true, predicted)
    power = 2 if name == "RMSE" else 1
    middle, guess = (true.mean(), "mean") if name == "RMSE" else (np.median(true), "median")
    errors, blind = (np.abs(true - each) ** power for each in (predicted, middle))

    def of(values: Floats, rows: Rows) -> float:
        return float(values[rows].mean() ** (1 / power))

    return Measured(
        measure=name,
        score=over_people(lambda rows: of(errors, rows), whose, **options),
        baseline=of(blind, np.arange(true.size)),
        baseline_name=guess,
        gain=over_people(lambda rows: of(blind, rows) - of(errors, rows), whose, **options),
    )


def _labels(values: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind == "U" else array


def _check_lengths(true: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> None:
    if true.ndim != 1 or true.shape != predicted.shape:
        raise ParameterError(f"predicted must have one entry for each of {true.size} rows, got shape {predicted.shape}")
