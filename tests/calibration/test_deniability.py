"""What an epsilon means for a word: exact numbers by hand, sampled ones within their stated errors."""

import math

import numpy as np
import pytest

import dptext
from dptext import TEM, Madlib, deniability
from dptext.calibration import deniability as frequency
from dptext.calibration.deniability import MEASURES, replacements, sample_words, weighted_quantile, zipf_weights
from dptext.errors import ParameterError

THREE = (["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]])


@pytest.fixture(scope="module")
def three():
    return dptext.load_vectors(THREE)


def test_every_number_by_hand(three):
    """Weights exp(-min(d, 3)): from cat, <unk> lies at (3, 10/3), beyond the threshold like tax."""
    result = deniability(TEM(three, epsilon=2.0, threshold=3.0), ["cat", "tax"], neighbours=1)
    total = 1 + math.exp(-1) + 2 * math.exp(-3)
    unk, tax = math.hypot(3, 10 / 3), math.hypot(9, 9)
    assert result.keep[0] == pytest.approx(1 / total, abs=1e-6)
    assert result.distance[0] == pytest.approx((math.exp(-1) + math.exp(-3) * (unk + tax)) / total, abs=1e-5)
    assert result.replacement_distance[0] == pytest.approx(result.distance[0] / (1 - result.keep[0]))
    assert result.median_rank[0] == 1
    assert result.neighbourhood.tolist() == pytest.approx([1.0, math.hypot(6, 17 / 3)], abs=1e-4)
    # .681 + .251 + .034 hold 95%, .681 + .251 do not
    assert result.support[0] == 3
    # from tax all others lie beyond the threshold: the median rank of three equal ones is the second
    assert result.keep[1] == pytest.approx(1 / (1 + 3 * math.exp(-3)), abs=1e-6)
    assert (result.support[1], result.median_rank[1]) == (3, 2)
    assert result.weights.tolist() == pytest.approx([0.75, 0.25])  # 1 and 1/3
    assert result.mean("keep") == pytest.approx(0.75 * result.keep[0] + 0.25 * result.keep[1])
    assert (result.draws, result.error("keep"), result.quantile_error) == (None, 0.0, 0.0)


def test_numbers_come_from_the_integers_of_the_sampler(glove):
    mechanism = TEM(glove, epsilon=4.0)
    word = "doctor"
    weights = mechanism.weights([word])[0]
    result = deniability(mechanism, [word])
    row = glove.vocabulary.row(word)
    assert result.keep[0] == weights[row] / weights.sum()
    ordered = np.sort(weights)[::-1]
    assert result.support[0] == np.searchsorted(np.cumsum(ordered) / ordered.sum(), 0.95) + 1


@pytest.mark.slow
def test_small_vocabularies_are_looked_at_in_full_and_large_ones_in_part(small, glove):
    whole = deniability(TEM(small, epsilon=2.0))
    assert len(whole) == len(small)
    assert whole.error("keep") == 0.0
    part = deniability(TEM(glove, epsilon=4.0), rows=60)
    assert len(part) <= 60
    assert part.weights.sum() == pytest.approx(1.0)
    everything = TEM(glove, epsilon=4.0)
    zipf = 1 / np.arange(1, 501)
    shares = everything.distributions(list(glove.words[:500]))
    truth = np.average(np.diagonal(shares), weights=zipf)
    of_these = deniability(everything, weights=np.r_[zipf, np.zeros(len(glove) - 500)], rows=100)
    assert of_these.mean("keep") == pytest.approx(truth, abs=2.5 * of_these.error("keep"))  # 5 standard errors
    assert 0 < of_these.error("keep") < 0.05


def test_sampled_numbers_lie_within_their_stated_errors_of_the_exact_ones(small, sampled_only):
    exact = deniability(TEM(small, epsilon=4.0))
    result = deniability(sampled_only(small, epsilon=4.0), draws=2000, seed=3)
    assert result.draws == 2000
    wrong = (exact.keep < result.keep_low) | (exact.keep > result.keep_high)
    assert wrong.mean() <= 0.05  # the stated error a word; the bound is not tight
    assert ((result.support_low <= exact.support) & (exact.support <= result.support_high)).all()
    assert (result.support_high < len(small)).any()
    for name in ("keep", "distance"):
        assert result.error(name) > 0
        assert result.mean(name) == pytest.approx(exact.mean(name), abs=2.5 * result.error(name))  # 5 standard errors
    assert result.quantile("median_rank", 0.5) == pytest.approx(exact.quantile("median_rank", 0.5), rel=0.1)
    np.testing.assert_array_equal(result.neighbourhood, exact.neighbourhood)
    other = deniability(TEM(small, epsilon=6.0))
    assert abs(result.mean("keep") - other.mean("keep")) > 2.5 * result.error("keep")
    assert ((other.keep < result.keep_low) | (other.keep > result.keep_high)).mean() > 0.5


def test_few_draws_give_no_upper_bound_on_the_support(small):
    result = deniability(Madlib(small, epsilon=3.0), draws=50, seed=1)
    assert (result.support_high == len(small)).all()
    assert (result.support_low <= result.support).all()


def test_a_word_that_always_stays_has_no_replacement(three):
    result = deniability(Madlib(three, epsilon=1e4), draws=20, seed=1)
    assert (result.keep == 1).all()
    assert np.isnan(result.median_rank).all()
    assert math.isnan(result.mean("replacement_distance"))
    assert math.isnan(result.quantile("median_rank", 0.5))
    assert result.as_dict()["mean"]["median_rank"] is None


def test_a_word_on_the_point_of_another_is_its_own_first_neighbour(small):
    result = deniability(TEM(small, epsilon=1000.0, threshold=0.04), [small.words[4], small.words[17]], neighbours=1)
    assert result.neighbourhood.tolist() == [0.0, 0.0]
    assert result.keep[0] == result.keep[1] <= 0.5


@pytest.mark.parametrize("metric", ["angular", "manhattan", "chebyshev"])
def test_distances_are_those_that_epsilon_counts(small, metric):
    result = deniability(TEM(small, epsilon=1.0, metric=metric), ["word" + "a0x"], neighbours=3)
    x = small.matrix.astype(np.float64)
    norms = np.linalg.norm(x, axis=1)
    distance = {
        "angular": np.arccos(np.clip(x @ x[0] / norms / norms[0], -1, 1)),
        "manhattan": np.abs(x - x[0]).sum(axis=1),
        "chebyshev": np.abs(x - x[0]).max(axis=1),
    }[metric]
    assert result.neighbourhood[0] == pytest.approx(np.sort(distance)[3], rel=1e-4)


def test_the_policy_for_unknown_words_counts(small):
    plain = deniability(TEM(small, epsilon=6.0), ["zzz"])
    uniform = deniability(TEM(small, epsilon=6.0, unknown="uniform"), ["zzz"])
    assert uniform.keep[0] < plain.keep[0]
    assert uniform.support[0] > plain.support[0]


def test_quantiles_weigh_words(small):
    values, weights = np.array([1.0, 2.0, math.nan, 3.0]), np.array([0.5, 0.2, 0.2, 0.1])
    assert weighted_quantile(values, weights, 0.5) == 1.0
    assert weighted_quantile(values, weights, 0.7) == 2.0
    assert weighted_quantile(values, weights, 1.0) == 3.0
    result = deniability(TEM(small, epsilon=2.0))
    assert set(result.quantiles()) == set(MEASURES)
    assert all(list(quantile) == sorted(quantile) for quantile in result.quantiles().values())


def test_what_was_measured_is_frozen(small):
    result = deniability(TEM(small, epsilon=2.0))
    with pytest.raises(ValueError, match="read-only"):
        result.keep[0] = 1.0
    with pytest.raises(AttributeError):
        result.epsilon = 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eta": 0.0}, "eta must be a number above 0"),
        ({"words": []}, "at least one word"),
        ({"words": "cat"}, "got one string"),
        ({"weights": [1.0]}, "one number for each of 4 words"),
        ({"weights": [1.0, -1.0, 0.0, 0.0]}, "at least 0"),
        ({"weights": [0.0] * 4}, "not all of them 0"),
    ],
)
def test_bad_arguments_are_named(three, options, message):
    with pytest.raises(ParameterError, match=message):
        deniability(TEM(three, epsilon=1.0), **options)


def test_only_some_errors_are_known(three):
    result = deniability(TEM(three, epsilon=1.0))
    with pytest.raises(ParameterError, match="known for 'keep' and 'distance'"):
        result.error("rank")
    with pytest.raises(ParameterError, match="a measure is one of"):
        result.mean("colour")


# -- the sample of words -------------------------------------------------------------------------------------------


def test_a_sample_stands_for_all(glove):
    weights = zipf_weights(len(glove))
    sample = sample_words(weights, 100)
    assert len(sample.rows) <= 100
    assert sample.weights.sum() == pytest.approx(1.0)
    assert np.unique(sample.rows).size == sample.rows.size
    assert sample.rows[:5].tolist() == [0, 1, 2, 3, 4]
    assert sample.weights[0] == weights[0]  # so frequent that it is there for itself
    words = sample_words(weights, 100)
    assert words.rows.tolist() == sample.rows.tolist()
    assert sample_words(weights[:50], 100).is_everything


def test_means_are_unbiased_and_their_error_is_estimated_right(monkeypatch):
    weights = zipf_weights(5000)
    values = np.random.default_rng(1).random(5000) + np.linspace(0, 1, 5000)
    truth = weights @ values
    means, variances = [], []
    for seed in range(400):
        monkeypatch.setattr(frequency, "_PUBLIC_SEED", seed)
        sample = sample_words(weights, 80)
        means.append(sample.weights @ values[sample.rows])
        variances.append(sample.variance(values[sample.rows]))
        assert sample.variance((values > 1)[sample.rows].astype(float)) <= 2 * sample.largest_variance
    spread = np.std(means, ddof=1)
    assert np.mean(means) == pytest.approx(truth, abs=5 * spread / 20)
    assert np.sqrt(np.mean(variances)) == pytest.approx(spread, rel=0.2)  # 400 seeds: 3.5% standard error


def test_words_of_no_weight_are_never_drawn():
    weights = zipf_weights(1000)
    weights[::2] = 0
    sample = sample_words(weights / weights.sum(), 60)
    assert (sample.rows % 2 == 1).all()
    assert sample.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("most", [2, 3, 4, 5])
def test_tiny_samples_are_samples_too(most):
    sample = sample_words(zipf_weights(100), most)
    assert 1 <= len(sample.rows) <= most
    assert sample.weights.sum() == pytest.approx(1.0)


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
    assert draws.draws == 4000
    assert draws.keep == pytest.approx(result.keep, abs=0.04)
    assert len(draws.likeliest) == 5
    assert not replacements(mechanism, "zzz").known
