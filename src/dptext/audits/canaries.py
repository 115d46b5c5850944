"""One-run auditing: a lower bound on epsilon from canaries, each inserted or left out by a fair coin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError, extra
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_int


@dataclass(frozen=True)
class CanaryBound:
    """A lower bound on epsilon from one run, and the bound if all guesses had been correct."""

    loss: float
    strongest: float
    correct: int
    guesses: int
    canaries: int


def p_value(correct: int, *, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return the largest probability of ``correct`` or more correct guesses, over (epsilon, delta)-DP mechanisms."""
    binom = extra("scipy.stats", "audit", "a bound from canaries").binom
    chance = 1.0 / (1.0 + math.exp(-epsilon))
    beta = float(binom.sf(correct - 1, guesses, chance))
    if delta == 0.0 or correct == 0:
        return min(1.0, beta)
    steps = np.arange(1, correct + 1)
    alpha = float(np.max(np.cumsum(binom.pmf(correct - steps, guesses, chance)) / steps))
    return min(1.0, beta + 2.0 * canaries * delta * alpha)


def one_run_bound(correct: int, *, guesses: int, canaries: int, delta: float = 0.0, error: float = 0.05) -> float:
    """Return the largest epsilon that the number of correct guesses refutes; 0 if it refutes none."""
    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        is_refuted = p_value(correct, guesses=guesses, canaries=canaries, epsilon=middle, delta=delta) < error
        low, high = (middle, high) if is_refuted else (low, middle)
    return low


def canary_bound(
    scores: npt.ArrayLike,
    inserted: npt.ArrayLike,
    *,
    guesses: int | None = None,
    delta: float = 0.0,
    error: float = 0.05,
    seed: int | None = None,
) -> CanaryBound:
    """Bound epsilon from below by guessing which canaries were inserted (Steinke, Nasr and Jagielski 2023).

    The guesses are "inserted" for the highest scores and "left out" for as many of the lowest ones. Under
    (epsilon, delta)-DP for adding or removing one canary, the number of correct guesses is dominated by
    Binomial(guesses, e^epsilon / (1 + e^epsilon)), up to a term for delta (arXiv:2305.08846, Theorem 5.2). So 2 delta
    times the number of canaries must be well below the error, which is the probability of a wrong bound.

    Args:
        scores: (m,) finite, higher for canaries that seem to be inserted; computed without the coins.
        inserted: (m,) True for canaries that were inserted, each by an independent fair coin.
        guesses: number of guesses, fixed before the run; None: one for each canary.

    >>> canary_bound([3.0, 2.5, 2.0, 0.5, 0.2, 0.1] * 10, [1, 1, 1, 0, 0, 0] * 10).loss > 2
    True
    """
    values, inside = np.asarray(scores, dtype=np.float64), np.asarray(inserted).astype(bool)
    count = values.size
    if values.ndim != 1 or inside.shape != values.shape or not np.isfinite(values).all() or count < 2:
        raise ParameterError(
            f"scores must be finite numbers, at least two, one for each entry of inserted, got shapes {values.shape} "
            f"and {inside.shape}"
        )
    guesses = check_int("guesses", count if guesses is None else guesses, minimum=2, maximum=count)
    order = np.lexsort((RandomBits(seed).uniform(count), values))  # ties fall at random
    lowest, highest = guesses // 2, guesses - guesses // 2
    correct = int((~inside[order[:lowest]]).sum() + inside[order[count - highest :]].sum())
    loss, strongest = (
        one_run_bound(right, guesses=guesses, canaries=count, delta=delta, error=error) for right in (correct, guesses)
    )
    return CanaryBound(loss, strongest, correct, guesses, count)
