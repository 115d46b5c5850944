"""One-run auditing: the p-value follows the theorem, and the bound sandwiches randomised response."""

import math

import numpy as np
import pytest
from scipy import stats

from canaries import canary_loss
from dptext.audits.canaries import one_run_bound, p_value

FALSE_ALARM = 1e-6


def test_without_delta_it_is_a_binomial_tail():
    for correct, guesses, epsilon in ((80, 100, 1.0), (100, 100, 0.0), (0, 10, 3.0)):
        chance = math.exp(epsilon) / (1 + math.exp(epsilon))
        tail = sum(
            math.comb(guesses, k) * chance**k * (1 - chance) ** (guesses - k) for k in range(correct, guesses + 1)
        )
        assert p_value(correct, guesses=guesses, canaries=guesses, epsilon=epsilon, delta=0.0) == pytest.approx(tail)


def test_the_delta_term_is_that_of_theorem_five_two():
    correct, guesses, canaries, epsilon, delta = 90, 100, 150, 1.0, 1e-4
    binomial = stats.binom(guesses, math.exp(epsilon) / (1 + math.exp(epsilon)))
    beta = binomial.sf(correct - 1)
    alpha = max((binomial.cdf(correct - 1) - binomial.cdf(correct - i - 1)) / i for i in range(1, correct + 1))
    target = beta + 2 * canaries * delta * alpha
    got = p_value(correct, guesses=guesses, canaries=canaries, epsilon=epsilon, delta=delta)
    assert got == pytest.approx(target, rel=1e-9)
    assert got > beta


def test_the_bound_is_where_the_p_value_crosses_the_error():
    bound = one_run_bound(450, guesses=500, canaries=500, error=0.01)
    for epsilon, refuted in ((bound - 1e-6, True), (bound + 1e-6, False)):
        assert (p_value(450, guesses=500, canaries=500, epsilon=epsilon, delta=0.0) < 0.01) is refuted
    assert one_run_bound(250, guesses=500, canaries=500, error=0.01) == 0.0


def randomised_response(epsilon, seed):
    """Training that releases a noisy bit of every canary: exactly epsilon-DP under add/remove of one."""
    generator = np.random.default_rng(seed)

    def train(included):
        truth = generator.random(included.size) < 1 / (1 + math.exp(-epsilon))
        return np.where(truth, included, ~included)

    return train, lambda released: released.astype(float)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_bound_sandwiches_randomised_response(epsilon):
    bounds = []
    for seed in range(100):
        train, score = randomised_response(epsilon, seed)
        bounds.append(canary_loss(train, score, canaries=500, error=0.1, seed=seed).loss)
    below = sum(bound <= epsilon for bound in bounds)
    assert below >= stats.binom.ppf(FALSE_ALARM, 100, 0.9)
    train, score = randomised_response(epsilon, 7)
    assert 0.8 * epsilon <= canary_loss(train, score, canaries=40_000, error=0.05, seed=7).loss <= epsilon


def test_higher_scores_mean_in_and_the_other_direction_shows_nothing():
    train, score = randomised_response(3.0, 1)
    assert canary_loss(train, score, canaries=500, seed=1).loss > 2
    assert canary_loss(train, lambda released: -score(released), canaries=500, seed=1).loss == 0.0
