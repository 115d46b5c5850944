"""Which candidates are chosen: each once, so many a class as asked, purer or more varied as the dial says."""

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


@pytest.mark.parametrize("variety", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("shares", [(1, 1, 1), (0.7, 0.2, 0.1), (0.0, 1.0, 0.0), (0.5, 0.5, 0.0)])
def test_each_candidate_once_and_each_class_its_share(generator, variety, shares):
    scores, nearness, _ = candidates(generator)
    rows, classes = chosen(scores, nearness, 600, shares=shares, variety=variety)
    assert len(set(rows.tolist())) == len(rows) == len(classes) == 600
    assert np.bincount(classes, minlength=3).tolist() == quotas(shares, 600).tolist()


def test_labels_are_mostly_right(generator):
    scores, nearness, truth = candidates(generator)
    rows, classes = chosen(scores, nearness, 600)
    assert (truth[rows] == classes).mean() > (truth == scores.argmax(axis=1)).mean() + 0.03


def test_the_dial_gives_accuracy_for_variety(generator):
    """From 0 to 1, labels get less right, and less of what is chosen is the same in a second drawing."""
    scores, nearness, truth = candidates(generator)
    right, repeated = [], []
    for variety in (0.0, 0.5, 1.0):
        first = chosen(scores, nearness, 600, variety=variety, seed=1)
        second = chosen(scores, nearness, 600, variety=variety, seed=2)
        right.append((truth[first[0]] == first[1]).mean())
        repeated.append(np.isin(first[0], second[0]).mean())
    assert right == sorted(right, reverse=True)
    assert repeated == sorted(repeated, reverse=True)
    assert repeated[0] == 1.0
    assert repeated[2] < 0.6


def test_candidates_of_another_domain_are_left_out(generator):
    scores, _, _ = candidates(generator)
    nearness = np.where(np.arange(3000) < 1000, 0.0, -8.0) + 0.1 * generator.normal(size=3000)
    for variety in (0.0, 0.5, 1.0):
        rows, _ = chosen(scores, nearness, 400, variety=variety)
        assert (rows < 1000).mean() > 0.99


def test_equal_nearness_leaves_it_to_the_margins(generator):
    scores, _, _ = candidates(generator)
    rows, classes = chosen(scores, np.zeros(3000), 300, variety=0.0)
    margins = np.sort(scores, axis=1)
    margins = margins[:, -1] - margins[:, -2]
    for code in range(3):
        others = np.setdiff1d(np.flatnonzero(scores.argmax(axis=1) == code), rows)
        assert margins[rows[classes == code]].min() >= margins[others].max()


def test_a_class_that_no_candidate_has_gets_those_that_come_closest(generator):
    """Offsets move towards the shares: the class without candidates gets the texts that it fits best."""
    scores, nearness, _ = candidates(generator)
    scores[:, 2] -= 20.0
    rows, classes = chosen(scores, nearness, 300)
    assert np.bincount(classes).tolist() == [100, 100, 100]
    relative = scores[:, 2] - scores[:, :2].max(axis=1)
    assert np.median(relative[rows[classes == 2]]) > np.quantile(relative, 0.8)


def test_offsets_stay_where_every_class_has_enough(generator):
    """Uniform shares out of a pool in which a class is rare, but not too rare, do not change any label."""
    scores, nearness, _ = candidates(generator)
    scores[:, 2] -= 1.0
    rows, classes = chosen(scores, nearness, 90, shares=(1, 1, 1))
    assert (scores[rows].argmax(axis=1) == classes).all()


def test_all_candidates_can_be_asked_for(generator):
    scores, nearness, _ = candidates(generator, count=50)
    rows, classes = chosen(scores, nearness, 50, shares=(0.8, 0.1, 0.1))
    assert sorted(rows.tolist()) == list(range(50))
    assert np.bincount(classes).tolist() == [40, 5, 5]


def test_one_class_is_drawn_from_the_near_ones(generator):
    nearness = generator.normal(size=1000)
    rows, classes = choose(np.zeros((1000, 1)), nearness, 50, shares=[1.0], bits=RandomBits(1), variety=0.0)
    assert set(classes.tolist()) == {0}
    assert nearness[rows].min() > 0


def test_no_text_wanted_is_no_text(generator):
    scores, nearness, _ = candidates(generator, count=10)
    rows, classes = chosen(scores, nearness, 0)
    assert len(rows) == len(classes) == 0


def test_near_ones_average_to_those_of_people():
    nearness = np.array([3.0, -1.0, -2.0, -5.0, -9.0])
    assert near(nearness).tolist() == [0, 1, 2]
    assert near(nearness, minimum=4.0).tolist() == [0, 1, 2, 3]
    assert near(nearness, minimum=99.0).tolist() == [0, 1, 2, 3, 4]
    assert near(-np.ones(3)).tolist() == [0]
    assert len(near(np.zeros(7))) == 7


@pytest.mark.parametrize("n", [0, 1, 7, 100])
def test_quotas_are_whole_and_add_up(generator, n):
    shares = generator.random(9)
    result = quotas(shares, n)
    assert result.sum() == n
    assert (np.abs(result - shares / shares.sum() * n) < 1).all()


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"n": 4}, ParameterError, "at most the number of candidates, 3, got 4"),
        ({"n": -1}, ParameterError, "n must"),
        ({"variety": 1.1}, ParameterError, "variety"),
    ],
)
def test_what_does_not_fit_is_one_clear_error(changed, error, said):
    fields = {"scores": np.zeros((3, 2)), "nearness": np.zeros(3), "n": 1, "shares": [1.0, 1.0], "bits": RandomBits(1)}
    with pytest.raises(error, match=said):
        choose(**(fields | changed))
