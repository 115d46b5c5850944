"""DP-SGD on a linear model, and three ways to get it wrong: canary audits in one run.

A canary is an example with a gradient along an axis of its own. All iterates are released, as the analysis of
DP-SGD allows. Gradients are clipped to norm 1, the noise multiplier is z, and every canary takes part once, so the
claim is one Gaussian mechanism's (add/remove): rho = 1 / (2 z^2).
"""

import dataclasses

import numpy as np

from canaries import canary_loss, judge_canaries
from dptext import ZCDP, ApproxDP
from dptext.privacy.guarantee import Relation, approx_from_zcdp
from dptext.privacy.randomness import RandomBits
from known_broken.case import Case, claim

CANARIES = 1_000
DELTA = 1e-10  # times the number of canaries, far below the error of the audit: else the bound is all about delta
NOISE = 4.0
BATCH = 20  # ordinary examples per canary in the per-batch variants


def _claim() -> ApproxDP:
    return approx_from_zcdp(ZCDP(1 / (2 * NOISE**2)), delta=DELTA)


def two_halves(noise, *, repeat=False):
    """Two steps, half of the canaries each; the release holds both sums."""

    def train(included, bits):
        first = noise * bits.normal(CANARIES)
        second = first if repeat else noise * bits.normal(CANARIES)  # a counter used twice gives the same noise
        turn = np.arange(CANARIES) % 2 == 0
        return included * turn + first, included * ~turn + second

    def score(released):
        """With equal noise the difference of the two steps is the gradients alone."""
        difference = released[0] - released[1]
        return np.where(np.arange(CANARIES) % 2 == 0, difference, -difference)

    return train, score


def one_batch_each(clip_examples):
    """A step a canary: the canary (of huge gradient) and BATCH small examples; the mean is released with noise."""

    def train(included, bits):
        noise = NOISE / BATCH * bits.normal(CANARIES)
        others = 0.1 * bits.normal(CANARIES)  # the mean of ordinary gradients along the canary's axis
        if clip_examples:
            return included * 1.0 / BATCH + others / BATCH + noise
        mean = included * 1e6 / BATCH + others
        return mean / np.maximum(1.0, np.abs(mean)) + noise  # the *batch* is clipped to norm 1

    return train, lambda released: released


def _run(train, score):
    def run(seed, error):
        bits = RandomBits(seed).spawn(1)[0]
        bound = canary_loss(
            lambda included: train(included, bits), score, canaries=CANARIES, delta=DELTA, error=error, seed=seed
        )
        statement = dataclasses.replace(claim(_claim()), relation=Relation.ADD_REMOVE)
        return judge_canaries(statement, bound, error=error, coverage=f"{CANARIES:,} canaries, one training run")

    return run


CASES = [
    Case("DP-SGD", False, _run(*two_halves(NOISE)), "fresh noise at every step"),
    Case("DP-SGD, reused counter", True, _run(*two_halves(NOISE, repeat=True)), "the noise of two steps cancels"),
    Case("DP-SGD, no noise", True, _run(*two_halves(0.0)), "nothing was added"),
    Case("DP-SGD, per example", False, _run(*one_batch_each(True)), "each gradient clipped"),
    Case("DP-SGD, per-batch clipping", True, _run(*one_batch_each(False)), "one example may move the whole batch"),
]
