"""Distances of the audit: formulas of their own, scipy's where it has one, and what is refused."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import dptext
from dptext import TEM, MetricDP, audit
from dptext.audits.mechanisms import distance_named

POINTS = np.random.default_rng(1).normal(size=(40, 6)) / 10


@pytest.mark.parametrize(
    ("name", "theirs"), [("euclidean", "euclidean"), ("manhattan", "cityblock"), ("chebyshev", "chebyshev")]
)
def test_distances_are_those_of_scipy(name, theirs):
    found = distance_named(name, None)(POINTS[:7], POINTS)
    np.testing.assert_allclose(found, cdist(POINTS[:7], POINTS, theirs), atol=1e-14)


def test_the_angle_is_the_arc_cosine_where_that_is_accurate():
    found = distance_named("angular", None)(POINTS[:7], POINTS)
    cosine = 1 - cdist(POINTS[:7], POINTS, "cosine")
    np.testing.assert_allclose(np.cos(found), cosine, atol=1e-14)
    points = np.array([[0.0, 0.0], [3.0, 0.0], [1.0, 1e-9], [-2.0, 1e-9], [0.0, 5.0]])
    np.testing.assert_allclose(
        distance_named("angular", None)(points[:1], points)[0], [0, 0, 1e-9, math.pi - 5e-10, math.pi / 2], rtol=1e-9
    )


def test_the_poincare_distance_is_that_of_the_paper():
    found = distance_named("poincare", None)(POINTS[:7], POINTS)
    inside = 1 - (POINTS**2).sum(axis=1)
    squared = cdist(POINTS[:7], POINTS, "sqeuclidean")
    np.testing.assert_allclose(found, np.arccosh(1 + 2 * squared / inside[:7, None] / inside), atol=1e-7)
    # from the centre it is 2 artanh |x|
    centre = distance_named("poincare", None)(np.zeros((1, 6)), POINTS)[0]
    np.testing.assert_allclose(centre, 2 * np.arctanh(np.linalg.norm(POINTS, axis=1)), rtol=1e-12)


@pytest.mark.parametrize("metric", ["angular", "manhattan", "chebyshev"])
def test_a_claim_that_is_too_small_in_its_metric_is_refuted(small, metric):
    mechanism = TEM(small, epsilon=3.0, metric=metric)
    assert audit(mechanism).outcome == "exact"
    guarantee = mechanism.word_guarantee()
    lie = mechanism.statement.replace(guarantee=MetricDP(1.2, metric, guarantee.max_distance, guarantee.space))
    assert audit(mechanism, lie).refuted


def test_a_claim_in_another_metric_is_refuted_where_that_one_is_smaller(small):
    mechanism = TEM(small, epsilon=3.0, metric="manhattan")
    guarantee = mechanism.word_guarantee()
    lie = mechanism.statement.replace(guarantee=MetricDP(3.0, "chebyshev", guarantee.max_distance, guarantee.space))
    assert audit(mechanism, lie).refuted


def test_a_distance_for_a_metric_that_is_known_is_refused(small):
    with pytest.raises(dptext.ParameterError, match="computed here: leave distance= out"):
        audit(TEM(small, epsilon=3.0), distance=lambda rows, matrix: 1e9 * np.ones((len(rows), len(matrix))))


def test_a_distance_that_would_allow_everything_is_refused(small):
    def nothing(rows, matrix):
        return np.abs(rows[:, None] - matrix[None]).max(axis=2)

    mechanism = TEM(small, epsilon=3.0, metric=nothing)
    with pytest.raises(dptext.ParameterError, match="a number of at least 0"):
        audit(mechanism, distance=lambda rows, matrix: np.full((len(rows), len(matrix)), np.nan))


def test_the_mahalanobis_distance_is_shaped_by_the_whole_vocabulary():
    axes = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])  # variances 4.5 and .5, so 1.8 and .2
    name = "regularized mahalanobis (lambda 0.5)"
    measure = distance_named(name + ", a pair with an unknown word as far as can be,", None, axes)
    far = measure(np.zeros((1, 2)), np.array([[7.0, 0.0], [0.0, 6.0]]))
    np.testing.assert_allclose(far, [[7 / math.sqrt(1.4), 6 / math.sqrt(0.6)]])
    with pytest.raises(dptext.ParameterError, match="is not known here"):
        distance_named(name, None)
    equal = distance_named("regularized mahalanobis (lambda 1.0)", None, np.ones((3, 2)))
    np.testing.assert_allclose(equal(np.zeros((1, 2)), np.array([[3.0, 4.0]])), [[5.0]])
