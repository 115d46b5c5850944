"""Word recovery: the best attacker is the one of `dptext.words`, to the last bit.

Statistical lines are exact binomial quantiles at 1e-6.
"""

import numpy as np
import pytest
from papers.guessing import guess_rate
from scipy import stats

from dptext import TEM, Madlib, SanText, deniability, load_vectors
from dptext.attacks import bayes_recovery, expected_recovery, nearest_recovery
from dptext.privacy.randomness import RandomBits
from dptext.representations.encoders import zipf_weights
from laws import most_by_luck


def channel_of(mechanism):
    words = mechanism.vectors.words
    return lambda rows: mechanism.distributions([words[row] for row in rows])


def drawn(mechanism, prior, count, seed):
    true = np.random.default_rng(seed).choice(prior.size, size=count, p=prior)
    return true, mechanism.sample_rows(true, RandomBits(seed))


# -- the best attacker -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [TEM, SanText])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 9.0])
def test_recovery_and_guessing_speak_of_one_number(small, build, epsilon):
    """The formula and the attack agree exactly for the exponential family, at every epsilon."""
    mechanism = build(small, epsilon=epsilon)
    prior = zipf_weights(len(small))
    attack, measured = expected_recovery(channel_of(mechanism), prior), guess_rate(mechanism)
    assert attack.score.value == measured.rate
    assert attack.baseline == measured.blind
    # the formula of the exponential family: pi(w) exp(-(epsilon / 2) min(d, g)) / Z(w)
    distance = np.linalg.norm(small.matrix[:, None].astype(float) - small.matrix[None].astype(float), axis=2)
    weights = np.exp(-epsilon / 2 * np.minimum(distance, getattr(mechanism, "threshold", np.inf)))
    formula = (prior[:, None] * weights / weights.sum(axis=1, keepdims=True)).max(axis=0).sum()
    assert attack.score.value == pytest.approx(formula, rel=1e-5)  # the integers of the sampler round
    twin = TEM(small, epsilon=1.5 * epsilon)
    assert abs(expected_recovery(channel_of(twin), prior).score.value - formula) > 1e-4


def test_words_that_stay_are_recovered_and_no_fewer(small):
    """Deniability: the keep rate is what a trusting attacker gets, and the best one never gets less."""
    prior = zipf_weights(len(small))
    for epsilon in (1.0, 3.0, 6.0, 30.0):
        mechanism = TEM(small, epsilon=epsilon)
        keep = deniability(mechanism).mean("keep")
        assert float(prior @ np.diag(mechanism.distributions(list(small.words)))) == pytest.approx(keep, rel=1e-12)
        assert expected_recovery(channel_of(mechanism), prior).score.value >= keep - 1e-12
    # on points of their own, where words mostly stay, he can do no better than trust: then the two are one
    points = np.arange(40.0)[:, None]
    mechanism = TEM(load_vectors(([f"{'abcdefgh'[n % 8]}{'xyzuv'[n // 8]}" for n in range(40)], points)), epsilon=20.0)
    even = np.ones(len(mechanism.vectors))
    keep = deniability(mechanism, weights=even).mean("keep")
    # but for "<unk>", which stands between two words
    assert expected_recovery(channel_of(mechanism), even).score.value == pytest.approx(keep, rel=1e-12)


def test_what_was_drawn_is_recovered_as_often_as_expected(small):
    prior = zipf_weights(len(small))
    mechanism = TEM(small, epsilon=3.0)
    true, observed = drawn(mechanism, prior, 20_000, 1)
    expected = expected_recovery(channel_of(mechanism), prior).score.value
    score = bayes_recovery(channel_of(mechanism), prior, true, observed)
    hits = round(score.score.value * 20_000)
    assert stats.binomtest(hits, 20_000, expected).pvalue > 1e-6
    assert score.succeeded
    assert f"{expected:.3f} expected" in score.detail
    # an attacker with a wrong epsilon in mind does worse, and a mechanism with too little noise gives more away
    less_noise = drawn(TEM(small, epsilon=4.5), prior, 20_000, 1)
    hits = round(bayes_recovery(channel_of(mechanism), prior, *less_noise).score.value * 20_000)
    assert stats.binomtest(hits, 20_000, expected).pvalue < 1e-6
    trusting = nearest_recovery(small.matrix[observed], small.matrix, true, prior=prior, seed=1)
    assert trusting.score.value < score.score.value


def test_unprotected_words_are_recovered_and_noise_is_not():
    prior = np.array([0.1, 0.6, 0.3])
    plain = expected_recovery(np.eye(3), prior)
    assert (plain.score.value, plain.succeeded) == (1.0, True)
    noise = expected_recovery(np.full((3, 50_000), 1 / 50_000), prior)
    assert noise.score.value == pytest.approx(0.6, rel=1e-9)
    assert not noise.succeeded  # the rounding of 50,000 sums is no success
    true = np.random.default_rng(2).choice(3, size=500, p=prior)
    score = bayes_recovery(np.full((3, 4), 0.25), prior, true, np.arange(500) % 4)
    assert score.score.value == score.baseline
    assert not score.succeeded


def test_the_nearest_vector_is_an_attack_on_points(small):
    generator = np.random.default_rng(4)
    true = generator.integers(300, size=400)
    near = small.matrix[true] + 0.05 * generator.normal(size=(400, 5))
    one, five = (nearest_recovery(near, small.matrix, true, k=k, seed=1) for k in (1, 5))
    assert five.score.value > one.score.value > 0.8
    assert one.succeeded
    assert one.baseline == 1 / 301
    noise = 3 * generator.normal(size=(400, 5))
    result = nearest_recovery(noise, small.matrix, true, k=5, prior=zipf_weights(301), seed=1)
    assert result.score.value <= most_by_luck(400, 1 / 20)
    assert not result.succeeded
    # Madlib answers with words: an attacker who trusts the output is right for each word that stays
    mechanism = Madlib(small, epsilon=8.0)
    out = mechanism.sample_rows(true, RandomBits(5))
    trusting = nearest_recovery(small.matrix[out], small.matrix, true, seed=1).score.value
    assert trusting == pytest.approx((out == true).mean(), abs=0.02)  # two words share a point


def test_a_point_far_from_the_origin_is_recovered():
    generator = np.random.default_rng(10)
    words = generator.normal(size=(300, 10))
    words[150:] += 1000
    true = generator.integers(300, size=500)
    points = words[true] + 0.01 * generator.normal(size=(500, 10))
    assert nearest_recovery(points, words, true, seed=1).score.value == 1.0
    noise = words.mean(axis=0) + 500 * generator.normal(size=(500, 10))
    assert nearest_recovery(noise, words, true, seed=1).score.value <= most_by_luck(500, 1 / 20)
