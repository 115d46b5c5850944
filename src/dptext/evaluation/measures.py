"""Folds of rows, and predictions measured: accuracy, macro-F1, RMSE and MAE beside the best blind guess.

Derivation: docs/understand/utility.md#evaluation-measures
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.intervals import Estimate, macro_f1, mean_of_people, over_people, paired_difference, share
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_choice, check_int

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
    check_choice("measure", name, (*CLASS_MEASURES, *NUMBER_MEASURES))
    if name in NUMBER_MEASURES:
        numbers = (check_numbers("true", true), check_numbers("predicted", predicted))
        owners = people_of(people, numbers[0].size)
        return _measure_numbers(
            name, *numbers, owners, {"resamples": resamples, "confidence": confidence, "seed": seed}
        )
    right, answer = codes_of_answers(true, predicted)
    owners = people_of(people, right.size)
    score = class_score(name, right, answer, None if people is None else owners, confidence=confidence)
    if name == "macro-F1":
        chance = 1.0 / np.unique(right).size
        gain = replace(score, value=score.value - chance, low=score.low - chance, high=score.high - chance)
        blind_name = "classes guessed as often as they occur"
        return Measured(measure=name, score=score, baseline=chance, baseline_name=blind_name, gain=gain)
    blind = right == np.bincount(right).argmax()
    gain = paired_difference(right == answer, blind, owners, confidence=confidence)
    return Measured(measure=name, score=score, baseline=float(blind.mean()), baseline_name="majority class", gain=gain)


def class_score(name: str, right: Rows, answer: Rows, people: Rows | None, *, confidence: float = 0.95) -> Estimate:
    """Accuracy or macro-F1 of checked codes (`codes_of_answers`), with its interval."""
    hits = right == answer
    if name == "accuracy" and people is None:
        return share(int(hits.sum()), hits.size, confidence=confidence)
    owners = np.arange(hits.size) if people is None else people
    if name == "accuracy":
        return mean_of_people(hits, owners, confidence=confidence)
    return macro_f1(right, answer, owners, confidence=confidence)


def codes_of_answers(true: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[Rows, Rows]:
    """Codes of labels and answers; an answer that is no label gets a code of its own."""
    right, answered = _labels(true), _labels(predicted)
    _check_lengths(right, answered)
    both = codes_of("predicted", np.concatenate([right, answered]))
    return both[: right.size], both[right.size :]


def check_numbers(name: str, values: npt.ArrayLike) -> Floats:
    try:
        numbers: Floats = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be one number a row, got something else") from None
    if numbers.ndim != 1 or not numbers.size:
        raise ParameterError(f"{name} must be one number a row, got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise ParameterError(f"{name} must be finite numbers, row {int(np.argmin(np.isfinite(numbers)))} is not")
    return numbers


def _measure_numbers(name: str, true: Floats, predicted: Floats, owners: Rows, options: dict[str, Any]) -> Measured:
    _check_lengths(true, predicted)
    power = 2 if name == "RMSE" else 1
    middle, guess = (true.mean(), "mean") if name == "RMSE" else (np.median(true), "median")
    errors, blind = (np.abs(true - entry) ** power for entry in (predicted, middle))

    def of(values: Floats, rows: Rows) -> float:
        return float(values[rows].mean() ** (1 / power))

    return Measured(
        measure=name,
        score=over_people(lambda rows: of(errors, rows), owners, **options),
        baseline=of(blind, np.arange(true.size)),
        baseline_name=guess,
        gain=over_people(lambda rows: of(blind, rows) - of(errors, rows), owners, **options),
    )


def _labels(values: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind == "U" else array


def _check_lengths(true: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> None:
    if true.ndim != 1 or true.shape != predicted.shape:
        raise ParameterError(f"predicted must have one entry for each of {true.size} rows, got shape {predicted.shape}")


@dataclass(frozen=True, eq=False)
class Fold:
    """Which rows train and which test, by their indices."""

    train: Rows
    test: Rows


def make_folds(
    targets: npt.ArrayLike,
    *,
    count: int = 5,
    people: npt.ArrayLike | None = None,
    classes: bool = True,
    seed: int | None = None,
) -> list[Fold]:
    """Folds for cross-validation: each row is tested once."""
    count = check_int("folds", count, minimum=2)
    codes = codes_of("targets", targets) if classes else np.zeros(len(np.asarray(targets)), dtype=np.int64)
    owners = people_of(people, codes.size)
    text = "rows" if people is None else "people"
    _check_counts(codes, owners, count, unit_name=text, classes=classes)
    bits = RandomBits(seed)
    if people is not None:
        place = _deal_people(codes, owners, count, bits)[owners]
    else:
        place = _deal_rows(codes if classes else _ranks(np.asarray(targets), bits) // count, count, bits)
    folds = [Fold(np.flatnonzero(place != index), np.flatnonzero(place == index)) for index in range(count)]
    if any(np.unique(codes[fold.train]).size <= codes.max() for fold in folds):
        raise ParameterError("targets: a class has all its rows in one fold: use fewer folds, or leave the class out")
    return folds


def check_folds(folds: Sequence[Fold], rows: int, *, people: npt.ArrayLike | None = None) -> list[Fold]:
    """A caller's own folds (a fixed training and test set is one fold), when nobody is on both sides."""
    owners = people_of(people, rows)
    tested = np.zeros(rows, dtype=np.int64)
    checked = []
    for number, fold in enumerate(folds):
        train, test = (np.asarray(side, dtype=np.int64).ravel() for side in (fold.train, fold.test))
        if not train.size or not test.size:
            raise ParameterError(f"folds: fold {number} has an empty side: give it rows to train and rows to test")
        if min(train.min(), test.min()) < 0 or max(train.max(), test.max()) >= rows:
            raise ParameterError(f"folds: fold {number} names rows outside 0 to {rows - 1}")
        both = np.intersect1d(owners[train], owners[test]).size
        if both:
            text = "rows" if people is None else "people"
            raise ParameterError(
                f"folds: fold {number} has {both} {text} on both sides: a model tested on what trained it looks "
                "better than it is"
            )
        np.add.at(tested, test, 1)
        checked.append(Fold(train, test))
    if not checked or (tested > 1).any():
        raise ParameterError("folds must test each row at most once, and at least one fold is needed")
    return checked


def people_of(people: npt.ArrayLike | None, rows: int) -> Rows:
    """(rows,) a number for each row's person; everybody has one row where nothing is said."""
    return np.arange(rows) if people is None else codes_of("people", people, rows=rows)


def codes_of(name: str, values: npt.ArrayLike, *, rows: int | None = None) -> Rows:
    """(rows,) the place of each value among the distinct ones."""
    array = values if isinstance(values, np.ndarray) else _array(name, values)
    if array.ndim != 1 or not array.size:
        raise ParameterError(f"{name} must be one entry a row, got shape {array.shape}")
    if rows is not None and array.size != rows:
        raise ParameterError(f"{name} must have one entry for each of {rows} rows, got {array.size}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ParameterError(f"{name} must have no missing entries (NaN), row {int(np.argmin(np.isfinite(array)))} has")
    if array.dtype.kind == "O":
        missing = [row for row, entry in enumerate(array) if entry is None or entry != entry]
        if missing:
            raise ParameterError(f"{name} must have no missing entries, row {missing[0]} has none")
    try:
        return np.unique(array, return_inverse=True)[1].astype(np.int64)
    except TypeError:
        raise ParameterError(f"{name} must be all of one type, so that they can be told apart") from None


def _array(name: str, values: Any) -> npt.NDArray[Any]:
    """Strings stay strings beside None: numpy alone would spell it out."""
    try:
        entries = list(values)
    except TypeError:
        raise ParameterError(f"{name} must be one entry a row, got {type(values).__name__}") from None
    if any(entry is None or isinstance(entry, float) for entry in entries):
        array = np.empty(len(entries), dtype=object)
        array[:] = entries
        return array
    return np.asarray(entries)


def _check_counts(codes: Rows, owners: Rows, count: int, *, unit_name: str, classes: bool) -> None:
    everybody = np.unique(owners).size
    if everybody < count:
        raise ParameterError(f"folds must be at most the number of {unit_name}, {everybody}, got {count}")
    if not classes:
        return
    if codes.max() == 0:
        raise ParameterError("targets must hold at least two classes, all rows have the same")
    pairs = np.unique(np.stack([codes, owners]), axis=1)[0]
    rarest = int(np.bincount(pairs).min())
    if rarest < count:
        raise ParameterError(
            f"targets: the rarest class has {rarest} {unit_name}, fewer than {count} folds: use fewer, or leave the "
            "class out"
        )


def _deal_rows(strata: Rows, count: int, bits: RandomBits) -> Rows:
    """(rows,) the fold of each: those of a stratum in random order, dealt like cards, on from where the last ended."""
    order = np.lexsort((bits.integers(strata.size), strata))
    place = np.empty(strata.size, dtype=np.int64)
    place[order] = np.arange(strata.size) % count
    return place


def _ranks(values: npt.NDArray[Any], bits: RandomBits) -> Rows:
    ranks = np.empty(values.size, dtype=np.int64)
    ranks[np.lexsort((bits.integers(values.size), values))] = np.arange(values.size)
    return ranks


def _deal_people(codes: Rows, owners: Rows, count: int, bits: RandomBits) -> Rows:
    everybody, classes = int(owners.max()) + 1, int(codes.max()) + 1
    counts_held = np.zeros((everybody, classes))
    np.add.at(counts_held, (owners, codes), 1.0)
    counts_held /= counts_held.sum(axis=0)  # shares, so that a rare class weighs as much as a frequent one
    order = np.lexsort((bits.integers(everybody), -counts_held.sum(axis=1)))
    filled = np.zeros((count, classes))
    place = np.empty(everybody, dtype=np.int64)
    for person in order:
        # sum over folds of (filled + held)^2 grows least where held . filled is least: shares stay even
        fullness = filled @ counts_held[person]
        best = np.flatnonzero(fullness == fullness.min())
        place[person] = best[np.argmin(filled[best].sum(axis=1))]
        filled[place[person]] += counts_held[person]
    return place
