"""One public list: the closed form, the draws, the promise in places, and the orders."""

import math

import numpy as np
import pytest

import dptext
from dptext.errors import DataError, ParameterError
from dptext.vectors.partition import principal_order, walk_order
from dptext.words.ordered import OrderedList
from dptext.words.registry import mechanism_from_statement

LETTERS = ["ape", "bee", "cow", "dog"]


@pytest.fixture(scope="module")
def line():
    return dptext.load_vectors((LETTERS, [[0.0], [1.0], [2.0], [3.0]]))


def closed_form(size, epsilon):
    """(places, places) by summing the two-sided geometric law, far beyond the ends."""
    z = np.arange(-4_000, 4_001)
    law = np.exp(-epsilon * np.abs(z))
    law /= law.sum()
    shares = np.zeros((size, size))
    for place in range(size):
        np.add.at(shares[place], np.clip(place + z, 0, size - 1), law)
    return shares


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_the_closed_form_is_the_sum_of_the_noise(line, epsilon):
    mechanism = OrderedList(line, epsilon=epsilon)
    wanted = closed_form(5, epsilon)[mechanism.places][:, mechanism.places]
    np.testing.assert_allclose(mechanism.distributions(list(line.words)), wanted, rtol=1e-6)


@pytest.mark.parametrize("order", ["walk", "principal"])
@pytest.mark.parametrize("epsilon", [0.01, 40.0])
def test_all_pairs_keep_the_promise_which_is_attained(small, epsilon, order):
    mechanism = OrderedList(small, epsilon=epsilon, order=order)
    places = walk_order(small) if order == "walk" else principal_order(small)
    np.testing.assert_array_equal(mechanism.labels, np.argsort(places))
    verdict = dptext.audit(mechanism, labels=np.argsort(places))
    assert verdict.outcome == "exact"
    assert "100.0%" in verdict.coverage
    lie = mechanism.statement.replace(guarantee=dptext.MetricDP(0.99 * epsilon, "rank", 300.0))
    assert dptext.audit(mechanism, lie, labels=mechanism.places).refuted


@pytest.mark.slow
def test_far_words_have_finite_logs_and_an_audit_uses_them(glove):
    mechanism = OrderedList(glove, epsilon=3.0, order="principal")
    words = [glove.words[row] for row in principal_order(glove)[[0, 10_000, -1]]]
    logs = mechanism.log_distributions(words)
    assert np.isfinite(logs).all()
    assert logs.min() < -50_000
    assert mechanism.distributions(words).min() == 0.0  # below what a float64 holds
    assert not dptext.audit(mechanism, labels=mechanism.places, seed=1).refuted


def test_an_audit_asks_for_the_places(small):
    mechanism = OrderedList(small, epsilon=1.0)
    with pytest.raises(ParameterError, match="in rank distance, on a public list"):
        dptext.audit(mechanism)
    # in another order the promise is another one, and false
    assert dptext.audit(mechanism, labels=np.argsort(principal_order(small))).refuted


def test_the_uniform_policy_has_the_mean_of_all_rows(small):
    mechanism = OrderedList(small, epsilon=0.3, unknown="uniform")
    plain = OrderedList(small, epsilon=0.3).distributions(list(small.words))
    np.testing.assert_allclose(mechanism.probabilities("nobody-knows-me"), plain.mean(axis=0), rtol=1e-6)
    assert "unknown word" in mechanism.statement.guarantee.metric
    assert dptext.audit(mechanism, labels=mechanism.places).outcome == "exact"


def test_the_principal_order_is_that_of_the_singular_vectors(glove):
    points = glove.matrix.astype(np.float64)
    centred = points - points.mean(axis=0)
    way = np.linalg.svd(centred, full_matrices=False)[2][0]
    along = centred @ way
    found = along[principal_order(glove)]
    found *= np.sign(found[-1] - found[0])
    # the direction is rounded: only words that lie together along it may change places
    assert (np.diff(found) > -0.01 * np.std(found)).all()


def test_a_walk_passes_every_word_once_and_steps_are_short(glove):
    order = walk_order(glove)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(glove)))
    points = glove.matrix.astype(np.float64)

    def step(rows):
        return np.sqrt((np.diff(points[rows], axis=0) ** 2).sum(axis=1)).mean()

    assert step(order) < 0.8 * step(principal_order(glove))


def test_orders_are_total():
    same = dptext.load_vectors((LETTERS, [[1.0, 1.0]] * 4))
    zero = dptext.load_vectors((LETTERS, [[0.0, 0.0]] * 4))
    for vectors in (same, zero):
        for order in (walk_order, principal_order):
            np.testing.assert_array_equal(order(vectors), np.arange(5))


def test_an_order_of_the_callers(line):
    mechanism = OrderedList(line, epsilon=1.0, order=["dog", "<unk>", "bee", "ape", "cow"])
    assert [line.words[row] for row in np.argsort(mechanism.places)] == ["dog", "<unk>", "bee", "ape", "cow"]
    assert dptext.audit(mechanism, labels=mechanism.places).outcome == "exact"
    with pytest.raises(DataError, match="in an order of its caller's"):
        mechanism_from_statement(mechanism.statement)
    other = OrderedList(line, epsilon=1.0, order=["<unk>", "dog", "bee", "ape", "cow"])
    assert mechanism.word_guarantee().space != other.word_guarantee().space


def test_the_statement_is_in_places(small):
    statement = OrderedList(small, epsilon=0.5).statement
    assert (statement.guarantee.metric, statement.guarantee.max_distance) == ("rank", 300.0)
    assert statement.slack == 0
    assert statement.epsilon == 150.0


def test_any_epsilon_is_total(line):
    assert OrderedList(line, epsilon=1e30).sample(["ape", "cow"], seed=1) == ["ape", "cow"]
    assert math.isclose(OrderedList(line, epsilon=1e-11).probabilities("ape").max(), 0.5, rel_tol=1e-6)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"epsilon": 1e-13}, "epsilon must be at least 1.8e-12 for a place"),
        ({"epsilon": 1.0, "order": "alphabet"}, "order must be 'walk', 'principal' or a list of words"),
        ({"epsilon": 1.0, "order": LETTERS}, "got a list of 4 that does not"),
        ({"epsilon": 1.0, "order": [*LETTERS, "ape"]}, "got a list of 5 that does not"),
        ({"epsilon": 1.0, "order": [*LETTERS, 3]}, "got a list of 5 that does not"),
    ],
)
def test_bad_arguments_are_named(line, options, what):
    with pytest.raises(ParameterError, match=what):
        OrderedList(line, **options)
