"""What a training of skip-gram vectors promises, in a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dptext.embeddings.dpsgd.ranks import RANKS
from dptext.embeddings.dpsgd.recipe import IEEE, LAZY
from dptext.embeddings.earlier import ONE_NAME
from dptext.embeddings.level_promise import level_assumptions, level_condition, level_parameters, with_level
from dptext.privacy.condition import Condition
from dptext.privacy.guarantee import ApproxDP, Guarantee, NoGuarantee, rounded_up
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id, of_release
from dptext.privacy.unit import Relation, Trust, Unit

if TYPE_CHECKING:
    from dptext.embeddings.skipgram_plan import SkipGramPlan

__all__ = ["statement_of", "under_substitution"]

_UNITS = {"user": Unit.USER, "document": Unit.DOCUMENT, "pair": Unit.EXAMPLE}
_WITHOUT = {
    "clipped": "trained without noise, for comparison: gradients are bounded, and nothing hides them",
    "plain": "trained without noise and without bounds, for comparison",
}


def statement_of(
    plan: SkipGramPlan, level: str, *, seeded: bool, ranks: int = 1, release_id: str | None = None
) -> PrivacyStatement:
    """The statement for users of a level, with those of a private vocabulary and of private vectors composed in.

    Raises:
        RefusedError: the statement of the vectors or of the vocabulary is about another unit or relation.
        MissingExtraError: dp-accounting is not installed.
    """
    unit = _UNITS[plan.recipe.unit]
    private = plan.mode == "private"
    guarantee: Guarantee
    if private:
        guarantee = with_level(plan.participation.guarantee(level), plan.policy)
    else:
        guarantee = NoGuarantee(_WITHOUT[plan.mode])
    statement = of_release(
        guarantee=guarantee,
        unit=unit,
        relation=Relation.ADD_REMOVE,
        condition=_condition(plan, level),
        trust=Trust.CENTRAL,
        mechanism="skip-gram",
        parameters=_parameters(plan, level) | ({"ranks": ranks} if ranks > 1 else {}),
        assumptions=(*_assumptions(plan), *((RANKS,) if ranks > 1 else ())) if private else (),
        exposed=(plan.earlier.exposed,),
        seeded=seeded,
        release_id=release_id or new_release_id(),
    )
    return plan.earlier.counted_into(statement)


def _condition(plan: SkipGramPlan, level: str) -> Condition:
    rates = plan.participation.rates
    condition = level_condition(level, plan.policy, most=rates[level] == max(rates.values()))
    return condition if plan.recipe.unit != "pair" else Condition(about="pairs", requirements=condition.requirements)


def under_substitution(plan: SkipGramPlan, level: str) -> ApproxDP:
    """What is promised to a user of a level when his texts are replaced by other ones (his level stays), all that was
    released before counted in.

    Raises:
        RefusedError: no proof, as in `statement_of`.
        MissingExtraError: dp-accounting is not installed.
    """
    release = plan.participation.guarantee(level, relation=Relation.SUBSTITUTION)
    return plan.earlier.under_substitution(with_level(release, plan.policy))


def _parameters(plan: SkipGramPlan, level: str) -> dict[str, Parameter]:
    recipe, participation, earlier = plan.recipe, plan.participation, plan.earlier
    said: dict[str, Parameter] = {}
    if plan.mode == "private":
        substituted = under_substitution(plan, level)
        said |= {
            "epsilon": participation.guarantee(level).epsilon,
            "delta": participation.delta,
            "noise_multiplier": participation.noise_multiplier,
            "epsilon_under_substitution": rounded_up(substituted.epsilon, 4),
            "delta_under_substitution": rounded_up(substituted.delta, 4),
            "noise": plan.form,
        }
    said |= {"mode": plan.mode, "sampling_rate": participation.rates[level], "steps": participation.steps}
    if plan.mode != "plain":
        said["sensitivity"] = recipe.clipping.norm
        if recipe.clipping.words:
            said["sensitivity_of_words"] = recipe.clipping.words
            said["sensitivity_of_contexts"] = recipe.clipping.contexts
    said |= earlier.promises
    if len(participation.rates) > 1:
        said |= {f"sampling_rate_of_{name}": rate for name, rate in participation.rates.items()}
        said["level"], said["default_level"] = level, participation.default
    said |= level_parameters(plan.policy)
    said |= {
        "words": len(plan.words),
        "new_words": earlier.new_words,
        "trained_words": len(plan.rows),
        "trained_tables": "both" if plan.both else "contexts",
        "dimension": plan.dimension,
        "pairs": recipe.pairs,
        "window": recipe.window,
        "negatives": recipe.negatives,
        "subsample": recipe.subsample,
        "distance": recipe.distance,
        "denominator": plan.denominator,
        "public_users": plan.users,
        "most_words": recipe.most_words,
    }
    return said | earlier.sources


def _assumptions(plan: SkipGramPlan) -> tuple[str, ...]:
    said = plan.earlier.assumptions
    if plan.recipe.unit == "user":
        said += ONE_NAME
    if len(plan.participation.rates) > 1:
        said += level_assumptions(plan.policy)
    said += [
        f"it stays secret which {plan.recipe.unit}s took part in which step",
        "that the corpus holds at least one document may be known",
        IEEE,
    ]
    if plan.form == "lazy":
        said.append(LAZY)
    if plan.recipe.unit == "pair":
        said.append("chances of single pairs to take part are as double precision has them")
    return tuple(said)
