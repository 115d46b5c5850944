"""One-run auditing of anything that trains: Steinke, Nasr and Jagielski 2023 (arXiv:2305.08846).

Derivation: docs/understand/audits.md#audits-canaries
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, extra
from dptext.privacy.randomness import RandomBits

__all__ = ["CanaryBound", "canary_loss", "one_run_bound", "p_value"]


@dataclass(frozen=True)
class CanaryBound:
    """What one training run gave away.

    Attributes:
        loss: a lower bound on epsilon that holds with probability at least 1 - error.
        strongest: what as many guesses could have shown at most (all correct).
        correct, guesses, canaries: the counts behind it.
    """

    loss: float
    strongest: float
    correct: int
    guesses: int
    canaries: int


def p_value(correct: int, *, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The largest probability, over all (epsilon, delta)-DP trainings, of at least this many correct guesses."""
    binom = extra("scipy.stats", "audit", "a canary audit").binom
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    beta = float(binom.sf(correct - 1, guesses, chance))
    if delta == 0.0 or correct == 0:
        return min(1.0, beta)
    steps = np.arange(1, correct + 1)
    alpha = float(np.max(np.cumsum(binom.pmf(correct - steps, guesses, chance)) / steps))
    return min(1.0, beta + 2.0 * canaries * delta * alpha)


def one_run_bound(correct: int, *, guesses: int, canaries: int, delta: float = 0.0, error: float = 0.05) -> float:
    """The largest epsilon that this many correct guesses refute, 0 if none: p_value is below error up to there."""

    def refuted(epsilon: float) -> bool:
        return p_value(correct, guesses=guesses, canaries=canaries, epsilon=epsilon, delta=delta) < error

    low, high = 0.0, 1.0
    if not refuted(low):
        return 0.0
    while refuted(high) and high < 64:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def canary_loss(
    train: Callable[[npt.NDArray[np.bool_]], Any],
    score: Callable[[Any], npt.NDArray[np.float64]],
    *,
    canaries: int,
    guesses: int | None = None,
    delta: float = 0.0,
    error: float = 0.05,
    seed: int | None = None,
) -> CanaryBound:
    """Train once with a random half of the canaries and bound epsilon (add/remove of a canary) from below.

    Args:
        train: (m,) booleans, True where the canary is in the training data -> what was released.
        score: what was released -> (m,) scores; higher means likelier to have been in.
        canaries, guesses: m, and r, which is fixed before the run; default: all.
        delta: of the claim.
        error: the probability with which the bound may be wrong.
        seed: for the coins; None for fresh randomness.

    Raises:
        ParameterError: scores of another shape or not finite; counts out of range.
    """
    guesses = canaries if guesses is None else guesses
    if canaries < 2 or not 2 <= guesses <= canaries:
        raise ParameterError(f"expected 2 <= guesses <= canaries, got {guesses} guesses of {canaries} canaries")
    bits = RandomBits(seed)
    included = bits.below(np.full(canaries, 2, dtype=np.uint64)).astype(bool)
    scores = np.asarray(score(train(included.copy())), dtype=np.float64)
    if scores.shape != (canaries,) or not np.isfinite(scores).all():
        raise ParameterError(f"expected {canaries} finite scores, one a canary, got shape {scores.shape}")
    order = np.lexsort((bits.uniform(canaries), scores))  # ties fall at random
    lowest, highest = guesses // 2, guesses - guesses // 2
    correct = int((~included[order[:lowest]]).sum() + included[order[canaries - highest :]].sum())
    counts = {"guesses": guesses, "canaries": canaries}
    return CanaryBound(
        loss=one_run_bound(correct, **counts, delta=delta, error=error),
        strongest=one_run_bound(guesses, **counts, delta=delta, error=error),
        correct=correct,
        **counts,
    )
