"""Intervals cover what they should (binomial tests at 1e-6), and over people they are wider than over rows."""

import numpy as np
import pytest
from scipy import stats

from dptext import ParameterError
from dptext.estimates import Estimate, mean_over_runs, over_people, resampled_rows, share, share_over_people


def _covers_95(hits, trials):
    return stats.binomtest(hits, trials, 0.95).pvalue > 1e-6


def test_a_mean_over_runs_is_covered_as_often_as_said():
    generator = np.random.default_rng(1)
    runs = generator.normal(3.0, 2.0, size=(2000, 5))
    found = [mean_over_runs(each) for each in runs]
    assert _covers_95(sum(each.low <= 3.0 <= each.high for each in found), 2000)
    normal = [1.96 * each.std(ddof=1) / 5**0.5 for each in runs]  # too narrow for five runs
    assert not _covers_95(sum(abs(each.mean() - 3.0) <= reach for each, reach in zip(runs, normal, strict=True)), 2000)


def test_a_share_never_leaves_its_range():
    assert share(0, 10).low == 0.0
    assert share(10, 10).high == 1.0
    assert share(3, 10).of == "rows"


def test_people_count_not_rows():
    generator = np.random.default_rng(2)
    people = np.repeat(np.arange(40), 50)
    values = generator.normal(size=40)[people] + 0.1 * generator.normal(size=2000)

    def mean(rows):
        return float(values[rows].mean())

    grouped = over_people(mean, people, seed=1)
    alone = over_people(mean, np.arange(2000), seed=1)
    assert (grouped.count, grouped.of) == (40, "people")
    assert grouped.high - grouped.low > 4 * (alone.high - alone.low)
    assert grouped.low < grouped.value < grouped.high
    assert grouped == over_people(mean, people, seed=1)


@pytest.mark.parametrize("people", [[3, 1, 1, 2, 1, 3], [0, 1, 2, 3, 4]], ids=["shared", "one row each"])
def test_people_are_drawn_whole_and_equally_often(people):
    people = np.array(people)
    names = np.unique(people)
    drawn = np.zeros((3000, names.size), dtype=int)
    for each, rows in zip(drawn, resampled_rows(people, resamples=3000, seed=3), strict=True):
        counts = np.bincount(rows, minlength=people.size)
        each[:] = [counts[people == name][0] for name in names]
        assert all(np.ptp(counts[people == name]) == 0 for name in names)
    assert (drawn.sum(axis=1) == names.size).all()
    assert stats.chisquare(drawn.sum(axis=0)).pvalue > 1e-6


def test_few_people_are_not_surer_than_they_can_be():
    """Five people, two-sided at 95%: misses in at most 5% and a little (binomial test against 8%, at 1e-6)."""
    generator = np.random.default_rng(4)
    wide = narrow = 0
    for seed in range(400):
        values = generator.normal(size=5)
        found = over_people(
            lambda rows, values=values: float(values[rows].mean()), np.arange(5), resamples=300, seed=seed
        )
        wide += not found.low <= 0 <= found.high
        drawn = generator.choice(values, size=(300, 5)).mean(axis=1)  # the twin: plain percentiles
        low, high = np.percentile(drawn, [2.5, 97.5])
        narrow += not low <= 0 <= high
    assert stats.binomtest(wide, 400, 0.08, alternative="greater").pvalue > 1e-6
    assert stats.binomtest(narrow, 400, 0.08, alternative="greater").pvalue < 1e-6


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_of_people_who_are_all_alike_the_next_may_differ(value):
    plain, found = (each(lambda rows: value, list("aabbccddee")) for each in (over_people, share_over_people))
    assert (plain.low, plain.high) == (value, value)
    assert (found.low, found.high) == (share(round(5 * value), 5).low, share(round(5 * value), 5).high)


def test_an_estimate_reads_as_a_number_with_its_interval():
    assert str(Estimate(0.5, 0.25, 0.75, 10, "rows")) == "0.500 [0.250, 0.750]"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: share(1, 0), "successes"),
        (lambda: share(3, 2), "successes"),
        (lambda: mean_over_runs([1.0]), "two runs, got 1"),
        (lambda: mean_over_runs([1.0, float("nan")]), "finite"),
        (lambda: over_people(lambda rows: 1.0, ["a", "a"]), "two of them, got 1"),
        (lambda: over_people(lambda rows: float("nan"), [1, 2]), "finite number"),
    ],
)
def test_what_has_no_interval_is_refused(call, says):
    with pytest.raises(ParameterError, match=says):
        call()
