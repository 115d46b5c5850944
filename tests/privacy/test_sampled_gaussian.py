"""Poisson-subsampled noise against quadrature, Fourier inversion and optimistic bounds; broken ones are rejected."""

import math
from functools import lru_cache

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dptext.errors import ParameterError
from dptext.privacy.gaussian import GaussianRelease, SampledGaussian, greatest_sampling_rate, least_noise_multiplier
from dptext.privacy.guarantee import Relation

DELTA = 1e-6


def mixtures(noise, rate, relation):
    """The worst pairs of the module as (weights, means): the first against the second."""
    one, none = ((1 - rate, 0.0), (rate, 1.0)), ((1.0, 0.0),)
    if relation is Relation.SUBSTITUTION:
        return [(one, ((1 - rate, 0.0), (rate, -1.0)))]
    return [(one, none), (none, one)]


def log_density(parts, noise, x):
    return special.logsumexp(
        [math.log(w) - (x - m) ** 2 / (2 * noise**2) - math.log(noise) - math.log(2 * math.pi) / 2 for w, m in parts],
        axis=0,
    )


def one_step_delta(noise, rate, relation, epsilon):
    """By quadrature on the whole line."""
    position = np.linspace(-1 - 12 * noise, 1 + 12 * noise, 100_001)
    result = []
    for first, second in mixtures(noise, rate, relation):
        p, q = (
            sum(w * np.exp(-((position - m) ** 2) / (2 * noise**2)) for w, m in parts) / noise / math.sqrt(2 * math.pi)
            for parts in (first, second)
        )
        result.append(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), position))
    return max(result)


@lru_cache(maxsize=8)
def transforms(noise, rate, relation):
    """The characteristic functions of the loss of one step, in both worlds, for every worst pair."""
    position = np.linspace(-1 - 12 * noise, 1 + 12 * noise, 1_501)
    times = (np.arange(2_500) + 0.5) * 0.02
    result = []
    for first, second in mixtures(noise, rate, relation):
        log_p, log_q = (log_density(parts, noise, position) for parts in (first, second))
        turned = np.exp(1j * np.outer(times, log_p - log_q))
        result.append([np.trapezoid(turned * np.exp(log), position, axis=1) for log in (log_p, log_q)])
    return times, result


def delta_by_fourier(noise, rate, steps, relation, epsilon):
    """P(L > epsilon) - e^epsilon Q(L > epsilon), the sum of losses inverted after Gil-Pelaez (1951)."""
    times, pairs = transforms(noise, rate, relation)
    result = []
    for worlds in pairs:
        above = [
            0.5 + ((np.exp(-1j * times * epsilon) * phi**steps).imag / times).sum() * 0.02 / math.pi for phi in worlds
        ]
        result.append(above[0] - math.exp(epsilon) * above[1])
    return max(result)


def optimistic(noise, rate, steps, delta):
    """Under add/remove, an epsilon that nothing lies below: the same sums with every loss rounded down."""
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        noise,
        sampling_prob=rate,
        pessimistic_estimate=False,
        use_connect_dots=False,
        value_discretization_interval=1e-4,
    )
    return pld.self_compose(steps).get_epsilon_for_delta(delta)


# -- the check values -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "printed"), [(1.0, 6.79), (3.0, 2.60), (8.0, 1.28)])
def test_noise_for_a_budget(epsilon, printed):
    result = least_noise_multiplier(epsilon=epsilon, delta=DELTA, sampling_rate=0.05, steps=1000)
    assert printed - 0.02 < result.noise_multiplier <= printed
    assert epsilon * 0.998 < result.epsilon(delta=DELTA) <= epsilon
    less = SampledGaussian(noise_multiplier=result.noise_multiplier * 0.999, sampling_rate=0.05, steps=1000)
    assert less.epsilon(delta=DELTA) > epsilon


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "printed"), [(1.0, 0.00946), (3.0, 0.0260), (8.0, 0.0625)])
def test_rate_for_a_budget(epsilon, printed):
    result = greatest_sampling_rate(epsilon=epsilon, delta=DELTA, noise_multiplier=1.5, steps=1000)
    assert printed <= result.sampling_rate < printed * 1.005
    assert epsilon * 0.998 < result.epsilon(delta=DELTA) <= epsilon
    more = SampledGaussian(noise_multiplier=1.5, sampling_rate=result.sampling_rate * 1.001, steps=1000)
    assert more.epsilon(delta=DELTA) > epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "printed"), [(0.5, 0.00189), (1.0, 0.00363), (2.0, 0.00696), (4.0, 0.0132), (8.0, 0.0247)]
)
def test_five_levels(epsilon, printed):
    result = greatest_sampling_rate(epsilon=epsilon, delta=DELTA, noise_multiplier=1.0, steps=2000)
    assert result.sampling_rate == pytest.approx(printed, rel=0.004)  # printed to the nearest of three digits
    assert epsilon * 0.998 < result.epsilon(delta=DELTA) <= epsilon


# -- independent oracles --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("noise", "rate"), [(0.8, 0.01), (3.0, 0.9)])
def test_one_step_agrees_with_quadrature(noise, rate, relation):
    account = SampledGaussian(noise_multiplier=noise, sampling_rate=rate, steps=1, relation=relation)
    for delta in (1e-6, 1e-4):
        epsilon = account.epsilon(delta=delta)
        assert one_step_delta(noise, rate, relation, epsilon) <= delta * (1 + 1e-6)
        assert one_step_delta(noise, rate, relation, epsilon - 2e-4) > delta * (1 - 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(("noise", "rate", "steps"), [(2.6, 0.05, 1000), (1.0, 0.05, 30)])
def test_many_steps_agree_with_fourier_inversion(noise, rate, steps, relation):
    account = SampledGaussian(noise_multiplier=noise, sampling_rate=rate, steps=steps, relation=relation)
    epsilon = account.epsilon(delta=DELTA)
    assert delta_by_fourier(noise, rate, steps, relation, epsilon) <= DELTA * (1 + 1e-4)
    assert delta_by_fourier(noise, rate, steps, relation, epsilon - 0.003) > DELTA


@pytest.mark.parametrize("steps", [1, 7, 1000])
@pytest.mark.parametrize("relation", Relation)
def test_without_sampling_it_is_one_gaussian(steps, relation):
    exact = SampledGaussian(noise_multiplier=20.0, sampling_rate=1.0, steps=steps, relation=relation)
    moved = 1.0 if relation is Relation.ADD_REMOVE else 2.0
    expected = GaussianRelease(sigma=20.0, sensitivity=moved * math.sqrt(steps)).epsilon(delta=DELTA)
    assert exact.epsilon(delta=DELTA) == pytest.approx(expected, rel=1e-9)
    nearly = SampledGaussian(noise_multiplier=20.0, sampling_rate=1 - 1e-9, steps=steps, relation=relation)
    assert nearly.epsilon(delta=DELTA) == pytest.approx(expected, abs=1e-3)


def test_the_estimate_is_not_below_an_optimistic_one():
    for noise, rate, steps in ((2.6, 0.05, 1000), (6.79, 0.05, 1000)):
        epsilon = SampledGaussian(noise_multiplier=noise, sampling_rate=rate, steps=steps).epsilon(delta=DELTA)
        lower = optimistic(noise, rate, steps, DELTA)
        assert lower <= epsilon <= lower + 0.0001 * steps


@pytest.mark.slow
@pytest.mark.parametrize("steps", [100, 100_000])
def test_what_is_kept_back_covers_the_errors_of_the_transforms(steps):
    """With q next to 1 the exact delta is known; at the smallest delta allowed the epsilon must still hold."""
    delta = 3e-15 * steps
    noise = 2.0 * math.sqrt(steps) / 10
    account = SampledGaussian(noise_multiplier=noise, sampling_rate=1 - 1e-12, steps=steps)
    epsilon = account.epsilon(delta=delta)
    assert GaussianRelease(sigma=noise, sensitivity=math.sqrt(steps)).delta(epsilon=epsilon) <= delta


def divergence_in_the_plane(first, second, noise, rate, epsilon):
    """Delta of (1 - q) N(0) + q N(a) against (1 - q) N(0) + q N(b), a and b points of the plane."""
    side = np.linspace(-1 - 7 * noise, 1 + 7 * noise, 241)
    x, y = np.meshgrid(side, side)

    def density(mean):
        return np.exp(-((x - mean[0]) ** 2 + (y - mean[1]) ** 2) / (2 * noise**2))

    rest = (1 - rate) * density((0, 0))
    p, q = rest + rate * density(first), rest + rate * density(second)
    return np.maximum(p - math.exp(epsilon) * q, 0).sum() * (side[1] - side[0]) ** 2 / (2 * math.pi * noise**2)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, math.pi), st.floats(0.6, 3), st.floats(0.02, 1), st.floats(-1, 2))
def test_opposite_vectors_are_the_worst_pair_for_substitution(one, other, angle, noise, rate, epsilon):
    """The theorem of the module, for every order: no two vectors of length at most 1 in the plane do worse."""
    first, second = (one, 0.0), (other * math.cos(angle), other * math.sin(angle))
    worst = divergence_in_the_plane((1.0, 0.0), (-1.0, 0.0), noise, rate, epsilon)
    assert divergence_in_the_plane(first, second, noise, rate, epsilon) <= worst + 1e-5


# -- properties -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_monotone():
    base = {"noise_multiplier": 3.0, "sampling_rate": 0.1, "steps": 200}
    epsilon = SampledGaussian(**base).epsilon(delta=DELTA)
    assert SampledGaussian(**base | {"noise_multiplier": 3.1}).epsilon(delta=DELTA) < epsilon
    assert SampledGaussian(**base | {"sampling_rate": 0.099}).epsilon(delta=DELTA) < epsilon
    assert SampledGaussian(**base | {"steps": 190}).epsilon(delta=DELTA) < epsilon
    assert SampledGaussian(**base).epsilon(delta=1e-5) < epsilon
    substitution = SampledGaussian(**base, relation=Relation.SUBSTITUTION)
    assert epsilon < substitution.epsilon(delta=DELTA) < 2 * epsilon + 1
    assert substitution.guarantee(delta=DELTA).delta == DELTA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "rate", "steps", "relation"),
    [(0.6, 0.2, 40, Relation.SUBSTITUTION), (2.0, 0.5, 10, Relation.ADD_REMOVE)],
)
def test_round_trip(epsilon, rate, steps, relation):
    budget = {"epsilon": epsilon, "delta": 1e-5, "steps": steps, "relation": relation}
    result = least_noise_multiplier(sampling_rate=rate, **budget)
    assert result.epsilon(delta=1e-5) <= epsilon
    assert result.relation is relation
    repeated = greatest_sampling_rate(noise_multiplier=result.noise_multiplier, **budget)
    assert repeated.epsilon(delta=1e-5) <= epsilon
    assert rate * 0.999 <= repeated.sampling_rate <= rate * 1.002


# -- broken variants ------------------------------------------------------------------------------------------


def test_a_rate_that_is_not_the_real_one_is_rejected():
    """Batches of half of the vocabulary's size, say: stated with q = .025, run with .05."""
    expected = SampledGaussian(noise_multiplier=2.6, sampling_rate=0.025, steps=1000).epsilon(delta=DELTA)
    assert optimistic(2.6, 0.05, 1000, DELTA) > 1.5 * expected


def test_a_norm_for_each_of_two_tables_is_rejected():
    """claims: two tables clipped one by one at z are z / sqrt(2) together; 2.59 then gives 4.68."""
    expected = SampledGaussian(noise_multiplier=2.59, sampling_rate=0.05, steps=1000).epsilon(delta=DELTA)
    real = SampledGaussian(noise_multiplier=2.59 / math.sqrt(2), sampling_rate=0.05, steps=1000).epsilon(delta=DELTA)
    assert real == pytest.approx(4.68, abs=0.03)
    assert optimistic(2.59 / math.sqrt(2), 0.05, 1000, DELTA) > expected + 1


@pytest.mark.slow
def test_add_remove_does_not_stand_for_substitution():
    account = SampledGaussian(noise_multiplier=1.0, sampling_rate=0.3, steps=30)
    epsilon = account.epsilon(delta=DELTA)
    assert delta_by_fourier(1.0, 0.3, 30, Relation.SUBSTITUTION, epsilon) > 100 * DELTA


# -- arguments ------------------------------------------------------------------------------------------------


def test_a_delta_that_the_numbers_do_not_hold_is_refused():
    account = SampledGaussian(noise_multiplier=1.0, sampling_rate=0.1, steps=1000)
    with pytest.raises(ParameterError, match=r"delta must be at least 2e-12 for 1,000 steps"):
        account.epsilon(delta=1e-12)


def test_a_loss_of_thousands_of_nats_is_infinite_at_once():
    assert SampledGaussian(noise_multiplier=0.1, sampling_rate=0.5, steps=10**6).epsilon(delta=DELTA) == math.inf


def test_a_budget_that_nothing_keeps_is_refused(monkeypatch):
    monkeypatch.setattr("dptext.privacy.gaussian._LEAST_RATE", 0.01)
    with pytest.raises(ParameterError, match=r"was found that keeps epsilon 0\.01 at"):
        greatest_sampling_rate(epsilon=0.01, delta=1e-9, noise_multiplier=4.0, steps=100)
