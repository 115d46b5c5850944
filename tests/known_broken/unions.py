"""Weighted set union (words, labels and phrases of users), with and without a user whose names are unique."""

from dataclasses import replace

import numpy as np

from dptext.noise.set_union import SetUnion, weights
from known_broken.case import ApproxDP, Case, judge_pair

EPSILON, DELTA, KEYS = 2.0, 0.01, 9
UNION = SetUnion.calibrated(epsilon=EPSILON, delta=DELTA, keys=KEYS)
SHARED, NEW = slice(0, 3), slice(3, KEYS)
"""Keys that others have, too, and keys of the user alone."""
OTHERS = np.where(np.arange(KEYS) < 3, 40, 0) * int(weights(1))


def names(outputs):
    """Number of new keys."""
    return (outputs[:, NEW] > 0).sum(axis=1)


def sums(outputs):
    """Sum of the weights that others have, too."""
    return outputs[:, SHARED].sum(axis=1)


def _released(places, size, score, union=UNION):
    """Noisy sums of the keys, 0 for a suppressed one; the user adds the weight of ``size`` keys at ``places``."""
    user = np.zeros(KEYS, dtype=np.int64)
    user[places] = int(weights(size))

    def draw(comes, count, bits):
        cells = np.tile(OTHERS + user if comes else OTHERS, count)
        kept, noisy = union.release(np.arange(cells.size), cells, bits)
        result = np.zeros(cells.size)
        result[kept] = noisy
        return result.reshape(count, KEYS)

    def run(seed, error):
        return judge_pair((True, False), draw, score, ApproxDP(EPSILON, DELTA), seed, error, samples=50_000)

    return run


EVERYWHERE, ONE_NEW = slice(None), slice(3, 4)
LOW, LITTLE = replace(UNION, threshold=UNION.threshold - 1), replace(UNION, scale=UNION.scale / 3)
CASES = [
    Case("set union, names", False, _released(EVERYWHERE, KEYS, names), "nine words of a user have norm 1"),
    Case("set union, sums", False, _released(SHARED, 3, sums), "three words of many users"),
    Case("set union, a weight of 1 for every word", True, _released(EVERYWHERE, 1, names), "nine words have norm 3"),
    Case("set union, threshold for the noise alone", True, _released(ONE_NEW, 1, names, LOW), "a word weighs 1, too"),
    Case("set union, a third of the noise", True, _released(SHARED, 3, sums, LITTLE), "claims 2, spends 7"),
]
