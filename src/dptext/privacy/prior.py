"""What was released before about the same people, counted into a central release under add/remove that starts from it:
a vocabulary, vectors, labels."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dptext.errors import RefusedError
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    Relation,
    Unit,
    compose,
    substitution_from_add_remove,
)
from dptext.privacy.statement import PrivacyStatement

__all__ = ["check_prior", "counted_in", "substituted"]

Prior = Mapping[str, PrivacyStatement]
"""By what was released: "vocabulary", "vectors"; a plural, for messages."""


def check_prior(prior: Prior, unit: Unit) -> None:
    """Whether what was promised before adds up with a release about this unit: asked before a text is read."""
    for name, before in prior.items():
        _check_can_be_added(name, before, unit)
    substituted(ApproxDP(0.0, 0.0), prior)


def counted_in(statement: PrivacyStatement, prior: Prior) -> PrivacyStatement:
    """The statement of a release and of all before it, with the parameters and the name of the release."""
    parameters, release_id = statement.parameters, statement.release_id
    for before in prior.values():
        statement = statement.compose(before).replace(parameters=parameters, release_id=release_id)
    return statement


def substituted(release: ApproxDP, prior: Prior) -> ApproxDP:
    total: Guarantee = release
    for before in prior.values():
        total = compose(total, substitution_from_add_remove(before.whole_guarantee))
    assert isinstance(total, ApproxDP)
    return total


def _check_can_be_added(name: str, before: PrivacyStatement, unit: Unit) -> None:
    if (before.unit, before.relation) != (unit, Relation.ADD_REMOVE):
        raise RefusedError(
            f"the {name} were released under a statement about a {before.unit} ({before.relation}), this release is "
            f"about a {unit} ({Relation.ADD_REMOVE}): the two have no proved sum; use public {name}, or ones "
            "released for the same unit and relation"
        )
    # zCDP and metric guarantees have reasons of their own to be refused
    if math.isinf(before.epsilon) and not isinstance(before.guarantee, ZCDP | MetricDP):
        raise RefusedError(
            f"the {name} carry a statement that promises nothing, and nothing that is added to it does: use public "
            f"{name}, or ones that were released with a finite epsilon"
        )
