"""Madlib: the noise has the right law, the neighbour is exact, the statement says what bounds it."""

import math

import numpy as np
from scipy import stats

import dptext
from dptext.privacy.randomness import RandomBits
from dptext.words.madlib import Madlib
from laws import noisy_vectors

FALSE_ALARM = 1e-6


def test_the_radius_of_the_noise_is_gamma_and_a_wrong_scale_is_rejected(glove, monkeypatch):
    rows = np.random.default_rng(1).integers(0, len(glove), 60_000)
    for epsilon in (2.0, 10.0):
        noisy = noisy_vectors(monkeypatch, Madlib(glove, epsilon=epsilon), rows)
        radius = np.sqrt(((noisy - glove.matrix[rows]) ** 2).sum(axis=1))
        assert stats.kstest(radius, stats.gamma(50, scale=1 / epsilon).cdf).pvalue > FALSE_ALARM
        assert stats.kstest(radius, stats.gamma(50, scale=1.5 / epsilon).cdf).pvalue < FALSE_ALARM


def test_noisy_vectors_lie_on_the_public_grid(glove, monkeypatch):
    noisy = noisy_vectors(monkeypatch, Madlib(glove, epsilon=10.0), np.arange(1000))
    step = 2.0 ** (math.ceil(math.log2(glove.diameter_bound)) - 20)
    np.testing.assert_array_equal(noisy / step, np.rint(noisy / step))


def test_the_nearest_word_of_the_noisy_vector_comes_out(glove, monkeypatch):
    rows = np.arange(300)
    mechanism = Madlib(glove, epsilon=8.0)
    draws = mechanism.sample_rows(rows, RandomBits(5))
    noisy = noisy_vectors(monkeypatch, mechanism, rows)
    matrix = glove.matrix.astype(np.float64)
    nearest = [((matrix - entry) ** 2).sum(axis=1).argmin() for entry in noisy]
    np.testing.assert_array_equal(draws, nearest)


def losses_on_a_line(scale_factor):
    """Sampled frequencies of three words on a line, by word, with 1/scale_factor of the noise."""
    vectors = dptext.load_vectors((["ape", "bee", "cow"], [[0.0], [1.0], [3.0]]))
    # without the unknown word between them the law is known: Laplace, cells split at the midpoints
    rows = np.repeat(np.arange(3), 300_000)
    mechanism = Madlib(vectors, epsilon=1.0 * scale_factor)
    return vectors, np.array(
        [np.bincount(mechanism.sample_rows(rows[rows == row], RandomBits(int(row))), minlength=4) for row in range(3)]
    )


def test_output_frequencies_follow_the_laplace_law_of_the_cells():
    vectors, counts = losses_on_a_line(1.0)
    points = vectors.matrix[:, 0].astype(np.float64)
    order = np.argsort(points)
    middles = (points[order][1:] + points[order][:-1]) / 2

    def cells(point, epsilon):
        edges = stats.laplace(point, 1 / epsilon).cdf([-math.inf, *middles, math.inf])
        shares = np.empty(len(points))
        shares[order] = np.diff(edges)
        return shares

    for row in range(3):
        assert stats.chisquare(counts[row], cells(points[row], 1.0) * 300_000).pvalue > FALSE_ALARM
        assert stats.chisquare(counts[row], cells(points[row], 1.5) * 300_000).pvalue < FALSE_ALARM


def test_the_statement_is_bounded_by_the_public_diameter(glove):
    statement = Madlib(glove, epsilon=10.0).statement
    assert statement.guarantee == dptext.MetricDP(10.0, "euclidean", glove.diameter_bound, glove.fingerprint)
    assert any("double precision" in line for line in statement.assumptions)
