"""How much somebody cares for privacy, predicted from features by what volunteers said about themselves.

For people of whom nothing else is known: paper 000 predicts the budgets of "cold-start" users by a regressor. How good
a prediction is has to be seen beside that of the mean, which is often as good: `PredictionError`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.checks import whole
from dptext.errors import DataError, MissingExtraError, ParameterError

__all__ = ["ConcernModel", "PredictionError", "fit_concerns"]

Floats = npt.NDArray[np.float64]

_BUCKETS = 2**16  # of hashed words: no vocabulary is learned from the texts of volunteers
_PENALTIES = np.logspace(-2, 4, 7)
_MOST_FOLDS = 1000


@dataclass(frozen=True)
class PredictionError:
    """Root mean squared error of predicted concerns on volunteers who were held out.

    Attributes:
        folds: (folds,) of the regressor.
        mean: (folds,) of always predicting the mean of the other folds.
    """

    folds: tuple[float, ...]
    mean: tuple[float, ...]

    @property
    def of_mean(self) -> float:
        """Error over that of the mean, all folds together: at 1 or above, nothing was learned."""
        mean = float(np.square(self.mean).sum())
        return float(np.sqrt(np.square(self.folds).sum() / mean)) if mean > 0 else np.inf

    def __str__(self) -> str:
        return f"{np.mean(self.folds):.3f} ({np.mean(self.mean):.3f} by the mean), {len(self.folds)} folds"


@dataclass(frozen=True, eq=False)
class ConcernModel:
    """A fitted regressor, from features to concerns. **It is as private as what it was fitted on.**

    Attributes:
        regressor: fitted.
        error: on volunteers who were held out.
    """

    regressor: Any
    error: PredictionError

    def predict(self, features: Any) -> Floats:
        """(n,) concerns; infinite, and so the strictest, where the regressor gives no number. It never warns."""
        return concerns_by(self.regressor, features)


def concerns_by(regressor: Any, features: Any) -> Floats:
    """(n,) what a fitted regressor says of n rows of features; infinite where it says nothing."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # a warning would tell of a private row
        warnings.simplefilter("ignore")
        found = np.asarray(regressor.predict(_readable(features)), dtype=np.float64).reshape(_count(features))
    return np.where(np.isfinite(found), found, np.inf)


def fit_concerns(features: Any, concerns: Sequence[float], *, regressor: Any = None, folds: int = 5) -> ConcernModel:
    """Fit a regressor to what volunteers said, and measure it on those who are held out.

    Args:
        features: (n, d) numbers; or n texts, one a volunteer; or whatever ``regressor`` takes, with n rows.
        concerns: (n,) numbers, 0 for no concern to 1 for the most.
        regressor: with ``fit`` and ``predict`` as scikit-learn has them; None: ridge regression on standardised
            numbers, or on counts of hashed words.
        folds: row i is held out in fold i modulo this number.

    Raises:
        DataError: fewer than two rows a fold, a concern that is no finite number, rows that do not fit.
        MissingExtraError: scikit-learn is not installed.

    >>> model = fit_concerns([[0.0], [1.0], [2.0], [3.0]] * 10, [0.0, 0.2, 0.5, 0.8] * 10)
    >>> model.predict([[1.5]]).round(2), model.error.of_mean < 0.2
    (array([0.38]), True)
    """
    folds = whole("folds", folds, least=1, most=_MOST_FOLDS)
    try:
        known = np.asarray(concerns, dtype=np.float64)
        rows = _count(features)
    except (TypeError, ValueError):
        raise DataError("concerns must be numbers and features must have rows, one a volunteer") from None
    if known.shape != (rows,) or not np.isfinite(known).all():
        raise DataError(f"expected one finite concern for each of the {rows:,} rows of features")
    if folds < 2 or rows < 2 * folds:
        raise DataError(f"expected 2 folds or more and two volunteers a fold, got {folds} folds and {rows:,} rows")
    given, clone = _readable(features), _cloner()
    made = _default(given) if regressor is None else regressor
    if not hasattr(made, "fit") or not hasattr(made, "predict"):
        raise ParameterError(f"regressor must have fit and predict, got {type(made).__name__}")
    errors: list[tuple[float, float]] = []
    place = np.arange(rows) % folds
    for fold in range(folds):
        out, rest = np.flatnonzero(place == fold), np.flatnonzero(place != fold)
        guesses = clone(made).fit(_rows(given, rest), known[rest]).predict(_rows(given, out))
        errors.append((_rmse(known[out] - np.ravel(guesses)), _rmse(known[out] - known[rest].mean())))
    by_regressor, by_mean = zip(*errors, strict=True)
    return ConcernModel(clone(made).fit(given, known), PredictionError(by_regressor, by_mean))


def _rmse(differences: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(differences))))


def _readable(features: Any) -> Any:
    """Texts without the missing ones, which count as empty; all else as it is."""
    if _are_texts(features):
        return ["" if each is None else each for each in features]
    return features


def _are_texts(features: Any) -> bool:
    return isinstance(features, Sequence) and len(features) > 0 and all(isinstance(f, str | None) for f in features)


def _count(features: Any) -> int:
    return int(features.shape[0]) if hasattr(features, "shape") else len(features)


def _rows(features: Any, rows: npt.NDArray[np.int64]) -> Any:
    if isinstance(features, Sequence):
        return [features[row] for row in rows.tolist()]
    return features.iloc[rows] if hasattr(features, "iloc") else features[rows]


def _default(features: Any) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    first = HashingVectorizer(n_features=_BUCKETS) if _are_texts(features) else StandardScaler()
    return make_pipeline(first, RidgeCV(alphas=_PENALTIES))


def _cloner() -> Any:
    try:
        from sklearn.base import clone
    except ImportError:
        raise MissingExtraError(
            "predicting concerns needs the package 'scikit-learn'; install it with: pip install \"dptext[sklearn]\""
        ) from None
    return clone
