"""Numbers out of range: refused, or total at the extremes."""

import math

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.noise.discrete import SCALE, RandomizedResponse, flip_epsilon, flip_threshold, window_within
from dptext.noise.selection import TruncatedExponential, largest_exponent, weight_error
from dptext.noise.set_union import SetUnion
from dptext.noise.subset_selection import Profile, SubsetSelection
from dptext.privacy.randomness import RandomBits
from dptext.vectors.search import ExactDistances

LINE = np.arange(3.0)[:, None]


class Many:
    """A table of more candidates than 64 bits can add up."""

    step, rounding = 1.0, 0.0

    def __len__(self):
        return 2**20


def selection(points=LINE, rate=1.0, threshold=1.0):
    return lambda: TruncatedExponential(ExactDistances(points), rate=rate, threshold=threshold)


def profile(ranks, cumulative):
    return lambda: Profile(np.array(ranks), np.array(cumulative), candidates=4)


def counts(**changes):
    return lambda: SetUnion.calibrated(**{"epsilon": 1.0, "delta": 1e-6, "keys": 10, **changes})


REFUSED = [
    *(lambda arguments=arguments: RandomizedResponse(*arguments) for arguments in ((0, 1.0), (3, 0.0), (3, math.nan))),
    *(
        lambda arguments=arguments: SubsetSelection(*arguments)
        for arguments in ((1, 1, 1.0), (5, 0, 1.0), (5, 5, 1.0), (5, 2, 0.0), (5, 2, 1e4), (2**62, 1, 1.0))
    ),
    *(
        lambda sets=sets: SubsetSelection(5, 2, 1.0).draw(RandomBits(), np.array(sets))
        for sets in ([0, 1], [[0]], [[1, 0]], [[1, 1]], [[-1, 1]], [[1, 5]], [[0.0, 1.0]])
    ),
    *(
        lambda people=people, union=union: SubsetSelection(8, 2, 1.5).relinking(people, union)
        for people, union in ((0, None), (1, 3), (2, 1), (5, 9))
    ),
    profile([4], [1.0]),
    profile([2, 1, 4], [1.0, 2.0, 3.0]),
    profile([1, 4], [1.0, np.nan]),
    counts(epsilon=0.0),
    counts(epsilon=math.inf),
    counts(delta=0.0),
    counts(delta=1.0),
    counts(keys=0),
    lambda: TruncatedExponential(Many(), rate=1.0, threshold=1.0),
    selection(LINE[:1]),
    selection(threshold=largest_exponent() + 0.01),
    selection(threshold=5e-25, rate=1e25),
    selection(np.append(np.random.default_rng(1).normal(size=(100, 1)), [[1e9]], axis=0), rate=2.5, threshold=5.0),
    lambda: window_within(1e-11, 2**20, 2**19),
    lambda: flip_threshold(1e-10),
]


def test_numbers_out_of_range_are_refused():
    for call in REFUSED:
        with pytest.raises(ParameterError):
            call()


def test_extremes_stay_total():
    selection(threshold=largest_exponent())()
    assert 4 * weight_error(largest_exponent()) <= 1e-3
    assert weight_error(40.0) == math.inf
    for epsilon in (22.2, 100.0, 1e6):  # beyond 32 bits the chance stays above zero
        assert flip_threshold(epsilon) == 1
        assert flip_epsilon(1) == math.log(2**32 - 1)
    assert window_within(1e6, 2**20, 0).threshold == SCALE - 1
    assert window_within(500.0, 2**20, 0).epsilon < 37
    chances = [SubsetSelection(20_000, 7, 8.0).relinking(300, parts=parts) for parts in (1, 2, 100, 20_000)]
    assert chances == sorted(chances)
    assert 1 / 300 < chances[0] < chances[-1] <= 1.0
