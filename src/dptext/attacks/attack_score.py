"""The score that every attack returns, with its interval and its baseline."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.attacks.rows import as_people
from dptext.drawing import checked_axes, legend_below, score_row
from dptext.estimates import Estimate, mean_of_people, share
from dptext.showing import Facts, Showing

__all__ = ["AttackScore", "share_of_rows"]


@dataclass(frozen=True, kw_only=True, repr=False)
class AttackScore(Showing):
    """How well an attack did, beside somebody who sees nothing.

    Higher is always better for the attacker, and worse for the people in the data.

    Attributes:
        measure: what the number is ("AUC", "accuracy", "macro-F1", "share of words recovered").
        score: the number with its interval.
        baseline: what is reached without looking at the private output.
        baseline_name: how ("chance", "majority class", "most frequent words").
        detail: one sentence for the reader of a report; never any text of a user.
    """

    attack: str
    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    detail: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the attack did better than the baseline, beyond its interval."""
        return self.score.low > self.baseline

    @property
    def advantage(self) -> float:
        """How far it lies above the baseline."""
        return self.score.value - self.baseline

    def __str__(self) -> str:
        return f"{self.attack}: {self.measure} {self.score} against {self.baseline:.3f} ({self.baseline_name})"

    def _in_brief(self) -> Facts:
        yield "attack", self.attack
        yield "measure", self.measure
        yield "score", self.score.value
        yield "baseline", self.baseline
        yield "succeeded", self.succeeded

    def _in_full(self) -> Facts:
        yield "95% interval", f"{self.score.low:.3f} to {self.score.high:.3f} ({self.score.count:,} {self.score.of})"
        yield "baseline is", self.baseline_name
        yield "detail", self.detail or None

    def plot(self, axes: Any = None) -> Any:
        """Draw the number with its interval beside the baseline, as one more row of the axes.

        Returns the axes of matplotlib: those given, which may show other attacks, or new ones (extra ``report``).
        """
        axes, score = checked_axes(axes, height=2.2), self.score
        name = self.attack.replace(" (", "\n(")
        score_row(axes, name, value=score.value, low=score.low, high=score.high, baseline=self.baseline)
        axes.set_xlabel(self.measure)
        legend_below(axes)
        return axes


def share_of_rows(hits: npt.NDArray[np.bool_], people: Iterable[Hashable] | None, confidence: float) -> Estimate:
    """A share of rows, with an interval over people where it is known whose they are."""
    if people is None:
        return share(int(hits.sum()), hits.size, confidence=confidence)
    return mean_of_people(hits, as_people(people, hits.size), confidence=confidence)
