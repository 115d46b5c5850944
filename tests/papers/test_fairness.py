"""Planted unfairness is found, chance is not taken for it, and small groups are refused."""

import numpy as np
import pytest
from papers.fairness import fairness
from scipy import stats

from dptext.errors import ParameterError


def served(generator, accuracies, people=100, rows=5):
    """Return predictions for groups of people with the given accuracies, which vary a little between people."""
    groups = np.repeat(np.arange(len(accuracies)), people)
    skill = np.clip(np.array(accuracies)[groups] + 0.05 * generator.normal(size=groups.size), 0, 1)
    owners = np.repeat(np.arange(groups.size), rows)
    true = generator.integers(0, 2, size=owners.size)
    predicted = np.where(generator.random(owners.size) < skill[owners], true, 1 - true)
    return true, predicted, np.array([f"group {group}" for group in groups])[owners], owners


def unequal(result):
    """Whether chance does not explain some gap."""
    return any(gap.gap.low > 0 for gap in result.gaps)


def counted(right, people):
    """Return the rows of two groups of people with one row each, with this number of correct predictions."""
    answers = np.concatenate([np.arange(n) >= hits for hits, n in zip(right, people, strict=True)])
    return np.zeros(answers.size, dtype=int), answers.astype(int), np.repeat(["x", "y"], people)


def test_planted_unfairness_is_found():
    true, predicted, groups, people = served(np.random.default_rng(1), [0.9, 0.88, 0.7])
    result = fairness(true, predicted, groups, people=people)
    assert [group.group for group in result.groups] == [f"group {n}" for n in range(3)]
    assert all(group.score.of == "people" and 0.45 < group.baseline < 0.56 for group in result.groups)
    assert (result.gaps[0].better, result.gaps[0].worse) == ("group 0", "group 2")
    assert result.gaps[0].gap.low < 0.2 < result.gaps[0].gap.high
    assert [gap.gap.low > 0 for gap in result.gaps] == [True, True, False] and unequal(result)
    # every group has its own baseline
    true, predicted = [0] * 90 + [1] * 10 + [0, 1] * 50, [0] * 100 + [0, 1] * 50
    groups = fairness(true, predicted, ["a"] * 100 + ["b"] * 100).groups
    assert [(group.baseline, group.score.value) for group in groups] == [(0.9, 0.9), (0.5, 1.0)]


def test_equal_groups_are_seldom_distinguished():
    """At most 5 per cent false alarms over all pairs; the bound 8 fails with probability below 1e-6."""
    generator, alarms, trials = np.random.default_rng(2), 0, 30
    for _ in range(trials):
        true, predicted, groups, people = served(generator, [0.8] * 3, people=40, rows=3)
        alarms += unequal(fairness(true, predicted, groups, people=people))
    assert stats.binomtest(alarms, trials, 0.08, alternative="greater").pvalue > 1e-6
    # the known-broken version compares the best group with the worst as if they were the only ones
    hits = generator.binomial(120, 0.8, size=(2000, 3)) / 120
    errors = hits * (1 - hits) / 120
    best, worst, rows = hits.argmax(axis=1), hits.argmin(axis=1), np.arange(2000)
    broken = hits[rows, best] - hits[rows, worst] > 1.96 * (errors[rows, best] + errors[rows, worst]) ** 0.5
    assert stats.binomtest(int(broken.sum()), 2000, 0.08, alternative="greater").pvalue < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [1, 5])
def test_a_small_group_with_a_perfect_score_is_not_shown_to_be_served_better(rows):
    """Groups of 30 and 1,000 people with 95% right answers, over rows or over people.

    A gap is shown in at most 5 per cent (a false alarm has a probability below 1e-6). The known-broken version
    resamples people: a small group with a perfect score never varies.
    """
    generator, trials, alarms, broken = np.random.default_rng(21), 150, 0, 0
    groups = np.repeat(["small", "large"], [30, 1000])
    for _ in range(trials):
        right = generator.random(1030) < 0.95
        true, owners = np.zeros(1030 * rows, dtype=int), np.repeat(np.arange(1030), rows)
        alarms += unequal(fairness(true, ~right[owners], groups[owners], people=owners))
        sides = ((right[:30], 30), (right[30:], 1000))
        draws = [generator.binomial(n, entry.mean(), size=200) / n for entry, n in sides]
        low, high = np.percentile(draws[0] - draws[1], [2.5, 97.5])
        broken += low > 0 or high < 0
    assert stats.binomtest(alarms, trials, 0.05, alternative="greater").pvalue > 1e-6
    assert stats.binomtest(broken, trials, 0.05, alternative="greater").pvalue < 1e-6


def test_gaps_agree_with_fisher_s_test_and_remain_uncertain_at_a_perfect_score():
    assert stats.fisher_exact([[26, 4], [30, 0]]).pvalue > 0.1
    result = fairness(*counted([26, 30], [30, 30]))
    assert result.gaps[0].better == "y" and not unequal(result)
    assert unequal(fairness(*counted([20, 30], [30, 30])))  # Fisher: .0004
    gap = fairness(*counted([30, 400], [30, 400])).gaps[0].gap
    assert gap.value == 0 and gap.low < -0.005 and gap.high > 0.005
    assert gap.high - gap.low > 0.1  # 30 people leave this open
    owners = np.repeat(np.arange(80), 10)
    gap = fairness(np.zeros(800), np.zeros(800), np.repeat(["x", "y"], 400), people=owners).gaps[0].gap
    assert (gap.low, gap.high) == pytest.approx((-0.0881, 0.0881), abs=1e-3)  # 40 people each, not 400 rows


def test_intervals_of_gaps_cover_simultaneously():
    """Three groups whose accuracies differ: all three intervals hold in 95% of the cases (false alarm 1e-6)."""
    generator, trials, missed = np.random.default_rng(22), 200, 0
    rates, sizes = np.array([0.99, 0.9, 0.8]), np.array([30, 100, 300])
    for _ in range(trials):
        right = generator.random(430) < np.repeat(rates, sizes)
        result = fairness(np.zeros(430, dtype=int), (~right).astype(int), np.repeat(["0", "1", "2"], sizes))
        gaps = [(gap.gap, rates[int(gap.better)] - rates[int(gap.worse)]) for gap in result.gaps]
        missed += any(not gap.low <= truth <= gap.high for gap, truth in gaps)
    assert stats.binomtest(missed, trials, 0.05, alternative="greater").pvalue > 1e-6


def test_unsuitable_groups_are_refused():
    answers = [0, 1] * 40
    with pytest.raises(ParameterError, match="groups: the smallest has 10 people, at least 30 are needed"):
        fairness(answers, answers, ["a"] * 70 + ["b"] * 10)
    with pytest.raises(ParameterError, match="groups must have at least two values, and one for each person"):
        fairness(answers, answers, ["a"] * 40 + ["b"] * 40, people=[0] * 80)
