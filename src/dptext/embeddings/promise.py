"""What a release of co-occurrences promises, in a statement."""

from __future__ import annotations

import math
from importlib.metadata import version
from itertools import takewhile
from typing import TYPE_CHECKING

from dptext.embeddings.user_matrices import MOST_USERS
from dptext.errors import RefusedError
from dptext.noise.rounded import ELEMENTARY
from dptext.privacy.accounting import l2_sensitivity
from dptext.privacy.few_digits import rounded_up
from dptext.privacy.guarantee import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    PureDP,
    as_approx,
    compose,
    substitution_from_add_remove,
)
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id
from dptext.privacy.unit import Relation, Trust, Unit

if TYPE_CHECKING:
    from dptext.embeddings.plan import Plan

__all__ = ["check_before", "statement_of", "total_delta", "under_substitution"]

_WHO = {
    Unit.USER: "two corpora, one of which holds all documents of one more user",
    Unit.DOCUMENT: "two corpora, one of which holds one more document",
}


def statement_of(plan: Plan, level: str, *, seeded: bool) -> PrivacyStatement:
    """The statement for users of a level, with those of a private vocabulary and of private vectors composed in.

    Raises:
        RefusedError: as `check_before`.
    """
    check_before(plan)
    statement = PrivacyStatement(
        guarantee=plan.budgets.guarantee(level),
        unit=Unit(plan.unit),
        relation=Relation.ADD_REMOVE,
        neighbours=_neighbours(plan, level),
        trust=Trust.CENTRAL,
        mechanism="co-occurrences",
        parameters=_parameters(plan, level),
        assumptions=_assumptions(plan),
        exposed=("the list of words that have a vector: " + _origin(plan),),
        seeded=seeded,
        release_id=new_release_id(),
        software=f"dptext {version('dptext')}",
    )
    release = statement
    for _, each in _before(plan):
        statement = statement.compose(each).replace(
            neighbours=release.neighbours, parameters=release.parameters, release_id=release.release_id
        )
    return statement


def _neighbours(plan: Plan, level: str) -> str:
    """What the largest epsilon promises holds for everybody; a smaller one for its level only, and must say so."""
    who = _WHO[Unit(plan.unit)]
    return who if plan.budgets.levels[level] == plan.budgets.cap else f"{who} of the level {level!r}"


def under_substitution(plan: Plan, level: str) -> ApproxDP:
    """What is promised to a user of a level when his texts are replaced by other ones, all that was released before
    counted in: exact for the release itself, the general conversion for the rest.

    Raises:
        RefusedError: no proof, as in `check_before`.
    """
    total: Guarantee = plan.budgets.guarantee(level, relation=Relation.SUBSTITUTION)
    for _, before in _before(plan):
        total = compose(total, substitution_from_add_remove(_with_slack(before)))
    assert isinstance(total, ApproxDP)
    return total


def _with_slack(statement: PrivacyStatement) -> Guarantee:
    """The guarantee with what finite arithmetic may add to its epsilon: that too counts twice under substitution."""
    match statement.guarantee:
        case PureDP(epsilon):
            return PureDP(epsilon + statement.slack)
        case ApproxDP(epsilon, delta):
            return ApproxDP(epsilon + statement.slack, delta)
        case other:  # has no slack, or no sum with (epsilon, delta)
            return other


def _before(plan: Plan) -> list[tuple[str, PrivacyStatement]]:
    """The statements of what this release builds on."""
    found = (("vocabulary", plan.vocabulary), ("vectors", plan.public))
    return [(name, each.statement) for name, each in found if each is not None and each.statement is not None]


def total_delta(plan: Plan) -> float:
    """The delta of this release and of all that was released before it."""
    return as_approx(statement_of(plan, plan.budgets.default, seeded=False).guarantee).delta


def check_before(plan: Plan) -> None:
    """Whether what was promised before adds up with this release: asked before a text is read.

    Raises:
        RefusedError: a statement of the vectors or of the vocabulary is about another unit or relation, promises
            nothing, or has no sum with (epsilon, delta).
    """
    for name, before in _before(plan):
        _check_can_be_added(name, before, plan.unit)
    under_substitution(plan, plan.budgets.default)


def _check_can_be_added(name: str, before: PrivacyStatement, unit: str) -> None:
    if (before.unit, before.relation) != (Unit(unit), Relation.ADD_REMOVE):
        raise RefusedError(
            f"the {name} were released under a statement about a {before.unit} ({before.relation}), this release is "
            f"about a {unit} ({Relation.ADD_REMOVE}): the two have no proved sum; use public {name}, or ones "
            "released for the same unit and relation"
        )
    if math.isinf(before.epsilon) and not isinstance(
        before.guarantee, ZCDP | MetricDP
    ):  # these have reasons of their own
        raise RefusedError(
            f"the {name} carry a statement that promises nothing, and nothing that is added to it does: use public "
            f"{name}, or ones that were released with a finite epsilon"
        )


def _parameters(plan: Plan, level: str) -> dict[str, Parameter]:
    budgets = plan.budgets
    substituted = under_substitution(plan, level)
    said: dict[str, Parameter] = {
        "epsilon": budgets.levels[level],
        "delta": budgets.delta,
        "sigma": budgets.sigma,
        "sensitivity": l2_sensitivity(budgets.clipping_norm(level), Relation.ADD_REMOVE),
        "epsilon_under_substitution": rounded_up(substituted.epsilon, 4),
        "delta_under_substitution": rounded_up(substituted.delta, 4),
    }
    said |= {f"promise_of_{name}": str(before.guarantee) for name, before in _before(plan)}
    if len(budgets.levels) > 1:
        said |= {f"epsilon_of_{name}": epsilon for name, epsilon in budgets.levels.items()}
        said["level"], said["default_level"] = level, budgets.default
    said |= {
        "words": len(plan.words),
        "new_words": _new_words(plan),
        "features": plan.features.dimension,
        "features_sha256": plan.features.fingerprint,
        "window": plan.window,
        "most_words": plan.most_words,
        "public_vectors": None if plan.public is None else plan.public.source,
        "public_vectors_sha256": None if plan.public is None else plan.public.fingerprint,
    }
    return said


def _new_words(plan: Plan) -> int | None:
    """How many words of the release no public list held: they come last."""
    if plan.vocabulary is None:
        return None
    if plan.public is not None:
        return len(plan.words) - len(plan.public)
    learned = set(plan.vocabulary.words)
    return sum(1 for _ in takewhile(learned.__contains__, reversed(plan.words.words)))


def _assumptions(plan: Plan) -> tuple[str, ...]:
    said = ["all parameters are public; none was computed from the protected texts"]
    if _before(plan):
        said = ["all parameters are public, or computed from what was released before under a promise counted in above"]
    if plan.public is not None and plan.public.statement is None:
        said.append("the public vectors were not made from the protected texts")
    if plan.unit == "user":
        said.append("a person writes under one name; whoever has several counts as several users")
        said.append("no two people write under one name; those who do count as one user together")
    if len(plan.budgets.levels) > 1:
        said.append("each user's level was declared without regard to the texts, and may be known to all")
    said += [
        "that the corpus holds at least one document may be known",
        f"at most {MOST_USERS:,} {plan.unit}s take part",
        ELEMENTARY,
    ]
    return tuple(said)


def _origin(plan: Plan) -> str:
    first = "public words"
    if plan.public is not None and plan.public.statement is not None:
        first = "those of vectors that were released under a promise of their own, counted in above"
    if plan.vocabulary is not None:
        return f"{first}, and words of these users that were released under a promise of their own, counted in above"
    return "it is public, chosen without regard to the texts" if first == "public words" else first
