"""Bits and unary encodings: exact losses over the realised thresholds, budgets, errors, frequencies, bytes."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats

from dptext.audits.losses import exact_loss
from dptext.noise.discrete import SCALE
from dptext.privacy.randomness import RandomBits
from dptext.representations.bits import (
    OneBit,
    OptimizedUnary,
    SymmetricUnary,
    WeightedBits,
    bit_budgets,
    unary_epsilon,
)
from known_broken.vectors_bits import bits_given_codes, code_table, kron_rows, unary_table

FALSE_ALARM = 1e-6
UNARY = [SymmetricUnary, OptimizedUnary]


def variance(budgets):
    """Equation (variance) of the module."""
    weights = 2.0 ** np.arange(len(budgets)) / (2 ** len(budgets) - 1)
    return (weights**2 / np.sinh(np.asarray(budgets) / 2) ** 2).sum()


# -- exact losses ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "dimension"), [(1, 1), (1, 4), (2, 3), (3, 2), (10, 1)])
@pytest.mark.parametrize("epsilon", [0.1, 6.0])
def test_weighted_loss_of_all_pairs_is_the_stated_epsilon(bits, dimension, epsilon):
    channel = WeightedBits(epsilon=epsilon, bits=bits).channel(dimension)
    table = kron_rows(*[code_table(channel.thresholds)] * dimension)
    result = exact_loss(np.log(table), allowed=channel.guarantee.epsilon)
    assert result.excess <= 0
    assert 0.99 * epsilon < result.largest <= channel.guarantee.epsilon <= epsilon


def test_weighted_budget_of_the_highest_bit_for_all_is_refuted():
    channel = WeightedBits(epsilon=2.0, bits=4).channel(1)
    broken = code_table([channel.thresholds[-1]] * 4)
    assert exact_loss(np.log(broken), allowed=channel.guarantee.epsilon).excess > 1


def test_weighted_bytes_follow_the_enumerated_law_and_an_even_split_is_rejected():
    channel = WeightedBits(epsilon=3.0, bits=4).channel(1)
    draws, code = 200_000, 11
    sent = channel.send(np.full((draws, 1), 2 * code / 15 - 1), RandomBits(1))
    counts = np.bincount(sent[:, 0] >> 4, minlength=16)
    assert stats.chisquare(counts, code_table(channel.thresholds)[code] * draws).pvalue > FALSE_ALARM
    even = [math.ceil(SCALE / (1 + math.exp(3 / 4)))] * 4
    assert stats.chisquare(counts, code_table(even)[code] * draws).pvalue < FALSE_ALARM


def test_one_bit_has_the_chance_of_its_number():
    for x in [-1.0, -0.25, 0.6]:
        channel = OneBit(epsilon=2.0).channel(1)
        draws = 200_000
        ones = int((channel.sample(np.full((draws, 1), x), RandomBits(2)) > 0).sum())
        flip = channel.thresholds[0] / SCALE
        assert stats.binomtest(ones, draws, 0.5 + x * (0.5 - flip)).pvalue > FALSE_ALARM
        assert stats.binomtest(ones, draws, 0.5 + (x + 0.1) * (0.5 - flip)).pvalue < FALSE_ALARM


def test_weighted_statement_has_the_realised_epsilon_and_the_thresholds():
    statement = WeightedBits(epsilon=3.0, bits=2).statement(5)
    thresholds = [int(part) for part in statement.parameters["flip_thresholds"].split(" of ")[0].split()]
    realised = 5 * sum(math.log((SCALE - threshold) / threshold) for threshold in thresholds)
    assert thresholds[0] < thresholds[1]  # the highest bit first, which is flipped least
    assert statement.epsilon == pytest.approx(realised, rel=1e-10)
    assert 2.99 < realised <= statement.epsilon <= 3.0
    assert statement.slack == 0.0
    assert statement.parameters["bits"] == 2


# -- budgets -----------------------------------------------------------------------------------------------------


def test_bit_budgets_add_up_and_no_trade_between_two_bits_helps():
    for epsilon, bits in product((0.01, 3.0, 60.0), (1, 2, 10)):
        budgets = bit_budgets(epsilon, bits)
        assert budgets.sum() == pytest.approx(epsilon, rel=1e-9)
        minimum = variance(budgets)
        for one, other in pairwise(range(bits)):
            for step in (0.01, -0.01):
                moved = budgets.copy()
                moved[one] += step * budgets.min()
                moved[other] -= step * budgets.min()
                assert variance(moved) >= minimum


# -- errors ------------------------------------------------------------------------------------------------------

CHANNELS = [
    WeightedBits(epsilon=20.0, bits=1),
    WeightedBits(epsilon=20.0, bits=3),
    WeightedBits(epsilon=40.0, bits=10),
    WeightedBits(epsilon=100.0),
    OneBit(epsilon=12.0),
]


def test_one_bit_states_its_error_exactly():
    for dimension in (1, 3, 50):
        expected = OneBit(epsilon=5.0).expected_squared_error(dimension)
        assert expected == pytest.approx(dimension / math.tanh(2.5 / dimension) ** 2 - 1, rel=1e-6)
        assert WeightedBits(epsilon=5.0, bits=1).expected_squared_error(dimension) == expected


# -- unary encodings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", UNARY)
def test_unary_loss_of_all_pairs_is_the_stated_epsilon(build):
    for dimension, epsilon in [(2, 0.05), (2, 12.0), (7, 0.05), (7, 12.0)]:
        channel = build(epsilon=epsilon).channel(dimension)
        result = exact_loss(np.log(unary_table(channel)), allowed=channel.guarantee.epsilon)
        assert result.excess <= 0
        assert 0.99 * epsilon < result.largest <= channel.guarantee.epsilon <= epsilon


def test_unary_chances_on_any_code_are_refuted():
    """OUE's chances are sound where exactly one bit is 1; with any bits, four of them lose 2.48 instead of 1."""
    channel = OptimizedUnary(epsilon=1.0).channel(4)
    every_code = bits_given_codes([channel.one / SCALE] * 4, [channel.zero / SCALE] * 4)
    assert exact_loss(np.log(every_code), allowed=1.0).excess > 1


def test_unary_bits_follow_the_law_and_another_is_rejected():
    draws = 200_000
    for build, other in (UNARY, UNARY[::-1]):
        channel = build(epsilon=2.0).channel(4)
        sent = channel.send(np.tile([0.0, 0.0, 3.0, 1.0], (draws, 1)), RandomBits(1))
        # the first bit sent is the first coordinate; codes count from the last
        codes = np.array([int(f"{byte >> 4:04b}"[::-1], 2) for byte in range(256)])
        counts = np.bincount(codes[sent[:, 0]], minlength=16)
        assert stats.chisquare(counts, unary_table(channel)[2] * draws).pvalue > FALSE_ALARM
        wrong = unary_table(other(epsilon=2.0).channel(4))[2]
        assert stats.chisquare(counts, wrong * draws).pvalue < FALSE_ALARM


def test_unary_errors_are_the_published_formulas_and_thresholds_are_stated():
    for epsilon in (0.5, 2.0, 5.0):
        half, whole = math.exp(epsilon / 2), math.exp(epsilon)
        symmetric = SymmetricUnary(epsilon=epsilon).expected_squared_error(30)
        assert symmetric == pytest.approx(30 * half / (half - 1) ** 2, rel=1e-6)
        optimized = OptimizedUnary(epsilon=epsilon).expected_squared_error(30)
        expected = 29 * 4 * whole / (whole - 1) ** 2 + ((whole + 1) / (whole - 1)) ** 2
        assert optimized == pytest.approx(expected, rel=1e-6)
    assert OptimizedUnary(epsilon=500.0).channel(4).guarantee.epsilon < 22.2  # the end of 32-bit chances
    assert SymmetricUnary(epsilon=500.0).channel(4).guarantee.epsilon < 44.4
    assert unary_epsilon(SCALE // 2, 1) == pytest.approx(math.log(SCALE - 1))
    statement = OptimizedUnary(epsilon=1.0).statement(10)
    assert statement.parameters["one_threshold"] == SCALE // 2
    assert statement.epsilon == pytest.approx(unary_epsilon(SCALE // 2, statement.parameters["zero_threshold"]))


@pytest.mark.parametrize("build", UNARY)
def test_unary_frequencies_are_unbiased_and_raw_bits_are_not(build):
    people, things = 60_000, 12
    randomizer = build(epsilon=2.0)
    channel = randomizer.channel(things)
    truth = np.random.default_rng(1).choice(things, people, p=np.arange(1, 13) / 78)
    sent = randomizer.send(np.eye(things)[truth], seed=4)
    shares = np.bincount(truth, minlength=things) / people
    estimate = randomizer.frequencies(sent, things)
    spread = math.sqrt(max(channel._variance_of_one, channel._variance_of_zero))
    limit = stats.norm.isf(FALSE_ALARM / 2 / things) * spread / math.sqrt(people)
    assert np.abs(estimate - shares).max() < limit
    np.testing.assert_allclose(randomizer.decode(sent, things).mean(axis=0, dtype=float), estimate, atol=1e-6)
    assert np.abs(np.unpackbits(sent, axis=1)[:, :things].mean(axis=0) - shares).max() > limit
    assert (randomizer.frequencies(sent[:0], things) == 0).all()


# -- bytes ---------------------------------------------------------------------------------------------------------

SENDERS = [*CHANNELS, OptimizedUnary(epsilon=2.0)]


@pytest.mark.parametrize("randomizer", SENDERS, ids=repr)
def test_sent_bytes_decode_to_the_sample_and_any_bytes_decode(randomizer):
    for dimension in [2, 5, 300]:
        channel = randomizer.channel(dimension)
        vectors = np.random.default_rng(2).uniform(-1.2, 1.2, (2_000, dimension))
        sent = channel.send(vectors, RandomBits(5))
        assert sent.shape == (2_000, channel.bytes)
        np.testing.assert_array_equal(channel.decode(sent), channel.sample(vectors, RandomBits(5)))
    assert (randomizer.send(vectors, seed=3) == randomizer.send(vectors, seed=3)).all()
    assert (randomizer.send(vectors) != randomizer.send(vectors)).any()
    channel = randomizer.channel(11)
    rubbish = np.random.default_rng(1).integers(0, 256, (500, channel.bytes), dtype=np.uint8)
    decoded = randomizer.decode(rubbish, 11)
    assert decoded.shape == (500, 11) and np.isfinite(decoded).all()
    if unused := 8 * channel.bytes - channel.bits:
        rubbish[:, -1] ^= 1
        np.testing.assert_array_equal(channel.decode(rubbish), decoded)
        assert not (randomizer.send(np.zeros((50, 11)))[:, -1] & ((1 << unused) - 1)).any()
