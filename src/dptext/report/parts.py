"""What a page is made of beside statement, verdicts and attacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dptext.attacks.score import AttackScore
from dptext.estimates import Estimate

__all__ = ["GroupGap", "Measurement", "Sample", "main_scores"]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What the release is still good for, or how good it is for one group.

    Attributes:
        what: the task or the group.
        measure: what the number is; higher is better unless ``lower_is_better``.
        score: the number with its interval.
        baseline: what is reached without the texts.
        baseline_name: how ("majority class", "mean").
        lower_is_better: whether the number counts errors.
        gain: how much better than the baseline on the same rows, where that was measured; above 0 is better.
        detail: how it was measured, in one sentence.
        owner_only: whether original rows had a part in it: the promise does not cover the number.
    """

    what: str
    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    lower_is_better: bool = False
    gain: Estimate | None = None
    detail: str = ""
    owner_only: bool = False

    @property
    def is_useful(self) -> bool:
        """Whether it is beyond the baseline with the whole interval: of the gain, where that is known."""
        if self.gain is not None:
            return self.gain.low > 0
        return self.score.high < self.baseline if self.lower_is_better else self.score.low > self.baseline


@dataclass(frozen=True, kw_only=True)
class GroupGap:
    """How far the groups lie apart that one model serves.

    Attributes:
        words: the largest gap, in a sentence.
        is_shown: whether it is more than chance explains.
        of_release: whether the model is one that whoever has the release could train.
        owner_only: whether original rows, or columns, had a part in it.
    """

    words: str
    is_shown: bool
    of_release: bool = True
    owner_only: bool = False


@dataclass(frozen=True)
class Sample:
    """A *public or synthetic* text before and after."""

    before: str
    after: str


def main_scores(scores: Sequence[AttackScore]) -> list[AttackScore]:
    """The first number of each attack, which says how often he was right; the others say it in other ways."""
    first: dict[str, AttackScore] = {}
    for each in scores:
        first.setdefault(each.attack, each)
    return list(first.values())
