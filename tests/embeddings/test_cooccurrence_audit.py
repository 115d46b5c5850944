"""Audit of `Cooccurrence`: Gaussian noise of the stated scale on every number, and canaries within the guarantee."""

import math

import numpy as np
import pytest
from scipy import stats

from canaries import loss_of_sum
from dptext.embeddings.cooccurrence import Cooccurrence
from dptext.noise.gaussian_sums import CELL, noisy_matrix
from dptext.privacy.gaussian import gaussian_delta
from dptext.privacy.randomness import RandomBits
from dptext.vectors.word_vectors import WordVectors


def vectors_of(words, dimension=100):
    """Return random public vectors of words."""
    return WordVectors([*words, "<unk>"], np.random.default_rng(1).normal(size=(len(words) + 1, dimension)))


SIGMA = 0.6529354064
DELTA = 1e-12


def noise(sigma, seed, size=(2000, 50)):
    cells = np.random.default_rng(seed).integers(-(2**40), 2**40, size=size)
    return noisy_matrix(cells, sigma, RandomBits(seed)) - cells * CELL


def too_little(values, sigma, alarm=1e-6):
    """Return True if the variance is significantly below sigma^2: chi-square, one-sided."""
    return stats.chi2.cdf((values**2).sum() / sigma**2, values.size) < alarm


def test_the_noise_is_normal_with_the_stated_scale():
    """False alarms: 1e-6 each."""
    values = noise(SIGMA, 1).ravel()
    assert stats.kstest(values / SIGMA, "norm").pvalue > 1e-6
    assert not too_little(values, SIGMA)
    assert too_little(noise(SIGMA / 1.02, 2).ravel(), SIGMA)  # 1.5 times too little is found with 60 numbers


def test_a_release_has_the_noise_of_its_statement():
    """Without users, 100,000 numbers are noise alone; noise that is too small by 5% is found."""
    model = Cooccurrence(vectors_of([f"w{n}" for n in range(999)]), epsilon=1.0)
    plan = model.plan()
    total = np.zeros((len(plan.words), plan.features.dimension), dtype=np.int64)
    values = model.released(plan, total, RandomBits(4)).release_.ravel()
    sigma = model.statement_.parameters["sigma"]
    assert gaussian_delta(sigma, epsilon=1.0, sensitivity=1.0) <= 1e-6
    assert stats.kstest(values / sigma, "norm").pvalue > 1e-6
    assert not too_little(values, sigma)
    assert too_little(0.95 * values, sigma)


@pytest.mark.slow
def test_tails_exceed_those_of_short_uniforms():
    """Of 10^7 normals 28 lie beyond 4.7 standard deviations; between 4 and 70 with probability 1 - 1e-6."""
    far = int((np.abs(noise(1.0, 3, (10_000, 1000))) > 4.7).sum())
    assert 4 <= far <= 70


def test_noise_is_fresh_without_a_seed():
    cells = np.zeros((3, 4), dtype=np.int64)
    assert (noisy_matrix(cells, 1.0, RandomBits()) != noisy_matrix(cells, 1.0, RandomBits())).all()
    assert (noisy_matrix(cells, 1.0, RandomBits(5)) == noisy_matrix(cells, 1.0, RandomBits(5))).all()


def test_noise_differs_between_blocks():
    values = noisy_matrix(np.zeros((4096, 3), dtype=np.int64), 1.0, RandomBits(5))
    assert len(np.unique(values[:, 0])) > 3000


def test_a_scale_of_zero_gives_the_sum():
    cells = np.array([[3, -5]])
    assert (noisy_matrix(cells, 0.0, RandomBits(1)) == cells * CELL).all()


class Someone:
    levels = (None,)

    def __init__(self, rows):
        self._rows = np.asarray(rows, dtype=np.int32)

    def chunks(self):
        yield self._rows, np.array([len(self._rows)], dtype=np.int64)


def canary_run(epsilon, *, noiseless=False, canaries=400):
    """Audit users who each write a unique pair of words."""
    words = vectors_of([f"w{n}" for n in range(2 * canaries)])
    plan = Cooccurrence(words, epsilon=epsilon, delta=DELTA).plan()
    people = [Someone([2 * n, 2 * n + 1] * 5) for n in range(canaries)]
    contributions = [plan.total([person]) for person in people]

    def train(included):
        total = sum(
            (entry for entry, present in zip(contributions, included, strict=True) if present),
            np.zeros_like(contributions[0]),
        )
        return noisy_matrix(total, 0.0 if noiseless else plan.budgets.sigma, RandomBits(7))

    return loss_of_sum(contributions, train, delta=DELTA)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_canaries_stay_within_the_guarantee(epsilon):
    """False alarm: 1e-6, by the bound of one-run auditing."""
    assert canary_run(epsilon).loss <= epsilon


@pytest.mark.statistical
def test_canaries_are_found_without_noise():
    """Positive control: far above epsilon 1, and above 0 with noise for epsilon 8."""
    assert canary_run(1.0, noiseless=True).loss > 2
    assert canary_run(8.0).loss > 0.1


def test_the_worst_user_attains_the_guarantee():
    """Along the direction of the matrix, the release is one Gaussian number with an exact delta at epsilon."""
    words = vectors_of(["a", "b", "c"], dimension=3)
    plan = Cooccurrence(words, epsilon=2.0, delta=1e-5).plan()
    moved = plan.total([Someone([0, 1, 2] * 30)])
    length = math.sqrt(sum(int(entry) ** 2 for entry in moved.ravel())) * CELL
    assert gaussian_delta(plan.budgets.sigma, epsilon=2.0, sensitivity=length) <= 1e-5
    assert gaussian_delta(plan.budgets.sigma, epsilon=2.0, sensitivity=1.05 * length) > 1e-5
