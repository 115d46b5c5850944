"""What a release of co-occurrences promises, in a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dptext.embeddings.earlier import ONE_NAME, Earlier
from dptext.embeddings.level_promise import level_assumptions, level_condition, level_parameters, with_level
from dptext.embeddings.user_matrices import MOST_USERS
from dptext.noise.rounded import ELEMENTARY
from dptext.privacy.accounting import l2_sensitivity
from dptext.privacy.condition import Condition
from dptext.privacy.guarantee import ApproxDP, as_approx, rounded_up
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, of_release
from dptext.privacy.unit import Relation, Trust, Unit

if TYPE_CHECKING:
    from dptext.embeddings.plan import Plan

__all__ = ["check_before", "statement_of", "total_delta", "under_substitution"]


def statement_of(plan: Plan, level: str, *, seeded: bool, release_id: str | None = None) -> PrivacyStatement:
    """The statement for users of a level, with those of a private vocabulary and of private vectors composed in.

    Raises:
        RefusedError: as `check_before`.
    """
    check_before(plan)
    statement = of_release(
        guarantee=with_level(plan.budgets.guarantee(level), plan.policy),
        unit=Unit(plan.unit),
        relation=Relation.ADD_REMOVE,
        condition=_condition(plan, level),
        trust=Trust.CENTRAL,
        mechanism="co-occurrences",
        parameters=_parameters(plan, level),
        assumptions=_assumptions(plan),
        exposed=(_earlier(plan).exposed,),
        seeded=seeded,
        release_id=release_id or new_release_id(),
    )
    return _earlier(plan).counted_into(statement)


def _condition(plan: Plan, level: str) -> Condition:
    return level_condition(level, plan.policy, most=plan.budgets.levels[level] == plan.budgets.cap)


def under_substitution(plan: Plan, level: str) -> ApproxDP:
    """What is promised to a user of a level when his texts are replaced by other ones, all that was released before
    counted in.

    Raises:
        RefusedError: no proof, as in `check_before`.
    """
    release = plan.budgets.guarantee(level, relation=Relation.SUBSTITUTION)
    return _earlier(plan).under_substitution(with_level(release, plan.policy))


def total_delta(plan: Plan) -> float:
    """The delta of this release and of all that was released before it."""
    return as_approx(statement_of(plan, plan.budgets.default, seeded=False).guarantee).delta


def check_before(plan: Plan) -> None:
    """Whether what was promised before adds up with this release: asked before a text is read.

    Raises:
        RefusedError: as `dptext.embeddings.earlier.Earlier.check`.
    """
    _earlier(plan).check(Unit(plan.unit))


def _earlier(plan: Plan) -> Earlier:
    return Earlier(plan.words, plan.public, plan.vocabulary, None if plan.policy is None else plan.policy.training)


def _parameters(plan: Plan, level: str) -> dict[str, Parameter]:
    budgets, earlier = plan.budgets, _earlier(plan)
    substituted = under_substitution(plan, level)
    said: dict[str, Parameter] = {
        "epsilon": budgets.levels[level],
        "delta": budgets.delta,
        "sigma": budgets.sigma,
        "sensitivity": l2_sensitivity(budgets.clipping_norm(level), Relation.ADD_REMOVE),
        "epsilon_under_substitution": rounded_up(substituted.epsilon, 4),
        "delta_under_substitution": rounded_up(substituted.delta, 4),
    }
    said |= earlier.promises
    if len(budgets.levels) > 1:
        said |= {f"epsilon_of_{name}": epsilon for name, epsilon in budgets.levels.items()}
        said["level"], said["default_level"] = level, budgets.default
    said |= level_parameters(plan.policy)
    said |= {
        "words": len(plan.words),
        "new_words": earlier.new_words,
        "features": plan.features.dimension,
        "features_sha256": plan.features.fingerprint,
        "window": plan.window,
        "most_words": plan.most_words,
    }
    said |= earlier.sources
    return said


def _assumptions(plan: Plan) -> tuple[str, ...]:
    said = _earlier(plan).assumptions
    if plan.unit == "user":
        said += ONE_NAME
    if len(plan.budgets.levels) > 1:
        said += level_assumptions(plan.policy)
    said += [
        "that the corpus holds at least one document may be known",
        f"at most {MOST_USERS:,} {plan.unit}s take part",
        ELEMENTARY,
    ]
    return tuple(said)
