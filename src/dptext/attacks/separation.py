"""How well a score tells members from others: four measures, each with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.score import AttackScore
from dptext.errors import ParameterError
from dptext.estimates import Estimate, area, share

__all__ = ["Mask", "Membership", "checked_members", "measured", "score_membership", "zeros_and_ones"]

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Membership:
    """How well an attacker tells members from others.

    Attributes:
        auc: the probability that a member gets a higher score than another text.
        accuracy: the share of texts that he puts on the right side.
        at_1_percent: the share of the members found, where he accuses 1% of the others.
        at_01_percent: the same for .1%.
    """

    auc: AttackScore
    accuracy: AttackScore
    at_1_percent: AttackScore
    at_01_percent: AttackScore

    @property
    def scores(self) -> tuple[AttackScore, ...]:
        """All four."""
        return (self.auc, self.accuracy, self.at_1_percent, self.at_01_percent)

    def __str__(self) -> str:
        return "\n".join(map(str, self.scores))


def score_membership(scores: npt.ArrayLike, members: npt.ArrayLike, *, attack: str = "score") -> Membership:
    """The measures of any attack that gives each text a score: higher means rather a member.

    Its accuracy is that of the best threshold, chosen on one half of the texts and applied to the other, both ways.

    Raises:
        ParameterError: a score that is no number; no members, or nobody else.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ParameterError("scores must be a row of finite numbers, got something else")
    truth = checked_members("members", members, values.size)
    # members and others alternate between the halves, whatever the order of the rows
    half = np.zeros(truth.size, dtype=bool)
    for side in (truth, ~truth):
        half[np.flatnonzero(side)[::2]] = True
    right = sum(
        int(((values[there] >= _best_threshold(values[here], truth[here])) == truth[there]).sum())
        for here, there in ((half, ~half), (~half, half))
    )
    return measured(attack, values, truth, share(right, truth.size), "threshold chosen on the other half")


def measured(attack: str, scores: Floats, members: Mask, accuracy: Estimate, how: str) -> Membership:
    """All measures of checked scores, beside an accuracy that was measured already."""
    inside, outside = scores[members], scores[~members]
    detail = f"{inside.size:,} members, {outside.size:,} others"
    if np.ptp(scores) == 0:  # a broken attack looks like perfect privacy
        detail += "; all texts have the same score: this attacker saw nothing, which says nothing about others"
    larger = max(inside.size, outside.size) / members.size
    at = [
        AttackScore(
            attack=attack,
            measure=f"members found at {100 * rate:g}% false positives",
            score=_found_at(inside, outside, rate),
            baseline=rate,
            baseline_name="as many as of the others",
            detail=detail,
        )
        for rate in (0.01, 0.001)
    ]
    return Membership(
        auc=AttackScore(
            attack=attack,
            measure="AUC",
            score=replace(area(scores, members), of="rows"),
            baseline=0.5,
            baseline_name="chance",
            detail=detail,
        ),
        accuracy=AttackScore(
            attack=attack,
            measure="accuracy",
            score=accuracy,
            baseline=larger,
            baseline_name="majority class" if larger > 0.5 else "chance",
            detail=f"{detail}; {how}",
        ),
        at_1_percent=at[0],
        at_01_percent=at[1],
    )


def _found_at(inside: Floats, outside: Floats, rate: float) -> Estimate:
    """Which share of the members lies above all but ``rate`` of the others, with an interval that holds for any scores.

    How many of the others lie above the true threshold is binomial, so it lies between two of their order statistics
    with probability 97.5%; between these, the members are counted with the interval of Clopper and Pearson at 97.5%.
    Together 95% (Bonferroni).
    """
    others = np.sort(outside)[::-1]
    few, many = (int(each) for each in _stats().binom.ppf([0.0125, 0.9875], others.size, rate))
    sure = int((inside >= others[few - 1]).sum()) if few else 0
    possible = int((inside > others[many]).sum()) if many < others.size else inside.size
    found = int((inside > others[int(rate * others.size)]).sum())
    low, high = (share(count, inside.size, confidence=0.975) for count in (sure, possible))
    return Estimate(found / inside.size, low.low, high.high, inside.size + outside.size, "rows")


def _best_threshold(scores: Floats, members: Mask) -> float:
    """The t for which "score >= t" is right most often; infinity where nobody should be accused."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    gained = np.concatenate([[0], np.cumsum(np.where(members[order], 1, -1))])
    # a threshold lies between different scores only
    possible = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    best = int(np.argmax(np.where(possible, gained, -scores.size - 1)))
    return math.inf if best == 0 else float(ordered[best - 1])


def checked_members(name: str, members: npt.ArrayLike, rows: int) -> Mask:
    """(rows,) who is a member, when there are two of them and two others."""
    values = zeros_and_ones(name, members)
    if values.shape != (rows,):
        raise ParameterError(f"{name} must be one truth for each of {rows:,} rows, got shape {values.shape}")
    inside = int(values.sum())
    if min(inside, rows - inside) < 2:
        raise ParameterError(f"{name} must hold two members and two others at least, got {inside} and {rows - inside}")
    return values


def zeros_and_ones(name: str, values: npt.ArrayLike) -> Mask:
    """The truths as an array of any shape."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise ParameterError(f"{name} must be true or false (or 1 or 0) everywhere, got something else")
    return array.astype(bool)


def _stats() -> Any:
    from scipy import stats  # `share` has said so where it is missing

    return stats
