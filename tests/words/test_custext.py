"""CusText: groups that anybody finds again, the guarantee inside them, and none for the sets as published."""

import dataclasses
import math

import numpy as np
import pytest

import dptext
from dptext.privacy.neighbours import ANY_TWO
from dptext.words.santext import CusText

EPSILON = 3.0


def labels_again(vectors, size):
    """The partition once more: one founder after the other, plain float64 differences."""
    points = vectors.matrix.astype(np.float64)
    labels = np.full(len(points), -1)
    label = 0
    while (labels < 0).sum() >= 2 * size:
        founder = int(np.argmax(labels < 0))
        far = np.where(labels < 0, ((points - points[founder]) ** 2).sum(axis=1), np.inf)
        labels[np.lexsort((np.arange(len(far)), far))[:size]] = label
        label += 1
    labels[labels < 0] = label
    return labels


def formula(vectors, sets, epsilon):
    """(V, V) float64 probabilities of the printed formula for given output sets."""
    points = vectors.matrix.astype(np.float64)
    shares = np.zeros((len(points), len(points)))
    for row, members in enumerate(sets):
        far = np.sqrt(((points[members] - points[row]) ** 2).sum(axis=1))
        u = -far / far.max() if far.max() > 0 else np.zeros(far.size)
        shares[row, members] = np.exp(epsilon / 2 * u) / np.exp(epsilon / 2 * u).sum()
    return shares


@pytest.fixture(scope="module")
def mechanism(small):
    return CusText(small, epsilon=EPSILON)


def test_the_groups_are_those_of_the_simple_construction(small):
    for size in (2, 7, 160, 400):
        np.testing.assert_array_equal(CusText(small, epsilon=1.0, size=size).labels, labels_again(small, size))


def test_probabilities_are_the_formula(small, mechanism):
    labels = labels_again(small, 20)
    sets = [np.flatnonzero(labels == label) for label in labels]
    shares = mechanism.distributions(list(small.words))
    np.testing.assert_allclose(shares, formula(small, sets, EPSILON), rtol=1e-9)


def test_the_promise_is_kept_in_every_group_and_not_by_twice_the_exponent(small, mechanism):
    labels = labels_again(small, 20)
    np.testing.assert_array_equal(mechanism.labels, labels)
    verdict = dptext.audit(mechanism, labels=labels)
    assert verdict.outcome == "exact"
    assert verdict.allowed == EPSILON
    doubled = CusText(small, epsilon=2 * EPSILON)
    assert dptext.audit(doubled, mechanism.statement, labels=labels).refuted


@pytest.mark.parametrize("epsilon", [1e-3, 60.0, 2_000.0])
def test_rounding_stays_inside_the_promise_at_any_epsilon(small, epsilon):
    mechanism = CusText(small, epsilon=epsilon)
    labels = labels_again(small, 20)
    assert not dptext.audit(mechanism, labels=labels).refuted
    assert (mechanism.distributions(list(small.words))[labels[:, None] == labels] > 0).all()
    assert mechanism.slack == 0


def test_words_of_two_groups_are_told_apart_and_the_statement_says_so(small, mechanism):
    every_pair = dataclasses.replace(mechanism.statement, condition=ANY_TWO)
    assert dptext.audit(mechanism, every_pair).loss == math.inf
    statement = mechanism.document_statement(3)
    assert statement.guarantee == dptext.PureDP(3 * EPSILON)
    assert "one group of the public partition" in statement.neighbours
    assert any("are distinguished with certainty" in line for line in statement.exposed)
    assert any("are distinguished with certainty" in line for line in mechanism.statement.exposed)
    assert statement.claimed_epsilon is None
