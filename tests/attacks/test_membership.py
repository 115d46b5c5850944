"""The measures of a membership attack: areas, thresholds and shares found, with intervals that hold.

Statistical tests reject at 1e-6 or less.
"""

import numpy as np
from scipy import stats

from dptext.attacks.membership import score_membership

Z = 4.9  # two-sided 1e-6


def _covered(intervals, truth):
    return sum(low <= truth <= high for low, high in intervals)


def test_intervals_cover_what_they_should():
    """Scores of two normals one apart: area Phi(1 / sqrt 2), found at 1% Phi(1 - 2.326); 1e-6 each."""
    generator, trials, n = np.random.default_rng(5), 200, 300
    members = np.arange(2 * n) < n
    runs = [score_membership(generator.normal(size=2 * n) + members, members) for _ in range(trials)]
    areas = [(run.auc.score.low, run.auc.score.high) for run in runs]
    assert stats.binomtest(_covered(areas, stats.norm.cdf(0.5**0.5)), trials, 0.95).pvalue > 1e-6
    for name, rate in (("at_1_percent", 0.01), ("at_01_percent", 0.001)):
        truth = stats.norm.sf(stats.norm.isf(rate) - 1)
        results = [getattr(run, name).score for run in runs]
        covered = _covered([(entry.low, entry.high) for entry in results], truth)
        assert stats.binomtest(covered, trials, 0.95, alternative="less").pvalue > 1e-6  # never too narrow
    # the variant that takes the threshold for the true one is too narrow
    naive = [stats.binomtest(round(entry.value * n), n).proportion_ci() for entry in results]
    covered = _covered([(entry.low, entry.high) for entry in naive], truth)
    assert stats.binomtest(covered, trials, 0.95, alternative="less").pvalue < 1e-6


def test_areas_near_one_are_covered():
    """Thirty members and thirty others, area .99: the interval of DeLong misses in 15% (false alarm 1e-6)."""
    generator, trials, missed, twin = np.random.default_rng(10), 400, 0, 0
    members = np.arange(60) < 30
    truth = stats.norm.cdf(3.3 / 2**0.5)
    for _ in range(trials):
        scores = generator.normal(size=60) + 3.3 * members
        score = score_membership(scores, members).auc.score
        missed += not score.low <= truth <= score.high
        above = scores[:30, None] > scores[30:]
        spread = (above.mean(axis=1).var(ddof=1) + above.mean(axis=0).var(ddof=1)) / 30
        twin += above.mean() - 1.96 * spread**0.5 > truth
    assert stats.binomtest(missed, trials, 0.05, alternative="greater").pvalue > 1e-6
    assert stats.binomtest(twin, trials, 0.05, alternative="greater").pvalue < 1e-6


def test_the_threshold_is_not_chosen_on_the_texts_it_is_tried_on():
    """200 random scores: the best threshold on all of them looks better than chance, ours does not (1e-6)."""
    generator, n = np.random.default_rng(6), 40
    members = np.arange(n) % 4 < 2
    rights = [
        score_membership(generator.normal(size=n), members).accuracy.score.value * n for _ in range(200)
    ]  # halves are tried on each other, so runs are independent but texts are not quite
    mean, error = np.mean(rights) / n, np.std(rights) / n / 200**0.5
    assert abs(mean - 0.5) < Z * error
    scores = [generator.normal(size=n) for _ in range(200)]
    peeking = [max(((score >= t) == members).mean() for t in score) for score in scores]
    assert np.mean(peeking) - 0.5 > Z * np.std(peeking) / 200**0.5


def test_an_attack_that_says_the_same_of_everybody_is_no_proof_of_privacy():
    auc = score_membership([0.3] * 40, [1] * 20 + [0] * 20).auc
    assert "all texts have the same score" in auc.detail
    assert auc.score.low < 0.4 < 0.6 < auc.score.high
    assert "same score" not in score_membership([0.3] * 39 + [0.4], [1] * 20 + [0] * 20).auc.detail


def test_the_interval_of_members_found_contains_its_value_if_scores_are_tied():
    scores = np.repeat([1.0, 0.0], [400, 1600])
    members = np.arange(2000) % 2 == 0
    share = score_membership(scores, members).at_1_percent.score
    assert share.low <= share.value <= share.high
