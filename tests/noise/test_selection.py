"""Selection on integer weights: exact sums, exact draws, refusal beyond what integers represent."""

import math
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dptext.noise.selection import TruncatedExponential, largest_exponent, weight_error
from dptext.privacy.randomness import RandomBits
from dptext.vectors.search import ExactDistances
from laws import follows


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(1).normal(size=(9_001, 8)).astype(np.float32)


def sums_of(selection, rows):
    """The cumulative block bounds that are kept of rows."""
    return selection._kept["sums"][selection._kept.slots(rows)]


def blocks_of(selection, rows):
    """(n, blocks, 512) weights of rows, the last block filled with zeros."""
    weights = selection.weights(rows)
    padded = np.zeros((rows.size, selection._blocks * 512), dtype=np.uint64)
    padded[:, : weights.shape[1]] = weights
    return padded.reshape(rows.size, -1, 512)


def test_float32_exp_is_as_accurate_as_the_slack_assumes():
    arguments = -np.linspace(0, largest_exponent(), 3_000_001, dtype=np.float32)
    exact = np.exp(arguments.astype(np.float64))
    error = np.abs(np.exp(arguments) - exact) / np.spacing(exact.astype(np.float32))
    assert error.max() <= 4  # units in the last place
    assert np.exp(np.zeros(40, dtype=np.float32)).min() == 1.0


def test_theta_bounds_the_weights_of_a_fine_grid_of_distances():
    # one-dimensional points at every distance up to the threshold, an exact grid: only the weights can err
    size, threshold = 20_000, 4.0
    points = np.linspace(0, 1.5 * threshold, size)[:, None]
    for rate in (0.1, 1.0, 5.0):
        table = ExactDistances(points)
        selection = TruncatedExponential(table, rate=rate, threshold=threshold)
        weights = selection.weights(np.array([0]))[0].astype(np.float64)
        grid = np.rint(points[:, 0] / table.step) * table.step
        exact = 44 * math.log(2) - rate * np.minimum(grid, threshold)
        error = np.abs(np.log(weights) - exact).max()
        assert error <= weight_error(rate * threshold)
        assert error > 1e-9  # there is rounding to bound


def test_block_sums_are_the_sums_of_the_very_weights_that_are_drawn_from(points):
    selection = TruncatedExponential(ExactDistances(points), rate=2.0, threshold=6.0)
    rows = np.arange(0, 9_001, 31)
    exact = blocks_of(selection, rows).sum(axis=2)
    np.testing.assert_array_equal(selection._block_bounds(rows), exact)
    bounds = selection._bounds_of(rows).astype(np.float64)
    assert (bounds >= exact).all()  # float32, rounded up
    assert (bounds <= exact * (1 + 2.0**-23)).all()
    [everything] = selection._kept.parts(rows, selection._find_bounds)
    assert everything.size == rows.size
    cumulative = np.cumsum(bounds.astype(np.uint64), axis=1, dtype=np.uint64)
    np.testing.assert_array_equal(sums_of(selection, rows), cumulative)


@pytest.mark.parametrize("rate", [0.5, 5.0, 20.0])
def test_block_bounds_from_the_coarse_grid_are_bounds_and_not_loose(points, rate):
    fine, coarse = ExactDistances(points), ExactDistances(points, dtype=np.float32)
    bounded = TruncatedExponential(fine, rate=rate, threshold=20.0 / rate, coarse=coarse)
    assert bounded._bounds is coarse
    rows = np.arange(0, 9_001, 7)
    ratio = bounded._block_bounds(rows) / blocks_of(bounded, rows).sum(axis=2).astype(np.float64)
    assert ratio.min() >= 1.0
    assert ratio.max() <= bounded._inflation.max() ** 2 * 1.01


def test_bounds_change_neither_the_weights_nor_the_law_of_the_draws(points):
    fine, coarse = ExactDistances(points), ExactDistances(points, dtype=np.float32)
    plain = TruncatedExponential(fine, rate=3.0, threshold=6.0)
    bounded = TruncatedExponential(fine, rate=3.0, threshold=6.0, coarse=coarse)
    rows = np.repeat(np.arange(5), 200_000)
    np.testing.assert_array_equal(plain.weights(np.arange(5)), bounded.weights(np.arange(5)))
    for selection, seed in ((plain, 1), (bounded, 2)):
        sample = selection.sample(rows, RandomBits(seed))
        for row, weights in enumerate(plain.weights(np.arange(5))):
            assert follows(np.bincount(sample[rows == row], minlength=weights.size), weights / weights.sum())
    # bounds that are taken for sums (no second look at the rest) are another law, and the test sees it
    careless = np.diff(sums_of(bounded, 0).astype(np.float64), prepend=0.0)
    exact = np.diff(sums_of(plain, 0).astype(np.float64), prepend=0.0)
    assert np.abs(careless / careless.sum() - exact / exact.sum()).max() > 1e-5


def test_every_number_below_the_sum_belongs_to_the_candidate_whose_interval_holds_it(points):
    """The draw is the inverse of the cumulative integer weights, at and around every edge."""
    selection = TruncatedExponential(ExactDistances(points), rate=2.0, threshold=6.0)
    row = 77
    weights = selection.weights(np.array([row]))[0]
    bounds = selection._bounds_of(np.array([row]))[0].astype(np.uint64)
    starts = np.cumsum(bounds, dtype=np.uint64) - bounds  # of the interval of each block
    inside = np.cumsum(blocks_of(selection, np.array([row]))[0], axis=1, dtype=np.uint64)
    edges = (starts[:, None] + inside).ravel()[: weights.size]

    class Fed:
        def __init__(self, numbers):
            self.numbers = numbers

        def below(self, total):
            assert (total == bounds.sum()).all()
            return self.numbers

    for first_or_last in (edges - weights, edges - np.uint64(1)):
        sample = selection.sample(np.full(weights.size, row), Fed(first_or_last))
        np.testing.assert_array_equal(sample, np.arange(weights.size))
    # the part of a block's bound beyond its true sum belongs to no candidate: the round starts again
    beyond = starts + inside[:, -1]
    beyond = beyond[inside[:, -1] < bounds]
    assert beyond.size
    assert (selection._draw(np.full(beyond.size, row), Fed(beyond)) == -1).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_another_thread_draws_does_not_wait_for_its_lock(points):
    selection = TruncatedExponential(ExactDistances(points), rate=2.0, threshold=6.0)
    with selection._kept._lock:  # held by a thread that the child does not have
        child = os.fork()
        if child == 0:
            os._exit(0 if selection.sample(np.arange(3), RandomBits(1)).size == 3 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_that_share_a_selection_do_not_disturb_each_other(points):

    selection = TruncatedExponential(ExactDistances(points), rate=2.0, threshold=6.0)
    tasks = [np.arange(start, start + 400) for start in range(0, 8_000, 400)]
    alone = [selection.sample(rows, RandomBits(place)) for place, rows in enumerate(tasks)]
    shared = TruncatedExponential(ExactDistances(points), rate=2.0, threshold=6.0)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda task: shared.sample(task[1], RandomBits(task[0])), enumerate(tasks)))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
