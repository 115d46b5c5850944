"""Attacks find the members of an overfitted model, and no one else.

Statistical tests reject at 1e-6 or less. Each positive control stands beside the same attack on a model that never saw
the members: without it a dead attack would look like privacy.
"""

import numpy as np
import pytest
from papers.membership import likelihood_ratio_membership, loss_membership, random_halves, shadow_membership
from scipy import stats
from sklearn.linear_model import LogisticRegression

from dptext.attacks.membership import score_membership


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


ROWS, WORDS, SHADOWS = 1000, 1000, 8


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


@pytest.mark.statistical
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
