"""Accuracy of the same predictions for groups of people, and the gaps between groups.

The interval of a gap follows from those of the two groups (`dptext.intervals.difference`), so a small group with a
perfect score keeps its uncertainty. Each pair is tested at confidence 1 - error / pairs (Bonferroni):

    P(any gap is reported | all groups are served equally) <= error

This was computed for one row per person and simulated for many.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.evaluation.measures import Rows, class_score, codes_of, codes_of_answers, people_of
from dptext.evaluation.measures import measure as measured
from dptext.intervals import Estimate, difference

SMALLEST_GROUP = 30
_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class GroupScore:
    """Score of one group, with the baseline within the group and its number of people."""

    group: str
    score: Estimate
    baseline: float
    baseline_name: str
    people: int


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Difference between the scores of two groups; the intervals of all pairs hold simultaneously."""

    better: str
    worse: str
    gap: Estimate

    @property
    def is_shown(self) -> bool:
        """True if the interval excludes 0: chance does not explain the difference."""
        return self.gap.low > 0


@dataclass(frozen=True, kw_only=True)
class Fairness:
    """Scores of groups, and the gaps of all pairs, the largest first."""

    groups: tuple[GroupScore, ...]
    gaps: tuple[Gap, ...]

    @property
    def largest(self) -> Gap:
        """The largest gap."""
        return self.gaps[0]

    @property
    def is_unequal(self) -> bool:
        """True if chance does not explain some gap."""
        return any(gap.is_shown for gap in self.gaps)

    def __str__(self) -> str:
        lines = [f"{group.group}: accuracy {group.score} against {group.baseline:.3f}" for group in self.groups]
        gap = self.largest
        return "\n".join([*lines, f"largest gap: {gap.better} above {gap.worse} by {gap.gap}"])


def fairness(
    true: npt.ArrayLike,
    predicted: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    people: npt.ArrayLike | None = None,
    smallest: int = SMALLEST_GROUP,
) -> Fairness:
    """Compare the accuracy for groups of people under the same predictions, with 95% intervals.

    Args:
        true, predicted: (rows,) labels of rows that did not train the model
            (`dptext.evaluation.utility.predictions`).
        groups: (rows,) the group of each row's person.
        people: (rows,) the person of each row; None: one row per person.
        smallest: minimum number of people in a group. The score of fewer than about 30 reveals these people.

    Raises:
        ParameterError: one group only, an empty or a small one, a person in two groups, unequal lengths; the message
            names the argument.

    >>> true = ["+", "-"] * 100
    >>> predicted = ["+", "-"] * 50 + ["+", "+"] * 50
    >>> result = fairness(true, predicted, ["x"] * 100 + ["y"] * 100)
    >>> result.largest.better, round(result.largest.gap.value, 2), result.is_unequal
    ('x', 0.5, True)
    """
    labels, answers = codes_of_answers(true, predicted)
    codes = codes_of("groups", groups, rows=labels.size)
    owners = people_of(people, labels.size)
    names = [str(entry) for entry in np.asarray(groups)[np.unique(codes, return_index=True)[1]]]
    sizes = _group_sizes(codes, owners, smallest)
    pairs = list(combinations(range(len(names)), 2))
    scores, wide = [], []
    for group, name in enumerate(names):
        members = codes == group
        rows = labels[members], answers[members], None if people is None else owners[members]
        result = measured("accuracy", rows[0], rows[1], people=rows[2])
        baseline: dict[str, Any] = {"baseline": result.baseline, "baseline_name": result.baseline_name}
        scores.append(GroupScore(group=name, score=result.score, **baseline, people=int(sizes[group])))
        wide.append(class_score("accuracy", *rows, confidence=1 - (1 - _CONFIDENCE) / len(pairs)))
    gaps = []
    for pair in pairs:
        better, worse = sorted(pair, key=lambda group: -wide[group].value)
        gaps.append(Gap(better=names[better], worse=names[worse], gap=difference(wide[better], wide[worse])))
    return Fairness(groups=tuple(scores), gaps=tuple(sorted(gaps, key=lambda gap: -gap.gap.value)))


def _group_sizes(codes: Rows, owners: Rows, smallest: int) -> Rows:
    if codes.max() == 0:
        raise ParameterError("groups must have at least two values, got one")
    pairs = np.unique(np.stack([codes, owners]), axis=1)
    if pairs.shape[1] > np.unique(owners).size:
        raise ParameterError("groups: a person has rows in two groups; give each person one group")
    sizes: Rows = np.bincount(pairs[0])
    if sizes.min() < smallest:
        raise ParameterError(
            f"groups: the smallest has {sizes.min()} people, at least {smallest} are needed. Merge groups, or drop it"
        )
    return sizes
