"""Does a model serve one group of people worse than another, and is the difference more than chance?

Derivation: docs/understand/utility.md#evaluation-fairness
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.checks import choice, number
from dptext.errors import ParameterError
from dptext.estimates import Estimate, difference
from dptext.evaluation.measures import CLASS_MEASURES, class_score, codes_of, codes_of_answers, people_of
from dptext.evaluation.measures import measure as measured

Rows: TypeAlias = npt.NDArray[np.int64]

SMALLEST_GROUP = 30


@dataclass(frozen=True, kw_only=True)
class GroupScore:
    """How well one group is served.

    Attributes:
        score: with its interval.
        baseline, baseline_name: of the best blind guess within the group.
        people: of how many people the group is; rows where everybody has one.
    """

    group: str
    score: Estimate
    baseline: float
    baseline_name: str
    people: int


@dataclass(frozen=True, kw_only=True)
class Gap:
    """How much better one group is served than another.

    Attributes:
        gap: the difference of their scores, with an interval that holds for all pairs together.
    """

    better: str
    worse: str
    gap: Estimate

    @property
    def is_shown(self) -> bool:
        """Whether the difference is more than chance: its interval leaves 0 out."""
        return self.gap.low > 0


@dataclass(frozen=True, kw_only=True)
class Fairness:
    """Scores of groups, and the gaps between them.

    Attributes:
        measure: "accuracy" or "macro-F1".
        gaps: of all pairs, the largest first.
    """

    measure: str
    groups: tuple[GroupScore, ...]
    gaps: tuple[Gap, ...]

    @property
    def largest(self) -> Gap:
        """The largest gap."""
        return self.gaps[0]

    @property
    def is_unequal(self) -> bool:
        """Whether any gap is more than chance."""
        return any(gap.is_shown for gap in self.gaps)

    def __str__(self) -> str:
        lines = [f"{each.group}: {self.measure} {each.score} against {each.baseline:.3f}" for each in self.groups]
        gap = self.largest
        return "\n".join([*lines, f"largest gap: {gap.better} above {gap.worse} by {gap.gap}"])


def fairness(
    true: npt.ArrayLike,
    predicted: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    people: npt.ArrayLike | None = None,
    measure: str = "accuracy",
    smallest: int = SMALLEST_GROUP,
    confidence: float = 0.95,
) -> Fairness:
    """Compare how groups of people are served by the same predictions.

    Args:
        true, predicted: (rows,) labels, of rows that had no part in training
            (`dptext.evaluation.utility.predictions`).
        groups: (rows,) the group of each row's person.
        people: (rows,) whose row each is; None: everybody has one.
        smallest: people that a group must have. Of fewer than about 30 the score is rather about these people.
        confidence: of each group's interval, and of all gaps together.

    Raises:
        ParameterError: one group only, an empty or a small one, a person in two groups, macro-F1 of a group that
            lacks a class, unequal lengths; the argument is named.

    >>> true = ["+", "-"] * 100
    >>> predicted = ["+", "-"] * 50 + ["+", "+"] * 50
    >>> found = fairness(true, predicted, ["x"] * 100 + ["y"] * 100)
    >>> found.largest.better, round(found.largest.gap.value, 2), found.is_unequal
    ('x', 0.5, True)
    """
    choice("measure", measure, CLASS_MEASURES)
    confidence = number("confidence", confidence, above=0, below=1)
    right, answer = codes_of_answers(true, predicted)
    codes = codes_of("groups", groups, rows=right.size)
    whose = people_of(people, right.size)
    names = [str(each) for each in np.asarray(groups)[np.unique(codes, return_index=True)[1]]]
    sizes = _sizes(codes, whose, smallest)
    _check_classes(measure, right, codes)
    pairs = list(combinations(range(len(names)), 2))
    scores, spreads = [], []
    for group, name in enumerate(names):
        here = codes == group
        rows = right[here], answer[here], None if people is None else whose[here]
        found = measured(measure, rows[0], rows[1], people=rows[2], confidence=confidence)
        blind: dict[str, Any] = {"baseline": found.baseline, "baseline_name": found.baseline_name}
        scores.append(GroupScore(group=name, score=found.score, **blind, people=int(sizes[group])))
        spreads.append(class_score(measure, *rows, confidence=1 - (1 - confidence) / len(pairs)))
    gaps = []
    for pair in pairs:
        better, worse = sorted(pair, key=lambda group: -spreads[group].value)
        gaps.append(Gap(better=names[better], worse=names[worse], gap=difference(spreads[better], spreads[worse])))
    return Fairness(measure=measure, groups=tuple(scores), gaps=tuple(sorted(gaps, key=lambda each: -each.gap.value)))


def _sizes(codes: Rows, whose: Rows, smallest: int) -> Rows:
    if codes.max() == 0:
        raise ParameterError("groups must be at least two, all rows have the same")
    pairs = np.unique(np.stack([codes, whose]), axis=1)
    if pairs.shape[1] > np.unique(whose).size:
        raise ParameterError("groups: somebody has rows in two groups; give each person one group")
    sizes: Rows = np.bincount(pairs[0])
    if sizes.min() < smallest:
        raise ParameterError(
            f"groups: the smallest has {sizes.min()} people, expected at least {smallest}: merge groups or leave it out"
        )
    return sizes


def _check_classes(which: str, classes: Rows, codes: Rows) -> None:
    held = np.unique(np.stack([codes, classes]), axis=1)
    if which == "macro-F1" and held.shape[1] < (codes.max() + 1) * np.unique(classes).size:
        raise ParameterError("groups: macro-F1 compares groups that hold every class, and one lacks a class")
