"""Planted unfairness is found, chance is not taken for it, and what a small group cannot show is refused."""

import numpy as np
import pytest
from scipy import stats

from dptext import ParameterError
from dptext.estimates import resampled_rows
from dptext.evaluation.fairness import fairness

QUICK = {"resamples": 200, "seed": 1}


def served(generator, accuracies, people=100, rows=5):
    """Predictions for groups of people, right as often as said, people differing a little."""
    groups = np.repeat(np.arange(len(accuracies)), people)
    skill = np.clip(np.array(accuracies)[groups] + 0.05 * generator.normal(size=groups.size), 0, 1)
    whose = np.repeat(np.arange(groups.size), rows)
    true = generator.integers(0, 2, size=whose.size)
    predicted = np.where(generator.random(whose.size) < skill[whose], true, 1 - true)
    return true, predicted, np.array([f"group {each}" for each in groups])[whose], whose


@pytest.mark.parametrize("measure", ["accuracy", "macro-F1"])
def test_planted_unfairness_is_found(measure):
    true, predicted, groups, people = served(np.random.default_rng(1), [0.9, 0.88, 0.7])
    found = fairness(true, predicted, groups, people=people, measure=measure, seed=1)
    assert [each.group for each in found.groups] == ["group 0", "group 1", "group 2"]
    assert {each.people for each in found.groups} == {100}
    assert all(each.score.of == "people" and 0.45 < each.baseline < 0.56 for each in found.groups)
    assert (found.largest.better, found.largest.worse) == ("group 0", "group 2")
    assert found.largest.gap.low < 0.2 < found.largest.gap.high
    assert [gap.is_shown for gap in found.gaps] == [True, True, False]
    assert found.is_unequal
    assert "largest gap: group 0 above group 2 by 0." in str(found)


def test_equal_groups_are_seldom_told_apart():
    """At most 5 per cent false alarms over all pairs; asked for below 8, which fails with probability below 1e-6."""
    generator = np.random.default_rng(2)
    alarms, trials = 0, 30
    for _ in range(trials):
        true, predicted, groups, people = served(generator, [0.8] * 3, people=40, rows=3)
        alarms += fairness(true, predicted, groups, people=people, resamples=100, seed=1).is_unequal
    assert stats.binomtest(alarms, trials, 0.08, alternative="greater").pvalue > 1e-6
    # the broken twin compares the best group with the worst as if there were no others
    hits = generator.binomial(120, 0.8, size=(2000, 3)) / 120
    errors = hits * (1 - hits) / 120
    best, worst = hits.argmax(axis=1), hits.argmin(axis=1)
    rows = np.arange(2000)
    twin = hits[rows, best] - hits[rows, worst] > 1.96 * (errors[rows, best] + errors[rows, worst]) ** 0.5
    assert stats.binomtest(int(twin.sum()), 2000, 0.08, alternative="greater").pvalue < 1e-6


def test_many_groups_are_answered_and_not_told_apart_by_chance(monkeypatch):
    """300 pairs of groups that are served alike but for one; tails by the normal are those of the percentiles."""
    asked = []

    def counted(people, *, resamples, seed):
        asked.append(resamples)
        return resampled_rows(people, resamples=resamples, seed=seed)

    monkeypatch.setattr("dptext.evaluation.fairness.resampled_rows", counted)
    generator = np.random.default_rng(8)
    many = served(generator, [*[0.8] * 24, 0.2], people=40, rows=1)
    found = fairness(*many[:3], people=many[3], resamples=100, seed=1)
    assert max(asked) <= 20_000
    shown = [{gap.better, gap.worse} for gap in found.gaps if gap.is_shown]
    assert shown
    assert all("group 24" in each for each in shown)  # by the choice of the seed: 5% of them have another
    # the broken twin takes each pair as if it were the only one
    errors = [gap.gap.high - gap.gap.low for gap in found.gaps]
    reach = stats.norm.isf(0.025) / stats.norm.isf(0.025 / 300)
    twin = [gap for gap, width in zip(found.gaps, errors, strict=True) if gap.gap.value > reach * width / 2]
    assert any("group 24" not in {gap.better, gap.worse} for gap in twin)
    few = served(generator, [0.8, 0.7, 0.6], people=60, rows=1)
    percentiles = fairness(*few[:3], people=few[3], **QUICK)
    monkeypatch.setattr("dptext.evaluation.fairness._MOST", 0)
    normal = fairness(*few[:3], people=few[3], **QUICK)
    for one, other in zip(percentiles.gaps, normal.gaps, strict=True):
        assert other.gap.high - other.gap.low == pytest.approx(one.gap.high - one.gap.low, rel=0.15)


def test_a_gap_of_authors_needs_authors_not_rows():
    """Two groups of few, very different people: rows seem to show a gap, people do not."""
    generator = np.random.default_rng(3)
    skill = np.where(np.arange(60) % 3 == 0, 0.2, 0.9)
    generator.shuffle(skill)
    skill[0] = 0.5
    whose = np.repeat(np.arange(60), 200)
    right = generator.random(whose.size) < skill[whose]
    groups = np.array(["x", "y"])[(whose % 2)]
    true = np.arange(whose.size) % 2
    by_people = fairness(true, np.where(right, true, 1 - true), groups, people=whose, **QUICK)
    by_row = fairness(true, np.where(right, true, 1 - true), groups, **QUICK)
    wide, narrow = (each.largest.gap.high - each.largest.gap.low for each in (by_people, by_row))
    assert wide > 5 * narrow
    assert not by_people.is_unequal


def test_the_baseline_is_that_of_the_group():
    true = [0] * 90 + [1] * 10 + [0, 1] * 50
    predicted = [0] * 100 + [0, 1] * 50
    found = fairness(true, predicted, ["a"] * 100 + ["b"] * 100, **QUICK)
    assert [each.baseline for each in found.groups] == [0.9, 0.5]
    assert [each.score.value for each in found.groups] == [0.9, 1.0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"groups": ["a"] * 80}, "groups must be at least two"),
        ({"groups": ["a"] * 70 + ["b"] * 10}, "groups: the smallest has 10 people, expected at least 30"),
        ({"groups": ["a"] * 79 + [None]}, "groups must have no missing entries, row 79"),
        ({"groups": ["a", "b"]}, "groups must have one entry for each of 80 rows"),
        ({"people": [1, 2]}, "people must have one entry for each of 80 rows"),
        ({"people": [0] * 80}, "groups: somebody has rows in two groups"),
        ({"people": [*range(36), *[36] * 4, *range(40, 80)], "smallest": 38}, "smallest has 37 people"),
        ({"measure": "RMSE"}, "measure must be one of accuracy, macro-F1"),
        ({"measure": "macro-F1", "true": [0] * 40 + [0, 1] * 20}, "groups: macro-F1 .* one lacks a class"),
        ({"predicted": [0]}, "predicted must have one entry for each of 80 rows"),
        ({"true": [float("nan")] * 80}, "missing entries"),
        ({"true": [], "predicted": []}, "one entry a row"),
        ({"confidence": 1.0}, "confidence must lie between"),
    ],
)
def test_bad_input_is_named(change, says):
    given = {"true": [0, 1] * 40, "predicted": [0, 1] * 40, "groups": ["a"] * 40 + ["b"] * 40} | change
    arrays = [given.pop(name) for name in ("true", "predicted", "groups")]
    with pytest.raises(ParameterError, match=says):
        fairness(*arrays, **given, **QUICK)
