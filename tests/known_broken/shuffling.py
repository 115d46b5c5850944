"""Shuffled messages of randomised response, and messages that are fewer, ordered or more than the statement says."""

import numpy as np
from scipy import stats

from dptext.privacy.shuffling import shuffled_epsilon
from known_broken.case import ApproxDP, Case, judge_pair

LOCAL, USERS, DELTA = 2.0, 200, 0.01
FALSE = 1 / (1 + np.exp(LOCAL))


def messages(value, users, count, bits):
    """The message of the user with this value, and the number of ones from all others, who have 0."""
    message = value ^ (bits.uniform(count) <= FALSE)
    others = np.searchsorted(stats.binom.cdf(np.arange(users), users - 1, FALSE), bits.uniform(count))
    return np.column_stack([message, others])


def ones(rows):
    """Number of ones, which is all that shuffled messages show."""
    return rows.sum(axis=1)


def mixed(score=ones, *, users=USERS, number=1):
    """The guarantee of one message among USERS, for ``number`` messages of everybody among ``users``."""

    def draw(value, count, bits):
        return np.hstack([messages(value, users, count, bits) for _ in range(number)])

    def run(seed, error):
        guarantee = ApproxDP(shuffled_epsilon(LOCAL, USERS, DELTA), DELTA)
        return judge_pair((1, 0), draw, score, guarantee, seed, error)

    return run


CASES = [
    Case("shuffled randomised response", False, mixed(), "200 users send one message each"),
    Case("shuffled randomised response, rows in the order of IN", True, mixed(lambda rows: rows[:, 0]), "no shuffler"),
    Case("shuffled randomised response, a label in the clear", True, mixed(users=20), "one of ten classes, N of all"),
    Case("shuffled randomised response, ten messages each", True, mixed(number=10), "one message per user is assumed"),
]
