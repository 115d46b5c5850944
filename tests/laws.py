"""Laws and helpers of several tests: counts under probabilities, delta of a Gaussian, noise of a mechanism."""

import math

import numpy as np
from scipy import special, stats

from dptext.privacy.randomness import RandomBits
from dptext.vectors.search import NearestNeighbours

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


def canberra(rows, matrix):
    """A metric that the library does not know."""
    distance = np.abs(rows[:, None] - matrix[None])
    length = np.abs(rows)[:, None] + np.abs(matrix)[None]
    return (distance / np.where(length > 0, length, 1.0)).sum(axis=2)


def noisy_vectors(monkeypatch, mechanism, rows):
    """The noisy vectors, up to the grid, whose neighbours the mechanism searches."""
    seen = []

    def record(self, queries, count):
        seen.append(queries)
        return np.zeros((len(queries), count), dtype=np.int64)

    with monkeypatch.context() as patch:
        patch.setattr(NearestNeighbours, "find_several", record)
        patch.setattr("dptext.threads.available_cores", lambda: 1)
        mechanism.sample_rows(rows, RandomBits(5))
    return np.concatenate(seen)
