"""The score that every attack returns, with its interval and its baseline."""

from __future__ import annotations

from dataclasses import dataclass

from dptext.estimates import Estimate

__all__ = ["AttackScore"]


@dataclass(frozen=True, kw_only=True)
class AttackScore:
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
