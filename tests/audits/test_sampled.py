"""Sampled bounds sandwich the truth: below it at the stated rate, and near it with a million samples."""

import math

import numpy as np
import pytest
from scipy import stats

from dptext.audits.losses import clopper_pearson, loss_bound, sampled_loss, samples_needed, strongest_bound

EPSILONS = [0.5, 1.0, 3.0]
FALSE_ALARM = 1e-6


def randomised_response(epsilon, generator, count):
    truth = generator.random((2, count)) < 1 / (1 + math.exp(-epsilon))
    return np.where(truth[0], 1.0, -1.0), np.where(truth[1], -1.0, 1.0)


def discrete_laplace(epsilon, generator, count):
    noise = generator.geometric(1 - math.exp(-epsilon), (4, count))
    first, second = noise[0] - noise[1], 1 + noise[2] - noise[3]
    # the log-likelihood ratio of 0 against 1
    return tuple(epsilon * (np.abs(entry - 1.0) - np.abs(entry)) for entry in (first, second))


MECHANISMS = [randomised_response, discrete_laplace]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_bound_is_below_the_truth_in_the_stated_share_of_repeats(mechanism, epsilon):
    generator = np.random.default_rng(1)
    error = 0.1
    bounds = [loss_bound(*mechanism(epsilon, generator, 4_000), error=error).loss for _ in range(200)]
    below = sum(bound <= epsilon for bound in bounds)
    # fewer than this many of 200 happen with probability below 1e-6 if each holds with 1 - error
    assert below >= stats.binom.ppf(FALSE_ALARM, 200, 1 - error)
    assert below >= 200 * (1 - error)
    # an estimator without intervals (the plug-in ratio) is above the truth about half of the time
    plug_in = [
        np.log(np.mean(a > 0) / np.mean(b > 0)) for a, b in (mechanism(epsilon, generator, 4_000) for _ in range(200))
    ]
    assert sum(entry <= epsilon for entry in plug_in) < stats.binom.ppf(FALSE_ALARM, 200, 1 - error)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_bound_is_within_a_fifth_of_the_truth_at_a_million(mechanism, epsilon):
    bound = loss_bound(*mechanism(epsilon, np.random.default_rng(2), 1_000_000), error=0.05)
    assert 0.8 * epsilon <= bound.loss <= epsilon
    assert bound.loss < bound.strongest


def test_clopper_pearson_is_that_of_scipy():
    for successes, trials in ((0, 10), (10, 10), (3, 10), (17, 1000)):
        low, high = clopper_pearson(successes, trials, 0.01)
        interval = stats.binomtest(successes, trials).proportion_ci(0.98, method="exact")
        assert (float(low), float(high)) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_what_samples_can_show_at_most():
    # claims.md section 6: 10.2, 12.5 at 97.5% a side; 8.8 at 5e-7 a side
    assert strongest_bound(10**5, error=0.05) == pytest.approx(10.2, abs=0.05)
    assert strongest_bound(10**6, error=0.05) == pytest.approx(12.5, abs=0.05)
    assert strongest_bound(10**5, error=1e-6) == pytest.approx(8.8, abs=0.05)
    assert strongest_bound(10**5, error=0.05, delta=0.5) < 10.2 - math.log(1.9)
    count = samples_needed(8.0, error=0.05)
    assert strongest_bound(count, error=0.05) > 8.0 >= strongest_bound(count // 2, error=0.05)


def test_the_direction_of_the_score_is_found_only_in_its_own_sense():
    generator = np.random.default_rng(3)
    high, low = generator.normal(2, 1, 20_000), generator.normal(0, 1, 20_000)
    assert loss_bound(high, low, error=0.05).loss > 2
    # a score that points the wrong way shows nothing: higher must mean likelier under the first input
    assert loss_bound(low, high, error=0.05).loss == 0.0


def test_an_event_of_the_second_input_counts_too():
    # the first input never gives -1, the second sometimes does
    generator = np.random.default_rng(4)
    second = np.where(generator.random(40_000) < 0.05, -1.0, 0.0)
    bound = loss_bound(np.zeros(40_000), second, error=0.05)
    assert bound.loss > 5
    assert "score <=" in bound.event


def test_delta_is_taken_off_the_event():
    generator = np.random.default_rng(5)
    second = np.where(generator.random(100_000) < 0.01, -1.0, 0.0)
    assert loss_bound(np.zeros(100_000), second, error=0.05).loss > 4
    assert loss_bound(np.zeros(100_000), second, error=0.05, delta=0.02).loss == 0.0


def laplace_draw(centre):
    return lambda count, bits: centre + bits.exponential(count, 4) - bits.exponential(count, 4)


@pytest.mark.parametrize("score", [None, "known"])
def test_a_vector_mechanism_is_bounded_with_and_without_its_density(score):
    first, second = np.zeros(4), np.array([0.5, 0.5, 0.0, 0.0])

    def ratio(outputs):
        return np.abs(outputs - second).sum(axis=1) - np.abs(outputs - first).sum(axis=1)

    bound = sampled_loss(
        laplace_draw(first), laplace_draw(second), samples=40_000, error=1e-3, score=ratio if score else None, seed=1
    )
    assert 0.8 * (0.6 if score is None else 1.0) < bound.loss / 1.0 <= 1.0


def test_categories_are_compared_by_their_frequencies():
    def draw(shares):
        return lambda count, bits: np.searchsorted(np.cumsum(shares), bits.uniform(count) * 0.999999)

    bound = sampled_loss(draw([0.1, 0.2, 0.7]), draw([0.1, 0.7, 0.2]), samples=50_000, error=1e-3, seed=1)
    assert 0.9 * math.log(3.5) < bound.loss <= math.log(3.5)


def test_no_sample_is_used_twice():
    """Training, choosing and testing each draw afresh."""
    seen = []

    def draw(count, bits):
        outputs = bits.normal(count, 2)
        seen.append(outputs)
        return outputs

    sampled_loss(draw, draw, samples=500, error=0.05, seed=1)
    everything = np.concatenate(seen)
    assert len(np.unique(everything, axis=0)) == len(everything)


def raises(count, bits):
    raise ValueError("private text")
