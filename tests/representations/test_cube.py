"""Piecewise and Hybrid: exact losses on small grids, errors, and the choice of window, coordinates and share."""

import math

import numpy as np
import pytest
from scipy import stats

from dptext.audits.losses import exact_loss
from dptext.privacy.randomness import RandomBits
from dptext.representations.cube import STEPS, CubeChannel, Hybrid, Piecewise, Plan
from known_broken.vectors_bits import cube_table, number_table

FALSE_ALARM = 1e-6
BOTH = [Piecewise, Hybrid]


def small(epsilon, dimension, plan, steps=3):
    return CubeChannel("under test", epsilon, dimension, plan, steps=steps)


PLANS = [
    (1, Plan(1, 1, 0.4)),
    (1, Plan(1, 1, 0.0)),
    (2, Plan(2, 0, 1.0)),
    (2, Plan(2, 1, 0.5)),
    (3, Plan(2, 1, 1.0)),
]


@pytest.mark.parametrize(("dimension", "plan"), PLANS)
@pytest.mark.parametrize("epsilon", [0.2, 6.0])
def test_cube_loss_of_all_pairs_is_the_stated_epsilon(dimension, plan, epsilon):
    channel = small(epsilon, dimension, plan, steps=3 if dimension < 3 else 1)
    result = exact_loss(np.log(cube_table(channel)), allowed=channel.guarantee.epsilon)
    assert result.excess <= 0
    assert 0.99 * epsilon < result.largest <= channel.guarantee.epsilon <= epsilon


def test_cube_with_the_whole_budget_for_every_coordinate_is_refuted():
    broken = small(4.0, 2, Plan(2, 0, 1.0))
    assert exact_loss(np.log(cube_table(broken)), allowed=2.0).excess > 1.9


def test_enumerated_law_is_unbiased_with_the_stated_error():
    """Sums over the enumerated outputs of one number: mean x, and A + B x^2."""
    for dimension, plan in PLANS:
        channel = small(2.0, dimension, plan)
        table, steps = number_table(channel), 3 if channel.window else 1
        values = []
        if channel.window is not None:
            window = channel.window
            values.append(np.arange(-window.reach, window.reach + 1) / (window.gain * steps))
        if channel.flip is not None:
            values.append(np.array([1, -1]) / (1 - 2 * channel.flip / 2**32))
        outputs, places = np.concatenate(values), np.arange(-steps, steps + 1) / steps
        np.testing.assert_allclose(table @ outputs, places, atol=1e-9)
        squares = table @ outputs**2
        np.testing.assert_allclose(squares, channel._constant + channel._slope * places**2, rtol=1e-9)
        d, k = dimension, plan.numbers
        of_ends = d / k * (squares[-1] + (d - 1) * squares[steps]) - 1  # the first axis: one number 1, the others 0
        rounding = d / k * d * channel._slope / (4 * 3 * 3)
        assert channel.expected_squared_error == pytest.approx(
            of_ends + rounding * (channel.window is not None), rel=1e-8
        )


def outputs_of(channel):
    """All outputs of one number, in the order of `number_table`."""
    window = np.arange(-channel.window.reach, channel.window.reach + 1) / (channel.window.gain * channel.window.steps)
    bit = 1 / (1 - 2 * channel.flip / 2**32)
    return np.concatenate([window, [bit, -bit]]) * channel.dimension / channel.numbers


@pytest.mark.parametrize("x", [-1.0, 0.0, 2 / 3])
def test_draws_follow_the_enumerated_law_and_that_of_another_share_is_rejected(x):
    channel, draws = small(1.5, 1, Plan(1, 1, 0.6)), 200_000
    sample = channel.sample(np.full((draws, 1), x), RandomBits(1))[:, 0]
    outputs = outputs_of(channel)
    nearest = np.abs(sample[:, None] - outputs).argmin(axis=1)
    np.testing.assert_allclose(sample, outputs[nearest], rtol=1e-6)
    counts = np.bincount(nearest, minlength=outputs.size)
    row = round(x * 3) + 3
    assert stats.chisquare(counts, number_table(channel)[row] * draws).pvalue > FALSE_ALARM
    for other in (small(1.5, 1, Plan(1, 1, 0.4)), small(2.25, 1, Plan(1, 1, 0.6))):
        assert stats.chisquare(counts, number_table(other)[row] * draws).pvalue < FALSE_ALARM


# -- the choice of window, coordinates and share -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("build", BOTH)
@pytest.mark.parametrize(("epsilon", "dimension"), [(0.5, 6), (9.0, 6), (30.0, 12)])
def test_no_other_number_of_coordinates_is_better(build, epsilon, dimension):
    """The error is the largest over the cube for Hybrid, that of vectors of length 1 for Piecewise."""

    def error(channel):
        d, k = dimension, channel.numbers
        at_zero, excess = d / k * d * channel._constant, d / k * channel._slope - 1
        return at_zero + (max(0.0, excess) * d if build is Hybrid else excess)

    chosen = error(build(epsilon=epsilon).channel(dimension))
    shares = (1.0,) if build is Piecewise else (0.0, 0.3, 0.6, 1.0)
    for numbers in range(1, dimension + 1):
        for half in np.unique(np.geomspace(1, 2 * STEPS, 80).astype(int)):
            for share in shares:
                other = CubeChannel("other", epsilon, dimension, Plan(numbers, int(half), share))
                assert chosen < error(other) * (1 + 1e-4)


def test_hybrid_error_is_the_same_for_all_vectors():
    channel = Hybrid(epsilon=12.0).channel(4)
    assert 0 < channel.windowed < 2**32
    assert 4 / channel.numbers * channel._slope == pytest.approx(1.0, abs=1e-6)
    draws = 100_000
    for x in (np.zeros(4), np.ones(4), np.array([1.0, -0.5, 0.0, 0.2])):
        errors = ((channel.sample(np.tile(x, (draws, 1)), RandomBits(6)).astype(np.float64) - x) ** 2).sum(axis=1)
        limit = stats.norm.isf(FALSE_ALARM / 2) * errors.std() / math.sqrt(draws)
        assert abs(errors.mean() - channel.expected_squared_error) < limit


def test_statement_has_the_integers_of_the_sampler():
    statement = Piecewise(epsilon=8.0).statement(64)
    assert (statement.parameters["numbers_sent"], statement.parameters["steps"]) == (1, STEPS)
    assert 7.99 < statement.epsilon <= 8.0
    assert {"window_threshold", "flip_threshold"} <= set(Hybrid(epsilon=8.0).statement(4).parameters)
