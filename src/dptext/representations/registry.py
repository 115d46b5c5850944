"""Every randomizer by the name that its statement carries.

Derivation: docs/mechanisms/private-vectors.md#representations-dimension
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.release.mechanism import refuse_beside
from dptext.representations.additive import CappedLaplace, Gaussian, L2Laplace, Laplace, NormalisedLaplace
from dptext.representations.bits import OneBit, OptimizedUnary, SymmetricUnary, WeightedBits
from dptext.representations.bounds import BOUNDS, Domain, Floats, check_vectors, discriminant_directions
from dptext.representations.cube import Hybrid, Piecewise
from dptext.representations.privunit import PrivUnit, PrivUnitG
from dptext.representations.published import DPNR, OME, OUE, SUE, CappedDPText, DPText
from dptext.representations.randomizer import Randomizer
from dptext.validation import did_you_mean, display_value, require_epsilon

RANDOMIZERS: dict[str, type[Randomizer]] = {
    randomizer.name: randomizer
    for randomizer in (
        PrivUnit,
        PrivUnitG,
        L2Laplace,
        CappedLaplace,
        Laplace,
        Gaussian,
        NormalisedLaplace,
        Piecewise,
        Hybrid,
        OneBit,
        WeightedBits,
        SymmetricUnary,
        OptimizedUnary,
    )
}
"""Those with a proof."""

PUBLISHED_ONLY: dict[str, type[Randomizer]] = {
    entry.name: entry for entry in (SUE, OUE, OME, DPNR, DPText, CappedDPText)
}
"""Those that do not keep what their papers print: for comparisons, with ``unsafe_as_published=True``."""
ADDED: dict[str, type[Randomizer]] = {}
"""Randomizers of the caller (`dptext.register`)."""


def add_randomizer(randomizer: type[Randomizer]) -> None:
    """Recognise the statements of a caller's randomizer; a name is given once."""
    known = RANDOMIZERS | PUBLISHED_ONLY | ADDED
    if known.get(randomizer.name, randomizer) is not randomizer:
        raise ParameterError(f"there is a randomizer {randomizer.name!r} already: give yours another name")
    ADDED[randomizer.name] = randomizer


def is_randomizer(name: str) -> bool:
    return name in RANDOMIZERS or name in PUBLISHED_ONLY or name in ADDED


def randomizer_of(randomizer: str | Randomizer, *, epsilon: float | None = None) -> Randomizer:
    """The randomizer that an argument means: every function that takes one goes by this."""
    if isinstance(randomizer, Randomizer):
        refuse_beside(randomizer, epsilon=epsilon)
        return randomizer
    build: Any = kind_named(randomizer) if isinstance(randomizer, str) else None
    if build is None:
        names, hint = ", ".join(map(repr, RANDOMIZERS)), did_you_mean(randomizer, RANDOMIZERS)
        raise ParameterError(
            f"randomizer must be one of {names}, or a randomizer, got {display_value(randomizer)}{hint}"
        )
    name = build.__name__
    if build.name in PUBLISHED_ONLY:
        raise ParameterError(
            f"the printed guarantee of {name} is false: for comparisons use dptext.representations."
            f"published.{name}(..., unsafe_as_published=True)"
        )
    needs = [field.name for field in fields(build) if field.init and field.default is field.default_factory is MISSING]
    if needs != ["epsilon"]:
        arguments = ", ".join(f"{need}=..." for need in needs)
        raise ParameterError(f"{name} needs more than epsilon: build it, {name}({arguments})")
    output: Randomizer = build(epsilon=require_epsilon(epsilon, name))
    return output


def kind_named(name: str) -> type[Randomizer] | None:
    """Return the class of a randomizer by name, in any case; published protocols included."""
    known = {entry.casefold(): kind for entry, kind in (RANDOMIZERS | PUBLISHED_ONLY).items()}
    return known.get(name.casefold())


def randomizer_from_parameters(name: str, parameters: Mapping[str, Any]) -> Randomizer:
    """The randomizer of which a statement or a saved encoder speaks."""
    build: Any = (RANDOMIZERS | PUBLISHED_ONLY | ADDED).get(name)
    if build is None:
        raise DataError(f"expected the name of a randomizer ({', '.join(RANDOMIZERS)}), got another: upgrade dptext?")
    names = [field.name for field in fields(build)]
    missing = [entry for entry in names if entry not in parameters]
    if missing:
        raise DataError(f"the parameters of {name} lack {', '.join(missing)}: they are not those that dptext wrote")
    try:
        output: Randomizer = build(**{entry: parameters[entry] for entry in names})
    except (ParameterError, RefusedError, TypeError) as error:
        raise DataError(f"{name} takes no such parameters: {error}") from None
    return output


Labels: TypeAlias = Sequence[Any] | npt.NDArray[Any] | None

USUAL = 64
"""Where nothing here says which dimension is best: one-hot vectors, and protocols as published."""

ON_NEWS = {
    2.0: (0.837, 0.814, 0.812),
    4.0: (0.854, 0.834, 0.822),
    8.0: (0.865, 0.857, 0.861),
    12.0: (0.869, 0.864, 0.869),
}
"""By epsilon, the accuracy of a model of the four topics of AG News, learned from 3,000 private vectors and tested on
vectors without noise: where the projection was fitted on other news, on made-up texts, or is random; at the chosen
dimension (benchmarks/dimensions.py). A model learned from 2,000 public texts with labels has .872."""

_LEAST, _LEAST_DISCRIMINANTS = 8, 2
_RANDOM = 3
_HUGE, _NOTHING = 1e38, 1e-300
_CUT = 2.7
"""Of a normal number, the square of the .9 quantile of its size: where `fit_bound` cuts coordinates of the cube."""


@dataclass(frozen=True)
class Kept:
    """Shares of the squared norm of a public vector after projection and noise."""

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
    """Return the dimension to project to for a budget, with what a private vector then gives back.

    Args:
        vectors: (n, D) vectors of *public* texts.
        randomizer: the noise and its budget.
        bound, projection, labels, centre: as in `dptext.representations.bounds.fit_bound`.

    Returns:
        The dimension and its shares: the largest one up to the rule's that the randomizer takes. None if it takes none,
        or where the equations do not hold (one-hot, protocols as published).

    >>> from dptext.representations.privunit import PrivUnit
    >>> public = np.random.default_rng(0).normal(size=(1000, 30)) / np.arange(1, 31)
    >>> [best_dimension(public, PrivUnit(epsilon=epsilon)).dimension for epsilon in (2.0, 8.0, 32.0)]
    [10, 16, 30]
    """
    largest = (_LEAST + int(randomizer.epsilon)) * (_RANDOM if projection == "random" else 1)
    largest = min(largest, check_vectors(vectors).shape[1])
    if labels is not None:
        largest = min(largest, max(_LEAST_DISCRIMINANTS, len(np.unique(np.asarray(labels))) - 1))
    settings: dict[str, Any] = {"bound": bound, "projection": projection, "labels": labels, "centre": centre}
    candidates = (kept_of(vectors, randomizer, dimension, **settings) for dimension in range(largest, 0, -1))
    return next(filter(None, candidates), None)


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
    try:
        error = randomizer.expected_squared_error(dimension + (bound == "lift"))
    except ParameterError:  # not for this many dimensions, or not for so little budget
        return None
    scale = _CUT / dimension if BOUNDS[bound] is Domain.CUBE else 1.0
    shares = _shares(_centred(vectors, centre=centre), projection, labels)
    kept, recovered = shares(dimension, scale * error / dimension)
    return Kept(dimension, kept, recovered, error)


def _is_described(randomizer: Randomizer, bound: str) -> bool:
    """Whether the equations are about what such a randomizer sends."""
    return BOUNDS[bound] is not Domain.ONE_HOT and randomizer.name not in PUBLISHED_ONLY


def _centred(vectors: npt.ArrayLike, *, centre: bool) -> Floats:
    public = np.clip(np.nan_to_num(check_vectors(vectors), nan=0.0), -_HUGE, _HUGE)
    return public - public.mean(axis=0) if centre else public


_Shares: TypeAlias = Callable[[int, float], tuple[float, float]]
"""Function from k and nu to the kept and the recovered share."""


def _shares(public: Floats, projection: str | None, labels: Labels) -> _Shares:
    if projection == "random":
        width = public.shape[1]
        return lambda k, nu: (k / width, k / width / (1 + k * nu))
    if labels is not None:
        return _discriminant_share(public, labels)
    variances = np.maximum(np.linalg.eigvalsh(public.T @ public / max(len(public), 1))[::-1], 0.0)
    whole = max(float(variances.sum()), _NOTHING)

    def shares(k: int, nu: float) -> tuple[float, float]:
        size = float(variances[:k].sum())
        return size / whole, _recovered(variances[:k], size * nu) / whole

    return shares


def _discriminant_share(public: Floats, labels: Labels) -> _Shares:
    values = np.asarray(labels)
    _, codes = np.unique(values, return_inverse=True)
    classes = int(codes.max()) + 1

    def split(k: int) -> tuple[Floats, Floats]:
        """(k,) variances between the classes and within them, along the first k directions."""
        along = public @ discriminant_directions(public, values, k)
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
