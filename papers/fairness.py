"""Accuracy of the same predictions for groups of people, and the gaps between groups.

The interval of a gap follows from those of the two groups (`dptext.intervals.difference`), so a small group with a
perfect score keeps its uncertainty. Each pair is tested at confidence 1 - error / pairs (Bonferroni):

    P(any gap is reported | all groups are served equally) <= error

This was computed for one row per person and simulated for many.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.evaluation.measures import class_score, codes_of, codes_of_answers, people_of
from dptext.evaluation.measures import measure as measured
from dptext.intervals import Estimate, difference

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class GroupScore:
    """Score of one group, with the baseline within the group."""

    group: str
    score: Estimate
    baseline: float


@dataclass(frozen=True)
class Gap:
    """Difference between the scores of two groups; the intervals of all pairs hold simultaneously."""

    better: str
    worse: str
    gap: Estimate


@dataclass(frozen=True)
class Fairness:
    """Scores of groups, and the gaps of all pairs, the largest first."""

    groups: tuple[GroupScore, ...]
    gaps: tuple[Gap, ...]


def fairness(
    true: npt.ArrayLike,
    predicted: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    people: npt.ArrayLike | None = None,
    smallest: int = 30,
) -> Fairness:
    """Compare the accuracy for groups of people under the same predictions, with 95% intervals.

    Each person is in one group, of at least ``smallest`` people: the score of fewer would reveal these people.

    >>> true = ["+", "-"] * 100
    >>> predicted = ["+", "-"] * 50 + ["+", "+"] * 50
    >>> largest = fairness(true, predicted, ["x"] * 100 + ["y"] * 100).gaps[0]
    >>> largest.better, round(largest.gap.value, 2), largest.gap.low > 0
    ('x', 0.5, True)
    """
    labels, answers = codes_of_answers(true, predicted)
    codes = codes_of("groups", groups, rows=labels.size)
    owners = people_of(people, labels.size)
    names = [str(entry) for entry in np.asarray(groups)[np.unique(codes, return_index=True)[1]]]
    of_people = np.unique(np.stack([codes, owners]), axis=1)
    if len(names) < 2 or of_people.shape[1] > np.unique(owners).size:
        raise ParameterError("groups must have at least two values, and one for each person")
    if (fewest := int(np.bincount(of_people[0]).min())) < smallest:
        raise ParameterError(f"groups: the smallest has {fewest} people, at least {smallest} are needed")
    pairs = list(combinations(range(len(names)), 2))
    scores, wide = [], []
    for group, name in enumerate(names):
        members = codes == group
        rows = labels[members], answers[members], None if people is None else owners[members]
        result = measured("accuracy", rows[0], rows[1], people=rows[2])
        scores.append(GroupScore(name, result.score, result.baseline))
        wide.append(class_score("accuracy", *rows, confidence=1 - (1 - _CONFIDENCE) / len(pairs)))
    gaps = []
    for pair in pairs:
        better, worse = sorted(pair, key=lambda group: -wide[group].value)
        gaps.append(Gap(names[better], names[worse], difference(wide[better], wide[worse])))
    return Fairness(tuple(scores), tuple(sorted(gaps, key=lambda gap: -gap.gap.value)))
