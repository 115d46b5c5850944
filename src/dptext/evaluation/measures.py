"""Folds for cross-validation, and measures of predictions (accuracy, macro-F1) with a baseline.

Derivation: docs/understand/utility.md#evaluation-measures
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.intervals import Estimate, macro_f1, mean_of_people, paired_difference, share
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_choice, check_int

Rows: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measure of predictions and its baseline, the best guess without features.

    Attributes:
        measure: "accuracy" or "macro-F1".
        score: the number with its interval.
        baseline: score of the baseline on the same rows.
        baseline_name: the kind of guess ("majority class").
        gain: improvement over the baseline on the same rows.
    """

    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    gain: Estimate


def measure(
    name: str, true: npt.ArrayLike, predicted: npt.ArrayLike, *, people: npt.ArrayLike | None = None
) -> Measured:
    """Return "accuracy" or "macro-F1" of predictions, with 95% intervals over people."""
    check_choice("measure", name, ("accuracy", "macro-F1"))
    labels, answers = codes_of_answers(true, predicted)
    owners = people_of(people, labels.size)
    score = class_score(name, labels, answers, None if people is None else owners)
    if name == "macro-F1":
        chance = 1.0 / np.unique(labels).size
        gain = replace(score, value=score.value - chance, low=score.low - chance, high=score.high - chance)
        guess = "random guesses with the class frequencies"
        return Measured(measure=name, score=score, baseline=chance, baseline_name=guess, gain=gain)
    majority = labels == np.bincount(labels).argmax()
    gain = paired_difference(labels == answers, majority, owners)
    baseline = float(majority.mean())
    return Measured(measure=name, score=score, baseline=baseline, baseline_name="majority class", gain=gain)


def class_score(name: str, true: Rows, predicted: Rows, people: Rows | None, *, confidence: float = 0.95) -> Estimate:
    """Return accuracy or macro-F1 of codes, with its interval."""
    hits = true == predicted
    if name == "accuracy" and people is None:
        return share(int(hits.sum()), hits.size, confidence=confidence)
    owners = np.arange(hits.size) if people is None else people
    if name == "accuracy":
        return mean_of_people(hits, owners, confidence=confidence)
    return macro_f1(true, predicted, owners, confidence=confidence)


# -- codes of values -----------------------------------------------------------------------------------------------


def codes_of_answers(true: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[Rows, Rows]:
    """Return integer codes of labels and answers; an answer that is not a label gets a separate code."""
    labels, answers = np.asarray(true), np.asarray(predicted)
    if labels.ndim != 1 or labels.shape != answers.shape:
        raise ParameterError(f"predicted must have one entry for each of {labels.size} rows, got shape {answers.shape}")
    if "U" in labels.dtype.kind + answers.dtype.kind:  # texts of different lengths, or texts and numbers
        labels, answers = labels.astype(object), answers.astype(object)
    codes = codes_of("predicted", np.concatenate([labels, answers]))
    return codes[: labels.size], codes[labels.size :]


def people_of(people: npt.ArrayLike | None, rows: int) -> Rows:
    """Return (rows,) codes of the person of each row; without ``people``, each row has a different person."""
    return np.arange(rows) if people is None else codes_of("people", people, rows=rows)


def codes_of(name: str, values: npt.ArrayLike, *, rows: int | None = None) -> Rows:
    """Return (rows,) ranks of the values among the distinct values."""
    array = values if isinstance(values, np.ndarray) else np.asarray(entries := list(values))  # type: ignore[arg-type]
    if array is not values and any(entry is None or isinstance(entry, float) for entry in entries):
        array = np.empty(len(entries), dtype=object)  # numpy would turn None next to texts into "None"
        array[:] = entries
    if array.ndim != 1 or not array.size:
        raise ParameterError(f"{name} must have one entry per row, got shape {array.shape}")
    if rows is not None and array.size != rows:
        raise ParameterError(f"{name} must have one entry for each of {rows} rows, got {array.size}")
    missing = np.array([entry is None or entry != entry or entry in (np.inf, -np.inf) for entry in array.tolist()])
    if missing.any():
        raise ParameterError(f"{name} must have no missing entries, row {int(missing.argmax())} is missing or infinite")
    try:
        return np.unique(array, return_inverse=True)[1].astype(np.int64)
    except TypeError:
        raise ParameterError(f"{name} must have values of one type, because they are compared") from None


# -- folds ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Fold:
    """Indices of the rows that train and of the rows that test."""

    train: Rows
    test: Rows


def make_folds(
    targets: npt.ArrayLike, *, count: int = 5, people: npt.ArrayLike | None = None, seed: int | None = None
) -> list[Fold]:
    """Return folds for cross-validation: every row is tested once, and no person is on both sides of a fold."""
    count = check_int("folds", count, minimum=2)
    codes = codes_of("targets", targets)
    owners = people_of(people, codes.size)
    unit, units = "rows" if people is None else "people", np.unique(owners).size
    if units < count:
        raise ParameterError(f"folds must be at most the number of {unit}, {units}, got {count}")
    if codes.max() == 0:
        raise ParameterError("targets must have at least two classes, got one")
    rarest = int(np.bincount(np.unique(np.stack([codes, owners]), axis=1)[0]).min())
    if rarest < count:
        raise ParameterError(
            f"targets: the rarest class has {rarest} {unit}, fewer than {count} folds. Use fewer folds, or drop it"
        )
    bits = RandomBits(seed)
    places = fold_of_rows(codes, count, bits) if people is None else _fold_of_people(codes, owners, count, bits)
    folds = [Fold(np.flatnonzero(places != index), np.flatnonzero(places == index)) for index in range(count)]
    if any(np.unique(codes[fold.train]).size <= codes.max() for fold in folds):
        raise ParameterError("targets: all rows of a class are in one fold. Use fewer folds, or drop the class")
    return folds


def fold_of_rows(strata: Rows, count: int, bits: RandomBits) -> Rows:
    """Return (rows,) folds: the rows of a stratum, in random order, are assigned to the folds in turn."""
    order = np.lexsort((bits.integers(strata.size), strata))
    places = np.empty(strata.size, dtype=np.int64)
    places[order] = np.arange(strata.size) % count
    return places


def _fold_of_people(codes: Rows, owners: Rows, count: int, bits: RandomBits) -> Rows:
    """Return (rows,) folds by person, with similar proportions of every class in all folds."""
    people, classes = int(owners.max()) + 1, int(codes.max()) + 1
    shares = np.zeros((people, classes))
    np.add.at(shares, (owners, codes), 1.0)
    shares /= shares.sum(axis=0)  # a rare class has the same weight as a frequent one
    order = np.lexsort((bits.integers(people), -shares.sum(axis=1)))
    filled = np.zeros((count, classes))
    places = np.empty(people, dtype=np.int64)
    for person in order:
        # the sum over folds of (filled + shares)^2 grows least for the smallest filled . shares
        overlap = filled @ shares[person]
        best = np.flatnonzero(overlap == overlap.min())
        places[person] = best[np.argmin(filled[best].sum(axis=1))]
        filled[places[person]] += shares[person]
    return places[owners]
