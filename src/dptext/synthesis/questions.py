"""Shares of categories that are named after a release, estimated from its noisy sum and public texts.

Derivation: docs/mechanisms/synthesis.md#synthesis-questions
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.features.features import UNIT, PublicFeatures
from dptext.intervals import CONFIDENCE, Estimate, shares_of_total
from dptext.synthesis.moments import COUNT_WEIGHT
from dptext.threads import one_blas_thread
from dptext.validation import check_float, is_encodable

Floats = npt.NDArray[np.float64]

FALSE_ALARMS = 0.01
"""Probability of a refusal if the private texts are a mixture of the categories."""
FEWEST_TEXTS = 20
MOST_DRIFT = 0.01
"""Maximum of (drift) for public texts of another source: a tenth of a standard deviation."""
_FOLDS = 10
_TEXTS_PER_DIRECTION = 5


@dataclass(frozen=True, eq=False)
class SharesOfCategories:
    """Shares with intervals, the p-value of (fit) and t of (drift)."""

    shares: Mapping[str, Estimate]
    p_value: float
    drift: float


def estimate_shares(
    matrix: Floats, sigma: float, features: PublicFeatures, categories: Any, *, confidence: float, other_source: bool
) -> dict[str, Estimate]:
    """Validate and answer the question of `TextDistribution.estimate_shares`."""
    check_float("confidence", confidence, above=0, below=1)
    _check_categories(categories)
    vectors = {str(name): np.float64(UNIT) * features.units(texts) for name, texts in categories.items()}
    sigma = sigma * math.sqrt(len(matrix))  # of the sum over the labels
    result = read_shares(matrix.sum(axis=0), sigma, vectors, features.covariance, confidence=confidence)
    if result.p_value < FALSE_ALARMS and not (other_source and result.drift <= MOST_DRIFT):
        raise DataError(
            f"the private texts do not look like a mixture of these categories (p < {FALSE_ALARMS}; difference "
            f"{math.sqrt(result.drift):.2f}): add public texts of the missing kinds. If only the source of the public "
            f"texts differs, and by at most {math.sqrt(MOST_DRIFT):.2f}, other_source=True allows it"
        )
    return dict(result.shares)


def _check_categories(categories: Any) -> None:
    if not isinstance(categories, Mapping) or len(categories) < 2:
        raise ParameterError("categories must map two or more names, which cover all texts, to lists of public texts")
    for name, texts in categories.items():
        is_list = isinstance(texts, Sequence) and not isinstance(texts, str | bytes)
        if not is_list or not all(isinstance(text, str) and text.strip() and is_encodable(text) for text in texts):
            raise ParameterError(f"the category {name!r} must be a list of non-empty UTF-8 texts")
        if len(set(texts)) < FEWEST_TEXTS:
            raise ParameterError(f"{name!r} needs {FEWEST_TEXTS} different public texts or more, got {len(set(texts))}")


def read_shares(
    released: Floats, sigma: float, vectors: Mapping[str, Floats], covariance: Floats, *, confidence: float = CONFIDENCE
) -> SharesOfCategories:
    """Estimate the shares from a (1 + k,) noisy sum, (n, k) vectors of each category, and the covariance of a pool."""
    if len(vectors) >= len(released):
        raise ParameterError(f"at most {len(released) - 1} categories can be told apart by these features")
    scale = math.sqrt(1 - COUNT_WEIGHT**2)
    rows = [np.insert(values * scale, 0, COUNT_WEIGHT, axis=1) for values in vectors.values()]
    pool = np.pad(covariance * scale**2, (1, 0))
    sizes = np.array([len(values) for values in rows])
    guess = max(released[0], 2 * sigma) / COUNT_WEIGHT / len(rows)  # equal shares of at least twice the noise
    with one_blas_thread():
        readout, confusion, within = _cross_fit(rows, float((guess + guess**2 / sizes).sum()), sigma, pool)
        inverse = np.linalg.inv(confusion)
        counts = inverse @ readout.T @ released  # (counts)
        positive = np.maximum(counts, 0.0)
        p_value, drift = _test_fit(released, sigma, rows, positive, pool)
        weights = positive + positive**2 * (1 / sizes + drift)
        errors = sigma**2 * readout.T @ readout + np.tensordot(weights, within, 1)  # (score errors)
        errors = inverse @ errors @ inverse.T
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)
    common = errors.sum(axis=1)
    shares = shares_of_total(counts, np.diag(errors), common, float(common.sum()), quantile=quantile)  # (ratio)
    estimates = {
        name: Estimate(value, low, high, len(rows_of_name), "public texts")
        for (name, rows_of_name), (value, low, high) in zip(vectors.items(), shares.tolist(), strict=True)
    }
    return SharesOfCategories(estimates, p_value, drift)


def _cross_fit(rows: Sequence[Floats], weight: float, sigma: float, pool: Floats) -> tuple[Floats, Floats, Floats]:
    """Return R of (read-out), G of (confusion) and the covariance of the scores within each category."""
    folds = [np.arange(len(values)) % _FOLDS for values in rows]
    size, classes = len(pool), len(rows)
    readout, confusion = np.zeros((size, classes)), np.zeros((classes, classes))
    scores = [np.empty((len(values), classes)) for values in rows]
    for fold in range(_FOLDS):
        training = [values[place != fold] for values, place in zip(rows, folds, strict=True)]
        means = np.stack([values.mean(axis=0) for values in training])
        centred = np.concatenate([values - mean for values, mean in zip(training, means, strict=True)])
        spread = (centred.T @ centred + size * pool) / (len(centred) - classes + size)  # (shrunk)
        fitted = np.linalg.solve(weight * spread + sigma**2 * np.eye(size), means.T)
        readout += fitted / _FOLDS
        for index, (values, place) in enumerate(zip(rows, folds, strict=True)):
            scores[index][place == fold] = values[place == fold] @ fitted
            confusion[:, index] += scores[index][place == fold].mean(axis=0) / _FOLDS
    within = np.stack([np.cov(values.T) for values in scores])
    return readout, confusion, within


def _test_fit(
    released: Floats, sigma: float, rows: Sequence[Floats], counts: Floats, pool: Floats
) -> tuple[float, float]:
    """Return the p-value of (fit), and t of (drift)."""
    sizes = np.array([len(values) for values in rows])
    weights = counts + counts**2 / sizes
    freedom = float(weights.sum() ** 2 / (weights**2 / (sizes - 1)).sum()) if weights.any() else float(sizes.sum())
    directions = min(len(pool) - 1, max(int(freedom / _TEXTS_PER_DIRECTION), len(rows)))
    leading = np.linalg.eigh(pool[1:, 1:])[1][:, ::-1][:, :directions]
    basis = np.column_stack([np.eye(len(pool))[0], np.pad(leading, ((1, 0), (0, 0)))])
    within = np.stack([np.cov(values.T) for values in rows])
    sampling, between = (basis.T @ np.tensordot(entry, within, 1) @ basis for entry in (weights, counts**2))
    means, total = basis.T @ np.stack([values.mean(axis=0) for values in rows]).T, basis.T @ released

    def distance(drift: float) -> float:
        errors = sampling + drift * between + sigma**2 * np.eye(len(basis.T))
        whitened = np.linalg.solve(np.linalg.cholesky(errors), np.column_stack([means, total]))
        solution = np.linalg.lstsq(whitened[:, :-1], whitened[:, -1], rcond=None)[0]
        return float(np.square(whitened[:, -1] - whitened[:, :-1] @ solution).sum())

    tested = 1 + directions - len(rows)
    other = max(freedom - tested + 1, 1.0)
    expected, residual = tested * freedom / other, distance(0.0)
    low, high = 1e-9, 100.0
    while residual > expected and high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if distance(middle) > expected else (low, middle)
    return _f_tail(residual / expected, tested, other), high if residual > expected else 0.0


def _f_tail(ratio: float, above: float, below: float) -> float:
    """Return the approximate probability that F with (above, below) degrees of freedom exceeds a ratio (Paulson)."""
    root, first, second = ratio ** (1 / 3), 2 / (9 * above), 2 / (9 * below)
    return NormalDist().cdf(-((1 - second) * root - (1 - first)) / math.sqrt(first + second * root**2))
