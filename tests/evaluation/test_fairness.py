"""Planted unfairness is found, chance is not taken for it, and what a small group cannot show is refused."""

import numpy as np
import pytest
from scipy import stats

from dptext.errors import ParameterError
from dptext.evaluation.utility import fairness


def served(generator, accuracies, people=100, rows=5):
    """Return predictions for groups of people with the given accuracies, which vary a little between people."""
    groups = np.repeat(np.arange(len(accuracies)), people)
    skill = np.clip(np.array(accuracies)[groups] + 0.05 * generator.normal(size=groups.size), 0, 1)
    owners = np.repeat(np.arange(groups.size), rows)
    true = generator.integers(0, 2, size=owners.size)
    predicted = np.where(generator.random(owners.size) < skill[owners], true, 1 - true)
    return true, predicted, np.array([f"group {group}" for group in groups])[owners], owners


@pytest.mark.parametrize("measure", ["accuracy", "macro-F1"])
def test_planted_unfairness_is_found(measure):
    true, predicted, groups, people = served(np.random.default_rng(1), [0.9, 0.88, 0.7])
    result = fairness(true, predicted, groups, people=people, measure=measure)
    assert [group.group for group in result.groups] == ["group 0", "group 1", "group 2"]
    assert {group.people for group in result.groups} == {100}
    assert all(group.score.of == "people" and 0.45 < group.baseline < 0.56 for group in result.groups)
    assert (result.largest.better, result.largest.worse) == ("group 0", "group 2")
    assert result.largest.gap.low < 0.2 < result.largest.gap.high
    assert [gap.is_shown for gap in result.gaps] == [True, True, False]
    assert result.is_unequal
    assert "largest gap: group 0 above group 2 by 0." in str(result)


def test_equal_groups_are_seldom_told_apart():
    """At most 5 per cent false alarms over all pairs; the bound 8 fails with probability below 1e-6."""
    generator = np.random.default_rng(2)
    alarms, trials = 0, 30
    for _ in range(trials):
        true, predicted, groups, people = served(generator, [0.8] * 3, people=40, rows=3)
        alarms += fairness(true, predicted, groups, people=people).is_unequal
    assert stats.binomtest(alarms, trials, 0.08, alternative="greater").pvalue > 1e-6
    # the known-broken version compares the best group with the worst as if they were the only ones
    hits = generator.binomial(120, 0.8, size=(2000, 3)) / 120
    errors = hits * (1 - hits) / 120
    best, worst = hits.argmax(axis=1), hits.argmin(axis=1)
    rows = np.arange(2000)
    twin = hits[rows, best] - hits[rows, worst] > 1.96 * (errors[rows, best] + errors[rows, worst]) ** 0.5
    assert stats.binomtest(int(twin.sum()), 2000, 0.08, alternative="greater").pvalue < 1e-6


def counted(right, people):
    """Return the rows of two groups of people with one row each, with this number of correct predictions."""
    answers = np.concatenate([np.arange(n) >= hits for hits, n in zip(right, people, strict=True)])
    return np.zeros(answers.size, dtype=int), answers.astype(int), np.repeat(["x", "y"], people)


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [1, 5])
def test_a_small_group_that_is_all_right_is_not_shown_to_be_served_better(rows):
    """Groups of 30 and 1,000 people, right in 95%; or with many rows each, and right for 95% of the people.

    A gap is shown in at most 5 per cent (a false alarm has a probability below 1e-6). The twin resamples people: a
    small group that is all right never varies.
    """
    generator, trials, alarms, twin = np.random.default_rng(21), 150, 0, 0
    groups = np.repeat(["small", "large"], [30, 1000])
    for _ in range(trials):
        right = generator.random(1030) < 0.95
        true, owners = np.zeros(1030 * rows, dtype=int), np.repeat(np.arange(1030), rows)
        result = fairness(true, ~right[owners], groups[owners], people=owners)
        alarms += result.is_unequal
        draws = [
            generator.binomial(n, entry.mean(), size=200) / n for entry, n in ((right[:30], 30), (right[30:], 1000))
        ]
        low, high = np.percentile(draws[0] - draws[1], [2.5, 97.5])
        twin += low > 0 or high < 0
    assert stats.binomtest(alarms, trials, 0.05, alternative="greater").pvalue > 1e-6
    assert stats.binomtest(twin, trials, 0.05, alternative="greater").pvalue < 1e-6


def test_what_fisher_s_test_does_not_show_is_not_shown():
    assert stats.fisher_exact([[26, 4], [30, 0]]).pvalue > 0.1
    result = fairness(*counted([26, 30], [30, 30]))
    assert result.largest.better == "y"
    assert not result.is_unequal
    assert fairness(*counted([20, 30], [30, 30])).is_unequal  # Fisher: .0004


def test_two_groups_that_are_all_right_may_still_differ():
    gap = fairness(*counted([30, 400], [30, 400])).largest.gap
    assert gap.value == 0
    assert gap.low < -0.005
    assert gap.high > 0.005
    assert gap.high - gap.low > 0.1  # what 30 people leave open
    owners = np.repeat(np.arange(80), 10)
    result = fairness(np.zeros(800), np.zeros(800), np.repeat(["x", "y"], 400), people=owners).largest.gap
    assert (result.low, result.high) == pytest.approx((-0.0881, 0.0881), abs=1e-3)  # 40 people each, not 400 rows


def test_intervals_of_gaps_cover_them_together():
    """Three groups whose accuracies differ: all three intervals hold in 95% of the cases (false alarm 1e-6)."""
    generator, trials, missed = np.random.default_rng(22), 200, 0
    rates, sizes = np.array([0.99, 0.9, 0.8]), np.array([30, 100, 300])
    for _ in range(trials):
        right = generator.random(430) < np.repeat(rates, sizes)
        result = fairness(np.zeros(430, dtype=int), (~right).astype(int), np.repeat(["0", "1", "2"], sizes))
        gaps = [(gap.gap, rates[int(gap.better)] - rates[int(gap.worse)]) for gap in result.gaps]
        missed += any(not gap.low <= truth <= gap.high for gap, truth in gaps)
    assert stats.binomtest(missed, trials, 0.05, alternative="greater").pvalue > 1e-6


def test_many_groups_are_answered_and_not_told_apart_by_chance():
    """300 pairs of groups that are served alike but for one."""
    generator = np.random.default_rng(8)
    many = served(generator, [*[0.8] * 24, 0.2], people=40, rows=1)
    result = fairness(*many[:3], people=many[3])
    visible = [{gap.better, gap.worse} for gap in result.gaps if gap.is_shown]
    assert len(visible) > 12
    assert all("group 24" in entry for entry in visible)  # by the choice of the seed: 5% of them have another
    # the known-broken version ignores that several pairs are compared
    errors = [gap.gap.high - gap.gap.low for gap in result.gaps]
    reach = stats.norm.isf(0.025) / stats.norm.isf(0.025 / 300)
    twin = [gap for gap, width in zip(result.gaps, errors, strict=True) if gap.gap.value > reach * width / 2]
    assert any("group 24" not in {gap.better, gap.worse} for gap in twin)


def test_a_gap_of_authors_needs_authors_not_rows():
    """Two groups of few, very different people: rows seem to show a gap, people do not."""
    generator = np.random.default_rng(3)
    skill = np.where(np.arange(60) % 3 == 0, 0.2, 0.9)
    generator.shuffle(skill)
    skill[0] = 0.5
    owners = np.repeat(np.arange(60), 200)
    right = generator.random(owners.size) < skill[owners]
    groups = np.array(["x", "y"])[(owners % 2)]
    true = np.arange(owners.size) % 2
    by_people = fairness(true, np.where(right, true, 1 - true), groups, people=owners)
    by_row = fairness(true, np.where(right, true, 1 - true), groups)
    wide, narrow = (person.largest.gap.high - person.largest.gap.low for person in (by_people, by_row))
    assert wide > 5 * narrow
    assert not by_people.is_unequal


def test_the_baseline_is_that_of_the_group():
    true = [0] * 90 + [1] * 10 + [0, 1] * 50
    predicted = [0] * 100 + [0, 1] * 50
    result = fairness(true, predicted, ["a"] * 100 + ["b"] * 100)
    assert [group.baseline for group in result.groups] == [0.9, 0.5]
    assert [group.score.value for group in result.groups] == [0.9, 1.0]


def test_bad_input_is_named():
    for change, says in [
        ({"groups": ["a"] * 80}, "groups must be at least two"),
        ({"groups": ["a"] * 70 + ["b"] * 10}, "groups: the smallest has 10 people, expected at least 30"),
        ({"groups": ["a"] * 79 + [None]}, "groups must have no missing entries, row 79"),
        ({"groups": ["a", "b"]}, "groups must have one entry for each of 80 rows"),
        ({"people": [1, 2]}, "people must have one entry for each of 80 rows"),
        ({"people": [0] * 80}, "groups: a person has rows in two groups"),
        ({"people": [*range(36), *[36] * 4, *range(40, 80)], "smallest": 38}, "smallest has 37 people"),
        ({"measure": "RMSE"}, "measure must be one of 'accuracy', 'macro-F1', got"),
        ({"measure": "macro-F1", "true": [0] * 40 + [0, 1] * 20}, "groups: macro-F1 .* one lacks a class"),
        ({"predicted": [0]}, "predicted must have one entry for each of 80 rows"),
        ({"true": [float("nan")] * 80}, "missing entries"),
        ({"true": [], "predicted": []}, "one entry per row"),
        ({"confidence": 1.0}, "confidence must be a number above 0 and below 1"),
    ]:
        values = {"true": [0, 1] * 40, "predicted": [0, 1] * 40, "groups": ["a"] * 40 + ["b"] * 40} | change
        arrays = [values.pop(name) for name in ("true", "predicted", "groups")]
        with pytest.raises(ParameterError, match=says):
            fairness(*arrays, **values)
