"""Privacy concern, predicted by a regressor that is fitted on volunteers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.embeddings.levels import are_texts, concerns_by, readable, row_count
from dptext.errors import DataError, ParameterError, extra
from dptext.validation import check_int

Floats = npt.NDArray[np.float64]
_BUCKETS = 2**16  # of hashed words: no vocabulary is learned from the texts of volunteers
_PENALTIES = np.logspace(-2, 4, 7)
_MOST_FOLDS = 1000


@dataclass(frozen=True)
class PredictionError:
    folds: tuple[float, ...]
    mean: tuple[float, ...]

    @property
    def relative_to_mean(self) -> float:
        """Error relative to that of the mean, over all folds; at 1 or above nothing was learned."""
        mean = float(np.square(self.mean).sum())
        return float(np.sqrt(np.square(self.folds).sum() / mean)) if mean > 0 else np.inf

    def __str__(self) -> str:
        return f"{np.mean(self.folds):.3f} ({np.mean(self.mean):.3f} by the mean), {len(self.folds)} folds"


@dataclass(frozen=True, eq=False)
class ConcernModel:
    """A fitted regressor from features to concerns, and its error on held-out volunteers."""

    regressor: Any
    error: PredictionError

    def predict(self, features: Any) -> Floats:
        """Return (n,) concerns; infinite, and so the strictest, if the regressor returns no number."""
        return concerns_by(self.regressor, features)


def fit_concerns(features: Any, concerns: Sequence[float], *, regressor: Any = None, folds: int = 5) -> ConcernModel:
    """Fit a regressor to volunteers and measure it by cross-validation."""
    folds = check_int("folds", folds, minimum=1, maximum=_MOST_FOLDS)
    try:
        known = np.asarray(concerns, dtype=np.float64)
        rows = row_count(features)
    except (TypeError, ValueError):
        raise DataError("concerns must be numbers and features must have rows, one a volunteer") from None
    if known.shape != (rows,) or not np.isfinite(known).all():
        raise DataError(f"expected one finite concern for each of the {rows:,} rows of features")
    if folds < 2 or rows < 2 * folds:
        raise DataError(f"expected 2 folds or more and two volunteers a fold, got {folds} folds and {rows:,} rows")
    values, clone = readable(features), extra("sklearn.base", "sklearn", "predicting concerns").clone
    output = _default(values) if regressor is None else regressor
    if not hasattr(output, "fit") or not hasattr(output, "predict"):
        raise ParameterError(f"regressor must have fit and predict, got {type(output).__name__}")
    errors: list[tuple[float, float]] = []
    place = np.arange(rows) % folds
    for fold in range(folds):
        out, rest = np.flatnonzero(place == fold), np.flatnonzero(place != fold)
        guesses = clone(output).fit(_rows(values, rest), known[rest]).predict(_rows(values, out))
        errors.append((_rmse(known[out] - np.ravel(guesses)), _rmse(known[out] - known[rest].mean())))
    by_regressor, by_mean = zip(*errors, strict=True)
    return ConcernModel(clone(output).fit(values, known), PredictionError(by_regressor, by_mean))


def _rmse(differences: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(differences))))


def _rows(features: Any, rows: npt.NDArray[np.int64]) -> Any:
    if isinstance(features, Sequence):
        return [features[row] for row in rows.tolist()]
    return features.iloc[rows] if hasattr(features, "iloc") else features[rows]


def _default(features: Any) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    first = HashingVectorizer(n_features=_BUCKETS) if are_texts(features) else StandardScaler()
    return make_pipeline(first, RidgeCV(alphas=_PENALTIES))
