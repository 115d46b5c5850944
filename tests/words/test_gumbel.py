"""The truncated Gumbel mechanism: refused by default, drawn as printed on request, and its true loss."""

import math

import numpy as np
import pytest
from scipy.special import lambertw

import dptext
from dptext.errors import ParameterError
from dptext.privacy.guarantee import NoGuarantee
from dptext.privacy.randomness import RandomBits
from dptext.words.madlib import TruncatedGumbel, published_scale
from known_broken.replacements import Broken, gumbel_shares
from laws import follows

EPSILON = 14.0


@pytest.fixture(scope="module")
def words():
    return dptext.load_vectors("glove-6b-50d", limit=40)


@pytest.fixture(scope="module")
def mechanism(words):
    return TruncatedGumbel(words, epsilon=EPSILON, unsafe_as_published=True)


@pytest.fixture(scope="module")
def shares(mechanism):
    return gumbel_shares(mechanism)


@pytest.mark.slow
def test_the_statement_promises_nothing_and_names_a_pair(mechanism, words, shares):
    statement = mechanism.document_statement(3)
    assert isinstance(statement.guarantee, NoGuarantee)
    assert (statement.epsilon, statement.claimed_epsilon) == (math.inf, EPSILON)
    _, output, _, other, rest = statement.guarantee.reason.split("'")
    loss = float(rest.split("at least ")[1].split()[0])
    printed = float(rest.split("prints ")[1])
    to, of, source = (words.vocabulary.row(entry) for entry in (output, output, other))
    really = math.log(shares[of, to] / shares[source, to])
    assert really >= loss - 0.01 > printed
    points = words.matrix.astype(np.float64)
    assert printed == pytest.approx(EPSILON * np.linalg.norm(points[of] - points[source]), rel=1e-3)


def test_the_least_loss_of_every_pair_is_a_lower_bound(mechanism, words, shares):
    logs = np.log(shares)
    for row, word in enumerate(words.words):
        really = np.array([logs[other, other] - logs[row, other] for other in range(len(words))])
        assert (mechanism.least_loss(word) <= np.maximum(really, 0.0) + 1e-6).all()


@pytest.mark.statistical
@pytest.mark.parametrize("word", ["people", "the"])
def test_draws_fit_the_quadrature_and_another_scale_is_rejected(mechanism, words, shares, word):
    row = words.vocabulary.row(word)
    counts = np.bincount(mechanism.sample_rows(np.full(100_000, row), RandomBits(5)), minlength=len(words))

    assert follows(counts, shares[row] / shares[row].sum())
    less = TruncatedGumbel(words, epsilon=EPSILON, scale=0.1 * mechanism.scale, unsafe_as_published=True)
    assert not follows(counts, gumbel_shares(less)[row])


def test_the_printed_promise_is_refuted(mechanism, shares, words):

    metric = dptext.MetricDP(EPSILON, "euclidean", None, words.fingerprint)
    printed = mechanism.statement.replace(guarantee=metric)
    assert dptext.audit(Broken(mechanism, shares), printed).refuted


def test_the_scale_is_the_printed_one():
    for epsilon, size, nearest, farthest in ((60.0, 100, 0.5, 8.0), (500.0, 10_000, 0.2, 15.0)):
        a = (epsilon - 2 * (1 + math.log(size)) / nearest) / 3
        target = 2 * farthest / min(lambertw(2 * a * farthest).real, math.log(a * nearest))
        assert published_scale(epsilon, size, nearest, farthest) == pytest.approx(target, rel=1e-12)
    with pytest.raises(ParameterError, match="the paper has no scale for epsilon 20"):
        published_scale(20.0, 100, 0.5, 8.0)
