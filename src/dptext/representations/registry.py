"""Registry of randomizers by the name in their statements.

Derivation: docs/mechanisms/private-vectors.md#representations-dimension
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.release.mechanism import refuse_beside
from dptext.representations.additive import Gaussian, L2Laplace, Laplace, NormalisedLaplace
from dptext.representations.bits import OneBit, OptimizedUnary, SymmetricUnary, WeightedBits
from dptext.representations.bounds import BOUNDS, Domain
from dptext.representations.cube import Hybrid, Piecewise
from dptext.representations.privunit import PrivUnit, PrivUnitG
from dptext.representations.published import DPNR, DPText
from dptext.representations.published_protocols import OME, OUE, SUE
from dptext.representations.randomizer import Randomizer
from dptext.validation import did_you_mean, display_value, require_epsilon

RANDOMIZERS: dict[str, type[Randomizer]] = {
    randomizer.name: randomizer
    for randomizer in (
        PrivUnit,
        PrivUnitG,
        L2Laplace,
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
"""Randomizers with a proof."""

PUBLISHED_ONLY: dict[str, type[Randomizer]] = {entry.name: entry for entry in (SUE, OUE, OME, DPNR, DPText)}
"""Randomizers that do not satisfy the epsilon of their papers: for comparisons, with ``unsafe_as_published=True``."""
ADDED: dict[str, type[Randomizer]] = {}
"""Randomizers of the caller (`dptext.register`)."""


def add_randomizer(randomizer: type[Randomizer]) -> None:
    """Register a caller's randomizer, so that its statements are recognised; names must be unique."""
    known = RANDOMIZERS | PUBLISHED_ONLY | ADDED
    if known.get(randomizer.name, randomizer) is not randomizer:
        raise ParameterError(f"a randomizer {randomizer.name!r} already exists: choose another name")
    ADDED[randomizer.name] = randomizer


def is_randomizer(name: str) -> bool:
    """Return True for a randomizer of dptext or of the caller."""
    return name in RANDOMIZERS | PUBLISHED_ONLY | ADDED


def randomizer_of(randomizer: str | Randomizer, *, epsilon: float | None = None) -> Randomizer:
    """Return the randomizer for an argument: a name or a randomizer."""
    if isinstance(randomizer, Randomizer):
        refuse_beside(randomizer, epsilon=epsilon)
        return randomizer
    build: Any = kind_named(randomizer) if isinstance(randomizer, str) else None
    if build is None:
        names, hint = ", ".join(map(repr, RANDOMIZERS)), did_you_mean(randomizer, RANDOMIZERS)
        raise ParameterError(
            f"randomizer must be one of {names}, or a randomizer, got {display_value(randomizer)}{hint}"
        )
    result: Randomizer = build(epsilon=require_epsilon(epsilon, build.__name__))
    return result


def kind_named(name: str) -> type[Randomizer] | None:
    """Return the class of a randomizer by name, in any case; published protocols included."""
    known = {entry.casefold(): kind for entry, kind in (RANDOMIZERS | PUBLISHED_ONLY).items()}
    return known.get(name.casefold())


def randomizer_from_parameters(name: str, parameters: Mapping[str, Any]) -> Randomizer:
    """Build the randomizer of a statement or a saved encoder."""
    build: Any = (RANDOMIZERS | PUBLISHED_ONLY | ADDED).get(name)
    if build is None:
        raise DataError(
            f"unknown randomizer: expected one of {', '.join(RANDOMIZERS)}. A newer version of dptext may know it"
        )
    try:
        result: Randomizer = build(**{field.name: parameters[field.name] for field in fields(build)})
    except KeyError as error:
        raise DataError(f"the parameters of {name} lack {error.args[0]}: dptext did not write them") from None
    except (ParameterError, RefusedError, TypeError) as error:
        raise DataError(f"{name} does not accept these parameters: {error}") from None
    return result


# -- the dimension of a projection ---------------------------------------------------------------------------------

Labels: TypeAlias = Sequence[Any] | npt.NDArray[Any] | None

USUAL = 64
"""The default dimension of one-hot vectors and protocols as published."""

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


def best_dimension(
    width: int, randomizer: Randomizer, *, bound: str = "normalise", projection: str = "pca", labels: Labels = None
) -> int:
    """Return the dimension to project vectors of ``width`` numbers to.

    It is the largest one, up to the rule's, that the randomizer supports; `USUAL` for one-hot vectors and protocols as
    published, which have no rule. ``bound``, ``projection``, ``labels``: see `fit_bound`.

    >>> from dptext.representations.privunit import PrivUnit
    >>> [best_dimension(30, PrivUnit(epsilon=epsilon)) for epsilon in (2.0, 8.0, 32.0)]
    [10, 16, 30]
    """
    if BOUNDS[bound] is Domain.ONE_HOT or randomizer.name in PUBLISHED_ONLY:
        return min(USUAL, width)
    largest = min(width, (_LEAST + int(randomizer.epsilon)) * (_RANDOM if projection == "random" else 1))
    if labels is not None:
        largest = min(largest, max(_LEAST_DISCRIMINANTS, len(np.unique(np.asarray(labels))) - 1))
    for dimension in range(largest, 0, -1):
        with suppress(ParameterError):  # too many dimensions, or too small a budget
            randomizer.channel(dimension)
            return dimension
    return min(USUAL, width)
