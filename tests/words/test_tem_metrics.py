"""TEM under every metric: the guarantee on the integers that are drawn from, and variants that break it.

Exact checks have no false alarms. The chi-square tests draw with fixed seeds; for random seeds each would fail with
probability 1e-6 at most.
"""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dptext
from dptext import TEM
from dptext.errors import DataError, ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.vectors.metrics import ANGULAR_DIAMETER, METRICS
from laws import FALSE_ALARM, canberra, chi_square

OTHERS = METRICS[1:]


def named(metric):
    return metric if isinstance(metric, str) else metric.__name__


def brute_force(metric, points):
    """(V, V) distances in extended precision, with formulas of their own."""
    points = points.astype(np.longdouble)
    distance = points[:, None] - points[None]
    squared = (distance**2).sum(axis=2)
    if callable(metric):
        return np.asarray(metric(points.astype(np.float64), points.astype(np.float64)))
    if metric == "angular":
        points[~points.any(axis=1), 0] = 1
        ways = points / np.sqrt((points**2).sum(axis=1, keepdims=True))
        result = 2 * np.arctan2(
            np.sqrt(((ways[:, None] - ways[None]) ** 2).sum(axis=2)),
            np.sqrt(((ways[:, None] + ways[None]) ** 2).sum(axis=2)),
        )
    else:
        result = np.sqrt(squared)
    return result.astype(np.float64)


def vectors_of(points):
    return dptext.load_vectors(([f"w{'abcdefghij'[n % 10]}{n}x" for n in range(len(points))], points))


def worst_excess(mechanism, between):
    """The largest loss of any pair and output beyond epsilon min(d, g), the slack not yet taken off."""
    weights = mechanism.weights(list(mechanism.vectors.words))
    logs = np.log(weights) - np.log(weights.sum(axis=1, keepdims=True, dtype=np.uint64))
    allowed = mechanism.epsilon * np.minimum(between, mechanism.threshold)
    return max(float((np.abs(logs - row).max(axis=1) - allowed[place]).max()) for place, row in enumerate(logs))


@pytest.mark.parametrize("metric", [*METRICS, canberra], ids=named)
@pytest.mark.parametrize("epsilon", [0.3, 40.0])
def test_no_pair_loses_more_than_promised(small, metric, epsilon):
    mechanism = TEM(small, epsilon=epsilon, metric=metric)
    between = brute_force(metric, mechanism.vectors.matrix)
    excess = worst_excess(mechanism, between)
    assert excess <= mechanism.slack <= 2e-4
    # the check has teeth: half of the epsilon is spent by some pair
    spent = TEM(mechanism.vectors, epsilon=epsilon, metric=metric)
    assert worst_excess(spent, between / 2.2) > spent.slack


coordinates = st.floats(-100, 100, width=32).map(lambda value: 0.0 if abs(value) < 1e-3 else value)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(coordinates, coordinates), min_size=2, max_size=12),
    st.sampled_from(METRICS),
    st.floats(0.05, 20.0),
    st.sampled_from([1.0, -1.0, 0.5]),
)
def test_the_promise_holds_for_any_points(points, metric, epsilon, factor):
    points = np.array([*points, *(factor * np.array(points[:2]))])
    try:
        mechanism = TEM(vectors_of(points), epsilon=epsilon, metric=metric)
    except ParameterError as error:
        assert "too coarse for this rate" in str(error) or "too small or too large for this rate" in str(error)
        return
    between = brute_force(metric, mechanism.vectors.matrix)
    assert worst_excess(mechanism, between) <= mechanism.slack


# -- draws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [*OTHERS, canberra], ids=named)
def test_draws_fit_the_probabilities(small, metric):
    vectors, epsilon = small, 4.0
    mechanism = TEM(vectors, epsilon=epsilon, metric=metric)
    rows = np.repeat([5, vectors.vocabulary.unknown_row], 200_000)
    draws = mechanism.sample_rows(rows, RandomBits(3))
    for row in (5, vectors.vocabulary.unknown_row):
        counts = np.bincount(draws[rows == row], minlength=len(vectors))
        word = vectors.words[row]
        assert chi_square(counts, mechanism.probabilities(word)) > FALSE_ALARM
        # the same test rejects another epsilon
        other = TEM(vectors, epsilon=epsilon * 1.5, metric=metric)
        assert chi_square(counts, other.probabilities(word)) < FALSE_ALARM


def mixed(rows, matrix):
    """A metric from a matrix product, whose order of sums BLAS chooses."""
    ways = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    starts = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.sqrt(np.clip(2 - 2 * (starts @ ways.T), 0, None))


@pytest.mark.slow
@pytest.mark.parametrize("metric", [*METRICS, mixed], ids=named)
def test_draws_do_not_depend_on_batches_the_cache_or_the_cores(glove, metric, monkeypatch):
    words = glove.words[:1_699]
    points = glove.matrix[:1_699]
    vectors = dptext.load_vectors((words, points))
    size = len(vectors)
    epsilon = 15.0 if metric == "angular" else 5.0

    def build():
        return TEM(vectors, epsilon=epsilon, metric=metric)

    plain = build()
    if metric is not mixed:
        assert plain._selection._bounds is not plain._selection._distances
    bounds = plain._selection._block_bounds(np.arange(0, size, 5))
    alone = np.concatenate([plain._selection._block_bounds(np.array([row])) for row in range(0, size, 5)])
    np.testing.assert_array_equal(bounds, alone)
    weights = plain.weights(list(words[:50]))
    np.testing.assert_array_equal(np.concatenate([plain.weights([word]) for word in words[:50]]), weights)
    rows = np.random.default_rng(8).integers(0, size, 400)
    target = plain.sample_rows(rows, RandomBits(1))
    used = build()
    for start in range(0, 400, 7):
        used.sample_rows(rows[::-1][start : start + 7], RandomBits(2))
    np.testing.assert_array_equal(used.sample_rows(rows, RandomBits(1)), target)
    copy = pickle.loads(pickle.dumps(used))
    np.testing.assert_array_equal(copy.sample_rows(rows, RandomBits(1)), target)
    for cores in (1, 5):
        monkeypatch.setattr("dptext.noise.selection.available_cores", lambda cores=cores: cores)
        monkeypatch.setattr("dptext.threads.available_cores", lambda cores=cores: cores)
        np.testing.assert_array_equal(build().sample_rows(rows, RandomBits(1)), target)


# -- statements -------------------------------------------------------------------------------------------------------


def test_angles_are_bounded_by_pi_whatever_the_threshold(small):
    mechanism = TEM(small, epsilon=2.0, metric="angular")
    assert mechanism.threshold > 4
    assert mechanism.word_guarantee().max_distance == ANGULAR_DIAMETER
    assert mechanism.word_guarantee().pure_epsilon < 2 * math.pi + 1e-9
    assert TEM(small, epsilon=2.0, metric="angular", threshold=1000.0).weights(["word"]).min() > 0
    assert TEM(small, epsilon=2.0, metric="angular", threshold=1.0).word_guarantee().max_distance == 1.0
    assert dptext.audit(mechanism).outcome == "exact"


def test_the_statement_of_a_callers_metric_says_what_it_rests_on(small):
    mechanism = TEM(small, epsilon=2.0, metric=canberra)
    assert mechanism.metric == "caller's canberra"
    assert str(mechanism.statement.guarantee).startswith("2 per unit of caller's canberra distance")
    assert any("canberra is a metric on the words" in line for line in mechanism.statement.assumptions)
    assert mechanism.statement.guarantee.space != small.fingerprint
    with pytest.raises(ParameterError, match="Pass the function as distance="):
        dptext.audit(mechanism)
    assert dptext.audit(mechanism, distance=canberra).outcome == "exact"

    def half(rows, matrix):
        return canberra(rows, matrix) / 2.2

    assert dptext.audit(mechanism, distance=half).refuted


def test_a_mechanism_is_built_again_with_its_metric(tmp_path):
    from dptext.words.registry import mechanism_from_statement

    file = tmp_path / "vectors.txt"
    generator = np.random.default_rng(1)
    file.write_text(
        "".join(
            f"w{'abcdef'[n % 6]}{n}x {' '.join(map(str, row))}\n"
            for n, row in enumerate(generator.normal(size=(60, 3)))
        )
    )
    mechanism = TEM(dptext.load_vectors(str(file)), epsilon=3.0, metric="angular")
    repeated = mechanism_from_statement(mechanism.statement, vectors=str(file))
    assert repeated.statement == mechanism.statement
    callers = TEM(mechanism.vectors, epsilon=3.0, metric=canberra)
    with pytest.raises(DataError, match="the statement's distance is a custom function,"):
        mechanism_from_statement(callers.statement, vectors=str(file))
