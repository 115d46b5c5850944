"""Every randomizer by the name that its statement carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.representations.additive import CappedLaplace, Gaussian, L2Laplace, Laplace
from dptext.representations.bits import OneBit, WeightedBits
from dptext.representations.cube import Hybrid, Piecewise
from dptext.representations.federate import NormalisedLaplace
from dptext.representations.privunit import PrivUnit, PrivUnitG
from dptext.representations.published import DPNR, OME, OUE, SUE, DPText
from dptext.representations.randomizer import Randomizer
from dptext.representations.unary import OptimizedUnary, SymmetricUnary

__all__ = ["PUBLISHED_ONLY", "RANDOMIZERS", "randomizer_from_parameters"]

RANDOMIZERS: dict[str, type[Randomizer]] = {
    each.name: each
    for each in (
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

PUBLISHED_ONLY: dict[str, type[Randomizer]] = {each.name: each for each in (SUE, OUE, OME, DPNR, DPText)}
"""Those that do not keep what their papers print: for comparisons, with ``unsafe_as_published=True``."""


def randomizer_from_parameters(name: str, parameters: Mapping[str, Any]) -> Randomizer:
    """The randomizer of which a statement or a saved encoder speaks.

    Args:
        name: as in `RANDOMIZERS` or `PUBLISHED_ONLY`: a statement's ``mechanism``.
        parameters: its arguments, perhaps among others: a statement's ``parameters``.

    Raises:
        DataError: no such randomizer in this version, an argument that is missing, or a value that it refuses.

    >>> randomizer_from_parameters("PrivUnit", {"epsilon": 8.0, "width": 64})
    PrivUnit(epsilon=8.0)
    """
    build: Any = RANDOMIZERS.get(name) or PUBLISHED_ONLY.get(name)
    if build is None:
        raise DataError(f"expected the name of a randomizer ({', '.join(RANDOMIZERS)}), got another: upgrade dptext?")
    names = [each.name for each in fields(build)]
    missing = [each for each in names if each not in parameters]
    if missing:
        raise DataError(f"the parameters of {name} lack {', '.join(missing)}: they are not those that dptext wrote")
    try:
        made: Randomizer = build(**{each: parameters[each] for each in names})
    except (ParameterError, RefusedError, TypeError) as error:
        raise DataError(f"{name} takes no such parameters: {error}") from None
    return made
