"""Laws that several tests compare with: counts under probabilities, and delta of a Gaussian."""

import math

import numpy as np
from scipy import special, stats

FALSE_ALARM = 1e-6


def chi_square(counts, probabilities):
    """p-value of the counts under the probabilities; outputs expected fewer than ten times are pooled."""
    assert not counts[probabilities == 0].any()
    expected = probabilities * counts.sum()
    rare = expected < 10
    observed = np.append(counts[~rare], counts[rare].sum())
    target = np.append(expected[~rare], expected[rare].sum())
    return stats.chisquare(observed[target > 0], target[target > 0], sum_check=False).pvalue


def follows(counts, probabilities):
    return chi_square(counts, probabilities) > FALSE_ALARM


def delta_of_gaussian(mu, epsilon):
    """Delta of a Gaussian that moves by mu standard deviations (Balle and Wang 2018, Theorem 8)."""
    return special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + special.log_ndtr(-mu / 2 - epsilon / mu))


def distances(vectors, rows):
    """Float64 brute force: (n, V) Euclidean distances from rows to all words."""
    matrix = vectors.matrix.astype(np.float64)
    return np.stack([np.sqrt(((matrix - matrix[row]) ** 2).sum(axis=1)) for row in rows])


def most_by_luck(rows, rate):
    """The share of hits that luck exceeds once in a million."""
    return stats.binom.isf(FALSE_ALARM, rows, rate) / rows
