"""One noisy sum over users, with and without the user whom it says most about; and three ways to get it wrong."""

import numpy as np

from dptext import Cooccurrence
from dptext.noise.gaussian_sums import CELL, noisy_matrix
from known_broken.case import ApproxDP, Case, judge_pair

EPSILON, DELTA = 2.0, 1e-5
WORDS = [f"word{'abcdefghi'[n]}" for n in range(9)]
PLAN = Cooccurrence((WORDS, np.random.default_rng(1).normal(size=(9, 3))), epsilon=EPSILON, delta=DELTA).plan()


class Someone:
    """A user of a few words."""

    levels = (None,)

    def __init__(self, *rows):
        self._rows = np.array(rows, dtype=np.int32)

    def chunks(self):
        yield self._rows, np.array([len(self._rows)], dtype=np.int64)


OTHERS = PLAN.total([Someone(0, 1, 0), Someone(1, 0)])
HIM = PLAN.total([Someone(*range(9), *range(9))])
ROW_BY_ROW = np.trunc(HIM / np.linalg.norm(HIM, axis=1, keepdims=True).clip(1) / CELL).astype(np.int64)


def whole(cells, sigma, bits):
    return noisy_matrix(cells, sigma, bits)


def used_rows_only(cells, sigma, bits):
    """Add noise to the rows of used words only."""
    return np.where(cells == 0, 0.0, noisy_matrix(cells, sigma, bits))


def _run(release, *, his=HIM, noise=1.0):
    inputs = (OTHERS + his, OTHERS)

    def draw(which, count, bits):
        cells = inputs[which]
        rows = release(np.tile(cells, (count, 1)), noise * PLAN.budgets.sigma, bits)
        return rows.reshape(count, *cells.shape)

    def score(outputs):
        """Along his matrix; but a row of a word that only he wrote is never 0 with him."""
        exact = (outputs[:, 2:9] == 0).all(axis=(1, 2))
        return np.where(exact, -1e9, np.einsum("nij,ij->n", outputs, his * CELL))

    def run(seed, error):
        return judge_pair((0, 1), draw, score, ApproxDP(EPSILON, DELTA), seed, error, samples=20_000)

    return run


CASES = [
    Case("co-occurrences", False, _run(whole), "one user is added, with all their words"),
    Case("co-occurrences, 3 times too little noise", True, _run(whole, noise=1 / 3), "claims 2, spends 7"),
    Case("co-occurrences, bounded word by word", True, _run(whole, his=ROW_BY_ROW), "nine rows of full length"),
    Case("co-occurrences, noise on used words only", True, _run(used_rows_only), "an unused row is exactly 0"),
]
