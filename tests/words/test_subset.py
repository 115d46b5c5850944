"""Words by subset selection: the k nearest of a plain sort, a pure guarantee for every pair, the same bits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

import dptext
from dptext.noise.subset_selection import Profile, best_size
from dptext.privacy.randomness import RandomBits
from dptext.vectors.metrics import directions
from dptext.words import subset
from dptext.words.subset import SubsetSelection


def grid_again(vectors, similarity):
    """Points in whole steps of the public grid, from the mechanism's own table."""
    points = directions(vectors.matrix) if similarity == "cosine" else vectors.matrix.astype(np.float64)
    return np.rint(points / subset._grid(points).step)


def sets_again(vectors, similarity, size):
    """(V, V) who is in whose set, by sorting all words by distance and row, the word itself first."""
    points = grid_again(vectors, similarity)
    inside = np.zeros((len(points), len(points)), dtype=bool)
    for row, point in enumerate(points):
        far = ((points - point) ** 2).sum(axis=1)
        far[row] = -1
        inside[row, np.argsort(far, kind="stable")[:size]] = True
    return inside


def many(size, seed=0, twins=True):
    points = np.random.default_rng(seed).normal(size=(size, 6)).astype(np.float32)
    if twins:
        points[5:40] = points[4]  # 36 words on one point, and the last one opposite
        points[-1] = -points[4]
    names = [f"w{''.join('abcdefghij'[int(digit)] for digit in str(number))}" for number in range(size)]
    return dptext.load_vectors((names, points))


# -- which words are most like a word ----------------------------------------------------------------------------------


@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
@pytest.mark.parametrize("size", [1, 37, 300])
def test_the_sets_are_those_of_a_plain_sort(small, size, similarity):
    for vectors in (small, many(300)):
        mechanism = SubsetSelection(vectors, epsilon=2.0, size=size, similarity=similarity)
        target = sets_again(vectors, similarity, size)
        result = mechanism._sets.members(np.arange(len(vectors)))
        np.testing.assert_array_equal(result, target)
        assert result.diagonal().all()
        assert (result.sum(axis=1) == size).all()
        rows, places = np.divmod(np.arange(len(vectors) * size), size)
        members = mechanism._sets.member(rows, places)
        np.testing.assert_array_equal(members, np.nonzero(target)[1])


@pytest.mark.parametrize("size", [30, 1299])
def test_sets_of_more_words_than_a_tile_holds_and_bounds_that_fail(size, monkeypatch):
    monkeypatch.setattr(subset, "_PROBED", 64)
    monkeypatch.setattr(subset, "_TILE", 512)
    points = many(1300).matrix.copy()
    points[::21] = points[0]  # the probed words are nearer to each other than to any other word
    for vectors in (many(1300), dptext.load_vectors((many(1300).words, points))):
        mechanism = SubsetSelection(vectors, epsilon=2.0, size=size)
        result = mechanism._sets.members(np.arange(0, 1301, 7))
        np.testing.assert_array_equal(result, sets_again(vectors, "cosine", size)[::7])


def test_the_same_bits_are_drawn_for_any_words(small):
    mechanism = SubsetSelection(small, epsilon=3.0)
    after = []
    for rows in (np.zeros(500, dtype=np.int64), np.arange(500) % len(small)):
        bits = RandomBits(2)
        mechanism.sample_rows(rows, bits)
        after.append(bits.take(16))
    assert after[0] == after[1]


# -- the guarantee ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "similarity"), [(1e-3, "cosine"), (1.0, "euclidean"), (25.0, "cosine")])
def test_every_pair_of_words_keeps_the_promise_in_whole_numbers(small, epsilon, similarity):
    """The weights of each word sum to one number, and two of them have at most the ratio."""
    mechanism = SubsetSelection(small, epsilon=epsilon, similarity=similarity)
    channel, inside = mechanism._selection, mechanism._sets.members(np.arange(len(small)))
    weights = np.where(inside, channel.high, channel.low).astype(object)
    assert set(weights.sum(axis=1)) == {channel.total}
    with localcontext() as context:
        context.prec = 60
        assert Decimal(channel.high) <= Decimal(epsilon).exp() * Decimal(channel.low)
    shares = mechanism.distributions(list(small.words))
    np.testing.assert_array_equal(shares, (weights / channel.total).astype(np.float64))
    verdict = dptext.audit(mechanism)
    assert verdict.outcome == "exact"
    assert verdict.loss == pytest.approx(epsilon, rel=1e-6)


# -- documents ---------------------------------------------------------------------------------------------------------


def test_a_document_costs_its_words_and_never_more_than_the_first_ones(small):
    free = SubsetSelection(small, epsilon=2.0)
    assert free.document_statement(7).guarantee == dptext.PureDP(14.0)
    assert free.document_epsilon is None
    mechanism = SubsetSelection(small, epsilon=2.0, max_words=3)
    assert mechanism.document_epsilon == 6.0
    release = dptext.privatize(["the man said that he was", "of the"], mechanism, seed=1)
    assert release.statement.guarantee == dptext.PureDP(6.0)
    assert release.texts[0].split()[3:] == ["<unk>"] * 3
    assert "after the first 3 of a document became <unk>" in " ".join(release.statement.exposed)
    assert mechanism.document_statement(50).guarantee == dptext.PureDP(6.0)
    repeated = dptext.PrivacyStatement.from_json(release.statement.to_json())
    assert (repeated.parameters["max_words"], repeated.parameters["size"]) == (3, mechanism.size)


# -- the best k --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
def test_the_size_is_the_best_of_the_public_profile_and_falls_with_epsilon(small, similarity):
    mechanisms = [SubsetSelection(small, epsilon=epsilon, similarity=similarity) for epsilon in (0.5, 2.0, 4.0, 8.0)]
    sizes = [entry.size for entry in mechanisms]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 20 > sizes[-1]
    points = grid_again(small, similarity)
    words = np.unique(np.geomspace(1, len(small), subset._PROFILED).astype(int)) - 1
    far = np.sort(np.sqrt(((points[words, None] - points) ** 2).sum(axis=2)), axis=1) * mechanisms[0]._sets._table.step
    similar = 1 - far**2 / 2 if similarity == "cosine" else -far
    profile = Profile(np.arange(1, len(small) + 1), np.cumsum(similar.mean(axis=0)), candidates=len(small))
    for mechanism in mechanisms:
        best = best_size(mechanism.epsilon, profile)
        minimum = profile.expected(best, mechanism.epsilon) - profile.expected(mechanism.size, mechanism.epsilon)
        assert minimum < 0.01  # ranks are tried in steps
