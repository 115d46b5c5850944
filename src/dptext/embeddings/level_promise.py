"""What a statement says of levels: whom it is about, how users came by theirs, and what that cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dptext.embeddings.policy import BudgetPolicy
from dptext.errors import ParameterError
from dptext.privacy.condition import Condition, LevelIsSent, OfLevel, Requirement
from dptext.privacy.guarantee import ApproxDP
from dptext.privacy.statement import Parameter

__all__ = [
    "attribute_of",
    "checked_policy",
    "level_assumptions",
    "level_condition",
    "level_parameters",
    "with_level",
]

_LABELS = "the labels and features that levels are predicted with were given by volunteers for publication"


def attribute_of(level: str | BudgetPolicy | None) -> str | None:
    """The attribute of documents that holds a level."""
    return level.attribute if isinstance(level, BudgetPolicy) else level


def checked_policy(level: Any, names: Mapping[str, float], default: str, unit: str) -> BudgetPolicy | None:
    """The policy, if there is one, and if it fits the levels of a release.

    Args:
        level: of the release.
        names: its levels, and how far each lets a user take part (an epsilon, or a sampling rate).
        default: its default.
        unit: its unit.

    Raises:
        ParameterError: it does not fit.
    """
    if not isinstance(level, BudgetPolicy):
        return None
    if names.keys() != level.levels.keys() or default != level.default or not _same_order(names, level.levels):
        raise ParameterError(
            "the release and its policy must have the same levels and the same default: give epsilon=policy.levels to "
            "Cooccurrence, epsilon=policy.participation(...) to SkipGram"
        )
    if level.predicted_from in ("texts", "device") and unit != "user":
        raise ParameterError(f"a level that is predicted from the texts of a user is not for the unit {unit!r}")
    return level


def _same_order(names: Mapping[str, float], levels: Mapping[str, float]) -> bool:
    ordered = [names[level] for level in sorted(levels, key=lambda name: (levels[name], names[name]))]
    return ordered == sorted(ordered)


def with_level(guarantee: ApproxDP, policy: BudgetPolicy | None) -> ApproxDP:
    """What the release and the sending of a level promise together, equation (drawn) of `BudgetPolicy`: under
    add/remove of texts or their substitution, whichever the guarantee is about."""
    if policy is None:
        return guarantee
    return ApproxDP(guarantee.epsilon + policy.epsilon, guarantee.delta)


def level_condition(level: str, policy: BudgetPolicy | None, *, most: bool) -> Condition:
    """Whom the statement of a level is about. What the largest epsilon promises holds for everybody; a smaller one for
    its level only, and must say so."""
    source = None if policy is None else policy.predicted_from
    known_by: Literal["device", "declaration", "level"] = "level"
    if source == "device":
        known_by = "device"
    elif source == "texts":
        known_by = "declaration"
    required: list[Requirement] = [] if most else [OfLevel(level, known_by)]
    if source == "device":
        required.append(LevelIsSent())
    return Condition(requirements=tuple(required))


def level_assumptions(policy: BudgetPolicy | None) -> list[str]:
    """What is taken for granted about levels."""
    source = None if policy is None else policy.predicted_from
    match source:
        case "public":
            said = "each user's level was declared, or predicted from what is public about him, and may be known to all"
        case "texts":
            said = (
                "a level that was not declared was predicted from the user's own texts, and is as private as they are: "
                "it stays secret, and no more than the largest epsilon is promised to him"
            )
        case "device":
            assert policy is not None
            said = (
                "a level that was not declared was predicted from the user's own texts on his own device, and sent by "
                f"randomised response of epsilon {policy.epsilon:g}, once: that is counted in above, and who declared "
                "his level is spared it; that a device sent a level, and which, may be known to all"
            )
        case _:
            return ["each user's level was declared without regard to the texts, and may be known to all"]
    assert policy is not None
    return [said] if policy.training is not None else [said, _LABELS]


def level_parameters(policy: BudgetPolicy | None) -> dict[str, Parameter]:
    """How users came by their levels, where some are predicted."""
    if policy is None or policy.predicted_from is None:
        return {}
    said: dict[str, Parameter] = {"levels_predicted_from": policy.predicted_from}
    if policy.response is not None:
        said["epsilon_for_level"] = policy.epsilon
    return said
