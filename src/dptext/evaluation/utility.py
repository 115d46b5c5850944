"""What private texts or vectors are still good for: a model is trained on them and tested on people it has not seen.

Three numbers make a picture, and this module gives each in the same form: the score of a model trained on private
rows, that of one trained on the rows as they were, and the trivial baseline that needs no rows. A score without the
last one says nothing: where three quarters of the rows are of one class, 75 per cent is what no model reaches.

Nobody is on both sides (`dptext.evaluation.folds`); what a feature learns from rows it learns from those that train.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.estimates import Estimate
from dptext.evaluation.features import BagOfWords, Features, VectorFeatures
from dptext.evaluation.folds import Fold, checked_folds, codes_of, make_folds
from dptext.evaluation.measures import CLASS_MEASURES, NUMBER_MEASURES, checked_numbers, measure
from dptext.evaluation.models import Builder, builder_of, trained
from dptext.privacy.randomness import RandomBits
from dptext.threads import one_blas_thread

__all__ = ["Predictions", "UtilityScore", "predictions", "utility"]


@dataclass(frozen=True, kw_only=True)
class UtilityScore:
    """How good a model trained on some rows is, beside somebody who sees none.

    Attributes:
        measure: what the number is ("accuracy", "macro-F1", "RMSE", "MAE").
        score: the number with its interval.
        baseline: what the best blind guess reaches on the same rows.
        baseline_name: which guess that is ("majority class", "mean").
        gain: how much better than the baseline, on the same rows; positive is better whatever the measure.
        model: its name.
        features: what it sees.
        trained_on, tested_on: in which form the rows came ("private", "raw").
        rows: rows tested.
        folds: how often a model was trained.
    """

    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    gain: Estimate
    model: str
    features: str
    trained_on: str
    tested_on: str
    rows: int
    folds: int

    @property
    def lower_is_better(self) -> bool:
        """Whether the measure counts errors."""
        return self.measure in NUMBER_MEASURES

    @property
    def above_baseline(self) -> bool:
        """Whether the model is better than the blind guess, beyond the interval of the difference."""
        return self.gain.low > 0

    def __str__(self) -> str:
        return (
            f"{self.measure} {self.score} against {self.baseline:.3f} ({self.baseline_name}), {self.model} trained on "
            f"{self.trained_on}, tested on {self.tested_on}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions:
    """What models answered about rows that had no part in their training.

    Attributes:
        rows: (tested,) which rows were tested.
        true, predicted: (tested,) targets and answers.
        people: (tested,) whose row each is; None: everybody has one.
        model, features, trained_on, tested_on, folds: as in `UtilityScore`.
    """

    rows: npt.NDArray[np.int64]
    true: npt.NDArray[Any]
    predicted: npt.NDArray[Any]
    people: npt.NDArray[np.int64] | None
    model: str
    features: str
    trained_on: str
    tested_on: str
    folds: int

    def score(
        self, name: str, *, resamples: int = 1000, confidence: float = 0.95, seed: int | None = None
    ) -> UtilityScore:
        """One measure of these predictions; see `dptext.evaluation.measures.measure`."""
        found = measure(
            name,
            self.true,
            self.predicted,
            people=self.people,
            resamples=resamples,
            confidence=confidence,
            seed=seed,
        )
        return UtilityScore(
            measure=name,
            score=found.score,
            baseline=found.baseline,
            baseline_name=found.baseline_name,
            gain=found.gain,
            model=self.model,
            features=self.features,
            trained_on=self.trained_on,
            tested_on=self.tested_on,
            rows=self.rows.size,
            folds=self.folds,
        )


def utility(
    rows: Any,
    targets: npt.ArrayLike,
    *,
    measure: str = "accuracy",
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int | None = None,
    **options: Any,
) -> UtilityScore:
    """Train on some rows, test on others, and say how good it is beside the best blind guess.

    Args:
        rows: texts (strings, `dptext.Document`, None), or (rows, d) vectors.
        targets: (rows,) classes for "accuracy" and "macro-F1", numbers for "RMSE" and "MAE".
        measure: one of these four.
        resamples, confidence: of the intervals.
        seed: of folds, models and resamples; None for fresh randomness.
        **options: of `predictions` (``test_rows``, ``trained_on``, ``tested_on``, ``features``, ``model``,
            ``people``, ``folds``).

    Raises:
        ParameterError: one class, fewer rows than folds, NaN, unequal lengths, ...; the argument is named.
        MissingExtraError: scikit-learn or scipy is not installed.

    >>> texts, stars = ["a good film", "a bad film"] * 20, ["+", "-"] * 20
    >>> print(utility(texts, stars, seed=1, trained_on="raw"))
    accuracy 1.000 [0.912, 1.000] against 0.500 (majority class), logistic regression trained on raw, tested on raw
    """
    if measure not in (*CLASS_MEASURES, *NUMBER_MEASURES):
        names = ", ".join((*CLASS_MEASURES, *NUMBER_MEASURES))
        raise ParameterError(f"measure must be one of {names}, got {measure!r}")
    found = predictions(rows, targets, classes=measure in CLASS_MEASURES, seed=seed, **options)
    return found.score(measure, resamples=resamples, confidence=confidence, seed=seed)


def predictions(
    rows: Any,
    targets: npt.ArrayLike,
    *,
    classes: bool = True,
    test_rows: Any = None,
    trained_on: str = "private",
    tested_on: str | None = None,
    features: Features | None = None,
    model: str | Builder = "linear",
    people: npt.ArrayLike | None = None,
    folds: int | Sequence[Fold] = 5,
    seed: int | None = None,
) -> Predictions:
    """Answers about rows by models that were trained on the rows of other people.

    Args:
        rows: texts or vectors, as in `utility`: what models are trained on.
        targets: (rows,) classes, or numbers with ``classes=False``.
        classes: whether targets are classes.
        test_rows: the same rows in another form (as they were before they were made private), to be tested on; None:
            the rows themselves.
        trained_on, tested_on: how the result names the two forms. Not given, ``tested_on`` is "raw" where there are
            ``test_rows`` and otherwise what ``trained_on`` says.
        features: None: a bag of words for texts, the vectors for vectors.
        model: see `dptext.evaluation.models.builder_of`.
        people: (rows,) whose row each is: folds go by them; None: everybody has one.
        folds: how many, or the caller's own (one `Fold` for a fixed training and test set).
        seed: of folds and models; None for fresh randomness.

    Raises:
        ParameterError: see `utility`.
    """
    made = features or _features_for(rows)
    seen = made.of(rows)
    count = seen.shape[0]
    wanted = np.asarray(targets)
    if wanted.shape[:1] != (count,):
        raise ParameterError(f"targets must have one entry for each of {count} rows, got shape {wanted.shape}")
    tested = seen if test_rows is None else made.of(test_rows)
    if tested.shape != seen.shape:
        raise ParameterError(f"test_rows must be the same rows, of shape {seen.shape}, got {tested.shape}")
    codes: npt.NDArray[Any] = codes_of("targets", targets) if classes else checked_numbers("targets", targets)
    whose = None if people is None else codes_of("people", people)
    if whose is not None and whose.size != count:
        raise ParameterError(f"people must have one entry for each of {count} rows, got {whose.size}")
    bits = RandomBits(seed)
    split = _split(codes, folds, whose, classes=classes, seed=_small_seed(bits))
    name, build = builder_of(model, classes=classes)
    how_many = int(codes.max()) + 1 if classes else 0
    answers = []
    for fold in split:
        with one_blas_thread():
            shown = made.fitted(seen[fold.train])
            inputs = shown(seen[fold.train])
            predict = trained(build, inputs, codes[fold.train], classes=how_many, seed=_small_seed(bits))
            answers.append(_checked_answers(predict(shown(tested[fold.test])), fold.test.size))
    which = np.concatenate([fold.test for fold in split])
    answered = np.concatenate(answers)
    if classes:
        labels = wanted[np.unique(codes, return_index=True)[1]]
        answered = labels[_checked_codes(answered, how_many)]
    return Predictions(
        rows=which,
        true=wanted[which] if classes else codes[which],
        predicted=answered,
        people=None if whose is None else whose[which],
        model=name,
        features=made.name,
        trained_on=trained_on,
        tested_on=tested_on or (trained_on if test_rows is None else "raw"),
        folds=len(split),
    )


def _features_for(rows: Any) -> Features:
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "fiu":
        return VectorFeatures()
    if isinstance(rows, str) or not hasattr(rows, "__len__"):
        raise ParameterError(f"rows must be a list of texts, or vectors, got {type(rows).__name__}")
    first = next((each for each in rows if each is not None), "")
    return BagOfWords() if isinstance(first, str) or hasattr(first, "text") else VectorFeatures()


def _split(
    codes: npt.NDArray[Any],
    folds: int | Sequence[Fold],
    whose: npt.NDArray[np.int64] | None,
    *,
    classes: bool,
    seed: int,
) -> list[Fold]:
    if isinstance(folds, int | np.integer):
        return make_folds(codes, count=folds, people=whose, classes=classes, seed=seed)
    checked = checked_folds(folds, codes.size, people=whose)
    if classes and any(np.unique(codes[fold.train]).size <= codes.max() for fold in checked):
        raise ParameterError("folds: the rows that train must hold every class")
    return checked


def _checked_answers(answers: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    if answers.shape != (count,) or not np.isfinite(answers).all():
        raise ParameterError(f"model: expected {count} finite answers, got shape {answers.shape} or NaN")
    return answers


def _checked_codes(answers: npt.NDArray[Any], classes: int) -> npt.NDArray[np.int64]:
    codes = answers.astype(np.int64)
    if (codes != answers).any() or codes.min() < 0 or codes.max() >= classes:
        raise ParameterError(f"model: expected class codes 0 to {classes - 1}, got something else")
    return codes


def _small_seed(bits: RandomBits) -> int:
    return int(bits.integers(1)[0] >> np.uint64(33))  # what scikit-learn takes
