"""One statement restated for another unit or relation: only by a proof, and only for neighbours that it spoke of.

A promise for documents becomes one for a person with several of them, a promise for whole texts one for single words.
Each such step has a function with its proof; all go through `restated`, which carries the condition.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from dptext.errors import ParameterError
from dptext.privacy.condition import Requirement, TextsOfOne
from dptext.privacy.explanation import OF_A_CLAIM
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    NoGuarantee,
    PureDP,
    for_group,
    product_upwards,
    substitution_from_add_remove,
)
from dptext.privacy.statement import OF_SUBSTITUTION, Parameter, PrivacyStatement
from dptext.privacy.unit import Relation, Trust, Unit

__all__ = ["restated", "statement_for_user", "under_substitution", "without_claim"]

_MOST_TEXTS = 10**6


def restated(
    statement: PrivacyStatement, guarantee: Guarantee, *requirements: Requirement, **changes: Any
) -> PrivacyStatement:
    """The statement with another guarantee, for the pairs of its condition that fulfil the requirements as well.

    What its parameters say of the promise to the earlier unit is left out: it would be read as one to the new unit.
    """
    parameters = {
        name: value
        for name, value in changes.pop("parameters", statement.parameters).items()
        if name not in OF_SUBSTITUTION
    }
    condition = statement.condition.and_(*requirements)
    return dataclasses.replace(statement, guarantee=guarantee, condition=condition, parameters=parameters, **changes)


def statement_for_user(statement: PrivacyStatement, texts: int) -> PrivacyStatement:
    """The promise for a person with up to so many texts in a release.

    Args:
        statement: of the release, for one text.
        texts: k, a public bound on the texts of one person.

    **Guarantee** (unit: user; the relation, the condition and the trust of ``statement``).

    Local, under substitution (all texts of a person are replaced): each text goes through the mechanism by itself, so
    the outputs for k texts are a composition of k releases: k epsilon and k delta; k rho; distances add up.

    Otherwise one output depends on all texts, and k texts are a group of k documents (`for_group`): k epsilon and
    delta (e^(k epsilon) - 1) / (e^epsilon - 1), with slack counted into epsilon; k^2 rho.

    Raises:
        ParameterError: the statement is not for one text, or k is out of range.
        RefusedError: zCDP with slack, or a metric guarantee without a bound in the second case: no proof.

    >>> from dptext.representations.privunit import PrivUnit
    >>> promise = statement_for_user(PrivUnit(epsilon=2.0).statement(64), texts=3)
    >>> print(promise.guarantee, "for", promise.neighbours)
    6-differential privacy (pure) for any two people with equally many texts, at most 3
    """
    if statement.unit is not Unit.DOCUMENT:
        raise ParameterError(f"expected a statement for one text (unit document), got one for a {statement.unit}")
    if isinstance(texts, bool) or not isinstance(texts, int | np.integer) or not 1 <= texts <= _MOST_TEXTS:
        raise ParameterError(f"texts must be an integer from 1 to {_MOST_TEXTS:,}, got {texts!r}")
    count = int(texts)
    alone = statement.trust is Trust.LOCAL and statement.relation is Relation.SUBSTITUTION
    parameters = dict(statement.parameters)
    if alone:
        guarantee, slack = _each_by_itself(statement.guarantee, count), product_upwards(statement.slack, count)
        if isinstance(loss := parameters.get("witness_loss"), float):
            parameters["witness_loss"] = loss * count  # two people all of whose texts are those of the witness
    else:
        guarantee, slack = for_group(statement.whole_guarantee, count), 0.0
        parameters = without_claim(parameters)
    claimed = statement.claimed_epsilon
    return restated(
        statement,
        guarantee,
        TextsOfOne(count),
        unit=Unit.USER,
        slack=slack,
        claimed_epsilon=None if claimed is None or not alone else claimed * count,
        parameters=parameters,
        assumptions=(*statement.assumptions, f"nobody has more than {count:,} texts in this release"),
        exposed=(*statement.exposed, "how many texts a person has, where a kept column tells whose they are"),
    )


def under_substitution(statement: PrivacyStatement) -> Guarantee:
    """What a statement promises when the texts of its unit are replaced by others, slack counted in.

    Where the release computed this exactly, its parameters say so; elsewhere it is the general conversion.

    Raises:
        RefusedError: no proof, as `substitution_from_add_remove`.
    """
    if statement.relation is Relation.SUBSTITUTION:
        return statement.whole_guarantee
    epsilon, delta = (statement.parameters.get(name) for name in OF_SUBSTITUTION)
    if statement.slack == 0 and isinstance(epsilon, float) and isinstance(delta, float):
        return ApproxDP(epsilon, delta)
    if isinstance(statement.guarantee, MetricDP):
        return substitution_from_add_remove(statement.guarantee)  # refuses, and says why
    return substitution_from_add_remove(statement.whole_guarantee)


def without_claim(parameters: dict[str, Parameter]) -> dict[str, Parameter]:
    """Parameters without what they say of a printed epsilon: it was printed for another unit."""
    return {name: value for name, value in parameters.items() if name not in OF_A_CLAIM}


def _each_by_itself(guarantee: Guarantee, count: int) -> Guarantee:
    """Several texts, each through the mechanism by itself."""
    match guarantee:
        case PureDP(epsilon):
            return PureDP(product_upwards(count, epsilon))
        case ApproxDP(epsilon, delta):
            return ApproxDP(product_upwards(count, epsilon), min(1.0, product_upwards(count, delta)))
        case ZCDP(rho):
            return ZCDP(product_upwards(count, rho))
        case MetricDP(epsilon, metric, farthest, space):
            apart = metric if count == 1 else f"{metric}, added up over the texts of a person"
            return MetricDP(epsilon, apart, None if farthest is None else product_upwards(count, farthest), space)
        case NoGuarantee():
            return guarantee
