"""Every randomizer by the name that its statement carries.

Derivation: docs/mechanisms/private-vectors.md#representations-dimension
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """True for a randomizer of dptext or of the caller."""
    return name in RANDOMIZERS | PUBLISHED_ONLY | ADDED


def randomizer_of(randomizer: str | Randomizer, *, epsilon: float | None = None) -> Randomizer:
    """Return the randomizer that an argument names, or is."""
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
    needs = [f"{field.name}=..." for field in fields(build) if field.default is MISSING]
    if needs != ["epsilon=..."]:
        raise ParameterError(f"{name} needs more than epsilon: build it, {name}({', '.join(needs)})")
    result: Randomizer = build(epsilon=require_epsilon(epsilon, name))
    return result


def kind_named(name: str) -> type[Randomizer] | None:
    """Return the class of a randomizer by name, in any case; published protocols included."""
    known = {entry.casefold(): kind for entry, kind in (RANDOMIZERS | PUBLISHED_ONLY).items()}
    return known.get(name.casefold())


def randomizer_from_parameters(name: str, parameters: Mapping[str, Any]) -> Randomizer:
    """Build the randomizer of a statement or a saved encoder."""
    build: Any = (RANDOMIZERS | PUBLISHED_ONLY | ADDED).get(name)
    if build is None:
        raise DataError(f"expected the name of a randomizer ({', '.join(RANDOMIZERS)}), got another: upgrade dptext?")
    try:
        result: Randomizer = build(**{field.name: parameters[field.name] for field in fields(build)})
    except KeyError as error:
        raise DataError(f"the parameters of {name} lack {error.args[0]}: dptext did not write them") from None
    except (ParameterError, RefusedError, TypeError) as error:
        raise DataError(f"{name} takes no such parameters: {error}") from None
    return result


# -- the dimension of a projection -----------------------------------------------------------------------------------

Labels: TypeAlias = Sequence[Any] | npt.NDArray[Any] | None

USUAL = 64
"""The default dimension of one-hot vectors and protocols as published, for which `best_dimension` has no rule."""

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
    """Return the dimension to project (n, D) vectors of *public* texts to, and the shares of a private vector.

    It is the largest one, up to the rule's, that the randomizer takes. None: there is no such dimension, or no rule
    (one-hot vectors, protocols as published). ``bound``, ``projection``, ``labels``, ``centre``: see `fit_bound`.

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
    if BOUNDS[bound] is Domain.ONE_HOT or randomizer.name in PUBLISHED_ONLY:
        return None
    try:
        error = randomizer.expected_squared_error(dimension)
    except ParameterError:  # not for this many dimensions, or not for so little budget
        return None
    public = np.clip(np.nan_to_num(check_vectors(vectors), nan=0.0), -_HUGE, _HUGE)
    if centre:
        public = public - public.mean(axis=0)
    noise = (_CUT / dimension if BOUNDS[bound] is Domain.CUBE else 1.0) * error / dimension
    if projection == "random":
        share = dimension / public.shape[1]
        return Kept(dimension, share, share / (1 + dimension * noise), error)
    kept, recovered = (
        _principal_shares(public, dimension, noise)
        if labels is None
        else _discriminant_shares(public, np.asarray(labels), dimension, noise)
    )
    return Kept(dimension, kept, recovered, error)


def _principal_shares(public: Floats, dimension: int, noise: float) -> tuple[float, float]:
    variances = np.maximum(np.linalg.eigvalsh(public.T @ public / max(len(public), 1))[::-1], 0.0)
    whole = max(float(variances.sum()), _NOTHING)
    size = float(variances[:dimension].sum())
    return size / whole, _recovered(variances[:dimension], size * noise) / whole


def _discriminant_shares(public: Floats, labels: npt.NDArray[Any], dimension: int, noise: float) -> tuple[float, float]:
    _, codes = np.unique(labels, return_inverse=True)
    classes = int(codes.max()) + 1

    def variances(directions: int) -> tuple[Floats, Floats]:
        """Variances between the classes and within them, along the first directions."""
        along = public @ discriminant_directions(public, labels, directions)
        means = np.stack([along[codes == code].mean(axis=0) for code in range(classes)])[codes]
        return ((means - along.mean(axis=0)) ** 2).mean(axis=0), ((along - means) ** 2).mean(axis=0)

    discriminants = min(classes - 1, public.shape[1])
    whole = max(float(variances(discriminants)[0].sum()), _NOTHING)
    between, within = variances(dimension)
    total = within + noise * float((between + within).sum())
    return (
        float(between[:discriminants].sum()) / whole,
        _recovered(between[:discriminants], total[:discriminants]) / whole,
    )


def _recovered(variances: Floats, noise: Floats | float) -> float:
    """Equation (recovered), before the division."""
    total = variances + noise
    return float(np.divide(variances**2, total, out=np.zeros_like(variances), where=total > 0).sum())
