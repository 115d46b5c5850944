"""The sum that one server publishes, as the other server sees it, and mistakes in the shares and in the noise."""

from types import SimpleNamespace

import numpy as np

from dptext.noise.gaussian_sums import CELL, rounded_gaussian
from dptext.privacy.gaussian import gaussian_sigma
from dptext.synthesis.servers import Contribution, ShareSum
from known_broken.case import ApproxDP, Case, judge_pair

EPSILON, DELTA = 2.0, 1e-5
SIGMA = gaussian_sigma(epsilon=EPSILON, delta=DELTA, sensitivity=1.0)
SIZE, SAMPLES = 8, 20_000
UNIT = round(1 / CELL)
USER = np.array([UNIT, *[0] * (SIZE - 1)], dtype=np.int64)
OTHERS = [np.roll(USER, place) // 2 for place in range(1, 4)]


def _judged(draw, seed, error, samples=SAMPLES):
    """Audit whether the user contributes USER or nothing: the content, towards a server that sees who sends."""

    def score(outputs):
        return outputs[:, 0].astype(np.float64) * CELL

    return judge_pair((True, False), draw, score, ApproxDP(EPSILON, DELTA), seed, error, samples=samples)


def _seen_by_the_other(*, noise=1.0, by="b"):
    """One server knows its own shares, and sees the sum that the other publishes."""

    def run(seed, error):
        def draw(comes, count, bits):  # all coordinates are independent, so one long sum is many short ones
            plan = SimpleNamespace(digest=bytes(32), size=count * SIZE, server_sigma=max(noise * SIGMA, CELL))
            rows = [np.tile(cells, count) for cells in [USER * comes, *OTHERS]]
            messages = [Contribution(plan.digest, row).shares() for row in rows]
            published, known = ShareSum(plan), ShareSum(plan)
            for message in messages:
                published.add(message["ab".index(by)])
                known.add(message["ba".index(by)])
            own = np.frombuffer(known.part()["sum"], dtype=np.uint64)
            values = published.publish(seed=int(bits.integers(1)[0])).values + own
            return values.view(np.int64).reshape(count, SIZE)

        return _judged(draw, seed, error)

    return run


def _second_share(mask):
    """What server b receives from the user: f - a, with masks drawn in this way; it gets another user's, too."""

    def run(seed, error):
        def draw(comes, count, bits):
            first, second = (mask(count, bits) for _ in range(2)) if mask is not _reused else [mask(count, bits)] * 2
            user, other = (USER * comes).view(np.uint64) - first, OTHERS[0].view(np.uint64) - second
            return (user - other if mask is _reused else user).view(np.int64)

        return _judged(draw, seed, error)

    return run


def _uniform(count, bits):
    return bits.integers(count * SIZE).reshape(count, SIZE)


def _small(count, bits):
    return _uniform(count, bits) >> np.uint64(44)


def _reused(count, bits):
    return _uniform(count, bits)


def _noise_of_one_server(seed, error):
    """Server a adds all noise, and the claim is made against it as well: it subtracts its own noise."""

    def draw(comes, count, bits):
        noise = rounded_gaussian(bits, np.zeros((count, SIZE)), sigma=SIGMA / CELL, step=1.0).astype(np.int64)
        combined = USER * comes + sum(OTHERS) + noise
        return combined - noise

    return _judged(draw, seed, error)


CASES = [
    Case("sum of server a, seen by server b", False, _seen_by_the_other(by="a"), "full noise of one server"),
    Case("sum of server b, seen by server a", False, _seen_by_the_other(by="b"), "full noise of one server"),
    Case("sum of a server, 3 times too little noise", True, _seen_by_the_other(noise=1 / 3), "claims 2, spends 7"),
    Case("sum of a server, published without noise", True, _seen_by_the_other(noise=0.0), "nothing is added"),
    Case("noise of one server only, claimed against both", True, _noise_of_one_server, "a server knows its own noise"),
    Case("share of a user", False, _second_share(_uniform), "uniform modulo 2^64"),
    Case("share of a user, from a small range", True, _second_share(_small), "a mask of 20 bits hides no 24"),
    Case("shares with a mask that is used twice", True, _second_share(_reused), "their difference is exact"),
]
