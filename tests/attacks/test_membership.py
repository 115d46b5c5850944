"""Attacks find the members of an overfitted model, and no one else.

Statistical tests reject at 1e-6 or less. Each positive control stands beside the same attack on a model that never saw
the members: without it a dead attack would look like privacy.
"""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from dptext.attacks.membership import (
    likelihood_ratio_membership,
    loss_membership,
    random_halves,
    score_membership,
    shadow_membership,
)


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


ROWS, WORDS, SHADOWS = 1000, 1000, 8
Z = 4.9  # two-sided 1e-6


@pytest.fixture(scope="module")
def world():
    """Texts whose labels are half noise, so that a model has something to remember; it and its shadows."""
    generator = np.random.default_rng(3)
    texts = generator.integers(0, WORDS, size=(4 * ROWS, 20))
    hint = (texts < WORDS / 2).mean(axis=1) > 0.5
    labels = np.where(generator.random(4 * ROWS) < 0.5, hint, generator.random(4 * ROWS) < 0.5).astype(int)
    counts = np.zeros((4 * ROWS, WORDS))
    np.add.at(counts, (np.arange(4 * ROWS)[:, None], texts), 1)

    def outputs(trained, queried):
        return LogisticRegression(C=1.0).fit(counts[trained], labels[trained]).predict_proba(counts[queried])

    pool = np.arange(2 * ROWS)
    members = pool < ROWS
    distance = np.arange(2 * ROWS, 4 * ROWS)  # never attacked
    halves = random_halves(2 * ROWS, SHADOWS, seed=2)
    return {
        "labels": labels[pool],
        "members": members,
        "target": outputs(pool[members], pool),
        "stranger": outputs(distance[::2], pool),
        "shadows": np.stack([outputs(pool[half], pool) for half in halves]),
        "halves": halves,
        "shadow": outputs(distance[::2], distance),
        "shadow_members": np.arange(2 * ROWS) % 2 == 0,
        "shadow_labels": labels[distance],
    }


def _attacks(world, outputs):
    labels, members = world["labels"], world["members"]
    shadow = world["shadow"], world["shadow_members"]
    lira = world["shadows"], world["halves"], outputs, labels, members
    return {
        "shadow": shadow_membership(*shadow, outputs, members, seed=1),
        "shadow, labels": shadow_membership(
            *shadow, outputs, members, shadow_labels=world["shadow_labels"], labels=labels, seed=1
        ),
        "loss": loss_membership(outputs, labels, members),
        "online": likelihood_ratio_membership(*lira),
        "offline": likelihood_ratio_membership(*lira, online=False),
    }


def test_an_overfitted_model_is_attacked(world):
    result = _attacks(world, world["target"])
    for entry in result.values():
        assert entry.auc.succeeded
        assert entry.auc.score.value > 0.6
        assert entry.accuracy.succeeded
    # labels help, and knowing how hard each text is helps
    assert result["shadow, labels"].auc.score.value > result["shadow"].auc.score.value
    assert result["online"].auc.score.value > result["loss"].auc.score.value
    assert result["online"].at_1_percent.succeeded


def test_a_model_that_never_saw_the_members_gives_chance(world):
    """Each of the 10 checks rejects at 1e-7 or so: the area has a standard error of .0129, the accuracy .0112."""
    for attack in _attacks(world, world["stranger"]).values():
        assert abs(attack.auc.score.value - 0.5) < 5.3 * 0.0129
        assert abs(attack.accuracy.score.value - 0.5) < 5.3 * 0.0112
        assert not attack.at_1_percent.score.low > 0.03


def _covered(intervals, truth):
    return sum(low <= truth <= high for low, high in intervals)


@pytest.mark.statistical
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


def test_the_likelihood_ratio_is_that_of_scipy():
    generator = np.random.default_rng(7)
    n, shadows = 40, 150
    labels = generator.integers(0, 3, n)
    members = generator.random(n) < 0.5
    halves = random_halves(n, shadows, seed=1)
    logits = generator.normal(size=(shadows, n, 3)) * generator.uniform(0.5, 2, size=(n, 1))
    requested = generator.normal(size=(n, 3))

    def scaled(values):
        rows = np.arange(n)
        others = [np.log(sum(np.exp(values[row, c]) for c in range(3) if c != labels[row])) for row in rows]
        return values[rows, labels] - others

    def oracle(variances):
        of_shadows, x = np.stack([scaled(logit) for logit in logits]), scaled(requested)
        sides = []
        for mask in (halves, ~halves):
            masked = np.ma.array(of_shadows, mask=~mask)
            spread = masked.var(axis=0, ddof=1)
            sides.append(stats.norm.logpdf(x, masked.mean(axis=0), np.sqrt(spread if variances else spread.mean())))
        return score_membership(sides[0] - sides[1], members)

    result = likelihood_ratio_membership(softmax(logits), halves, softmax(requested), labels, members)
    assert result.auc.score == oracle(True).auc.score
    assert result.auc.score != oracle(False).auc.score
    few = slice(0, 10)
    halves, logits = random_halves(n, 10, seed=2), logits[few]
    result = likelihood_ratio_membership(softmax(logits), halves, softmax(requested), labels, members)
    assert result.auc.score == oracle(False).auc.score


def test_certain_outputs_and_constant_ones_are_answered():
    labels, members = np.zeros(20, int), np.arange(20) < 10
    certain = np.where(members[:, None], [[1.0, 0.0]], [[0.0, 1.0]])
    result = loss_membership(certain, labels, members)
    assert result.auc.score.value == 1.0
    assert 0.5 < result.auc.score.low < 1.0
    constant = np.full((20, 2), 0.5)
    assert loss_membership(constant, labels, members).auc.score.value == 0.5
    assert not loss_membership(constant, labels, members).auc.succeeded
    shadows, halves = np.full((4, 20, 2), 0.5), random_halves(20, 4, seed=1)
    same = likelihood_ratio_membership(shadows, halves, constant, labels, members)
    assert same.auc.score.value == 0.5
    assert same.at_1_percent.score.value == 0.0


def test_an_attack_that_says_the_same_of_everybody_is_no_proof_of_privacy():
    auc = score_membership([0.3] * 40, [1] * 20 + [0] * 20).auc
    assert "all texts have the same score" in auc.detail
    assert auc.score.low < 0.4 < 0.6 < auc.score.high
    assert "same score" not in score_membership([0.3] * 39 + [0.4], [1] * 20 + [0] * 20).auc.detail
