"""Vickrey: the choice is the paper's, sees the noisy vector only, and the published variant has no guarantee."""

import math

import numpy as np
import pytest
from scipy import stats

import dptext
from dptext import Madlib, Vickrey
from dptext.errors import ParameterError
from dptext.privacy.guarantee import NoGuarantee
from dptext.privacy.randomness import RandomBits
from dptext.words.madlib import first_share

FALSE_ALARM = 1e-6
EDGES = np.linspace(-60.0, 60.0, 480_001)
GRID = (EDGES[1:] + EDGES[:-1]) / 2


def test_t_zero_is_madlib_draw_by_draw(glove):
    words = list(glove.words[:5000])
    assert Vickrey(glove, epsilon=8.0, t=0.0).sample(words, seed=3) == Madlib(glove, epsilon=8.0).sample(words, seed=3)


def test_the_share_of_the_first_neighbour():
    first, second = np.array([0.0, 1.0, 2.0, 0.0]), np.array([1.0, 1.0, 6.0, 0.0])
    np.testing.assert_allclose(first_share(first, second, 0.5), [1.0, 0.5, 0.75, 0.5])
    np.testing.assert_allclose(first_share(first, second, 0.25), [1.0, 0.75, 0.9, 0.75])
    np.testing.assert_array_equal(first_share(first, second, 1.0), 0.0)
    np.testing.assert_array_equal(first_share(first, second, 0.0), 1.0)


def test_t_one_gives_the_second_neighbour(glove):
    rows = np.arange(2000)
    nearest = Madlib(glove, epsilon=200.0).sample_rows(rows, RandomBits(1))
    np.testing.assert_array_equal(nearest, rows)  # hardly any noise
    draws = Vickrey(glove, epsilon=200.0, t=1.0).sample_rows(rows, RandomBits(1))
    matrix = glove.matrix.astype(np.float64)
    for row in range(0, 2000, 100):
        far = np.sqrt(((matrix - matrix[row]) ** 2).sum(axis=1))
        order = np.argsort(far)
        # the noise is .25 long: each output lies within it of the second
        assert far[draws[row]] <= far[order[1]] + 2 * 0.5
        assert draws[row] != row


def line():
    return dptext.load_vectors((["ape", "bee", "cow"], [[0.0], [1.0], [3.0]]))


def exact_law(points, epsilon, t, *, published=False):
    """(V, V) probabilities by quadrature: Laplace noise on a line, the formula of the paper spelled out again."""
    shares = np.zeros((len(points), len(points)))
    for word, point in enumerate(points):
        mass = np.diff(stats.laplace(point, 1 / epsilon).cdf(EDGES))
        far = np.abs(GRID[:, None] - points[None])
        if published:
            far[:, word] = math.inf
        order = np.argsort(far, axis=1, kind="stable")[:, :2]
        d1, d2 = np.take_along_axis(far, order, axis=1).T
        first = (1 - t) * d2 / (t * d1 + (1 - t) * d2)
        shares[word] += np.bincount(order[:, 0], mass * first, minlength=len(points))
        shares[word] += np.bincount(order[:, 1], mass * (1 - first), minlength=len(points))
    return shares


def frequencies(mechanism, samples=300_000):
    rows = np.repeat(np.arange(3), samples)
    draws = mechanism.sample_rows(rows, RandomBits(5)).reshape(3, samples)
    return np.stack([np.bincount(entry, minlength=4) for entry in draws])


@pytest.mark.statistical
@pytest.mark.parametrize("t", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("published", [False, True])
def test_output_frequencies_follow_the_papers_law_and_another_t_is_rejected(t, published):
    vectors = line()
    points = vectors.matrix[:, 0].astype(np.float64)
    counts = frequencies(Vickrey(vectors, epsilon=1.0, t=t, unsafe_as_published=published))
    right, wrong = (exact_law(points, 1.0, entry, published=published) for entry in (t, 0.8 * t))
    rejected = []
    for row in range(3):
        possible = right[row] > 0
        assert not counts[row][~possible].any()
        seen, total = counts[row][possible], counts[row].sum()
        assert stats.chisquare(seen, right[row][possible] / right[row].sum() * total).pvalue > FALSE_ALARM
        rejected.append(stats.chisquare(seen, wrong[row][possible] / wrong[row].sum() * total).pvalue < FALSE_ALARM)
    assert any(rejected)


@pytest.mark.slow
@pytest.mark.parametrize("t", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_law_keeps_the_promise_for_every_pair_and_the_published_one_loses_all(t, epsilon):
    points = line().matrix[:, 0].astype(np.float64)
    far = np.abs(points[:, None] - points[None])

    def losses(shares):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(np.log(shares)[:, None] - np.log(shares)[None]).max(axis=2)

    sound = losses(exact_law(points, epsilon, t))
    assert (sound <= epsilon * far + 1e-3).all()  # the quadrature errs by the width of its cells
    assert np.isinf(losses(exact_law(points, epsilon, t, published=True))[~np.eye(4, dtype=bool)]).all()


def test_the_published_variant_says_that_nothing_is_proved(small):
    mechanism = Vickrey(small, epsilon=7.0, unsafe_as_published=True)
    for statement in (mechanism.statement, mechanism.document_statement(12)):
        assert isinstance(statement.guarantee, NoGuarantee)
        assert "probability 0" in statement.guarantee.reason
        assert statement.claimed_epsilon == 7.0
        assert statement.epsilon == math.inf
        assert statement.parameters["unsafe_as_published"] is True
        assert small.words[0] in statement.parameters["witness"]
        assert statement == dptext.PrivacyStatement.from_json(statement.to_json())
    assert "the proved value" in " ".join(mechanism.statement.explain().split())
    assert isinstance(mechanism.word_guarantee(), NoGuarantee)
    with pytest.raises(ParameterError, match="has no guarantee"):
        dptext.audit(mechanism)
    assert dptext.privatize(["word word"], mechanism).statement.epsilon == math.inf
