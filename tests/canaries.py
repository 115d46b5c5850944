"""One-run auditing with canaries (Steinke, Nasr and Jagielski 2023, arXiv:2305.08846).

One run with m canaries, each trained on or left out by a fair coin and scored (**higher: more likely a member**). The
r / 2 highest are guessed "in", the r / 2 lowest "out". Under (epsilon, delta)-DP for adding or removing one

    correct guesses are dominated by Binomial(r, e^epsilon / (1 + e^epsilon)), up to a term for delta    (Theorem 5.2)

Delta times the number of canaries must be well below the error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from dptext import PrivacyStatement
from dptext.audits.verdict import Outcome, Verdict, as_approx, check_claim
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CanaryBound:
    """A lower bound on epsilon from one training run, and the bound if all guesses had been correct."""

    loss: float
    strongest: float
    correct: int
    guesses: int
    canaries: int


def p_value(correct: int, *, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The largest probability, over all (epsilon, delta)-DP trainings, of at least this many correct guesses."""
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
    score: Callable[[Any], Floats],
    *,
    canaries: int,
    guesses: int | None = None,
    delta: float = 0.0,
    error: float = 0.05,
    seed: int | None = None,
) -> CanaryBound:
    """Train once with a random half of the canaries and bound epsilon (add/remove of a canary) from below.

    ``train`` turns (m,) booleans (True: the canary is in the training data) into a release, ``score`` a release into
    (m,) scores. The number of guesses is fixed before the run; ``error`` is the probability of a wrong bound.
    """
    guesses = canaries if guesses is None else guesses
    if canaries < 2 or not 2 <= guesses <= canaries:
        raise ParameterError(f"expected 2 <= guesses <= canaries, got {guesses} guesses of {canaries} canaries")
    bits = RandomBits(seed)
    included = bits.below(np.full(canaries, 2, dtype=np.uint64)).astype(bool)
    scores = np.asarray(score(train(included.copy())), dtype=np.float64)
    if scores.shape != (canaries,) or not np.isfinite(scores).all():
        raise ParameterError(f"expected {canaries} finite scores, one per canary, got shape {scores.shape}")
    order = np.lexsort((bits.uniform(canaries), scores))  # ties fall at random
    lowest, highest = guesses // 2, guesses - guesses // 2
    correct = int((~included[order[:lowest]]).sum() + included[order[canaries - highest :]].sum())
    bound = partial(one_run_bound, guesses=guesses, canaries=canaries, delta=delta, error=error)
    return CanaryBound(bound(correct), bound(guesses), correct, guesses, canaries)


def judge_canaries(claim: PrivacyStatement, bound: CanaryBound, *, error: float, coverage: str) -> Verdict:
    """Judge a claim by canaries in one training run."""
    guarantee = as_approx(check_claim(claim))
    allowed = guarantee.epsilon + claim.slack
    return Verdict(
        outcome=Outcome.REFUTED if bound.loss > allowed else Outcome.CONSISTENT,
        claim=claim.guarantee,
        method="canaries in one training run (Steinke, Nasr and Jagielski 2023)",
        loss=bound.loss,
        allowed=allowed,
        delta=guarantee.delta,
        error=error,
        strongest=bound.strongest,
        witness=f"{bound.correct:,} of {bound.guesses:,} guesses about {bound.canaries:,} canaries were right",
        coverage=coverage,
    )


def loss_of_sum(person, train, *, delta):
    """Each person is scored along their own matrix; in or out is a coin.

    Delta is small, because the bound of one-run auditing spends 2 delta for each canary of its error.
    """

    def score(released):
        return np.array([float((released * entry).sum()) for entry in person])

    return canary_loss(train, score, canaries=len(person), delta=delta, error=1e-6, seed=11)
