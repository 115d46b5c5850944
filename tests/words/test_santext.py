"""SanText: the guarantee on the integers that are drawn from, near the formula, and what breaks it."""

import numpy as np
import pytest

import dptext
from dptext.words.santext import SanText
from laws import distances


def log_formula(far, epsilon):
    scores = -epsilon / 2 * far
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def logs_of(mechanism, rows):
    return np.log(mechanism.distributions([mechanism.vectors.words[row] for row in rows]))


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).choice(20_000, 120, replace=False)


def test_within_the_reach_it_is_the_formula_within_the_slack(small):
    mechanism = SanText(small, epsilon=3.0)
    everything = np.arange(len(small))
    assert mechanism.reach == small.diameter_bound
    logs = log_formula(distances(small, everything), 3.0)
    assert np.abs(logs_of(mechanism, everything) - logs).max() <= mechanism.slack <= 1e-3


def test_all_pairs_of_a_small_vocabulary_keep_the_promise_and_half_of_it_is_refuted(small):
    mechanism = SanText(small, epsilon=3.0)
    verdict = dptext.audit(mechanism)
    assert verdict.outcome == "exact"
    lie = dptext.MetricDP(1.4, "euclidean", None, small.fingerprint)
    assert dptext.audit(mechanism, mechanism.statement.replace(guarantee=lie)).refuted


@pytest.mark.parametrize("epsilon", [0.01, 15.0])
def test_no_pair_loses_more_than_epsilon_times_its_distance_at_any_epsilon(glove, rows, epsilon):
    mechanism = SanText(glove, epsilon=epsilon)
    logs, between = logs_of(mechanism, rows), distances(glove, rows)[:, rows]
    assert np.isfinite(logs).all()
    worst = max(
        float((np.abs(logs[i + 1 :] - logs[i]).max(axis=1) - epsilon * between[i, i + 1 :]).max())
        for i in range(len(rows) - 1)
    )
    assert worst <= mechanism.slack
    assert mechanism.slack < 2e-3


def test_the_statement_says_what_is_proved(glove):
    mechanism = SanText(glove, epsilon=5.0)
    statement = mechanism.statement
    assert statement.guarantee == dptext.MetricDP(5.0, "euclidean", mechanism.reach, glove.fingerprint)
    assert statement.slack == mechanism.slack
    assert statement.claimed_epsilon is None
    assert mechanism.document_statement(4).guarantee.max_distance == 4 * mechanism.reach
