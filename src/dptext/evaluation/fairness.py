"""Does a model serve one group of people worse than another, and is the difference more than chance?

Each group gets its score with an interval and the best blind guess *within the group*: a group in which nine of ten
rows are of one class has a high accuracy for nothing. Groups are compared in pairs. Two groups always differ a little,
and of many pairs some differ a lot by chance: the intervals of the gaps hold *together* (each at confidence
1 - error / pairs; Bonferroni), so that where all groups are served equally a gap is shown with probability at most
``error``, up to the bootstrap's own approximation.

A group of a few people has an interval that says little and a score that says something about these people: groups
below a smallest size are refused, not shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.estimates import Estimate, resampled_rows
from dptext.evaluation.folds import codes_of
from dptext.evaluation.measures import CLASS_MEASURES, measure, statistic_of

__all__ = ["Fairness", "Gap", "GroupScore", "fairness"]

Rows: TypeAlias = npt.NDArray[np.int64]

SMALLEST_GROUP = 30
_IN_TAIL = 10  # resamples beyond each end of an interval, at least
_MOST, _FOR_SPREAD = 20_000, 2000  # resamples: where more were needed, so many say how far gaps spread


@dataclass(frozen=True, kw_only=True)
class GroupScore:
    """How well one group is served.

    Attributes:
        group: its name.
        score: with its interval.
        baseline: of the best blind guess within the group.
        baseline_name: which guess that is.
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
        better, worse: the two groups.
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
        groups: by name.
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
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int | None = None,
) -> Fairness:
    """Compare how groups of people are served by the same predictions.

    Args:
        true, predicted: (rows,) labels, of rows that had no part in training
            (`dptext.evaluation.utility.predictions`).
        groups: (rows,) the group of each row's person.
        people: (rows,) whose row each is; None: everybody has one.
        measure: "accuracy" or "macro-F1".
        smallest: people that a group must have. Fewer than about 30 give intervals that are too narrow.
        resamples: of people, for the intervals; many pairs take more of them (very many: a normal approximation).
        confidence: of each group's interval, and of all gaps together.
        seed: of the resamples; None for fresh randomness.

    Raises:
        ParameterError: one group only, an empty or a small one, a person in two groups, macro-F1 of a group that
            lacks a class, unequal lengths; the argument is named.

    >>> true = ["+", "-"] * 100
    >>> predicted = ["+", "-"] * 50 + ["+", "+"] * 50
    >>> found = fairness(true, predicted, ["x"] * 100 + ["y"] * 100, seed=1)
    >>> found.largest.better, round(found.largest.gap.value, 2), found.is_unequal
    ('x', 0.5, True)
    """
    if measure not in CLASS_MEASURES:
        raise ParameterError(f"measure must be one of {', '.join(CLASS_MEASURES)}, got {measure!r}")
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must lie between 0 and 1, got {confidence!r}")
    told, answered = np.asarray(true), np.asarray(predicted)
    statistic_of(measure, told, answered)  # says what is wrong with these two before groups come in
    codes = codes_of("groups", groups)
    whose = np.arange(told.size) if people is None else codes_of("people", people)
    for name, values in (("groups", codes), ("people", whose)):
        if values.size != told.size:
            raise ParameterError(f"{name} must have one entry for each of {told.size} rows, got {values.size}")
    names = [str(each) for each in np.asarray(groups)[np.unique(codes, return_index=True)[1]]]
    sizes = _sizes(codes, whose, smallest)
    _check_classes(measure, told, codes)
    scores = tuple(
        _group_score(
            name,
            measure,
            told[codes == group],
            answered[codes == group],
            None if people is None else whose[codes == group],
            size=int(sizes[group]),
            resamples=resamples,
            confidence=confidence,
            seed=seed,
        )
        for group, name in enumerate(names)
    )
    gaps = _gaps(measure, told, answered, codes, whose, names, resamples=resamples, error=1 - confidence, seed=seed)
    return Fairness(measure=measure, groups=scores, gaps=gaps)


def _group_score(
    name: str,
    which: str,
    true: npt.NDArray[Any],
    predicted: npt.NDArray[Any],
    people: Rows | None,
    *,
    size: int,
    resamples: int,
    confidence: float,
    seed: int | None,
) -> GroupScore:
    found = measure(which, true, predicted, people=people, resamples=resamples, confidence=confidence, seed=seed)
    return GroupScore(
        group=name, score=found.score, baseline=found.baseline, baseline_name=found.baseline_name, people=size
    )


def _gaps(
    which: str,
    true: npt.NDArray[Any],
    predicted: npt.NDArray[Any],
    codes: Rows,
    whose: Rows,
    names: list[str],
    *,
    resamples: int,
    error: float,
    seed: int | None,
) -> tuple[Gap, ...]:
    """All pairs from the same resamples of people.

    Of some ten groups and more, the percentiles lie too far out to be looked at: a hundred groups are 4,950 pairs,
    whose tails would take millions of resamples. There the spread is that of the resamples and the tail that of the
    normal distribution.
    """
    pairs = list(combinations(range(len(names)), 2))
    tail = error / len(pairs) / 2
    statistics = [_within(which, true, predicted, codes, group) for group in range(len(names))]
    needed = max(resamples, math.ceil(_IN_TAIL / tail))
    reach = NormalDist().inv_cdf(1 - tail) if needed > max(_MOST, resamples) else None
    values = np.array([each(np.arange(codes.size)) for each in statistics])
    # a resample of all people may leave a group, or a class of it, out: it says nothing about its pairs
    drawn = np.array(
        [
            [each(rows) for each in statistics]
            for rows in resampled_rows(
                whose, resamples=needed if reach is None else max(resamples, _FOR_SPREAD), seed=seed
            )
        ]
    )
    everybody = np.unique(whose).size
    gaps = []
    for one, other in pairs:
        one, other = (one, other) if values[one] >= values[other] else (other, one)
        differences = drawn[:, one] - drawn[:, other]
        differences = differences[np.isfinite(differences)]
        gap = float(values[one] - values[other])
        if reach is None:
            low, high = np.percentile(differences, [100 * tail, 100 * (1 - tail)])
        else:
            low, high = (gap + side * reach * differences.std() for side in (-1, 1))
        estimate = Estimate(gap, float(low), float(high), everybody, "people")
        gaps.append(Gap(better=names[one], worse=names[other], gap=estimate))
    return tuple(sorted(gaps, key=lambda each: -each.gap.value))


def _within(which: str, true: npt.NDArray[Any], predicted: npt.NDArray[Any], codes: Rows, group: int) -> Any:
    """The measure of those of the rows that are of a group; NaN where there are none."""
    places = np.flatnonzero(codes == group)
    statistic, _, _ = statistic_of(which, true[places], predicted[places])
    within = np.full(codes.size, -1)
    within[places] = np.arange(places.size)

    def measured(rows: Rows) -> float:
        here = within[rows]
        here = here[here >= 0]
        return statistic(here) if here.size else float("nan")

    return measured


def _sizes(codes: Rows, whose: Rows, smallest: int) -> Rows:
    """(groups,) people in each."""
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


def _check_classes(which: str, true: npt.NDArray[Any], codes: Rows) -> None:
    classes = codes_of("true", true)
    held = np.unique(np.stack([codes, classes]), axis=1)
    if which == "macro-F1" and held.shape[1] < (codes.max() + 1) * (classes.max() + 1):
        raise ParameterError("groups: macro-F1 compares groups that hold every class, and one lacks a class")
