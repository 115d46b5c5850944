"""SanText+: the price of a chance to stay, exact on small vocabularies, bounded on large ones."""

import math

import numpy as np
import pytest

import dptext
from dptext.words import santext as module
from dptext.words.santext import SanTextPlus

EPSILON = 3.0


def formula(vectors, *, sensitive, p, reach, epsilon=EPSILON):
    """(V, V) float64 probabilities from the printed formulas."""
    points = vectors.matrix.astype(np.float64)
    far = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    weights = np.exp(-epsilon / 2 * np.minimum(far, reach))
    shares = weights / weights.sum(axis=1, keepdims=True)
    size = len(vectors)
    for row in range(size - round(sensitive * size)):
        if vectors.words[row] != "<unk>":
            shares[row] *= p
            shares[row, row] += 1 - p
    return shares


def worst_loss(shares):
    """Over all pairs of rows and all outputs, pair by pair."""
    logs = np.log(shares)
    return max(float(np.abs(logs - row).max()) for row in logs)


@pytest.mark.parametrize(("sensitive", "p"), [(0.3, 0.05), (0.9, 0.5), (0.9, 1.0)])
def test_the_epsilon_is_that_of_the_worst_pair(small, sensitive, p):
    mechanism = SanTextPlus(small, epsilon=EPSILON, sensitive=sensitive, p=p)
    shares = formula(small, sensitive=sensitive, p=p, reach=mechanism.reach)
    np.testing.assert_allclose(mechanism.distributions(list(small.words)), shares, rtol=1e-3)
    epsilon = mechanism.word_guarantee().epsilon
    assert epsilon - 0.0011 <= worst_loss(mechanism.distributions(list(small.words))) <= epsilon
    assert worst_loss(shares) == pytest.approx(epsilon, abs=3e-3)
    assert epsilon <= mechanism.epsilon_bound()


def test_the_promise_is_kept_and_a_slightly_smaller_one_is_refuted(small):
    mechanism = SanTextPlus(small, epsilon=EPSILON)
    assert dptext.audit(mechanism).outcome == "exact"
    less = dptext.PureDP(mechanism.word_guarantee().epsilon - 0.01)
    assert dptext.audit(mechanism, mechanism.statement.replace(guarantee=less)).refuted


def test_the_chance_to_stay_breaks_the_metric_promise_by_what_the_docstring_says(small):
    mechanism = SanTextPlus(small, epsilon=EPSILON, p=0.2, sensitive=0.5)
    claimed = mechanism.statement.replace(guarantee=dptext.SanText(small, epsilon=EPSILON).word_guarantee())
    assert dptext.audit(mechanism, claimed).refuted
    q = dptext.SanText(small, epsilon=EPSILON).distributions(list(small.words[:100]))
    p = mechanism.distributions(list(small.words[:100]))
    for w, other in ((3, 8), (4, 17), (90, 2)):
        assert math.log(p[w, w] / p[other, w]) == pytest.approx(
            math.log((0.8 + 0.2 * q[w, w]) / (0.2 * q[other, w])), abs=1e-9
        )


@pytest.mark.parametrize("epsilon", [0.05, 8.0])
def test_the_closed_form_holds_where_it_is_used(small, monkeypatch, epsilon):
    exact = SanTextPlus(small, epsilon=epsilon)
    monkeypatch.setattr(module, "_EXACT_UP_TO", 10)
    bounded = SanTextPlus(small, epsilon=epsilon)
    assert exact.word_guarantee().epsilon <= bounded.word_guarantee().epsilon
    assert bounded.word_guarantee().epsilon == pytest.approx(bounded.epsilon_bound(), abs=1e-3)
    # at small epsilon SanText is nearly uniform, and the bound nearly attained
    if epsilon == 0.05:
        assert bounded.word_guarantee().epsilon - exact.word_guarantee().epsilon < 0.5


def test_the_statement_prices_it_and_says_what_stays(small):
    mechanism = SanTextPlus(small, epsilon=EPSILON, p=0.2)
    statement = mechanism.document_statement(3)
    assert statement.guarantee == dptext.PureDP(3 * mechanism.word_guarantee().epsilon)
    assert statement.claimed_epsilon == EPSILON
    assert statement.slack == 0
    assert any("public words stays with probability at least 0.8" in line for line in statement.exposed)
    assert any("frequent words: each" in line for line in mechanism.statement.exposed)
    assert mechanism.document_statement(0).guarantee == dptext.PureDP(0.0)
    assert "losses add up" in statement.neighbours
    assert not any(
        "frequent words" in line for line in SanTextPlus(small, epsilon=1.0, sensitive=1.0).statement.exposed
    )
