"""TEM: the guarantee on the probabilities that the sampler really uses, and broken variants that break it."""

import math

import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.words.tem import TEM, threshold_for
from laws import FALSE_ALARM, chi_square, distances

EPSILON = 5.0


def log_formula(far, epsilon, threshold):
    """Log-probabilities of the formula, in float64."""
    scores = -epsilon / 2 * np.minimum(far, threshold)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def worst_excess(log_probabilities, between, epsilon, threshold):
    """The largest ln P(x|w) - ln P(x|w') - epsilon min(d(w, w'), g) over all pairs of rows and all outputs."""
    worst = -math.inf
    for row, logs in enumerate(log_probabilities):
        loss = np.abs(log_probabilities[row + 1 :] - logs).max(axis=1, initial=-math.inf)
        worst = max(worst, float((loss - epsilon * np.minimum(between[row, row + 1 :], threshold)).max(initial=worst)))
    return worst


@pytest.fixture(scope="module")
def mechanism(glove):
    return TEM(glove, epsilon=EPSILON)


@pytest.fixture(scope="module")
def rows(glove):
    """460 words, so more than 10^5 pairs: random ones, near neighbours, and the unknown word."""
    random = np.random.default_rng(1).choice(len(glove), 400, replace=False)
    near = [np.argsort(far)[1] for far in distances(glove, random[:59])]
    return np.unique([*random, *near, glove.vocabulary.unknown_row])


@pytest.fixture(scope="module")
def far(glove, rows):
    return distances(glove, rows)


@pytest.fixture(scope="module")
def logs(mechanism, glove, rows):
    weights = mechanism.weights([glove.words[row] for row in rows])
    return np.log(weights) - np.log(weights.sum(axis=1, keepdims=True, dtype=np.uint64))


@pytest.mark.slow
def test_real_probabilities_agree_with_brute_force_within_the_slack(mechanism, far, logs):
    assert np.abs(logs - log_formula(far, EPSILON, mechanism.threshold)).max() <= mechanism.slack


@pytest.mark.slow
def test_no_pair_loses_more_than_promised(mechanism, far, logs, rows):
    pairs = len(rows) * (len(rows) - 1) / 2
    assert pairs >= 1e5
    excess = worst_excess(logs, far[:, rows], EPSILON, mechanism.threshold)
    assert excess <= mechanism.slack
    # the check has teeth: among these pairs the loss comes near the bound
    loss = np.abs(logs[0] - logs[1:]).max(axis=1)
    assert (loss > 0.5 * EPSILON * np.minimum(far[0, rows[1:]], mechanism.threshold)).any()


@pytest.mark.statistical
@pytest.mark.parametrize("word", ["doctor", "<unk>"])
def test_a_million_draws_fit_the_probabilities(glove, word):
    mechanism = TEM(glove, epsilon=4.0)
    draws = mechanism.sample_rows(np.full(1_000_000, glove.vocabulary.row(word)), RandomBits(3))
    counts = np.bincount(draws, minlength=len(glove))
    assert chi_square(counts, mechanism.probabilities(word)) > FALSE_ALARM
    # the same test rejects the distribution of a slightly larger epsilon
    assert chi_square(counts, TEM(glove, epsilon=4.1).probabilities(word)) < FALSE_ALARM


def test_draws_in_one_batch_of_many_words_fit_each_words_probabilities(small):
    mechanism = TEM(small, epsilon=2.0)
    rows = np.tile(np.arange(len(small)), 1_000)
    draws = mechanism.sample_rows(rows, RandomBits(4))
    worst = min(
        chi_square(np.bincount(draws[rows == row], minlength=len(small)), mechanism.probabilities(word))
        for row, word in enumerate(small.words)
    )
    assert worst > FALSE_ALARM / len(small)


@pytest.mark.parametrize("beta", [0.5, 0.001])
def test_theorem_three_holds_with_its_threshold_and_fails_with_half_of_it(glove, rows, far, beta):
    def outside(threshold):
        mechanism = TEM(glove, epsilon=2.0, threshold=threshold)
        shares = np.stack([mechanism.probabilities(glove.words[row]) for row in rows[:40]])
        return (shares * (far[:40] > threshold)).sum(axis=1).max()

    threshold = threshold_for(2.0, len(glove), beta)
    assert outside(threshold) <= beta
    assert outside(threshold / 2) > beta


@pytest.mark.slow
def test_a_pure_document_budget_is_split_over_its_words(glove):
    mechanism = TEM(glove, epsilon=3.0, document_epsilon=100.0, max_words=10)
    assert mechanism.word_guarantee().pure_epsilon == pytest.approx(10.0)
    assert mechanism.beta == pytest.approx((len(glove) - 1) / (len(glove) - 1 + math.exp(5.0)))
    assert 49_999 / (49_999 + math.exp(5)) == pytest.approx(0.997, abs=5e-4)  # claims.md section 1
    weights = mechanism.weights(list(glove.words[:50])).astype(np.float64)
    logs = np.log(weights) - np.log(weights.sum(axis=1, keepdims=True))
    assert np.abs(logs[:, None] - logs[None]).max() <= 10.0 + mechanism.slack
    result = dptext.privatize(["one two " * 10], mechanism, seed=1)
    assert result.statement.guarantee == dptext.PureDP(100.0)
    # the eleventh word and those after it are not read
    assert result.texts[0].split()[10:] == ["<unk>"] * 10
    assert any("first 10" in line for line in result.statement.exposed)


def test_a_small_cache_gives_the_same_draws(glove, monkeypatch):
    words = list(glove.words[:5000]) * 2
    plain = TEM(glove, epsilon=3.0)
    monkeypatch.setattr("dptext.noise.selection._CACHE_BYTES", 0)
    narrow = TEM(glove, epsilon=3.0)
    assert len(narrow._selection._kept["sums"]) == 1024
    narrow.sample(words)
    sample = narrow.sample(words[:800], seed=2)
    assert sample == plain.sample(words[:800], seed=2)


def test_a_pure_epsilon_sets_the_threshold(small):
    mechanism = TEM(small, epsilon=4.0, pure_epsilon=6.0)
    assert mechanism.threshold == 1.5
    assert mechanism.statement.epsilon <= 6.0 + mechanism.slack
    assert mechanism.parameters() == TEM(small, epsilon=4.0, threshold=1.5).parameters()
    assert TEM(small, **TEM.arguments_in(mechanism.parameters())).threshold == 1.5
    for options in ({"threshold": 1.0}, {"document_epsilon": 3.0, "max_words": 2}):
        with pytest.raises(ParameterError, match="set the threshold"):
            TEM(small, epsilon=4.0, pure_epsilon=6.0, **options)
