"""What a release of co-occurrences promises, in a statement."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from dptext.embeddings.user_matrices import MOST_USERS
from dptext.errors import RefusedError
from dptext.noise.rounded import ELEMENTARY
from dptext.privacy.accounting import l2_sensitivity
from dptext.privacy.few_digits import rounded_up
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id
from dptext.privacy.unit import Relation, Trust, Unit

if TYPE_CHECKING:
    from dptext.embeddings.plan import Plan

__all__ = ["statement_of"]

_WHO = {
    Unit.USER: "two corpora, one of which holds all documents of one more user",
    Unit.DOCUMENT: "two corpora, one of which holds one more document",
}


def statement_of(plan: Plan, level: str, *, seeded: bool) -> PrivacyStatement:
    """The statement for users of a level, with those of a private vocabulary and of private vectors composed in.

    Raises:
        RefusedError: the statement of the vectors is about another unit or relation.
    """
    statement = PrivacyStatement(
        guarantee=plan.budgets.guarantee(level),
        unit=Unit(plan.unit),
        relation=Relation.ADD_REMOVE,
        neighbours=_WHO[Unit(plan.unit)],
        trust=Trust.CENTRAL,
        mechanism="co-occurrences",
        parameters=_parameters(plan, level),
        assumptions=_assumptions(plan),
        exposed=("which words the vectors are for: the vocabulary is " + _origin(plan),),
        seeded=seeded,
        release_id=new_release_id(),
        software=f"dptext {version('dptext')}",
    )
    release = statement
    for name, other in (("vocabulary", plan.vocabulary), ("vectors", plan.public)):
        before = None if other is None else other.statement
        if before is not None:
            _check_same_people(name, statement, before)
            statement = statement.compose(before).replace(
                neighbours=release.neighbours, parameters=release.parameters, release_id=release.release_id
            )
    return statement


def _check_same_people(name: str, statement: PrivacyStatement, before: PrivacyStatement) -> None:
    if (before.unit, before.relation) != (statement.unit, statement.relation):
        raise RefusedError(
            f"the {name} were released under a statement about a {before.unit} ({before.relation}), this release is "
            f"about a {statement.unit} ({statement.relation}): the two have no proved sum; use public {name}, or ones "
            "released for the same unit and relation"
        )


def _parameters(plan: Plan, level: str) -> dict[str, Parameter]:
    budgets = plan.budgets
    substituted = budgets.guarantee(level, relation=Relation.SUBSTITUTION).epsilon
    said: dict[str, Parameter] = {
        "epsilon": budgets.levels[level],
        "delta": budgets.delta,
        "sigma": budgets.sigma,
        "sensitivity": l2_sensitivity(budgets.clipping_norm(level), Relation.ADD_REMOVE),
        "epsilon_under_substitution": rounded_up(substituted, 4),
    }
    if len(budgets.levels) > 1:
        said |= {f"epsilon_of_{name}": epsilon for name, epsilon in budgets.levels.items()}
        said["level"], said["default_level"] = level, budgets.default
    said |= {
        "words": len(plan.words),
        "features": plan.features.dimension,
        "features_sha256": plan.features.fingerprint,
        "window": plan.window,
        "most_words": plan.most_words,
        "public_vectors": None if plan.public is None else plan.public.source,
        "public_vectors_sha256": None if plan.public is None else plan.public.fingerprint,
    }
    return said


def _assumptions(plan: Plan) -> tuple[str, ...]:
    said = ["all parameters are public; none was computed from the protected texts"]
    if plan.public is not None and plan.public.statement is None:
        said.append("the public vectors were not made from the protected texts")
    if plan.unit == "user":
        said.append("a person writes under one name; whoever has several counts as several users")
    if len(plan.budgets.levels) > 1:
        said.append("each user's level was declared without regard to the texts, and may be known to all")
    said += [
        "that the corpus holds at least one document may be known",
        f"at most {MOST_USERS:,} users take part",
        ELEMENTARY,
    ]
    return tuple(said)


def _origin(plan: Plan) -> str:
    if plan.vocabulary is None:
        return "public"
    return "public words, and words of these users that were released under a promise of their own"
