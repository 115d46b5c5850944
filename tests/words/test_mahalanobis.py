"""Mahalanobis: noise of the right ellipse, the Euclidean neighbour, a guarantee in its own metric."""

import numpy as np
import pytest
from scipy import stats

import dptext
from dptext import Madlib, Mahalanobis
from laws import noisy_vectors

FALSE_ALARM = 1e-6


def shape_of(vectors, lambda_):
    """Lambda S + (1 - lambda) I, in the words of the paper."""
    covariance = np.cov(vectors.matrix.astype(np.float64), rowvar=False)
    return lambda_ * covariance / np.diag(covariance).mean() + (1 - lambda_) * np.eye(len(covariance))


@pytest.mark.parametrize("lambda_", [0.2, 1.0])
def test_the_noise_is_laplace_in_the_regularised_norm_and_not_in_another(glove, monkeypatch, lambda_):
    rows = np.random.default_rng(1).integers(0, len(glove), 60_000)
    noise = noisy_vectors(monkeypatch, Mahalanobis(glove, epsilon=4.0, lambda_=lambda_), rows) - glove.matrix[rows]

    def lengths(shape):
        return np.sqrt((noise * np.linalg.solve(shape, noise.T).T).sum(axis=1))

    expected = stats.gamma(50, scale=1 / 4.0)
    assert stats.kstest(lengths(shape_of(glove, lambda_)), expected.cdf).pvalue > FALSE_ALARM
    assert stats.kstest(lengths(shape_of(glove, lambda_)), stats.gamma(50, scale=1.5 / 4.0).cdf).pvalue < FALSE_ALARM
    if lambda_ == 1.0:  # nearer to 0 it is the direction that tells them apart
        assert stats.kstest(lengths(np.eye(50)), expected.cdf).pvalue < FALSE_ALARM  # spherical
        assert stats.kstest(lengths(shape_of(glove, 0.9)), expected.cdf).pvalue < FALSE_ALARM


@pytest.mark.statistical
def test_whitened_noise_has_no_direction(glove, monkeypatch):
    rows = np.random.default_rng(2).integers(0, len(glove), 60_000)
    noise = noisy_vectors(monkeypatch, Mahalanobis(glove, epsilon=4.0, lambda_=0.5), rows) - glove.matrix[rows]
    values, axes = np.linalg.eigh(shape_of(glove, 0.5))
    along = noise @ axes / np.sqrt(values)  # coordinates on the principal axes, each in its own unit
    share = along**2 / (along**2).sum(axis=1, keepdims=True)
    law = stats.beta(0.5, 49 / 2).cdf  # a squared coordinate of a uniform direction in 50 dimensions
    assert min(stats.kstest(share[:, axis], law).pvalue for axis in range(50)) > FALSE_ALARM / 50
    spherical = (noise @ axes) ** 2 / (noise**2).sum(axis=1, keepdims=True)
    assert stats.kstest(spherical[:, -1], law).pvalue < FALSE_ALARM
    signs = (along > 0).sum(axis=0)
    assert min(stats.binomtest(int(count), len(rows)).pvalue for count in signs) > FALSE_ALARM / 50


def test_lambda_zero_is_madlib_draw_by_draw(glove):
    words = list(glove.words[:3000])
    assert Mahalanobis(glove, epsilon=6.0, lambda_=0.0).sample(words, seed=3) == Madlib(glove, epsilon=6.0).sample(
        words, seed=3
    )


def test_the_statement_names_metric_lambda_and_slack(glove):
    mechanism = Mahalanobis(glove, epsilon=10.0, lambda_=0.3)
    statement = mechanism.statement
    assert statement.guarantee.metric == "regularized mahalanobis (lambda 0.3)"
    assert statement.guarantee.space == glove.fingerprint
    assert statement.parameters["lambda"] == 0.3
    assert statement.parameters["euclidean_epsilon"] == mechanism.euclidean_epsilon
    assert 0 < statement.slack < 1e-6
    assert any("double precision" in line for line in statement.assumptions)
    other = Mahalanobis(glove, epsilon=10.0, lambda_=0.2).statement
    # per unit of two metrics: the worst cases add, the rates do not
    assert isinstance(statement.compose(other).guarantee, dptext.PureDP)
    assert isinstance(statement.compose(statement).guarantee, dptext.MetricDP)
