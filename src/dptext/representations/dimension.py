"""How many dimensions to project to: what the noise leaves of the vectors, by public numbers alone.

Let the vectors of public texts, centred, have the variances lambda_1 >= ... >= lambda_D along their principal
directions. A projection to the first k keeps the share S_k / S_D of their squared length, S_k = lambda_1 + ... +
lambda_k; to k random directions, k / D in expectation. The rest is lost. What is kept is brought to length 1 and gets
noise with E||z - u||^2 = e, the error that `dptext.recommend` ranks by: nu = e / k on each number, and S_k nu in the
units of the vectors. Of a number of variance lambda under noise of variance v nobody gets more by a linear guess than
lambda^2 / (lambda + v) (Wiener), so one private vector gives back, of the squared length of a vector, the share

    R(k) = (1 / S_D) sum_{i <= k} lambda_i^2 / (lambda_i + S_k nu),                                       (recovered)

    R(k) = (k / D) / (1 + e)  for random directions, where all variances are S_k / k.

1 - R(k) is the total of what the projection and the noise take; the chosen k has the least. Where the directions are
principal ones R rises with what is kept, falls with what the noise takes, and has its largest value at a few
dimensions. For random directions it only rises, and hardly beyond some dimension: the least k within 5% of the best is
taken, and no fewer than 8, because chance decides what few of them keep.

**Discriminants** of public labels come first in a supervised projection. What they have to carry is the variance b_i of
the classes' means, and w_i within the classes is noise as well: the share is sum b_i^2 / (b_i + w_i + S_k nu) over sum
b_i. There are one fewer of them than classes; two dimensions are the least.

A dimension that was chosen is as public as what the projection is fitted on. docs/mechanisms/private-vectors.md says
how near it comes to the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.representations.bounds import BOUNDS, discriminant_directions
from dptext.representations.domains import Domain, Floats, checked_vectors
from dptext.representations.randomizer import Randomizer
from dptext.representations.registry import PUBLISHED_ONLY

Labels: TypeAlias = Sequence[Any] | npt.NDArray[Any] | None

__all__ = ["ON_NEWS", "USUAL", "Kept", "best_dimension", "kept_of"]

USUAL = 64
"""Where nothing here says which dimension is best: one-hot vectors, and protocols as published."""

ON_NEWS = {2.0: (0.50, 0.40, 0.36), 4.0: (0.64, 0.60, 0.50), 8.0: (0.79, 0.74, 0.66), 12.0: (0.82, 0.79, 0.74)}
"""By epsilon, how often a classifier of private vectors named the right one of the four topics of AG News: where the
projection was fitted on other news, on made-up texts, at random; at the chosen dimension (benchmarks/dimensions.py)."""

_LEAST, _LEAST_RANDOM = 2, 8
_WITHIN = 0.95
_TRIED = (*range(2, 11), 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 160, 192, 256)
_HUGE, _NOTHING = 1e38, 1e-300
_CUT = 2.7
"""Of a normal number, the square of the .9 quantile of its size: where `fit_bound` cuts coordinates of the cube."""


@dataclass(frozen=True)
class Kept:
    """What comes through a projection and the noise, in shares of the squared length of a public vector.

    Attributes:
        dimension: k, of the projection.
        kept: by the projection.
        recovered: of one private vector, by the best linear guess: equation (recovered).
        error: E||z - u||^2 of the noise, for a vector of length 1.
    """

    dimension: int
    kept: float
    recovered: float
    error: float


def best_dimension(
    vectors: npt.ArrayLike,
    randomizer: Randomizer,
    *,
    bound: str = "normalise",
    projection: str = "pca",
    labels: Labels = None,
    centre: bool = True,
) -> Kept | None:
    """The dimension of which a private vector gives back most.

    Args:
        vectors: (n, D) what the encoder gives for *public* texts.
        randomizer: the noise and its budget.
        bound, projection, labels, centre: as in `dptext.representations.bounds.fit_bound`.

    Returns:
        The best, with its shares; None where the equations are not about such vectors (one-hot, protocols as published)
        or the randomizer takes none of the dimensions.

    >>> from dptext.representations.privunit import PrivUnit
    >>> public = np.random.default_rng(0).normal(size=(1000, 30)) / np.arange(1, 31)
    >>> [best_dimension(public, PrivUnit(epsilon=epsilon)).dimension for epsilon in (2.0, 8.0, 32.0)]
    [2, 3, 12]
    """
    if not _is_described(randomizer, bound):
        return None
    public = _centred(vectors, centre=centre)
    least, most = _LEAST, min(public.shape[1], _TRIED[-1])
    if projection == "random":
        least = _LEAST_RANDOM
    elif labels is not None:
        most = min(most, max(least, len(np.unique(np.asarray(labels))) - 1))
    tried = [k for k in (*_TRIED, most) if min(least, most) <= k <= most]
    found: list[Kept] = []
    for each in _weighed(tried, randomizer, bound, _shares(public, projection, labels)):
        found.append(each)
        if each.recovered < 0.9 * max(kept.recovered for kept in found):  # behind the top it only falls
            break
    best = max(found, key=lambda each: each.recovered, default=None)
    if best is None or projection != "random":
        return best
    return next(each for each in found if each.recovered >= _WITHIN * best.recovered)


def kept_of(
    vectors: npt.ArrayLike,
    randomizer: Randomizer,
    dimension: int,
    *,
    bound: str = "normalise",
    projection: str | None = "pca",
    labels: Labels = None,
    centre: bool = True,
) -> Kept | None:
    """The shares of one dimension; arguments and None as in `best_dimension`."""
    if not _is_described(randomizer, bound):
        return None
    shares = _shares(_centred(vectors, centre=centre), projection, labels)
    return next(_weighed([dimension], randomizer, bound, shares), None)


def _is_described(randomizer: Randomizer, bound: str) -> bool:
    """Whether the equations are about what such a randomizer sends."""
    return BOUNDS[bound] is not Domain.ONE_HOT and randomizer.name not in PUBLISHED_ONLY


def _centred(vectors: npt.ArrayLike, *, centre: bool) -> Floats:
    public = np.clip(np.nan_to_num(checked_vectors(vectors), nan=0.0), -_HUGE, _HUGE)
    return public - public.mean(axis=0) if centre else public


_Shares: TypeAlias = Callable[[int, float], tuple[float, float]]
"""k and nu to what is kept, and to what is recovered."""


def _shares(public: Floats, projection: str | None, labels: Labels) -> _Shares:
    if projection == "random":
        width = public.shape[1]
        return lambda k, nu: (k / width, k / width / (1 + k * nu))
    if labels is not None:
        return _of_discriminants(public, labels)
    variances = np.maximum(np.linalg.eigvalsh(public.T @ public / max(len(public), 1))[::-1], 0.0)
    whole = max(float(variances.sum()), _NOTHING)

    def shares(k: int, nu: float) -> tuple[float, float]:
        size = float(variances[:k].sum())
        return size / whole, _recovered(variances[:k], size * nu) / whole

    return shares


def _of_discriminants(public: Floats, labels: Labels) -> _Shares:
    given = np.asarray(labels)
    _, codes = np.unique(given, return_inverse=True)
    classes = int(codes.max()) + 1

    def split(k: int) -> tuple[Floats, Floats]:
        """(k,) variances between the classes and within them, along the first k directions."""
        along = public @ discriminant_directions(public, given, k)
        means = np.stack([along[codes == code].mean(axis=0) for code in range(classes)])[codes]
        return ((means - along.mean(axis=0)) ** 2).mean(axis=0), ((along - means) ** 2).mean(axis=0)

    discriminants = min(classes - 1, public.shape[1])
    whole = max(float(split(discriminants)[0].sum()), _NOTHING)

    def shares(k: int, nu: float) -> tuple[float, float]:
        between, within = split(k)
        noise = within + nu * float((between + within).sum())
        return (
            float(between[:discriminants].sum()) / whole,
            _recovered(between[:discriminants], noise[:discriminants]) / whole,
        )

    return shares


def _recovered(variances: Floats, noise: Floats | float) -> float:
    """Equation (recovered), before the division."""
    total = variances + noise
    return float(np.divide(variances**2, total, out=np.zeros_like(variances), where=total > 0).sum())


def _weighed(dimensions: Iterable[int], randomizer: Randomizer, bound: str, shares: _Shares) -> Iterator[Kept]:
    for k in dimensions:
        try:
            error = randomizer.expected_squared_error(k + (bound == "lift"))
        except ParameterError:  # not for this many dimensions, or not for so little budget
            continue
        scale = _CUT / k if BOUNDS[bound] is Domain.CUBE else 1.0
        kept, recovered = shares(k, scale * error / k)
        yield Kept(k, kept, recovered, error)
