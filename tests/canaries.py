"""One-run auditing (Steinke, Nasr, Jagielski 2023) of a released sum of matrices, one of each person."""

import numpy as np

from dptext.audits.losses import canary_loss


def loss_of_sum(person, train, *, delta):
    """Each person is scored along their own matrix; in or out is a coin.

    Delta is small, because the bound of one-run auditing spends 2 delta for each canary of its error.
    """

    def score(released):
        return np.array([float((released * entry).sum()) for entry in person])

    return canary_loss(train, score, canaries=len(person), delta=delta, error=1e-6, seed=11)
