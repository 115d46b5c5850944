"""The bootstrap draws whole people, and its intervals cover (binomial tests at 1e-6)."""

import numpy as np
import pytest
from papers.bootstrap import over_people, resampled_rows
from scipy import stats


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
    draws = np.zeros((3000, names.size), dtype=int)
    for entry, rows in zip(draws, resampled_rows(people, resamples=3000, seed=3), strict=True):
        counts = np.bincount(rows, minlength=people.size)
        entry[:] = [counts[people == name][0] for name in names]
        assert all(np.ptp(counts[people == name]) == 0 for name in names)
    assert (draws.sum(axis=1) == names.size).all()
    assert stats.chisquare(draws.sum(axis=0)).pvalue > 1e-6


@pytest.mark.statistical
def test_few_people_are_not_surer_than_they_can_be():
    """Five people, two-sided at 95%: misses in at most 5% and a little (binomial test against 8%, at 1e-6)."""
    generator = np.random.default_rng(4)
    wide = narrow = 0
    for seed in range(400):
        values = generator.normal(size=5)
        result = over_people(
            lambda rows, values=values: float(values[rows].mean()), np.arange(5), resamples=300, seed=seed
        )
        wide += not result.low <= 0 <= result.high
        draws = generator.choice(values, size=(300, 5)).mean(axis=1)  # for comparison: plain percentiles
        low, high = np.percentile(draws, [2.5, 97.5])
        narrow += not low <= 0 <= high
    assert stats.binomtest(wide, 400, 0.08, alternative="greater").pvalue > 1e-6
    assert stats.binomtest(narrow, 400, 0.08, alternative="greater").pvalue < 1e-6
