"""Every randomizer by the name that its statement carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from dptext.checks import chosen_epsilon, meant, shown
from dptext.errors import DataError, ParameterError, RefusedError
from dptext.release.mechanism import refuse_beside
from dptext.representations.additive import CappedLaplace, Gaussian, L2Laplace, Laplace, NormalisedLaplace
from dptext.representations.bits import OneBit, OptimizedUnary, SymmetricUnary, WeightedBits
from dptext.representations.cube import Hybrid, Piecewise
from dptext.representations.privunit import PrivUnit, PrivUnitG
from dptext.representations.published import DPNR, OME, OUE, SUE, CappedDPText, DPText
from dptext.representations.randomizer import Randomizer

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

PUBLISHED_ONLY: dict[str, type[Randomizer]] = {each.name: each for each in (SUE, OUE, OME, DPNR, DPText, CappedDPText)}
"""Those that do not keep what their papers print: for comparisons, with ``unsafe_as_published=True``."""


def randomizer_of(given: str | Randomizer, *, epsilon: float | None = None) -> Randomizer:
    """The randomizer that an argument means: every function that takes one goes by this."""
    if isinstance(given, Randomizer):
        refuse_beside(given, epsilon=epsilon)
        return given
    build: Any = kind_named(given) if isinstance(given, str) else None
    if build is None:
        names, hint = ", ".join(map(repr, RANDOMIZERS)), meant(given, RANDOMIZERS)
        raise ParameterError(
            f"randomizer must be one of {names}, or one such as PrivUnit(epsilon=...), got {shown(given)}{hint}"
        )
    name = build.__name__
    if build.name in PUBLISHED_ONLY:
        raise ParameterError(
            f"{name} does not keep what its paper promises: for comparisons build it yourself, dptext.representations."
            f"published.{name}(..., unsafe_as_published=True)"
        )
    needs = [each.name for each in fields(build) if each.init and each.default is each.default_factory is MISSING]
    if needs != ["epsilon"]:
        spelled = ", ".join(f"{each}=..." for each in needs)
        raise ParameterError(f"{name} needs more than epsilon: build it, {name}({spelled})")
    made: Randomizer = build(epsilon=chosen_epsilon(epsilon, name))
    return made


def kind_named(name: str) -> type[Randomizer] | None:
    """The kind of randomizer of a name, in letters of any case; those of papers are among them."""
    known = {each.casefold(): kind for each, kind in (RANDOMIZERS | PUBLISHED_ONLY).items()}
    return known.get(name.casefold())


def randomizer_from_parameters(name: str, parameters: Mapping[str, Any]) -> Randomizer:
    """The randomizer of which a statement or a saved encoder speaks."""
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
