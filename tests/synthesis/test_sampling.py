"""`choose`: distinct candidates, quotas per class, and the trade-off between accuracy and variety."""

import numpy as np
import pytest

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.synthesis.density import choose, near, quotas


@pytest.fixture
def generator():
    return np.random.default_rng(3)


def candidates(generator, count=3000, classes=3):
    """(scores, nearness, truth): the larger a margin, the surer the label."""
    truth = generator.integers(classes, size=count)
    scores = 1.5 * np.eye(classes)[truth] + generator.normal(size=(count, classes))
    return scores, generator.normal(size=count), truth


def chosen(scores, nearness, n, *, shares=(1, 1, 1), seed=1, **changed):
    return choose(scores, nearness, n, shares=shares, bits=RandomBits(seed), **changed)


def test_candidates_are_distinct_and_classes_get_their_quota(generator):
    scores, nearness, _ = candidates(generator)
    for shares in [(1, 1, 1), (0.7, 0.2, 0.1), (0.0, 1.0, 0.0), (0.5, 0.5, 0.0)]:
        for variety in (0.0, 0.5, 1.0):
            rows, classes = chosen(scores, nearness, 600, shares=shares, variety=variety)
            assert len(set(rows.tolist())) == len(rows) == len(classes) == 600
            assert np.bincount(classes, minlength=3).tolist() == quotas(shares, 600).tolist()
    rows, classes = chosen(scores[:50], nearness[:50], 50, shares=(0.8, 0.1, 0.1))
    assert sorted(rows.tolist()) == list(range(50))
    assert np.bincount(classes).tolist() == [40, 5, 5]
    rows, classes = chosen(scores, nearness, 0)
    assert len(rows) == len(classes) == 0


def test_variety_trades_accuracy_for_different_texts(generator):
    """From 0 to 1, fewer labels are right and fewer texts are the same in a second draw."""
    scores, nearness, truth = candidates(generator)
    right, repeated = [], []
    for variety in (0.0, 0.5, 1.0):
        first = chosen(scores, nearness, 600, variety=variety, seed=1)
        second = chosen(scores, nearness, 600, variety=variety, seed=2)
        right.append((truth[first[0]] == first[1]).mean())
        repeated.append(np.isin(first[0], second[0]).mean())
    assert right == sorted(right, reverse=True)
    assert right[1] > (truth == scores.argmax(axis=1)).mean() + 0.03
    assert repeated == sorted(repeated, reverse=True)
    assert repeated[0] == 1.0
    assert repeated[2] < 0.6


def test_candidates_of_another_domain_are_left_out(generator):
    scores, _, _ = candidates(generator)
    nearness = np.where(np.arange(3000) < 1000, 0.0, -8.0) + 0.1 * generator.normal(size=3000)
    for variety in (0.0, 0.5, 1.0):
        rows, _ = chosen(scores, nearness, 400, variety=variety)
        assert (rows < 1000).mean() > 0.99
    nearness = generator.normal(size=1000)
    rows, classes = choose(np.zeros((1000, 1)), nearness, 50, shares=[1.0], bits=RandomBits(1), variety=0.0)
    assert set(classes.tolist()) == {0}
    assert nearness[rows].min() > 0


def test_equal_nearness_leaves_the_choice_to_the_margins(generator):
    scores, _, _ = candidates(generator)
    rows, classes = chosen(scores, np.zeros(3000), 300, variety=0.0)
    margins = np.sort(scores, axis=1)
    margins = margins[:, -1] - margins[:, -2]
    for code in range(3):
        others = np.setdiff1d(np.flatnonzero(scores.argmax(axis=1) == code), rows)
        assert margins[rows[classes == code]].min() >= margins[others].max()


def test_offsets_change_labels_only_where_a_class_lacks_candidates(generator):
    scores, nearness, _ = candidates(generator)
    scores[:, 2] -= 1.0
    rows, classes = chosen(scores, nearness, 90)
    assert (scores[rows].argmax(axis=1) == classes).all()
    scores[:, 2] -= 19.0
    rows, classes = chosen(scores, nearness, 300)
    assert np.bincount(classes).tolist() == [100, 100, 100]
    relative = scores[:, 2] - scores[:, :2].max(axis=1)
    assert np.median(relative[rows[classes == 2]]) > np.quantile(relative, 0.8)


def test_near_candidates_average_to_the_private_texts():
    nearness = np.array([3.0, -1.0, -2.0, -5.0, -9.0])
    assert near(nearness).tolist() == [0, 1, 2]
    assert near(nearness, minimum=4.0).tolist() == [0, 1, 2, 3]
    assert near(nearness, minimum=99.0).tolist() == [0, 1, 2, 3, 4]
    assert near(-np.ones(3)).tolist() == [0]
    assert len(near(np.zeros(7))) == 7


def test_quotas_are_whole_and_add_up(generator):
    shares = generator.random(9)
    for n in (0, 1, 7, 100):
        result = quotas(shares, n)
        assert result.sum() == n
        assert (np.abs(result - shares / shares.sum() * n) < 1).all()


def test_invalid_arguments_are_refused():
    fields = {"scores": np.zeros((3, 2)), "nearness": np.zeros(3), "n": 1, "shares": [1.0, 1.0], "bits": RandomBits(1)}
    for changed, part in [
        ({"n": 4}, "at most the number of candidates, 3, got 4"),
        ({"n": -1}, "n must"),
        ({"variety": 1.1}, "variety"),
    ]:
        with pytest.raises(ParameterError, match=part):
            choose(**(fields | changed))
