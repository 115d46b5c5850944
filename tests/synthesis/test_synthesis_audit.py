"""Audit of `Synthesizer`: Gaussian noise of the stated scale on every number, and canaries within the guarantee."""

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


def noise_of(synthesizer, seed, share=1.0):
    """Return the noise of a release, times ``share``, and its stated scale."""
    plan = synthesizer.plan(POOL)
    cells = np.random.default_rng(seed).integers(-(2**40), 2**40, size=(len(plan.labels), 1 + plan.features.dimension))
    released = synthesizer.released(plan, cells, RandomBits(seed))
    return (released.matrix - cells * CELL).ravel() * share, released.sigma


def wrong_size(values, sigma, alarm=1e-6):
    """Return True if the variance differs from sigma^2: chi-square, two-sided."""
    level = stats.chi2.cdf((values**2).sum() / sigma**2, values.size)
    return min(level, 1 - level) < alarm / 2


def test_the_noise_is_normal_with_the_stated_scale():
    """False alarms: 1e-6 each; noise that is 1.5 times too small or too large is found."""
    values, sigma = noise_of(synthesizer(2000), 1)
    assert sigma == synthesizer(2000).terms.budget.sigma
    assert stats.kstest(values / sigma, "norm").pvalue > 1e-6
    assert not wrong_size(values, sigma)
    for share in (2 / 3, 3 / 2):
        few = noise_of(synthesizer(100), 2, share)[0]
        assert wrong_size(few, sigma)


def test_the_worst_user_attains_the_guarantee():
    """Along the direction of the matrix, the release is one Gaussian number with an exact delta at epsilon."""
    plan = synthesizer(3, epsilon=2.0, delta=1e-5).plan(POOL)
    moved = plan.total([Someone(*[("tea cup", 0), ("tax law", 1), ("tea tax", 2)] * 30)])
    length = math.sqrt(sum(int(entry) ** 2 for entry in moved.ravel())) * CELL
    assert gaussian_delta(plan.terms.budget.sigma, epsilon=2.0, sensitivity=length) <= 1e-5
    assert gaussian_delta(plan.terms.budget.sigma, epsilon=2.0, sensitivity=1.05 * length) > 1e-5


def canaries(epsilon, *, noiseless=False):
    """Return the matrices of users with one label each, a function that releases a subset, and sigma."""
    private = synthesizer(CANARIES, epsilon=epsilon, delta=DELTA)
    plan = private.plan(POOL)
    matrices = [plan.total([Someone(("tea tax", n), ("cup", n))]) for n in range(CANARIES)]

    def train(included):
        total = sum(
            (entry for entry, present in zip(matrices, included, strict=True) if present), np.zeros_like(matrices[0])
        )
        return total * CELL if noiseless else private.released(plan, total, RandomBits(7)).matrix

    return matrices, train, plan.terms.budget.sigma


def canary_run(epsilon, *, noiseless=False):
    matrices, train, _ = canaries(epsilon, noiseless=noiseless)
    return loss_of_sum(matrices, train, delta=DELTA)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_canaries_stay_within_the_guarantee(epsilon):
    """False alarm: 1e-6, by the bound of one-run auditing."""
    assert canary_run(epsilon).loss <= epsilon


@pytest.mark.statistical
def test_canaries_are_found_without_noise():
    """Positive control: far above epsilon 1, and above 0 with noise for epsilon 8."""
    assert canary_run(1.0, noiseless=True).loss > 2
    assert canary_run(8.0).loss > 0.1


@pytest.mark.statistical
def test_members_are_found_as_often_as_the_noise_allows():
    """Against 200 members and 200 others an AUC is off by .03 (standard deviation): .15 is five of it."""
    members = np.arange(CANARIES) % 2 == 0
    for epsilon in (1.0, 8.0):
        matrices, train, sigma = canaries(epsilon)
        value = sum_membership(train(members), [entry * CELL for entry in matrices], members).auc.score.value
        assert abs(value - gaussian_ceiling(sigma).auc) < 0.15
    matrices, train, _ = canaries(1.0, noiseless=True)
    assert sum_membership(train(members), [entry * CELL for entry in matrices], members).auc.score.value == 1.0
