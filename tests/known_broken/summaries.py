"""Summaries of texts, and mistakes in the bound on what one person adds to all parts together."""

import numpy as np

from dptext.audits.verdict import judge_gaussian
from dptext.noise.gaussian_sums import CELL, noisy_matrix
from dptext.noise.set_union import SetUnion, weights
from dptext.privacy.guarantee import Unit
from dptext.summary.describe import SummaryPlan, UserSums
from dptext.users.grouping import UserTexts
from known_broken.case import ApproxDP, Case, claim, judge_pair

EPSILON, DELTA = 2.0, 1e-5
TOPICS = {"tea": "tea and a cup of coffee", "law": "tax law in court", "sports": "the team won the game"}
PLAN = SummaryPlan(epsilon=EPSILON, delta=DELTA, topics=TOPICS, time="date", bins="2003..2004", phrases=0)
SOMEONE = (["the law in court"] * 3, np.ones(3, dtype=np.int32))  # one topic at one time: of norm 1


def cells(*people):
    """All parts of the sums of these people in one row."""
    sums = UserSums(PLAN)
    sums.add(UserTexts([person]) for person in people)
    return np.concatenate([part.ravel() for part in sums.cells.values()])


OTHERS = cells((["a cup of tea"], np.zeros(1, dtype=np.int32)), (["our team won"], np.ones(1, dtype=np.int32)))
ONE = cells(SOMEONE)
EACH_PART_OF_NORM_1 = np.concatenate(
    [np.rint(part / np.linalg.norm(part) / CELL).ravel() for part in np.split(ONE, np.cumsum([1, 4, 3]))]
).astype(np.int64)
"""The weights of the parts were forgotten: each part is as long as the person may be."""
EACH_TEXT_OF_NORM_1 = sum(cells(([text], bins[None])) for text, bins in zip(SOMEONE[0], SOMEONE[1], strict=True))
"""Three texts, each with the weight of a person."""


def released(moved=ONE, *, noise=1.0):
    def draw(comes, count, bits):
        return noisy_matrix(np.tile(OTHERS + comes * moved, (count, 1)), noise * PLAN.sigma, bits)

    def run(seed, error):
        return judge_pair(
            (True, False), draw, lambda rows: rows @ (moved * CELL), ApproxDP(EPSILON, DELTA), seed, error
        )

    return run


def shares_of_topics(normalise):
    """Noise for a norm of 1 on topics x phrases, and a person who writes the phrases of four topics."""

    def run(_seed, _error):
        moved = normalise(np.eye(4))
        guarantee = ApproxDP(EPSILON, DELTA)
        return judge_gaussian(
            claim(guarantee, Unit.USER),
            sigma=PLAN.sigma,
            sensitivity=float(np.linalg.norm(moved)),
            release_guarantee=guarantee,
            coverage="one person with phrases of four topics",
        )

    return run


def phrases(*, spare):
    """Phrases of one person alone come through if the threshold leaves them no room for the noise."""
    union = SetUnion.build(PLAN.sigma, DELTA / 2, 4)

    def draw(comes, count, bits):
        alone = np.tile(comes * weights(np.full(4, 4)), (count, 1))
        noisy = noisy_matrix(alone, union.scale, bits)
        return (noisy >= union.threshold - spare * union.scale) & (alone > 0)

    def run(seed, error):
        return judge_pair(
            (True, False), draw, lambda rows: rows.any(axis=1).astype(float), ApproxDP(EPSILON, DELTA), seed, error
        )

    return run


CASES = [
    Case("text summary", False, released(), "one person comes, with texts of one topic"),
    Case("text summary, 3 times too little noise", True, released(noise=1 / 3), "claims 2, spends 7"),
    Case("text summary, each part of norm 1", True, released(EACH_PART_OF_NORM_1), "four parts: norm 2"),
    Case("text summary, each text with the weight of a person", True, released(EACH_TEXT_OF_NORM_1), "three texts"),
    Case(
        "phrases by topic", False, shares_of_topics(lambda m: m / np.linalg.norm(m)), "norm 1 over topics and phrases"
    ),
    Case(
        "phrases by topic, normalised topic by topic",
        True,
        shares_of_topics(lambda m: m / np.linalg.norm(m, axis=1, keepdims=True)),
        "as the votes of DPSDA: four topics have norm 2",
    ),
    Case("phrases of a summary", False, phrases(spare=0), "a phrase of one person is hardly ever released"),
    Case("phrases of a summary, threshold too low", True, phrases(spare=2), "by two deviations of the noise"),
]
