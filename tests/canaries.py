"""Canaries in a training run, and a verdict on a claim (`dptext.audits.canaries`)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext import PrivacyStatement
from dptext.audits.canaries import CanaryBound, canary_bound
from dptext.audits.verdict import Outcome, Verdict, as_approx, check_claim
from dptext.privacy.randomness import RandomBits

Floats = npt.NDArray[np.float64]


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
    included = RandomBits(seed).below(np.full(canaries, 2, dtype=np.uint64)).astype(bool)
    scores, ties = score(train(included.copy())), None if seed is None else seed + 1
    return canary_bound(scores, included, guesses=guesses, delta=delta, error=error, seed=ties)


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
