"""Weighted and single bits: exact losses over the realised thresholds, budgets, errors, and what is never an error."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, stats

from dptext.audits.losses import exact_loss
from dptext.errors import ParameterError
from dptext.noise.discrete import SCALE
from dptext.privacy.randomness import RandomBits
from dptext.representations.bits import OneBit, WeightedBits, bit_budgets
from dptext.representations.bounds import Domain
from known_broken.vectors_bits import code_table, kron_rows

FALSE_ALARM = 1e-6


def logs(table):
    return np.log(table)


def variance(budgets):
    """Equation (variance) of the module."""
    weights = 2.0 ** np.arange(len(budgets)) / (2 ** len(budgets) - 1)
    return (weights**2 / np.sinh(np.asarray(budgets) / 2) ** 2).sum()


def split_by_weight(epsilon, bits):
    shares = (2.0 ** np.arange(bits)) ** (2 / 3)
    return epsilon * shares / shares.sum()


def one_bit(epsilon):
    return 1 / math.tanh(epsilon / 2) ** 2


# -- exact losses ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "dimension"), [(1, 1), (1, 4), (2, 3), (3, 2), (10, 1)])
@pytest.mark.parametrize("epsilon", [0.1, 6.0])
def test_the_loss_of_all_pairs_of_codes_is_the_stated_epsilon(bits, dimension, epsilon):
    channel = WeightedBits(epsilon=epsilon, bits=bits).channel(dimension)
    table = kron_rows(*[code_table(channel.thresholds)] * dimension)
    result = exact_loss(logs(table), allowed=channel.guarantee.epsilon)
    assert result.excess <= 0
    assert 0.99 * epsilon < result.largest <= channel.guarantee.epsilon <= epsilon


def test_budgets_of_the_highest_bit_for_all_are_refuted():
    channel = WeightedBits(epsilon=2.0, bits=4).channel(1)
    broken = code_table([channel.thresholds[-1]] * 4)
    assert exact_loss(logs(broken), allowed=channel.guarantee.epsilon).excess > 1


def test_the_bytes_on_the_wire_follow_the_enumerated_law_and_an_even_split_is_rejected():
    channel = WeightedBits(epsilon=3.0, bits=4).channel(1)
    draws, code = 200_000, 11
    sent = channel.send(np.full((draws, 1), 2 * code / 15 - 1), RandomBits(1))
    counts = np.bincount(sent[:, 0] >> 4, minlength=16)
    assert stats.chisquare(counts, code_table(channel.thresholds)[code] * draws).pvalue > FALSE_ALARM
    even = [math.ceil(SCALE / (1 + math.exp(3 / 4)))] * 4
    assert stats.chisquare(counts, code_table(even)[code] * draws).pvalue < FALSE_ALARM


def test_one_bit_is_one_as_often_as_its_number_says():
    for x in [-1.0, -0.25, 0.0, 0.6, 1.0]:
        channel = OneBit(epsilon=2.0).channel(1)
        draws = 200_000
        ones = int((channel.sample(np.full((draws, 1), x), RandomBits(2)) > 0).sum())
        flip = channel.thresholds[0] / SCALE
        assert stats.binomtest(ones, draws, 0.5 + x * (0.5 - flip)).pvalue > FALSE_ALARM
        assert stats.binomtest(ones, draws, 0.5 + (x + 0.1) * (0.5 - flip)).pvalue < FALSE_ALARM


def test_statements_carry_the_realised_epsilon_and_the_thresholds():
    statement = WeightedBits(epsilon=3.0, bits=2).statement(5)
    thresholds = [int(part) for part in statement.parameters["flip_thresholds"].split(" of ")[0].split()]
    realised = 5 * sum(math.log((SCALE - threshold) / threshold) for threshold in thresholds)
    assert thresholds[0] < thresholds[1]  # the highest bit first, which is flipped least
    assert statement.epsilon == pytest.approx(realised, rel=1e-10)
    assert 2.99 < realised <= statement.epsilon <= 3.0
    assert statement.slack == 0.0
    assert statement.parameters["bits"] == 2


# -- budgets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 3.0, 60.0])
@pytest.mark.parametrize("bits", [1, 2, 10])
def test_budgets_add_up_and_no_trade_between_two_bits_helps(epsilon, bits):
    budgets = bit_budgets(epsilon, bits)
    assert budgets.sum() == pytest.approx(epsilon, rel=1e-9)
    minimum = variance(budgets)
    for one, other in pairwise(range(bits)):
        for step in (0.01, -0.01):
            moved = budgets.copy()
            moved[one] += step * budgets.min()
            moved[other] -= step * budgets.min()
            assert variance(moved) >= minimum


def test_budgets_agree_with_an_optimiser():
    """scipy's own search over four budgets, as an independent oracle."""
    result = optimize.minimize(
        lambda free: variance(6.0 * np.exp(free) / np.exp(free).sum()), np.zeros(4), options={"gtol": 1e-10}
    )
    assert variance(bit_budgets(6.0, 4)) == pytest.approx(result.fun, rel=1e-7)


def test_budgets_are_those_of_the_two_thirds_rule_at_small_epsilon():
    np.testing.assert_allclose(bit_budgets(0.1, 10), split_by_weight(0.1, 10), rtol=1e-4)
    assert variance(split_by_weight(8.0, 10)) < 1.003 * variance(bit_budgets(8.0, 10))
    assert variance(split_by_weight(16.0, 10)) > 1.09 * variance(bit_budgets(16.0, 10))


def test_weighing_is_seven_to_ten_times_better_than_an_even_split():
    for epsilon, bits, ratio in [(1.0, 10, 7.0), (1.0, 12, 9.9), (2.0, 11, 8.4), (4.0, 10, 7.5)]:
        even = variance(np.full(bits, epsilon / bits))
        assert even / variance(bit_budgets(epsilon, bits)) == pytest.approx(ratio, rel=0.02)


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.125, 4.8), (2.0, 2.7)])
def test_one_bit_is_better_at_small_budgets(epsilon, ratio):
    assert variance(bit_budgets(epsilon, 10)) / one_bit(epsilon) == pytest.approx(ratio, rel=0.02)
    many = WeightedBits(epsilon=64 * epsilon, bits=10).expected_squared_error(64)
    assert many / OneBit(epsilon=64 * epsilon).expected_squared_error(64) == pytest.approx(ratio, rel=0.03)


def test_one_bit_loses_at_large_budgets():
    assert variance(bit_budgets(8.0, 10)) < 0.25 * one_bit(8.0)


def test_the_number_of_bits_is_the_best_one():
    for epsilon in [0.5, 3.0, 4.0, 8.0, 25.0]:
        chosen = WeightedBits(epsilon=epsilon * 20).channel(20)
        errors = [WeightedBits(epsilon=epsilon * 20, bits=bits).expected_squared_error(20) for bits in range(1, 17)]
        errors[0] += 1  # rounding at its worst, as for the others
        assert errors[chosen.bits_a_number - 1] == min(errors)


# -- errors ------------------------------------------------------------------------------------------------------

CHANNELS = [
    WeightedBits(epsilon=20.0, bits=1),
    WeightedBits(epsilon=20.0, bits=3),
    WeightedBits(epsilon=40.0, bits=10),
    WeightedBits(epsilon=100.0),
    OneBit(epsilon=12.0),
]


def test_outputs_are_unbiased_with_the_stated_error_and_two_thirds_of_it_are_rejected():
    for randomizer in CHANNELS:
        dimension, draws = 6, 100_000
        channel = randomizer.channel(dimension)
        x = np.array([0.5, -0.5, 0.5, -0.45, 0.2, -0.0866])
        x /= np.sqrt((x**2).sum())
        private = channel.sample(np.tile(x, (draws, 1)), RandomBits(3)).astype(np.float64)
        deviations = (private.mean(axis=0) - x) / (private.std(axis=0) / math.sqrt(draws))
        # six means and two errors, each nearly normal at 100,000 draws
        limit = stats.norm.isf(FALSE_ALARM / 2 / 8)
        assert np.abs(deviations).max() < limit
        errors = ((private - x) ** 2).sum(axis=1)
        spread = errors.std() / math.sqrt(draws)
        # the stated error counts rounding at its worst: here it is known
        levels = (x + 1) / 2 * (2**channel.bits_a_number - 1)
        share = levels - np.floor(levels)
        rounding = 4 * (share * (1 - share)).sum() / (2**channel.bits_a_number - 1) ** 2
        expected = channel._noise * dimension + rounding
        assert expected <= channel.expected_squared_error * (1 + 1e-9)
        assert abs(errors.mean() - expected) < limit * spread + 1e-6
        assert errors.mean() < 1.02 * channel.expected_squared_error
        assert abs(errors.mean() - expected / 1.5) > limit * spread


def test_one_bit_states_its_error_exactly():
    for dimension in (1, 3, 50):
        expected = OneBit(epsilon=5.0).expected_squared_error(dimension)
        assert expected == pytest.approx(dimension / math.tanh(2.5 / dimension) ** 2 - 1, rel=1e-6)
        assert WeightedBits(epsilon=5.0, bits=1).expected_squared_error(dimension) == expected


def test_second_moments_are_those_of_the_rounded_numbers():
    channel = WeightedBits(epsilon=30.0, bits=3).channel(3)
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 8, (100_000, 3))
    codes[:, 1] = codes[:, 0]
    vectors = 2 * codes / 7 - 1
    private = channel.sample(vectors, RandomBits(4)).astype(np.float64)
    products = private[:, :, None] * private[:, None, :]
    spread = (products - vectors[:, :, None] * vectors[:, None, :]).std(axis=0) / math.sqrt(len(vectors))
    debiased = channel.debiased_second_moment(products.mean(axis=0))
    limit = stats.norm.isf(FALSE_ALARM / 2 / 9)
    truth = vectors.T @ vectors / len(vectors)
    assert (np.abs(debiased - truth) < limit * spread).all()
    assert (np.abs(products.mean(axis=0) - truth).diagonal() > limit * spread.diagonal()).all()  # what was taken off


def test_one_bit_tells_no_second_moments():
    for channel in (OneBit(epsilon=4.0).channel(3), WeightedBits(epsilon=4.0, bits=1).channel(3)):
        with pytest.raises(ParameterError, match="second moments"):
            channel.debiased_second_moment(np.eye(3))


# -- the wire, and total functions ---------------------------------------------------------------------------------


def test_what_is_sent_decodes_to_what_is_sampled():
    for randomizer in CHANNELS:
        for dimension in [1, 5, 300]:
            channel = randomizer.channel(dimension)
            vectors = np.random.default_rng(2).uniform(-1.2, 1.2, (2_000, dimension))
            sent = channel.send(vectors, RandomBits(5))
            assert sent.shape == (2_000, -(-dimension * channel.bits_a_number // 8))
            np.testing.assert_array_equal(channel.decode(sent), channel.sample(vectors, RandomBits(5)))


def test_strange_vectors_are_those_of_the_cube():
    """NaN is 0, infinities are the ends: the same noise gives the same outputs."""
    strange = np.tile([[np.nan, np.inf, -np.inf, 1e300]], (500, 1))
    plain = np.tile([[0.0, 1.0, -1.0, 1.0]], (500, 1))
    for randomizer in CHANNELS:
        assert (randomizer.randomize(strange, seed=1) == randomizer.randomize(plain, seed=1)).all()
    assert WeightedBits.domains == OneBit.domains == (Domain.CUBE,)


def test_bad_arguments_say_what_was_expected():
    for arguments, message in [
        ({"epsilon": 1.0, "bits": 0}, "from 1 to 16"),
        ({"epsilon": 1.0, "bits": 17}, "from 1 to 16"),
        ({"epsilon": 1.0, "bits": 2.0}, "bits must be an integer from 1 to 16"),
        ({"epsilon": 1.0, "bits": True}, "bits must be an integer from 1 to 16"),
    ]:
        with pytest.raises(ParameterError, match=message):
            WeightedBits(**arguments)


def test_too_little_for_a_bit_is_refused_with_what_to_do():
    with pytest.raises(ParameterError, match="send fewer bits"):
        WeightedBits(epsilon=1e-6, bits=16).channel(8)
    with pytest.raises(ParameterError, match="raise epsilon"):
        OneBit(epsilon=1e-4).channel(2**20)
