"""The effect of an epsilon on words: exact numbers by hand, sampled ones within their stated errors."""

import math

import numpy as np
import pytest

import dptext
from dptext import TEM, Madlib, deniability
from dptext.calibration import deniability as module
from dptext.calibration.deniability import (
    replacements,
    sample_words,
    smallest_support,
    weighted_quantile,
)
from dptext.errors import ParameterError
from dptext.representations.encoders import zipf_weights


@pytest.fixture(scope="module")
def three():
    return dptext.load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))


def test_every_measure_agrees_with_a_calculation_by_hand(three):
    """Weights exp(-min(d, 3)): from cat, <unk> lies at (3, 10/3), beyond the threshold like tax."""
    result = deniability(TEM(three, epsilon=2.0, threshold=3.0), ["cat", "tax"])
    total = 1 + math.exp(-1) + 2 * math.exp(-3)
    unk, tax = math.hypot(3, 10 / 3), math.hypot(9, 9)
    assert result.keep[0] == pytest.approx(1 / total, abs=1e-6)
    assert result.distance[0] == pytest.approx((math.exp(-1) + math.exp(-3) * (unk + tax)) / total, abs=1e-5)
    assert result.replacement_distance[0] == pytest.approx(result.distance[0] / (1 - result.keep[0]))
    assert result.median_rank[0] == 1
    # .681 + .251 + .034 hold 95%, .681 + .251 do not
    assert result.support[0] == 3
    # from tax all others lie beyond the threshold: the median rank of three equal ones is the second
    assert result.keep[1] == pytest.approx(1 / (1 + 3 * math.exp(-3)), abs=1e-6)
    assert (result.support[1], result.median_rank[1]) == (3, 2)
    assert result.weights.tolist() == pytest.approx([0.75, 0.25])  # 1 and 1/3
    assert result.mean("keep") == pytest.approx(0.75 * result.keep[0] + 0.25 * result.keep[1])
    assert (result.draws, result.error("keep")) == (None, 0.0)
    with pytest.raises(ValueError, match="read-only"):
        result.keep[0] = 1.0


def test_exact_numbers_come_from_the_integers_of_the_sampler(glove):
    mechanism = TEM(glove, epsilon=4.0)
    weights = mechanism.weights(["doctor"])[0]
    result = deniability(mechanism, ["doctor"])
    assert result.keep[0] == weights[glove.vocabulary.row("doctor")] / weights.sum()
    ordered = np.sort(weights)[::-1]
    assert result.support[0] == np.searchsorted(np.cumsum(ordered) / ordered.sum(), 0.95) + 1


@pytest.mark.slow
def test_small_vocabularies_are_measured_in_full_and_large_ones_in_part(small, glove):
    whole = deniability(TEM(small, epsilon=2.0))
    assert (len(whole), whole.error("keep")) == (len(small), 0.0)
    mechanism, zipf = TEM(glove, epsilon=4.0), 1 / np.arange(1, 501)
    truth = np.average(np.diagonal(mechanism.distributions(list(glove.words[:500]))), weights=zipf)
    part = deniability(mechanism, weights=np.r_[zipf, np.zeros(len(glove) - 500)], rows=100)
    assert len(part) <= 100
    assert part.weights.sum() == pytest.approx(1.0)
    assert part.mean("keep") == pytest.approx(truth, abs=2.5 * part.error("keep"))  # 5 standard errors
    assert 0 < part.error("keep") < 0.05


def test_sampled_numbers_lie_within_their_stated_errors_of_the_exact_ones(small, sampled_only):
    exact = deniability(TEM(small, epsilon=4.0))
    result = deniability(sampled_only(small, epsilon=4.0), draws=2000, seed=3)
    assert result.draws == 2000
    assert (result.support <= exact.support).all()  # from draws it is too small
    for name in ("keep", "distance"):
        assert result.error(name) > 0
        assert result.mean(name) == pytest.approx(exact.mean(name), abs=2.5 * result.error(name))  # 5 standard errors
    assert result.quantile("median_rank", 0.5) == pytest.approx(exact.quantile("median_rank", 0.5), rel=0.1)
    other = deniability(TEM(small, epsilon=6.0))
    assert abs(result.mean("keep") - other.mean("keep")) > 2.5 * result.error("keep")


def test_a_word_that_always_stays_has_no_replacement(three):
    result = deniability(Madlib(three, epsilon=1e4), draws=20, seed=1)
    assert (result.keep == 1).all()
    assert np.isnan(result.median_rank).all()
    assert math.isnan(result.mean("replacement_distance"))
    assert math.isnan(result.quantile("median_rank", 0.5))
    assert result.as_dict()["mean"]["median_rank"] is None


@pytest.mark.parametrize("metric", ["angular", "euclidean"])
def test_distances_are_in_the_metric_that_epsilon_counts(small, metric):
    x = small.matrix.astype(np.float64)
    norms = np.linalg.norm(x, axis=1)
    distances = {
        "angular": np.arccos(np.clip(x @ x[0] / norms / norms[0], -1, 1)),
        "euclidean": np.linalg.norm(x - x[0], axis=1),
    }
    mechanism = TEM(small, epsilon=1.0, metric=metric)
    mean = mechanism.probabilities(small.words[0]) @ distances[metric]
    assert deniability(mechanism, [small.words[0]]).distance[0] == pytest.approx(mean, rel=1e-3)


def test_two_words_on_one_point_stay_equally_often(small):
    result = deniability(TEM(small, epsilon=1000.0, threshold=0.04), [small.words[4], small.words[17]])
    assert result.keep[0] == result.keep[1] <= 0.5


def test_quantiles_weigh_words():
    values, weights = np.array([1.0, 2.0, math.nan, 3.0]), np.array([0.5, 0.2, 0.2, 0.1])
    assert [weighted_quantile(values, weights, share) for share in (0.5, 0.7, 1.0)] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words": []}, "at least one word"),
        ({"words": "cat"}, "a list of at least one word"),
        ({"weights": [1.0]}, "4 numbers"),
        ({"weights": [1.0, -1.0, 0.0, 0.0]}, "at least 0"),
        ({"weights": [0.0] * 4}, "numbers of at least 0, one per"),
        ({"rows": 1}, "rows must be"),
        ({"draws": 0}, "draws must be"),
    ],
)
def test_bad_arguments_are_refused(three, options, message):
    with pytest.raises(ParameterError, match=message):
        deniability(TEM(three, epsilon=1.0), **options)


# -- the sample of words -------------------------------------------------------------------------------------------


def test_a_sample_represents_all_words(glove):
    weights = zipf_weights(len(glove))
    sample = sample_words(weights, 100)
    assert len(sample.rows) == np.unique(sample.rows).size <= 100
    assert sample.weights.sum() == pytest.approx(1.0)
    assert sample.rows[:5].tolist() == [0, 1, 2, 3, 4]
    assert sample.weights[0] == weights[0]  # frequent enough to represent only itself
    assert sample_words(weights, 100).rows.tolist() == sample.rows.tolist()
    assert not sample_words(weights[:50], 100).strata.size
    for maximum in (2, 3, 4, 5):
        sample = sample_words(zipf_weights(100), maximum)
        assert 1 <= len(sample.rows) <= maximum
        assert sample.weights.sum() == pytest.approx(1.0)
    # words of no weight are never drawn
    weights = zipf_weights(1000)
    weights[::2] = 0
    sample = sample_words(weights / weights.sum(), 60)
    assert (sample.rows % 2 == 1).all()
    assert sample.weights.sum() == pytest.approx(1.0)


def test_sampled_means_are_unbiased_and_their_error_is_estimated_correctly(monkeypatch):
    weights = zipf_weights(5000)
    values = np.random.default_rng(1).random(5000) + np.linspace(0, 1, 5000)
    truth = weights @ values
    means, variances = [], []
    for seed in range(400):
        monkeypatch.setattr(module, "_PUBLIC_SEED", seed)
        sample = sample_words(weights, 80)
        means.append(sample.weights @ values[sample.rows])
        variances.append(sample.variance(values[sample.rows]))
    spread = np.std(means, ddof=1)
    assert np.mean(means) == pytest.approx(truth, abs=5 * spread / 20)
    assert np.sqrt(np.mean(variances)) == pytest.approx(spread, rel=0.2)  # 400 seeds: 3.5% standard error


# -- supports and single words ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5, 60, 2000])
def test_the_support_is_at_least_its_lower_bound(size):
    """The bound may fail in 2.5% of the cases; it is cautious, so 40 repetitions should show next to nothing."""
    generator = np.random.default_rng(size)
    shares = generator.dirichlet(np.full(size, 0.3))
    truth, misses = smallest_support(shares), 0
    for _ in range(40):
        counts = np.unique(generator.choice(size, 1600, p=shares), return_counts=True)[1]
        misses += smallest_support(counts / 1600, module.ETA + math.sqrt(math.log(1 / 0.025) / 3200)) > truth
    assert misses <= 4


def test_the_smallest_support():
    shares = np.array([0.1, 0.6, 0.25, 0.05])
    assert [smallest_support(shares, eta) for eta in (0.5, 0.4, 0.39, 0.15, 0.05, 0.01)] == [1, 1, 2, 2, 3, 4]


def test_replacements_are_the_likeliest_words(small, sampled_only):
    word = small.words[5]
    mechanism = TEM(small, epsilon=3.0)
    shares = mechanism.probabilities(word)
    result = replacements(mechanism, word, maximum=3)
    assert result.keep == shares[5]
    others = np.delete(shares, 5)
    assert [share for _, share in result.likeliest] == sorted(others.tolist(), reverse=True)[:3]
    assert (result.known, result.draws) == (True, None)
    draws = replacements(sampled_only(small, epsilon=3.0), word, draws=4000, seed=1)
    assert (draws.draws, len(draws.likeliest)) == (4000, 5)
    assert draws.keep == pytest.approx(result.keep, abs=0.04)
    assert not replacements(mechanism, "zzz").known
