"""A Gaussian release is judged exactly: sufficient noise is kept, slightly less noise is refuted."""

import pytest

from dptext.audits.verdict import Outcome, judge_gaussian
from dptext.privacy.gaussian import gaussian_sigma
from dptext.privacy.guarantee import ApproxDP
from known_broken.case import claim


def judged(noise=1.0, *, claimed=None, guarantee=None, sensitivity=1.0, epsilon=2.0, delta=1e-6):
    guarantee = guarantee or ApproxDP(epsilon, delta)
    sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0) * noise
    return judge_gaussian(
        claim(claimed or guarantee),
        sigma=sigma,
        sensitivity=sensitivity,
        release_guarantee=guarantee,
        coverage="a pair",
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-12), (1.0, 1e-6), (8.0, 1e-6), (40.0, 1e-3)])
def test_noise_that_is_just_enough_is_kept_and_any_less_is_refuted(epsilon, delta):
    kept, broken = judged(epsilon=epsilon, delta=delta), judged(0.999, epsilon=epsilon, delta=delta)
    assert kept.outcome is Outcome.EXACT
    assert kept.loss == pytest.approx(epsilon, rel=1e-4)
    assert kept.loss <= kept.allowed == epsilon
    assert broken.outcome is Outcome.REFUTED
    assert broken.loss > epsilon
    assert broken.error == 0.0


def test_a_sum_that_moves_farther_is_refuted():
    assert judged(sensitivity=2.0).refuted
    assert not judged(2.0, sensitivity=2.0).refuted


def test_earlier_releases_do_not_extend_the_budget_of_this_release():
    whole = ApproxDP(3.0, 2e-6)
    assert judged(claimed=whole).allowed == 2.0
    assert judged(0.7, claimed=whole).refuted  # epsilon 3 would need no more
    assert judged(claimed=ApproxDP(1.0, 1e-6)).refuted  # smaller than the release's guarantee
