"""Unary encodings: exact losses over all pairs, frequencies, errors."""

import math

import numpy as np
import pytest
from scipy import stats

from dptext.audits.losses import exact_loss
from dptext.errors import ParameterError
from dptext.noise.discrete import SCALE
from dptext.privacy.randomness import RandomBits
from dptext.representations.bits import OptimizedUnary, SymmetricUnary, unary_epsilon
from known_broken.vectors_bits import bits_given_codes, unary_table

FALSE_ALARM = 1e-6
BOTH = [SymmetricUnary, OptimizedUnary]


@pytest.mark.parametrize("build", BOTH)
@pytest.mark.parametrize("dimension", [2, 7])
@pytest.mark.parametrize("epsilon", [0.05, 12.0])
def test_the_loss_of_all_pairs_is_the_stated_epsilon(build, dimension, epsilon):
    channel = build(epsilon=epsilon).channel(dimension)
    result = exact_loss(np.log(unary_table(channel)), allowed=channel.guarantee.epsilon)
    assert result.excess <= 0
    assert 0.99 * epsilon < result.largest <= channel.guarantee.epsilon <= epsilon


def test_the_same_chances_on_any_code_are_refuted():
    """OUE's chances are sound where exactly one bit is 1; where any bits may be, four of them cost 2.48 and not 1."""
    channel = OptimizedUnary(epsilon=1.0).channel(4)
    every_code = bits_given_codes([channel.one / SCALE] * 4, [channel.zero / SCALE] * 4)
    assert exact_loss(np.log(every_code), allowed=1.0).excess > 1


def test_bits_follow_the_law_on_the_wire_and_another_is_rejected():
    draws = 200_000
    for build, other in (BOTH, BOTH[::-1]):
        channel = build(epsilon=2.0).channel(4)
        sent = channel.send(np.tile([0.0, 0.0, 3.0, 1.0], (draws, 1)), RandomBits(1))
        # the first bit of the wire is the first coordinate; codes count from the last
        codes = np.array([int(f"{byte >> 4:04b}"[::-1], 2) for byte in range(256)])
        counts = np.bincount(codes[sent[:, 0]], minlength=16)
        assert stats.chisquare(counts, unary_table(channel)[2] * draws).pvalue > FALSE_ALARM
        wrong = unary_table(other(epsilon=2.0).channel(4))[2]
        assert stats.chisquare(counts, wrong * draws).pvalue < FALSE_ALARM


@pytest.mark.parametrize("build", BOTH)
@pytest.mark.parametrize("dimension", [2, 9, 100])
def test_outputs_are_unbiased_with_the_stated_error_and_two_thirds_of_it_are_rejected(build, dimension):
    draws = 4_000_000 // dimension // 10
    channel = build(epsilon=3.0).channel(dimension)
    x = np.zeros(dimension)
    x[1] = 1.0
    private = channel.sample(np.tile(x, (draws, 1)), RandomBits(2)).astype(np.float64)
    limit = stats.norm.isf(FALSE_ALARM / 2 / (dimension + 2))
    assert (np.abs(private.mean(axis=0) - x) < limit * private.std(axis=0) / math.sqrt(draws)).all()
    errors = ((private - x) ** 2).sum(axis=1)
    spread = limit * errors.std() / math.sqrt(draws)
    assert abs(errors.mean() - channel.expected_squared_error) < spread
    assert abs(errors.mean() - channel.expected_squared_error / 1.5) > spread


def test_errors_are_the_published_formulas():
    for epsilon in (0.5, 2.0, 5.0):
        half, whole = math.exp(epsilon / 2), math.exp(epsilon)
        symmetric = SymmetricUnary(epsilon=epsilon).expected_squared_error(30)
        assert symmetric == pytest.approx(30 * half / (half - 1) ** 2, rel=1e-6)
        optimized = OptimizedUnary(epsilon=epsilon).expected_squared_error(30)
        assert optimized == pytest.approx(
            29 * 4 * whole / (whole - 1) ** 2 + ((whole + 1) / (whole - 1)) ** 2, rel=1e-6
        )


@pytest.mark.parametrize("build", BOTH)
def test_frequencies_are_unbiased_and_those_of_undebiased_bits_are_not(build):
    people, things = 60_000, 12
    randomizer = build(epsilon=2.0)
    truth = np.random.default_rng(1).choice(things, people, p=np.arange(1, 13) / 78)
    sent = randomizer.send(np.eye(things)[truth], seed=4)
    shares = np.bincount(truth, minlength=things) / people
    estimate = randomizer.frequencies(sent, things)
    # bits are independent: a normal deviation of at most that of a coordinate
    spread = math.sqrt(max(randomizer.channel(things)._variance_of_one, randomizer.channel(things)._variance_of_zero))
    limit = stats.norm.isf(FALSE_ALARM / 2 / things) * spread / math.sqrt(people)
    assert np.abs(estimate - shares).max() < limit
    np.testing.assert_allclose(randomizer.decode(sent, things).mean(axis=0, dtype=np.float64), estimate, atol=1e-6)
    assert np.abs(np.unpackbits(sent, axis=1)[:, :things].mean(axis=0) - shares).max() > limit
    assert (randomizer.frequencies(sent[:0], things) == 0).all()


@pytest.mark.parametrize("build", BOTH)
def test_second_moments_are_frequencies_on_the_diagonal(build):
    randomizer = build(epsilon=3.0)
    vectors = np.eye(4)[np.random.default_rng(2).integers(0, 3, 200_000)]
    private = randomizer.randomize(vectors, seed=5).astype(np.float64)
    debiased = randomizer.channel(4).debiased_second_moment(private.T @ private / len(vectors))
    spread = (private**2).std(axis=0) / math.sqrt(len(vectors))
    limit = stats.norm.isf(FALSE_ALARM / 2 / 4)
    assert (np.abs(debiased.diagonal() - vectors.mean(axis=0)) < limit * spread).all()
    assert (debiased[~np.eye(4, dtype=bool)] == 0).all()


@pytest.mark.parametrize("build", BOTH)
def test_no_vector_is_an_error(build):
    strange = np.array([[0.0, 0.0, 0.0], [np.nan] * 3, [np.inf, -np.inf, np.inf], [-1e308, 1e308, 1e308]])
    with np.errstate(all="raise"):
        private = build(epsilon=1.0).randomize(np.tile(strange, (200, 1)), seed=1)
        plain = build(epsilon=1.0).randomize(np.tile(np.eye(3)[[0, 0, 0, 1]], (200, 1)), seed=1)
    np.testing.assert_array_equal(private, plain)
    assert build(epsilon=1.0).randomize(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("build", BOTH)
def test_bad_arguments_say_what_was_expected(build):
    with pytest.raises(ParameterError, match="of at least 2, got 1"):
        build(epsilon=1.0).channel(1)
    with pytest.raises(ParameterError, match="raise epsilon"):
        build(epsilon=1e-10).channel(4)
    with pytest.raises(ParameterError, match="expected uint8"):
        build(epsilon=1.0).frequencies(np.zeros((3, 4)), 4)


def test_huge_budgets_end_where_chances_of_32_bits_end():
    assert OptimizedUnary(epsilon=500.0).channel(4).guarantee.epsilon < 22.2
    assert SymmetricUnary(epsilon=500.0).channel(4).guarantee.epsilon < 44.4
    assert unary_epsilon(SCALE // 2, 1) == pytest.approx(math.log(SCALE - 1))


def test_the_statement_carries_both_thresholds():
    statement = OptimizedUnary(epsilon=1.0).statement(10)
    assert statement.parameters["one_threshold"] == SCALE // 2
    assert statement.epsilon == pytest.approx(unary_epsilon(SCALE // 2, statement.parameters["zero_threshold"]))
    assert 0.99 < statement.epsilon <= 1.0
