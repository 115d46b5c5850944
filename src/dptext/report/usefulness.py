"""What a release is still good for, and for whom: models trained on its rows, beside raw rows and blind guesses."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.evaluation.fairness import SMALLEST_GROUP, Fairness, fairness
from dptext.evaluation.utility import Predictions, UtilityScore, predictions
from dptext.report.parts import GroupGap, Measurement

__all__ = ["Form", "frequent", "served", "useful"]

Mask = npt.NDArray[np.bool_]
_WORDS = {"private": "private rows", "raw": "original rows"}


@dataclass(frozen=True, eq=False)
class Form:
    """Models of one kind: what they are trained and tested on, and their answers."""

    trained_on: str
    tested_on: str
    answers: Predictions

    @property
    def owner_only(self) -> bool:
        """Whether original rows had a part in it."""
        return "raw" in (self.trained_on, self.tested_on)

    @property
    def name(self) -> str:
        """For the reader."""
        return f"trained on {_WORDS[self.trained_on]}, tested on {_WORDS[self.tested_on]}"


def frequent(values: Sequence[Hashable], people: Sequence[Hashable] | None, least: int) -> Mask:
    """(rows,) whether at least so many people (rows, where nobody is named) have the value of this row."""
    whose = range(len(values)) if people is None else people
    holders: dict[Hashable, set[Hashable]] = {}
    for value, person in zip(values, whose, strict=True):
        holders.setdefault(value, set()).add(person)
    return np.array([len(holders[value]) >= least for value in values], dtype=bool)


def useful(
    private: Any,
    raw: Any,
    labels: Sequence[str],
    *,
    people: Sequence[Hashable] | None,
    folds: int,
    seed: int,
    comparable: bool = True,
) -> list[Form]:
    """Train on private rows and test on private ones; where there are original rows, also on these.

    Args:
        private: texts or vectors.
        raw: the same rows as they were; None: not at hand.
        labels: (rows,) what a model has to name.
        people: (rows,) whose row each is.
        folds, seed: of `predictions`.
        comparable: whether a model of private rows can read original ones (not where vectors came from texts).

    Raises:
        ParameterError: one kind of label only, fewer rows or people than folds.
    """
    whose = None if people is None else np.asarray([str(each) for each in people])
    how: dict[str, Any] = {"people": whose, "folds": folds, "seed": seed}
    wanted = np.asarray(labels)
    forms = [Form("private", "private", predictions(private, wanted, **how))]
    if raw is not None and comparable:
        forms.append(Form("private", "raw", predictions(private, wanted, test_rows=raw, **how)))
    if raw is not None:
        forms.append(Form("raw", "raw", predictions(raw, wanted, trained_on="raw", **how)))
    return forms


def as_measurement(form: Form, task: str, *, owner_only: bool) -> Measurement:
    """The accuracy of a form, for a page."""
    found: UtilityScore = form.answers.score("accuracy")
    return Measurement(
        what=form.name,
        measure="accuracy",
        score=found.score,
        baseline=found.baseline,
        baseline_name=found.baseline_name,
        gain=found.gain,
        owner_only=owner_only or form.owner_only,
        detail=f"{task}: {found.rows:,} rows, {found.folds} folds, {found.model}, {found.features}",
    )


def served(
    form: Form, groups: Sequence[str], people: Sequence[Hashable] | None, *, owner_only: bool
) -> tuple[list[Measurement], GroupGap]:
    """How good a form is for each group, and the largest gap in words.

    Args:
        form: its models.
        groups: (rows,) the name of each row's group, of which rows are left out that are in too small ones.
        people: (rows,) whose row each is.
        owner_only: whether the columns stand in the original file alone.

    Raises:
        ParameterError: fewer than two groups that are large enough, or somebody in two groups.
    """
    names = [groups[row] for row in form.answers.rows]
    whose = None if people is None else [str(people[row]) for row in form.answers.rows]
    large = frequent(names, whose, SMALLEST_GROUP)
    if len(set(np.asarray(names)[large])) < 2:
        raise ParameterError(
            f"group: expected at least two groups of {SMALLEST_GROUP} people or more among the rows that were looked "
            "at, got fewer: name another column, or look at more rows"
        )
    found: Fairness = fairness(
        form.answers.true[large],
        form.answers.predicted[large],
        np.asarray(names)[large],
        people=None if whose is None else np.asarray(whose)[large],
    )
    measured = [
        Measurement(
            what=each.group,
            measure="accuracy",
            score=each.score,
            baseline=each.baseline,
            baseline_name=each.baseline_name,
            owner_only=owner_only or form.owner_only,
            detail=f"{each.people:,} {'rows' if people is None else 'people'}, {form.name}",
        )
        for each in found.groups
    ]
    gap = found.largest
    shown = "more than chance explains" if gap.is_shown else "which chance may explain"
    words = (
        f"{form.name[0].upper()}{form.name[1:]}: the largest gap is {100 * gap.gap.value:.1f} points ({gap.better!r} "
        f"above {gap.worse!r}; 95% interval {100 * gap.gap.low:.1f} to {100 * gap.gap.high:.1f}), {shown}."
    )
    return measured, GroupGap(
        words=words,
        is_shown=gap.is_shown,
        of_release=form.trained_on == "private",
        owner_only=owner_only or form.owner_only,
    )
