"""What a budget buys, before anything is spent: from a public number of people and public texts alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.checks import number, whole
from dptext.errors import ParameterError
from dptext.features.features import UNIT, PublicFeatures, Spec, encoded_pool, fit_features
from dptext.features.pool import Pool
from dptext.noise.gaussian_sums import CELL, MOST_USERS, noisy_matrix
from dptext.privacy.budgets import PersonalBudgets
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.distribution import SURE
from dptext.synthesis.labels import Labels
from dptext.synthesis.moments import COUNT_WEIGHT
from dptext.synthesis.ratio import LogRatio

__all__ = ["EPSILONS", "GOOD", "Expected", "expected_quality"]

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_MOST_TEXTS = 20_000  # of the pool that are looked at
_DRAWS, _MORE_DRAWS = 5, 8
_EXACTLY = 1.1
_TINY = 1e-15
GOOD = 0.8
"""Of the texts, the share that is to get the label that it would get without noise."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What so many people and such a budget would give.

    Attributes:
        epsilon: the budget of a person.
        sigma: the noise on each number of the sum; a person's whole matrix has length 1.
        agreement: the share of public texts that get the label that they would get without noise; without labels, that
            stay in the half of the texts that are nearest.
        without: the same if there were no people: by chance.
        seen: from about how many people on the classes stand above the noise: `dptext.TextDistribution.doubts` then has
            none whether they can be told apart. None: never, the pool is too much alike.
        good: from about how many on the agreement is `GOOD`; None: not asked for, or never.
    """

    epsilon: float
    sigma: float
    agreement: float
    without: float
    seen: int | None = None
    good: int | None = None

    def as_dict(self) -> dict[str, float | int | None]:
        """By name."""
        return asdict(self)


def expected_quality(
    public: Any,
    *,
    people: int,
    labels: object = None,
    epsilon: float | None = None,
    delta: float = 1e-6,
    features: Spec = None,
    cache: Any = None,
    needed: bool = False,
    seed: int | None = None,
) -> list[Expected]:
    """Predict what a description is worth, for one epsilon or for several, from public numbers.

    The pool plays the people: its texts are cut into as many classes as there are labels, along the directions in which
    they differ most, so many people are made of them, each with the mean of one class, and the noise of the release is
    drawn. **Nothing private is read**, so this costs nothing. It is a prediction: people's classes may be closer to one
    another than those, or farther apart.

    Args:
        public: the pool, as `Pool` takes it.
        people: a *public* number of people who take part: never a count of the private texts.
        labels: as in `dptext.Synthesizer`; only how many there are counts.
        epsilon: None: `EPSILONS`.
        delta, features, cache: as in `dptext.Synthesizer`.
        needed: find as well how many people it takes (`Expected.good`), which takes some seconds.
        seed: of the drawn noise, for repeatable predictions.

    Raises:
        ParameterError, DataError, MissingExtraError: as `dptext.Synthesizer.plan`.
    """
    people = whole("people", people, least=1, most=MOST_USERS)
    delta = number("delta", delta, above=0, below=1)
    pool = Pool.of(public)
    classes = len(Labels.of(labels))
    texts = pool.texts[:: max(1, len(pool) // _MOST_TEXTS)]
    if len(texts) < 2 * classes:
        raise ParameterError(
            f"a prediction for {classes:,} classes takes {2 * classes:,} public texts at least, got {len(texts):,}"
        )
    space = fit_features(features, texts, cache=cache)
    vectors = encoded_pool(space, texts, cache=cache).astype(np.float64) * UNIT
    matrix = _described(vectors, _made_up_classes(vectors, space, classes), classes, people)
    clean = _choices(matrix, 0.0, space, vectors)
    bits = RandomBits(seed)

    def drawn(start: Floats, sigma: float) -> npt.NDArray[Any]:
        return _choices(_noisy(start, sigma, bits), sigma, space, vectors)

    one = matrix / people
    least = _seen(one)
    found = []
    for each in EPSILONS if epsilon is None else (epsilon,):
        sigma = PersonalBudgets(each, delta=delta, floor=0.0).sigma
        agreement, without = (
            float(np.mean([np.mean(drawn(start, sigma) == clean) for _ in range(_DRAWS)]))
            for start in (matrix, np.zeros_like(matrix))
        )
        expected = Expected(
            epsilon=float(each), sigma=sigma, agreement=agreement, without=without, seen=_rounded(least * sigma)
        )
        found.append(expected)
    if not needed:
        return found
    sigma = found[-1].sigma
    # noise and sum only count beside each other: one search serves all budgets
    good = _first(
        lambda count: float(np.mean([np.mean(drawn(one * count, sigma) == clean) for _ in range(_MORE_DRAWS)])) >= GOOD
    )
    return [replace(each, good=_rounded(good / sigma * each.sigma)) for each in found]


def _seen(one: Floats) -> float:
    """For noise of 1: from how many people on `TextDistribution.doubts` can tell the classes (or, without labels,
    the texts) from noise. ``one``: (classes, 1 + k) what one person adds on average."""
    counts, features = one[:, 0], one[:, 1:]
    limit = SURE * math.sqrt(2 * features.size)
    if len(one) > 1:
        whole = features.sum(axis=0)
        features = features - np.outer(counts / counts.sum(), whole)
        limit += SURE**2 * len(counts) * float(whole @ whole) / float(counts.sum()) ** 2
    size = float(np.square(features).sum())
    return math.sqrt(limit / size) if size > _TINY else math.inf


def _first(is_enough: Callable[[float], bool]) -> float:
    """About where a condition on a number of people begins to hold; infinite where it does not for `MOST_USERS`."""
    low, high = 1.0, 1.0
    while not is_enough(high):
        low, high = high, 4 * high
        if low > MOST_USERS:
            return math.inf
    while high / low > _EXACTLY:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _rounded(people: float) -> int | None:
    """To two digits: it is no more exact than that."""
    if not people <= MOST_USERS:
        return None
    step: int = 10 ** max(0, math.floor(math.log10(max(people, 1.0))) - 1)
    return max(1, round(people / step) * step)


def _made_up_classes(vectors: Floats, space: PublicFeatures, classes: int) -> npt.NDArray[np.intp]:
    """Along the first principal directions, each of unit variance: the one in which a text stands out most."""
    values, directions = np.linalg.eigh(space.covariance)
    count = min(classes, len(values))
    first = directions[:, -count:] / np.sqrt(np.maximum(values[-count:], 1e-12))
    found: npt.NDArray[np.intp] = np.argmax((vectors - space.mean) @ first, axis=1)
    return found


def _described(vectors: Floats, label: npt.NDArray[np.intp], classes: int, people: int) -> Floats:
    """The sum over so many people, of the classes as the pool has them."""
    matrix = np.zeros((classes, 1 + vectors.shape[1]))
    for each in range(classes):
        own = vectors[label == each]
        if len(own):
            mean = math.sqrt(1 - COUNT_WEIGHT**2) * own.mean(axis=0)
            matrix[each] = people * len(own) / len(vectors) * np.r_[COUNT_WEIGHT, mean]
    return matrix


def _noisy(matrix: Floats, sigma: float, bits: RandomBits) -> Floats:
    return noisy_matrix(np.rint(matrix / CELL).astype(np.int64), sigma, bits)


def _choices(matrix: Floats, sigma: float, space: PublicFeatures, vectors: Floats) -> npt.NDArray[Any]:
    """The label of each text; without labels, whether it is in the nearer half."""
    ratio = LogRatio.fit(matrix, sigma, COUNT_WEIGHT, space.mean, space.covariance)
    found: npt.NDArray[Any]
    if len(matrix) > 1:
        found = np.argmax(ratio.scores(vectors), axis=1)
    else:
        near = ratio.nearness(vectors)
        found = near > np.median(near)
    return found
