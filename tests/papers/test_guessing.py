"""The best attacker: exact by brute force, sampled between bounds that hold him."""

import numpy as np
import pytest
from papers.guessing import guess_rate

from dptext import TEM
from dptext.representations.encoders import zipf_weights


def test_the_rate_is_that_of_bayes(small):
    mechanism = TEM(small, epsilon=3.0)
    shares = mechanism.distributions(list(small.words))
    prior = zipf_weights(len(small))
    joint = prior[:, None] * shares
    guess = guess_rate(mechanism)
    assert guess.rate == pytest.approx(joint.max(axis=0).sum(), rel=1e-12)
    assert (guess.low, guess.high, guess.draws) == (guess.rate, guess.rate, None)
    uniform = guess_rate(mechanism, weights=np.ones(len(small)))
    assert uniform.rate == pytest.approx(shares.max(axis=0).mean(), rel=1e-12)
    assert uniform.blind == pytest.approx(1 / len(small))


def test_little_epsilon_leaves_the_blind_guess_and_much_gives_the_word(small):
    nothing = guess_rate(TEM(small, epsilon=1e-3))
    assert nothing.rate == pytest.approx(nothing.blind, rel=1e-2)
    # two of the words share a point: one of them is lost for ever
    assert guess_rate(TEM(small, epsilon=200.0)).rate == pytest.approx(1 - zipf_weights(301)[17], abs=2e-3)


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
def test_draws_bracket_the_best_attacker(small, sampled_only, epsilon):
    truth = guess_rate(TEM(small, epsilon=epsilon)).rate
    result = guess_rate(sampled_only(small, epsilon=epsilon), draws=60_000, seed=2)
    assert result.low <= truth <= result.high
    assert result.high - result.low < 0.1
    assert result.draws == 60_000
    shifted = guess_rate(TEM(small, epsilon=2 * epsilon)).rate
    assert not result.low <= shifted <= result.high
