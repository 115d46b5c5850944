"""A level that is predicted from texts on a device and sent, with the release that it decides about."""

import math

import numpy as np

from dptext import PersonalBudgets
from dptext.noise.discrete import RandomizedResponse
from known_broken.case import ApproxDP, Case, judge_pair, judge_table

SENT = 1.0
BUDGETS = PersonalBudgets({"open": 1.0, "strict": 0.25}, delta=1e-5)
SHIFTS = np.array([BUDGETS.clipping_norm(level) / BUDGETS.sigma for level in BUDGETS.levels])
RESPONSE, THREE = RandomizedResponse(2, SENT), RandomizedResponse(3, SENT)


def _sent(table, sampler=None):
    """Audit the distribution of the sent level given the predicted one, and the draws of the sampler."""
    return lambda *run: judge_table(table, SENT, sampler, run=run)


def sender(response):
    """Return a sampler of the level that a device sends."""
    return lambda inputs, bits: response.draw(bits, inputs)


def _both(guarantee):
    """The level and one number of the release, the user's texts there (read as "open") or not (read as "strict")."""

    def draw(which, count, bits):
        level = RESPONSE.draw(bits, np.full(count, which))
        return np.stack([level, (1 - which) * SHIFTS[level] + bits.normal(count)], axis=1)

    def score(outputs):
        level, value = outputs[:, 0].astype(int), outputs[:, 1]
        chances = np.log(RESPONSE.probabilities)
        return chances[0, level] - chances[1, level] + SHIFTS[level] * (value - SHIFTS[level] / 2)

    return lambda seed, error: judge_pair((0, 1), draw, score, guarantee, seed, error)


def warner(categories):
    """The chances of two categories, taken for more of them."""
    truth = math.exp(SENT) / (1 + math.exp(SENT))
    table = np.full((categories, categories), (1 - truth) / (categories - 1))
    np.fill_diagonal(table, truth)
    return table


CASES = [
    Case("a level, sent by a device", False, _sent(THREE.probabilities, sender(THREE)), "response of one in 3"),
    Case("a level, chances of two for three", True, _sent(warner(3)), "each other level is too rare"),
    Case("a level, sent without noise", True, _sent(np.eye(3)), "it is read off the texts"),
    Case("a level and its release", False, _both(ApproxDP(BUDGETS.cap + SENT, BUDGETS.delta)), "cap and sending"),
    Case("a level and its release, not counted", True, _both(ApproxDP(BUDGETS.cap, BUDGETS.delta)), "the cap alone"),
]
