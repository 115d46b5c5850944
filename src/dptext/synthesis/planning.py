"""Predict the quality of a release, from a public number of people and public texts only."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.features.features import UNIT, PublicFeatures, Spec, encoded_pool, fit_features
from dptext.features.pool import Pool
from dptext.io.documents import text_of
from dptext.noise.gaussian_sums import CELL, MOST_USERS, noisy_matrix
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.density import LogRatio
from dptext.synthesis.distribution import SURE
from dptext.synthesis.moments import COUNT_WEIGHT, OUTSIDE, Labels
from dptext.validation import check_float, check_int, encodable

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_MOST_TEXTS = 20_000  # pool texts
_DRAWS = 5
_TINY = 1e-15
_PART_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z_]+")
_RELEASES = 19
COVERED = (_RELEASES - 1) / (_RELEASES + 1)
"""Probability that the accuracy of one more release lies between the smallest and the largest simulated one."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Predicted quality of a release for a number of people and a budget."""

    epsilon: float
    sigma: float
    agreement: float  # share of texts whose label the noise does not change
    without: float  # the same, by chance
    seen: int | None = None
    accuracy: tuple[float, float] | None = None  # smallest and largest of simulated releases
    majority: float | None = None  # accuracy of the most frequent label
    descriptions: float | None = None  # accuracy of the nearest label name or description
    warnings: tuple[str, ...] = ()


def expected_quality(
    public: Any,
    *,
    people: int,
    labels: object = None,
    public_labels: Sequence[Any] | None = None,
    epsilon: float | None = None,
    delta: float = 1e-6,
    features: Spec = None,
    cache: Any = None,
    seed: int | None = None,
) -> list[Expected]:
    """Predict the quality of a release for one or several values of epsilon, from public data only."""
    people = check_int("people", people, minimum=1, maximum=MOST_USERS)
    delta = check_float("delta", delta, above=0, below=1)
    known = Labels.of(labels)
    codes = _public_codes(public, known, public_labels)
    pool = Pool.of(public)
    classes = len(known)
    texts = pool.texts[:: max(1, len(pool) // _MOST_TEXTS)]
    if len(texts) < 2 * classes:
        raise ParameterError(
            f"a prediction for {classes:,} classes requires at least {2 * classes:,} public texts, got {len(texts):,}"
        )
    space = fit_features(features, texts, cache=cache)
    vectors = encoded_pool(space, texts, cache=cache).astype(np.float64) * UNIT
    described = known.described
    descriptions = None if described is None else space.units(described).astype(np.float64) * UNIT
    bits = RandomBits(seed)

    def choices(matrix: Floats, sigma: float, rows: Floats = vectors) -> npt.NDArray[Any]:
        """Return the label of each text; without labels, whether the text is in the nearer half."""
        ratio = LogRatio.fit(matrix, sigma, COUNT_WEIGHT, space.mean, space.covariance, descriptions)
        weights = ratio.weigh(rows)
        if classes > 1:
            return np.asarray(np.argmax(weights.scores, axis=1))
        return np.asarray(weights.nearness > np.median(weights.nearness))

    def release(matrix: Floats, sigma: float) -> Floats:
        return noisy_matrix(np.rint(matrix / CELL).astype(np.int64), sigma, bits)

    def agreement(matrix: Floats, sigma: float) -> float:
        return float(np.mean([np.mean(choices(release(matrix, sigma), sigma) == clean) for _ in range(_DRAWS)]))

    def accuracy(sigma: float) -> float:
        """Simulate one release: people from one half of the labelled texts, tested on the other half."""
        order = np.argsort(bits.uniform(len(right)))
        rows, tested = order[: len(order) // 2][:people], order[len(order) // 2 :]
        start = _described(labelled[rows], right[rows], classes, people)
        return float(np.mean(choices(release(start, sigma), sigma, labelled[tested]) == right[tested]))

    nobody = np.zeros((classes, 1 + vectors.shape[1]))
    divided = _made_up_classes(vectors, space, classes) if descriptions is None else choices(nobody, 1.0)
    matrix = _described(vectors, divided, classes, people)
    clean, people_needed = choices(matrix, 0.0), _seen(matrix / people)
    right = np.array([codes.get(" ".join(text.split()), OUTSIDE) for text in texts], dtype=np.intp)
    labelled, right = vectors[right != OUTSIDE], right[right != OUTSIDE]
    if codes and len(np.unique(right)) < 2:
        raise ParameterError("public labels must contain at least two of the labels: check their spelling")
    shares = np.bincount(right, minlength=classes) / max(len(right), 1)
    named = float(np.mean(nearest_labels(space, known, labelled) == right)) if codes else None
    predictions = []
    for budget in EPSILONS if epsilon is None else (epsilon,):
        sigma = PersonalBudgets(budget, delta=delta, floor=0.0).sigma
        scores = [accuracy(sigma) for _ in range(_RELEASES if codes else 0)]
        expected = Expected(
            epsilon=float(budget),
            sigma=sigma,
            agreement=agreement(matrix, sigma),
            without=agreement(nobody, sigma),
            seen=_rounded(people_needed * sigma),
            accuracy=(min(scores), max(scores)) if scores else None,
            majority=float(shares.max()) if codes else None,
            descriptions=named,
        )
        warnings = tuple(_too_few(expected, people))
        predictions.append(replace(expected, warnings=warnings))
    return predictions


def _public_codes(public: Any, labels: Labels, values: Sequence[Any] | None) -> dict[str, int]:
    """Map each labelled public text, normalised, to its class."""
    if values is None:
        return {}
    if not labels.columns:
        raise ParameterError("public_labels require labels=, the public set of labels")
    if not isinstance(public, Sequence) or isinstance(public, str) or len(public) != len(values):
        raise ParameterError("public_labels must have one label for each text of public, a list of texts")
    single = len(labels.columns) == 1
    return {
        " ".join(encodable(text_of(text, place) or "").split()): labels.code([value] if single else value)
        for place, (text, value) in enumerate(zip(public, values, strict=True), 1)
    }


def nearest_labels(features: PublicFeatures, labels: Labels, vectors: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return (n,) the class whose public description, or name in words, is nearest to each vector (cosine)."""
    values = [" ".join(labels.values_of(code).values()) for code in range(len(labels))]
    names = [" ".join(_PART_OF_NAME.findall(value)).lower() or value for value in values]
    described = features.vectors(labels.described or names) - features.mean
    lengths = np.linalg.norm(described, axis=1, keepdims=True)
    similarities = (vectors - features.mean) @ (described / np.where(lengths > 0, lengths, 1.0)).T
    return np.asarray(similarities.argmax(axis=1))


def _too_few(expected: Expected, people: int) -> Iterator[str]:
    how_many = f"{people:,} people are too few for epsilon {expected.epsilon:g}"
    if expected.accuracy is not None:
        baseline = max(expected.descriptions or 0.0, expected.majority or 0.0)
        if expected.accuracy[0] <= baseline:
            rival = "the nearest label name" if baseline == expected.descriptions else "the most frequent label"
            yield f"{how_many}: a release may be no better than {rival} (accuracy {baseline:.0%}, no privacy loss)"
    elif expected.seen is None or people < expected.seen:
        enough = "no number is enough" if expected.seen is None else f"about {expected.seen:,} are needed"
        yield f"{how_many}: the signal would be within the noise, and {enough}"


def _seen(one: Floats) -> float:
    counts, features = one[:, 0], one[:, 1:]
    limit = SURE * math.sqrt(2 * features.size)
    if len(one) > 1:
        whole = features.sum(axis=0)
        features = features - np.outer(counts / counts.sum(), whole)
        limit += SURE**2 * len(counts) * float(whole @ whole) / float(counts.sum()) ** 2
    size = float(np.square(features).sum())
    return math.sqrt(limit / size) if size > _TINY else math.inf


def _rounded(people: float) -> int | None:
    if not people <= MOST_USERS:
        return None
    step: int = 10 ** max(0, math.floor(math.log10(max(people, 1.0))) - 1)
    return max(1, round(people / step) * step)


def _made_up_classes(vectors: Floats, space: PublicFeatures, classes: int) -> npt.NDArray[np.intp]:
    """Assign each text to the principal direction, scaled to unit variance, with its largest coordinate."""
    values, directions = np.linalg.eigh(space.covariance)
    count = min(classes, len(values))
    first = directions[:, -count:] / np.sqrt(np.maximum(values[-count:], 1e-12))
    return np.asarray(np.argmax((vectors - space.mean) @ first, axis=1))


def _described(vectors: Floats, label: npt.NDArray[np.intp], classes: int, people: int) -> Floats:
    """Return the expected sum for a number of users, with the class fractions of the pool."""
    matrix = np.zeros((classes, 1 + vectors.shape[1]))
    for index in range(classes):
        class_vectors = vectors[label == index]
        if len(class_vectors):
            mean = math.sqrt(1 - COUNT_WEIGHT**2) * class_vectors.mean(axis=0)
            matrix[index] = people * len(class_vectors) / len(vectors) * np.r_[COUNT_WEIGHT, mean]
    return matrix
