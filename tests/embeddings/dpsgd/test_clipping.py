"""The gradient of a unit equals that of autograd, and its norm in cells is bounded exactly."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.embeddings.participation import CELLS, MOST, check_clip
from dptext.embeddings.training import Scratch, add_clipped, unit_gradient
from dptext.errors import ParameterError

WORDS, DIMENSION = 12, 7


def tables_of(seed, scale=1.0):
    return (scale * np.random.default_rng(seed).normal(size=(2 * WORDS, DIMENSION))).astype(np.float32)


def pairs_of(seed, count, negatives=5, words=WORDS):
    """Return pairs of few words, so that negative words repeat; some are missing."""
    generator = np.random.default_rng(seed)
    pairs = generator.integers(0, words, (count, 2 + negatives)).astype(np.int32)
    pairs[:, 1:] += WORDS
    pairs[:, 2:][generator.random((count, negatives)) < 0.1] = -1
    return pairs


def gathered(tables, pairs, offsets=None, *, both=True):
    scratch = Scratch.of(len(tables), pairs.size, tables.shape[1])
    offsets = np.zeros(len(tables), dtype=np.float32) if offsets is None else offsets
    count = unit_gradient(tables, offsets, pairs, 0, len(pairs), both, scratch)
    dense = np.zeros(tables.shape)
    dense[scratch.touched[:count]] = scratch.gradient[:count]
    assert len(set(scratch.touched[:count].tolist())) == count
    return dense


def autograd_gradient(tables, pairs, offsets=None):
    """Return the gradient of the loss of the paper in double precision."""
    leaf = torch.tensor(tables.astype(np.float64), requires_grad=True)
    added = np.zeros(len(tables)) if offsets is None else offsets.astype(np.float64)
    loss = torch.zeros((), dtype=torch.float64)
    for word, *contexts in pairs.tolist():
        for place, context in enumerate(contexts):
            if context >= 0:
                score = leaf[word] @ leaf[context] + float(added[context])
                loss = loss - torch.nn.functional.logsigmoid(score if place == 0 else -score)
    loss.backward()
    return leaf.grad.numpy()


def cells_of(tables, pairs, ends, clip=1.0, *, both=True, start=None):
    scratch = Scratch.of(len(tables), max(pairs.size, 1), tables.shape[1])
    sums = np.zeros(tables.shape, dtype=np.int32)
    if start is not None:
        sums[:] = start
    add_clipped(
        tables,
        np.zeros(len(tables), dtype=np.float32),
        pairs,
        np.asarray(ends, dtype=np.int64),
        CELLS / clip,
        both,
        scratch,
        sums,
    )
    assert (scratch.slots == -1).all()
    return sums.astype(np.int64)


def test_a_users_gradient_is_that_of_autograd():
    for seed in range(10):
        tables, pairs = tables_of(seed), pairs_of(seed, 30)
        duplicates = sum(len(set(row[2:])) < 5 for row in pairs.tolist())
        assert duplicates > 3
        expected = autograd_gradient(tables, pairs)
        assert np.abs(gathered(tables, pairs) - expected).max() < 1e-5 * np.abs(expected).max()


def test_offsets_and_frozen_words():
    tables, pairs = tables_of(3), pairs_of(3, 20)
    offsets = np.random.default_rng(3).normal(size=2 * WORDS).astype(np.float32)
    expected = autograd_gradient(tables, pairs, offsets)
    assert np.abs(gathered(tables, pairs, offsets) - expected).max() < 1e-5 * np.abs(expected).max()
    contexts = gathered(tables, pairs, offsets, both=False)
    assert not contexts[:WORDS].any()
    assert np.abs(contexts[WORDS:] - expected[WORDS:]).max() < 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("clip", [0.5, 3.0, 1e6])
def test_a_users_clipped_gradient_is_that_of_autograd(clip):
    tables, pairs = tables_of(5), pairs_of(5, 40)
    expected = autograd_gradient(tables, pairs)
    expected *= min(1.0, clip / np.linalg.norm(expected))
    result = cells_of(tables, pairs, [len(pairs)], clip) * clip / CELLS
    tolerance = 1e-5 * np.linalg.norm(expected) + 1.01 * clip / CELLS  # numbers are cut to cells, towards zero
    assert np.abs(result - expected).max() < tolerance


def test_the_length_of_a_single_pair_has_a_closed_form():
    """Equation (length), duplicates merged: without merging it would be another number."""
    tables = tables_of(7)
    pair = np.array([[1, WORDS + 2, WORDS + 3, WORDS + 3, WORDS + 3, -1, WORDS + 4]], dtype=np.int32)
    word, rows = tables[1].astype(np.float64), [WORDS + 2, WORDS + 3, WORDS + 3, WORDS + 3, WORDS + 4]
    errors = 1 / (1 + np.exp(-tables[rows].astype(np.float64) @ word)) - np.array([1, 0, 0, 0, 0])
    merged = np.bincount(np.array(rows) - WORDS, errors)
    word_strengths = ((errors @ tables[rows].astype(np.float64)) ** 2).sum()
    closed = word_strengths + (word @ word) * (merged**2).sum()
    assert (gathered(tables, pair) ** 2).sum() == pytest.approx(closed, rel=1e-5)
    assert closed != pytest.approx(word_strengths + (word @ word) * (errors**2).sum(), rel=0.01)


# -- the bound --------------------------------------------------------------------------------------------------

HOSTILE = [0.0, 1e-45, 1e-36, 1e-30, 1.0, 1e10, 1e30, 3e38, math.inf, math.nan]


@settings(deadline=None, max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 40),
    scale=st.sampled_from(HOSTILE),
    spoiled=st.lists(st.tuples(st.integers(0, 2 * WORDS - 1), st.sampled_from(HOSTILE)), max_size=4),
    words=st.integers(1, WORDS),
    clip=st.sampled_from([1e-20, 1e-3, 1.0, 7.0, 1e20]),
)
def test_the_norm_of_a_user_is_bounded(seed, count, scale, spoiled, words, clip):
    """In exact integers, for hostile tables and texts."""
    with np.errstate(all="ignore"):
        tables = tables_of(seed) * np.float32(scale)
    for row, value in spoiled:
        tables[row] = value
    result = cells_of(tables, pairs_of(seed, count, words=words), [count], clip)
    assert sum(int(entry) ** 2 for entry in result.ravel()) <= CELLS**2


def test_the_bound_is_nearly_reached():
    result = cells_of(tables_of(1, scale=5.0), pairs_of(1, 300), [300])
    assert sum(int(entry) ** 2 for entry in result.ravel()) > (0.999 * CELLS) ** 2


def test_a_user_changes_the_sum_by_exactly_its_cells():
    tables = tables_of(8, scale=2.0)
    pairs = pairs_of(8, 30)
    ends = [10, 20, 30]
    alone = cells_of(tables, pairs[10:20], [10])
    without = cells_of(tables, np.concatenate([pairs[:10], pairs[20:]]), [10, 20])
    assert (cells_of(tables, pairs, ends) - without == alone).all()


def test_sums_do_not_overflow_and_keep_the_sensitivity():
    """At the limit, sums with and without a user differ by at most the cells of this user. (A sum that is clamped
    before each addition, not after it, would exceed the limit by the cells of the last user.)"""
    count = 4000
    tables, pairs = tables_of(9, scale=2.0), pairs_of(9, count)
    ends = np.arange(1, count + 1)
    for start in (MOST, MOST - 5, -MOST + 3):
        begin = np.full(tables.shape, start, dtype=np.int32)
        one = cells_of(tables, pairs, ends, start=begin)
        assert np.abs(one).max() <= MOST
        for user in (0, count // 2, count - 2, count - 1):
            other = cells_of(tables, np.delete(pairs, user, axis=0), ends[:-1], start=begin)
            moved = cells_of(tables, pairs[user : user + 1], [1])
            assert (np.abs(one - other) <= np.abs(moved)).all()


def test_users_without_pairs_add_nothing():
    assert not cells_of(tables_of(1), np.empty((0, 7), dtype=np.int32), [0, 0, 0]).any()


def test_invalid_norms_are_refused():
    """Invalid norms, and norms for which a vector of norm 1 has more cells than float32 can hold."""
    for norm in [0.0, -1.0, math.nan, math.inf, 1e-40, 1e40, "1"]:
        with pytest.raises(ParameterError, match="clip must be"):
            check_clip(norm)
