"""The trade-off curve of a statement against tests that attain it, and its sentence in an explanation."""

import math
from statistics import NormalDist

import pytest

from dptext import ZCDP, ApproxDP, MetricDP, PureDP
from dptext.attacks.membership import gaussian_ceiling
from dptext.errors import ParameterError
from dptext.privacy.gaussian import gaussian_delta, gaussian_sigma
from dptext.privacy.guarantee import NoGuarantee
from statements import statement

NORMAL = NormalDist()
RATES = (0.001, 0.01, 0.05, 0.1, 0.5)


def statement_of(guarantee, **fields):
    return statement(guarantee=guarantee, **fields)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-2])
def test_the_worst_mechanism_attains_the_bound(epsilon, delta):
    """The leaking randomised response: four outputs with the largest likelihood ratios that (epsilon, delta) allows."""
    fair = (1 - delta) / (1 + math.exp(epsilon))
    first, second = [delta, (1 - delta) - fair, fair, 0.0], [0.0, fair, (1 - delta) - fair, delta]
    false_alarms, power, corners = 0.0, 0.0, []
    for p, q in zip(first, second, strict=True):  # in the order of the likelihood ratio
        false_alarms, power = false_alarms + q, power + p
        corners.append((false_alarms, power))
    for rate, power in corners[:-1]:
        if 0 < rate < 1 - 1e-9:
            bound = 1 - statement_of(ApproxDP(epsilon, delta)).false_negatives(rate)
            assert power <= bound == pytest.approx(power, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_gaussian_noise_has_its_own_curve_and_no_epsilon_says_more(epsilon):
    sigma = gaussian_sigma(epsilon=epsilon, delta=1e-6, sensitivity=1.0)
    result = statement_of(ApproxDP(epsilon, 1e-6), parameters={"sigma": sigma})
    assert result.mu == 1 / sigma
    for rate in RATES:
        missed = NORMAL.cdf(NORMAL.inv_cdf(1 - rate) - 1 / sigma)  # G_mu
        assert result.false_negatives(rate) == pytest.approx(missed, abs=1e-9)
        pairs = [(nats / 50, gaussian_delta(sigma, epsilon=nats / 50, sensitivity=1.0)) for nats in range(1, 1000)]
        dual = max(
            statement_of(ApproxDP(*pair)).false_negatives(rate) for pair in pairs
        )  # Dong, Roth and Su 2022, Prop. 2.12
        assert dual <= result.false_negatives(rate) + 1e-12
        assert dual == pytest.approx(missed, abs=0.01)
    assert 1 - result.false_negatives(0.01) == pytest.approx(gaussian_ceiling(sigma).at_1_percent, abs=1e-12)


def test_mu_is_stated_for_gaussian_noise_alone():
    sigma = gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=2.0)
    noise = {"sigma": sigma, "sensitivity": 2.0}
    assert statement_of(ApproxDP(1.0, 1e-6), parameters=noise).mu == 2 / sigma
    for guarantee, parameters, slack in (
        (ApproxDP(1.1, 1e-6), noise, 0.0),  # with another release of epsilon 0.1
        (ApproxDP(1.0, 1e-6), {"sigma": sigma}, 0.0),
        (ApproxDP(1.0, 1e-6), noise, 1e-6),
        (ApproxDP(1.0, 1e-6), noise | {"sigma": -1.0}, 0.0),
        (ApproxDP(1.0, 1e-6), noise | {"sigma": "1"}, 0.0),
        (ApproxDP(1.0, 0.0), noise, 0.0),
        (PureDP(1.0), noise, 0.0),
    ):
        assert statement_of(guarantee, parameters=parameters, slack=slack).mu is None


def test_zcdp_has_the_curve_of_its_best_delta_and_gaussian_noise_stays_below():
    result = statement_of(ZCDP(0.5))  # noise of one sensitivity
    for rate in RATES:
        assert 0 < result.false_negatives(rate) < NORMAL.cdf(NORMAL.inv_cdf(1 - rate) - 1)
    assert statement_of(ZCDP(0.5), slack=1e-3).false_negatives(0.01) == 0


@pytest.mark.parametrize(
    "guarantee", [NoGuarantee("none"), MetricDP(1.0, "euclidean"), PureDP(math.inf), ApproxDP(1.0, 1.0), PureDP(800.0)]
)
def test_without_a_bound_there_is_no_curve_and_no_sentence(guarantee):
    result = statement_of(guarantee)
    assert all(result.false_negatives(rate) == 0 for rate in RATES)
    assert "false alarms" not in result.explain()


def test_slack_and_the_bound_of_a_metric_count():
    pure = statement_of(PureDP(1.5)).false_negatives(0.01)
    assert statement_of(PureDP(1.0), slack=0.5).false_negatives(0.01) == pure
    assert statement_of(MetricDP(0.5, "euclidean", 3.0)).false_negatives(0.01) == pure


def test_a_rate_is_between_0_and_1():
    for rate in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ParameterError, match="false_positives must be a number above 0 and below 1"):
            statement_of(PureDP(1.0)).false_negatives(rate)


def test_the_explanation_rounds_the_rates_up():
    text = " ".join(statement_of(PureDP(1.0)).explain().split())
    assert "with 1% false alarms recognises it with probability at most 2.8% (5% false alarms: 14%; 10%: 28%)." in text
    sigma = gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=1.0)
    text = " ".join(statement_of(ApproxDP(1.0, 1e-6), parameters={"sigma": sigma}).explain().split())
    assert "at most 1.9% (5% false alarms: 8%; 10%: 15%). The noise is Gaussian with mu = 0.2368" in text
