"""The release of a description is its sum plus Gaussian noise of the promised size on every number, and one canary
cannot be heard above the promise."""

import math

import numpy as np
import pytest
from scipy import stats

import dptext
from canaries import loss_of_sum
from dptext.attacks.membership import gaussian_ceiling, sum_membership
from dptext.noise.gaussian_sums import CELL
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.randomness import RandomBits
from synthesis.spaces import Someone

DELTA = 1e-12
WORDS = ["tea", "cup", "tax", "law"]
ENCODER = dptext.MeanOfWords(dptext.load_vectors((WORDS, [[2, 0.1], [1.5, 0.3], [-1, 2], [-2, 2]])))
POOL = [f"{one} {other}" for one in WORDS for other in WORDS]
CANARIES = 400


def synthesizer(classes, epsilon=1.0, delta=1e-6):
    return dptext.Synthesizer(
        epsilon=epsilon, delta=delta, labels=[f"label{n}" for n in range(classes)], features=ENCODER, cache=False
    )


def noise_of(made, seed, share=1.0):
    """What a release adds to a sum; ``share``: of the promised noise."""
    plan = made.plan(POOL)
    cells = np.random.default_rng(seed).integers(-(2**40), 2**40, size=(len(plan.labels), 1 + plan.features.dimension))
    released = made.released(plan, cells, RandomBits(seed))
    return (released.matrix - cells * CELL).ravel() * share, released.sigma


def wrong_size(values, sigma, alarm=1e-6):
    """Whether the variance is not sigma^2: chi-square, two-sided."""
    level = stats.chi2.cdf((values**2).sum() / sigma**2, values.size)
    return min(level, 1 - level) < alarm / 2


def test_the_noise_is_normal_of_the_promised_size_on_every_number():
    """False alarms: 1e-6 each; 1.5 times too little or too much is found."""
    values, sigma = noise_of(synthesizer(2000), 1)
    assert sigma == synthesizer(2000).terms.budget.sigma
    assert stats.kstest(values / sigma, "norm").pvalue > 1e-6
    assert not wrong_size(values, sigma)
    for share in (2 / 3, 3 / 2):
        few = noise_of(synthesizer(100), 2, share)[0]
        assert wrong_size(few, sigma)


def test_the_worst_person_reaches_the_promise_and_no_more():
    """Along the direction of their matrix the release is one Gaussian number: its delta at epsilon, exactly."""
    plan = synthesizer(3, epsilon=2.0, delta=1e-5).plan(POOL)
    moved = plan.total([Someone(*[("tea cup", 0), ("tax law", 1), ("tea tax", 2)] * 30)])
    length = math.sqrt(sum(int(entry) ** 2 for entry in moved.ravel())) * CELL
    assert gaussian_delta(plan.terms.budget.sigma, epsilon=2.0, sensitivity=length) <= 1e-5
    assert gaussian_delta(plan.terms.budget.sigma, epsilon=2.0, sensitivity=1.05 * length) > 1e-5


def canaries(epsilon, *, noiseless=False):
    """People who each write in a label of their own; what each adds, and what comes out of those who take part."""
    output = synthesizer(CANARIES, epsilon=epsilon, delta=DELTA)
    plan = output.plan(POOL)
    own = [plan.total([Someone(("tea tax", n), ("cup", n))]) for n in range(CANARIES)]

    def train(included):
        total = sum((entry for entry, there in zip(own, included, strict=True) if there), np.zeros_like(own[0]))
        return total * CELL if noiseless else output.released(plan, total, RandomBits(7)).matrix

    return own, train, plan.terms.budget.sigma


def canary_run(epsilon, *, noiseless=False):
    own, train, _ = canaries(epsilon, noiseless=noiseless)
    return loss_of_sum(own, train, delta=DELTA)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_canaries_are_not_heard_above_the_promise(epsilon):
    """False alarm: 1e-6, by the bound of one-run auditing."""
    assert canary_run(epsilon).loss <= epsilon


@pytest.mark.statistical
def test_canaries_are_heard_without_noise():
    """The audit is alive: far above epsilon 1, and with noise for epsilon 8 above 0."""
    assert canary_run(1.0, noiseless=True).loss > 2
    assert canary_run(8.0).loss > 0.1


@pytest.mark.statistical
def test_members_are_found_as_often_as_the_noise_allows_and_all_without_it():
    """Against 200 members and 200 others an AUC is off by .03 (standard deviation): .15 is five of it."""
    members = np.arange(CANARIES) % 2 == 0
    for epsilon in (1.0, 8.0):
        own, train, sigma = canaries(epsilon)
        value = sum_membership(train(members), [entry * CELL for entry in own], members).auc.score.value
        assert abs(value - gaussian_ceiling(sigma).auc) < 0.15
    own, train, _ = canaries(1.0, noiseless=True)
    assert sum_membership(train(members), [entry * CELL for entry in own], members).auc.score.value == 1.0
