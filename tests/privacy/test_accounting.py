"""Gaussian accounting against scipy, dp-accounting and mixtures worked out by hand; broken variants are rejected."""

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian, get_sigma_gaussian
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, special

from dptext.errors import ParameterError
from dptext.privacy.gaussian import (
    GaussianRelease,
    _mills,
    compose_gaussians,
    gaussian_delta,
    gaussian_sigma,
    l2_sensitivity,
)
from dptext.privacy.guarantee import Relation
from laws import delta_of_gaussian

sizes = st.floats(0.01, 100)


# -- one release ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-2])
def test_sigma_and_epsilon_agree_with_dp_accounting(epsilon, delta):
    release = GaussianRelease.calibrated(epsilon=epsilon, delta=delta, sensitivity=3.0)
    assert release.sigma == pytest.approx(3.0 * get_sigma_gaussian(epsilon, delta), rel=2e-5)
    back = GaussianRelease(sigma=release.sigma, sensitivity=3.0).epsilon(delta=delta)
    assert back == pytest.approx(get_epsilon_gaussian(release.sigma / 3.0, delta), rel=2e-4)
    assert back <= epsilon


def test_delta_of_no_epsilon_is_the_total_variation_and_epsilon_of_that_delta_is_none():
    release = GaussianRelease(sigma=2.0)
    assert release.delta(epsilon=0) == pytest.approx(2 * special.ndtr(0.25) - 1, rel=1e-5)
    assert release.epsilon(delta=release.delta(epsilon=0) * 1.001) == 0.0


def test_the_classical_sigma_is_rejected_at_large_epsilon():
    """A broken variant: sqrt(2 ln(1.25 / delta)) / epsilon is proved below epsilon 1 only."""
    twin = GaussianRelease(sigma=math.sqrt(2 * math.log(1.25 / 1e-6)) / 20.0)
    assert twin.epsilon(delta=1e-6) > 20.0
    assert delta_of_gaussian(twin.mu, 20.0) > 10 * 1e-6


def test_one_sum_under_both_relations():
    """claims: the sigma of epsilon 8 under add/remove is epsilon 18.65 under substitution."""
    sigma = GaussianRelease.calibrated(epsilon=8.0, delta=1e-6).sigma
    moved = l2_sensitivity(1.0, Relation.SUBSTITUTION)
    release = GaussianRelease(sigma=sigma, sensitivity=moved, relation=Relation.SUBSTITUTION)
    assert release.epsilon(delta=1e-6) == pytest.approx(18.65, abs=0.01)
    assert release.relation is Relation.SUBSTITUTION
    # the group bound from (8, 1e-6) would be (16, 3e-3): another delta altogether
    assert release.epsilon(delta=(1 + math.exp(8.0)) * 1e-6) < 16.0


# -- several releases -----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(sizes, sizes), min_size=1, max_size=6))
def test_inverse_variances_add(parts):
    whole = compose_gaussians(*(GaussianRelease(sigma=s, sensitivity=d) for s, d in parts))
    assert whole.mu**2 == pytest.approx(sum((d / s) ** 2 for s, d in parts), rel=1e-12)
    assert whole.mu**2 >= sum((d / s) ** 2 for s, d in parts) * (1 - 1e-15)


def test_composition_agrees_with_privacy_loss_distributions():
    parts = [GaussianRelease(sigma=2.0), GaussianRelease(sigma=3.0, sensitivity=0.5), GaussianRelease(sigma=1.7)]
    whole = compose_gaussians(*parts)
    exact = [
        privacy_loss_distribution.from_gaussian_mechanism(
            part.sigma, sensitivity=part.sensitivity, pessimistic_estimate=True
        )
        for part in parts
    ]
    summed = exact[0].compose(exact[1]).compose(exact[2])
    for delta in (1e-3, 1e-6, 1e-9):
        assert whole.epsilon(delta=delta) == pytest.approx(summed.get_epsilon_for_delta(delta), abs=2e-4)


def test_adaptive_releases_are_covered():
    """The second query asks along the sign of the first answer: exact delta by quadrature, never above the bound."""
    position = np.linspace(-9, 10, 1_500)
    first = [np.exp(-((position - mean) ** 2) / 2) / math.sqrt(2 * math.pi) for mean in (0.0, 1.0)]
    size = np.where(position > 0.5, 1.0, 0.3)  # how far the second query moves: at most 1
    joint = []
    for world, density in enumerate(first):
        second = np.exp(-((position[None, :] - world * size[:, None]) ** 2) / 2) / math.sqrt(2 * math.pi)
        joint.append(density[:, None] * second)
    whole = compose_gaussians(GaussianRelease(sigma=1.0), GaussianRelease(sigma=1.0))
    for epsilon in (0.5, 2.0, 4.0):
        delta = np.maximum(joint[1] - math.exp(epsilon) * joint[0], 0).sum() * (position[1] - position[0]) ** 2
        assert delta <= whole.delta(epsilon=epsilon)
        assert delta > GaussianRelease(sigma=1.0).delta(epsilon=epsilon)


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8), sizes)
def test_a_split_costs_what_the_whole_cost(weights, sigma):
    whole = GaussianRelease(sigma=sigma, sensitivity=2.0, relation="substitution")
    parts = whole.split([weight / sum(weights) for weight in weights])
    repeated = compose_gaussians(*parts)
    assert repeated.mu == pytest.approx(whole.mu, rel=1e-9)
    assert repeated.mu <= whole.mu * (1 + 1e-13)
    assert {part.sensitivity for part in parts} == {2.0}
    assert repeated.relation is Relation.SUBSTITUTION


# -- zCDP -----------------------------------------------------------------------------------------------------


def test_zcdp_of_a_gaussian_bounds_its_renyi_divergences():
    release = GaussianRelease(sigma=2.0, sensitivity=3.0)
    assert release.zcdp.rho == pytest.approx(9 / 8, rel=1e-12)
    position = np.linspace(-80, 80, 400_001)
    for order in (1.5, 2.0, 5.0):
        log_ratio = 3 * position / 4 - 9 / 8  # of N(3, 4) against N(0, 4)
        density = np.exp(-(position**2) / 8 + order * log_ratio) / math.sqrt(8 * math.pi)
        renyi = math.log(np.trapezoid(density, position)) / (order - 1)
        assert renyi == pytest.approx(order * release.zcdp.rho, rel=1e-9)


# -- arguments ------------------------------------------------------------------------------------------------


def test_extreme_ratios_are_refused_and_never_perfect_privacy():
    with pytest.raises(ParameterError, match="the ratio of sensitivity and sigma exceeds"):
        GaussianRelease(sigma=1e200)
    with pytest.raises(ParameterError, match="the ratio of sensitivity and sigma exceeds"):
        GaussianRelease(sigma=1e-200)
    weak = GaussianRelease(sigma=1e150)
    assert weak.zcdp.rho >= Fraction(weak.mu) ** 2 / 2 > 0


# -- one release ---------------------------------------------------------------------------------------------------


def log_delta(sigma, epsilon):
    """ln delta at sensitivity 1: f(a - b) times the integral of e^(-b t - t^2 / 2) (e^(a t) - e^(-a t))."""
    a, b = 1 / (2 * sigma), epsilon * sigma
    area, _ = integrate.quad(lambda t: math.exp(a * t - b * t - t * t / 2) * -math.expm1(-2 * a * t), 0, np.inf)
    return -((a - b) ** 2) / 2 - math.log(2 * math.pi) / 2 + math.log(area)


@pytest.mark.parametrize("epsilon", [1e-9, 8.0, 500.0])
@pytest.mark.parametrize("delta", [1e-60, 1e-5, 0.3])
def test_sigma_is_the_least_in_every_range(epsilon, delta):
    sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0)
    assert log_delta(sigma, epsilon) <= math.log(delta)
    assert log_delta(sigma * (1 - (0.01 if delta < 1e-20 else 2e-5)), epsilon) > math.log(delta)
    assert gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=2.0) == pytest.approx(2 * sigma, rel=1e-12)


def test_the_table():
    for dimension, epsilon, error in ((50, 4, 234), (64, 8, 92), (768, 8, 1107)):
        assert round(dimension * gaussian_sigma(epsilon=epsilon, delta=1e-5, sensitivity=2.0) ** 2) == error


def test_the_classical_formula_is_wrong_at_large_epsilon_and_wasteful_at_small_ones():
    def classical(epsilon, delta):
        return math.sqrt(2 * math.log(1.25 / delta)) / epsilon

    assert gaussian_delta(classical(20.0, 1e-5), epsilon=20.0, sensitivity=1.0) > 100 * 1e-5
    assert gaussian_delta(classical(0.9, 1e-5), epsilon=0.9, sensitivity=1.0) < 1e-5 / 2


def test_one_dimension_on_a_coarse_grid_keeps_the_promise():
    """Rounding is post-processing: exact delta of the grid's probabilities is never above the delta of the reals."""
    epsilon, sigma = 1.0, 2.0
    for step in (0.01, 0.5, 2.0, 5.0):
        for shift in (0.0, 0.2, 0.37):
            borders = (np.arange(-4_000, 4_002) - 0.5) * step - shift
            one, other = (np.diff(special.ndtr((borders - position) / sigma)) for position in (0.0, 1.0))
            delta = np.maximum(one - math.exp(epsilon) * other, 0).sum()
            assert delta <= delta_of_gaussian(1 / sigma, epsilon) * (1 + 1e-9)
            if step == 0.01:
                assert delta == pytest.approx(delta_of_gaussian(1 / sigma, epsilon), rel=1e-3)


@pytest.mark.parametrize("angle", [0.0, 0.3, math.pi / 4, 1.3])
def test_two_dimensions_and_an_oblique_shift_keep_it_too(angle):
    """The grid lies across the shift; its delta is at most the delta of the reals, on a fine grid equal."""
    epsilon, sigma = 0.7, 1.5
    for step in (0.1, 1.0, 3.0):
        borders = (np.arange(-120, 122) - 0.5) * step
        shift = math.cos(angle), math.sin(angle)
        one, other = (
            np.outer(*(np.diff(special.ndtr((borders - sign * position / 2) / sigma)) for position in shift))
            for sign in (1, -1)
        )
        delta = np.maximum(one - math.exp(epsilon) * other, 0).sum()
        assert delta <= delta_of_gaussian(1 / sigma, epsilon) * (1 + 1e-9)
        if step == 0.1:
            assert delta == pytest.approx(delta_of_gaussian(1 / sigma, epsilon), rel=0.01)
        assert step > 0.1 or delta > delta_of_gaussian(1 / (1.5 * sigma), epsilon)


def test_mills_ratio_agrees_with_scipy_and_has_no_seam():
    for x in (*np.linspace(-8, 9.999, 40), 10.0, 11.0, 20.0, 40.0):
        assert _mills(float(x)) == pytest.approx(math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2)), rel=1e-11)


def test_what_no_noise_reaches_is_infinite_and_what_needs_none_is_small():
    assert gaussian_sigma(epsilon=1e-300, delta=1e-300, sensitivity=1.0) == math.inf
    minimum = gaussian_sigma(epsilon=1.0, delta=1 - 1e-9, sensitivity=1.0)
    assert optimize.brentq(lambda s: delta_of_gaussian(1 / s, 1.0) - (1 - 1e-9), 0.05, 1.0) == pytest.approx(
        minimum, rel=0.2
    )
