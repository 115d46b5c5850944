"""Tests of folds: people are in one fold, every row is tested once, classes are balanced."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext.errors import ParameterError
from dptext.evaluation.measures import Fold, check_folds, make_folds


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=8, max_size=40),
    count=st.integers(2, 4),
    mixed=st.booleans(),
    seed=st.integers(0, 10),
)
def test_a_person_is_never_on_both_sides(sizes, count, mixed, seed):
    people = np.repeat(np.arange(len(sizes)), sizes)
    targets = (np.arange(people.size) if mixed else people) % 2
    try:
        folds = make_folds(targets, people=people, count=count, seed=seed)
    except ParameterError:  # mixed rows may leave a class to a few people
        assert mixed
        return
    assert np.sort(np.concatenate([fold.test for fold in folds])).tolist() == list(range(people.size))
    for fold in folds:
        assert not set(people[fold.train]) & set(people[fold.test])
        assert np.sort(np.concatenate([fold.train, fold.test])).tolist() == list(range(people.size))
        assert set(targets[fold.train]) == {0, 1}


def test_classes_and_numbers_are_spread_evenly():
    labels = np.repeat([0, 1, 2], [53, 20, 7])
    for fold in make_folds(labels, count=5, seed=1):
        assert np.abs(np.bincount(labels[fold.test]) - np.array([53, 20, 7]) / 5).max() < 1
    numbers = np.random.default_rng(1).normal(size=100)
    means = [numbers[fold.test].mean() for fold in make_folds(numbers, count=5, classes=False, seed=1)]
    assert np.std(means) < 0.1 * np.std(numbers) / 20**0.5 * 5


def test_people_keep_the_balance_of_rows_and_classes():
    generator = np.random.default_rng(2)
    people = np.repeat(np.arange(300), generator.geometric(1 / 20, size=300))
    labels = (generator.random(300) < 0.2)[people]
    folds = make_folds(labels, people=people, count=5, seed=1)
    shares = [labels[fold.test].mean() for fold in folds]
    sizes = [fold.test.size for fold in folds]
    assert max(shares) - min(shares) < 0.02
    assert max(sizes) - min(sizes) < 0.02 * people.size


def test_a_seed_repeats_the_folds_and_another_deals_anew():
    def first(seed):
        return make_folds([0, 1] * 50, seed=seed)[0].test.tolist()

    assert first(1) == first(1) != first(2)


def test_what_cannot_be_dealt_is_named():
    for targets, options, says in [
        ([0, 1], {}, "folds must be at most the number of rows, 2, got 5"),
        ([0, 1] * 9, {"count": 1}, "folds must be an integer of at least 2"),
        ([0, 1] * 9, {"count": True}, "folds must be an integer"),
        ([0] * 18, {}, "targets must hold at least two classes"),
        ([0] * 18 + [1] * 2, {}, "targets: the rarest class has 2 rows, fewer than 5 folds"),
        ([0, 1] * 9, {"people": [0, 1] * 9}, "folds must be at most the number of people, 2"),
        ([0] * 16 + [1] * 4, {"people": [*range(16), 0, 0, 0, 0]}, "the rarest class has 1 people"),
        ([0, 1] * 9, {"people": [1, 2]}, "people must have one entry for each of 18"),
        ([0, 1, None] * 9, {}, "targets must have no missing entries, row 2 is missing"),
        (["a", "b", float("nan")] * 9, {}, "targets must have no missing entries, row 2"),
        ([0.0, 1.0, float("nan")] * 9, {}, "targets must have no missing entries"),
        ([0, 1] * 9, {"people": ["a", None] * 9}, "people must have no missing entries, row 1"),
        ([[0, 1]] * 9, {}, "targets must be one entry per row"),
        ([], {}, "targets must be one entry per row"),
    ]:
        with pytest.raises(ParameterError, match=says):
            make_folds(targets, **options)


def test_own_folds_are_checked():
    for train, test, says in [
        ([0, 1], [1, 2], "1 rows on both sides"),
        ([], [1], "empty side"),
        ([0], [], "empty side"),
        ([0], [9], "outside 0 to 5"),
        ([-1], [2], "outside"),
    ]:
        with pytest.raises(ParameterError, match=says):
            check_folds([Fold(np.array(train, int), np.array(test, int))], 6)
        with pytest.raises(ParameterError, match="1 people on both sides"):
            check_folds([Fold(np.array([0, 1]), np.array([2, 3]))], 6, people=[0, 1, 1, 2, 3, 4])
        with pytest.raises(ParameterError, match="at most once"):
            check_folds([Fold(np.array([0]), np.array([1])), Fold(np.array([2]), np.array([1]))], 6)
        with pytest.raises(ParameterError, match="at least one fold"):
            check_folds([], 6)
