"""The analytic Gaussian calibration against scipy, quadrature in the far tails, and the classical formula."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, special

from dptext.privacy.accounting import _mills, gaussian_delta, gaussian_sigma


def by_scipy(sigma, epsilon, sensitivity):
    a, b = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    return special.ndtr(a - b) - math.exp(epsilon + special.log_ndtr(-a - b))


def by_quadrature(sigma, epsilon):
    """ln delta at sensitivity 1: f(a - b) times the integral of e^(-b t - t^2 / 2) (e^(a t) - e^(-a t))."""
    a, b = 1 / (2 * sigma), epsilon * sigma
    area, _ = integrate.quad(lambda t: math.exp(a * t - b * t - t * t / 2) * -math.expm1(-2 * a * t), 0, np.inf)
    return -((a - b) ** 2) / 2 - math.log(2 * math.pi) / 2 + math.log(area)


@pytest.mark.parametrize("sensitivity", [0.5, 2.0, 17.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 16.0])
def test_delta_agrees_with_scipy(epsilon, sensitivity):
    for share in (0.05, 0.3, 1.0, 3.0):
        delta = by_scipy(share * sensitivity, epsilon, sensitivity)
        if delta > 1e-9:
            ours = gaussian_delta(share * sensitivity, epsilon=epsilon, sensitivity=sensitivity)
            assert delta * (1 - 1e-9) <= ours <= delta * (1 + 2e-6)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.5, 8.0, 64.0, 500.0])
@pytest.mark.parametrize("delta", [1e-60, 1e-12, 1e-5, 0.3])
def test_sigma_is_the_least_in_every_range(epsilon, delta):
    sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0)
    assert by_quadrature(sigma, epsilon) <= math.log(delta)
    assert by_quadrature(sigma * (1 - (0.01 if delta < 1e-20 else 2e-5)), epsilon) > math.log(delta)
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
    """Rounding is post-processing: the exact delta of the grid's probabilities is never above that of the reals."""
    epsilon, sigma = 1.0, 2.0
    for step in (0.01, 0.5, 2.0, 5.0):
        for shift in (0.0, 0.2, 0.37):
            borders = (np.arange(-4_000, 4_002) - 0.5) * step - shift
            one, other = (np.diff(special.ndtr((borders - at) / sigma)) for at in (0.0, 1.0))
            delta = np.maximum(one - math.exp(epsilon) * other, 0).sum()
            assert delta <= by_scipy(sigma, epsilon, 1.0) * (1 + 1e-9)
            if step == 0.01:
                assert delta == pytest.approx(by_scipy(sigma, epsilon, 1.0), rel=1e-3)


@pytest.mark.parametrize("angle", [0.0, 0.3, math.pi / 4, 1.3])
def test_two_dimensions_and_an_oblique_shift_keep_it_too(angle):
    """The grid lies across the shift; delta on the grid is never above that of the reals, and on a fine one equal."""
    epsilon, sigma = 0.7, 1.5
    for step in (0.1, 1.0, 3.0):
        borders = (np.arange(-120, 122) - 0.5) * step
        shift = math.cos(angle), math.sin(angle)
        one, other = (
            np.outer(*(np.diff(special.ndtr((borders - sign * at / 2) / sigma)) for at in shift)) for sign in (1, -1)
        )
        delta = np.maximum(one - math.exp(epsilon) * other, 0).sum()
        assert delta <= by_scipy(sigma, epsilon, 1.0) * (1 + 1e-9)
        if step == 0.1:
            assert delta == pytest.approx(by_scipy(sigma, epsilon, 1.0), rel=0.01)
        assert step > 0.1 or delta > by_scipy(1.5 * sigma, epsilon, 1.0)


def test_mills_ratio_agrees_with_scipy_and_has_no_seam():
    for x in (*np.linspace(-8, 9.999, 40), 10.0, 11.0, 20.0, 40.0):
        assert _mills(float(x)) == pytest.approx(math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2)), rel=1e-11)


def test_what_no_noise_reaches_is_infinite_and_what_needs_none_is_small():
    assert gaussian_sigma(epsilon=1e-300, delta=1e-300, sensitivity=1.0) == math.inf
    least = gaussian_sigma(epsilon=1.0, delta=1 - 1e-9, sensitivity=1.0)
    assert optimize.brentq(lambda s: by_scipy(s, 1.0, 1.0) - (1 - 1e-9), 0.05, 1.0) == pytest.approx(least, rel=0.2)
