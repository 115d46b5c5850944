"""Intervals cover the truth as often as announced (binomial tests at 1e-6), and over people are wider than over rows.

Coverage is simulated where intervals are worst: near 0 and 1, with few people, with many rows a person, with people who
are rare and unlike the others. Each time a usual interval (a bootstrap, that of DeLong) is shown to be rejected.
"""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score, roc_auc_score

from dptext.errors import ParameterError
from dptext.intervals import (
    area,
    difference,
    macro_f1,
    mean_of_people,
    mean_over_runs,
    paired_difference,
    share,
)


def _covers_95(hits, trials):
    return stats.binomtest(hits, trials, 0.95).pvalue > 1e-6


def test_a_mean_over_runs_is_covered_as_often_as_said():
    generator = np.random.default_rng(1)
    runs = generator.normal(3.0, 2.0, size=(2000, 5))
    results = [mean_over_runs(run) for run in runs]
    assert _covers_95(sum(entry.low <= 3.0 <= entry.high for entry in results), 2000)
    normal = [1.96 * run.std(ddof=1) / 5**0.5 for run in runs]  # too narrow for five runs
    assert not _covers_95(
        sum(abs(entry.mean() - 3.0) <= reach for entry, reach in zip(runs, normal, strict=True)), 2000
    )


def test_a_share_never_leaves_its_range():
    assert share(0, 10).low == 0.0
    assert share(10, 10).high == 1.0
    assert share(3, 10).of == "rows"


def misses(trials, sample):
    """How often (interval, truth) pairs miss, for each of the intervals."""
    return np.sum([[not low <= truth <= high for low, high, truth in sample()] for _ in range(trials)], axis=0)


def too_often(missed, trials, rate=0.05):
    """Whether more are missed than an interval of 95% may, with a false alarm in at most 1e-6 of the cases."""
    return stats.binomtest(int(missed), trials, rate, alternative="greater").pvalue < 1e-6


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_of_people_who_are_all_alike_the_next_may_differ(value):
    result = mean_of_people([value] * 10, list("aabbccddee"))
    assert (result.low, result.high) == pytest.approx((share(round(5 * value), 5).low, share(round(5 * value), 5).high))


def test_one_row_each_is_clopper_pearson_and_rows_that_are_all_alike_count_once():
    for hits in (0, 1, 15, 29, 30):
        values = np.arange(30) < hits
        one, exact = mean_of_people(values, np.arange(30)), share(hits, 30)
        assert (one.value, one.low, one.high) == pytest.approx((exact.value, exact.low, exact.high))
        many = mean_of_people(np.repeat(values, 7), np.repeat(np.arange(30), 7))
        assert (many.low, many.high) == pytest.approx((exact.low, exact.high))
    rows = np.arange(300) % 2 == 0  # all users are alike: rows are counted
    result = mean_of_people(rows, np.repeat(np.arange(30), 10))
    assert 0.1 < result.high - result.low < 1.2 * (share(150, 300).high - share(150, 300).low)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("people", "rows", "skill"),
    [
        (30, 1, lambda generator, people: np.full(people, 0.97)),
        (
            30,
            50,
            lambda generator, people: np.where(generator.random(people) < 0.05, 0.0, 0.99),
        ),  # few, and seldom seen
        (8, 50, lambda generator, people: generator.beta(1.9, 0.1, people)),
        (60, 20, lambda generator, people: generator.beta(2, 2, people)),
        (30, None, lambda generator, people: np.where(generator.random(people) < 0.05, 0.0, 0.99)),  # unequal
    ],
    ids=["alone", "a rare failure", "eight people", "in the middle", "unequal"],
)
def test_means_over_people_are_covered_near_the_ends(people, rows, skill):
    generator, trials = np.random.default_rng(11), 600
    # sizes are independent of the skill, so the mean over rows is the mean skill
    truth = float(skill(np.random.default_rng(12), 2_000_000).mean())

    def sample():
        sizes = generator.geometric(0.2, people) if rows is None else np.full(people, rows)
        owners = np.repeat(np.arange(people), sizes)
        hits = generator.random(owners.size) < skill(generator, people)[owners]
        result = mean_of_people(hits, owners)
        of_people, draws = np.bincount(owners, hits, minlength=people), generator.integers(people, size=(200, people))
        low, high = np.percentile(of_people[draws].sum(axis=1) / sizes[draws].sum(axis=1), [2.5, 97.5])
        return (result.low, result.high, truth), (low, high, truth)

    missed_by_dptext, bootstrap = misses(trials, sample)
    assert not too_often(missed_by_dptext, trials)
    assert too_often(bootstrap, trials) or people == 60  # it is good in the middle, with many people


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "m"), [(30, 30), (30, 1000)])
@pytest.mark.parametrize("distance", [0.0, 2.5, 4.1, None])
def test_areas_are_covered_near_one(n, m, distance):
    """Two normals so far apart (area .9 to .998); None: two in a hundred of each kind lie on the wrong side."""
    generator, trials = np.random.default_rng(13), 400
    # where both are on the wrong side it is a matter of chance
    truth = 0.98**2 + 0.98 * 0.02 if distance is None else float(stats.norm.cdf(distance / 2**0.5))

    def scores(size, centre):
        if distance is None:
            return np.where(generator.random(size) < 0.02, -centre, centre) + generator.normal(size=size) / 9
        return generator.normal(size=size) + centre

    inside = np.arange(n + m) < n

    def sample():
        far = 1.0 if distance is None else distance / 2
        values = np.concatenate([scores(n, far), scores(m, -far)])
        result = area(values, inside)
        below = (values[:n, None] > values[n:]).astype(float)
        spread = below.mean(axis=1).var(ddof=1) / n + below.mean(axis=0).var(ddof=1) / m
        reach = 1.96 * spread**0.5
        return (result.low, result.high, truth), (result.value - reach, min(1.0, result.value + reach), truth)

    missed_by_dptext, plain = misses(trials, sample)
    assert not too_often(missed_by_dptext, trials)
    if distance not in (0.0, 1.8):
        assert too_often(plain, trials)  # for comparison: DeLong's interval


def test_an_area_is_that_of_scikit_learn_within_parts_and_over_people():
    generator = np.random.default_rng(14)
    parts, inside = np.arange(400) % 4, generator.random(400) < 0.3
    scores = np.round(generator.normal(size=400) + inside, 1)
    assert area(scores, inside).value == pytest.approx(roc_auc_score(inside, scores))
    # a part in which all scores are higher changes nothing where scores are compared within parts
    result = area(scores + 100 * parts, inside, parts=parts)
    each_part = [(roc_auc_score(inside[parts == p], scores[parts == p]), inside[parts == p]) for p in range(4)]
    weights = [entry.sum() * (~entry).sum() for _, entry in each_part]
    assert result.value == pytest.approx(np.average([value for value, _ in each_part], weights=weights))
    assert area(scores + 100 * parts, inside).value < result.value - 0.05
    # rows of one person are alike: as sure as one of each
    many = area(np.repeat(scores, 5), np.repeat(inside, 5), np.repeat(np.arange(400), 5))
    once = area(scores, inside, np.arange(400))
    assert (many.value, many.low, many.high) == pytest.approx((once.value, once.low, once.high), abs=2e-3)
    assert many.count == 400


def test_macro_f1_is_that_of_scikit_learn_and_few_people_of_a_class_are_few():
    generator = np.random.default_rng(15)
    true, named = generator.integers(0, 3, size=(2, 200))
    assert macro_f1(true, named, np.arange(200)).value == pytest.approx(f1_score(true, named, average="macro"))
    even, uneven = (macro_f1(entry, entry, np.arange(30)) for entry in (np.arange(30) % 2, np.arange(30) < 3))
    assert even.low == pytest.approx(share(30, 30).low)
    assert uneven.low < 0.75  # three people are right: half a macro-F1 knows little


@pytest.mark.statistical
def test_macro_f1_is_covered_near_one():
    generator, trials = np.random.default_rng(16), 400

    def answers(people):
        true = generator.random(people) < 0.2
        return true, true ^ (generator.random(people) < 0.03)

    true, named = answers(2_000_000)
    truth = f1_score(true, named, average="macro")

    def sample():
        true, named = answers(40)
        if true.all() or not true.any():
            return (0.0, 1.0, truth), (0.0, 1.0, truth)
        result = macro_f1(true, named, np.arange(40))
        cells, draws = 2 * true + named, generator.integers(40, size=(200, 40))
        n00, n01, n10, n11 = ((cells[draws] == index).sum(axis=1) for index in range(4))
        with np.errstate(invalid="ignore"):
            f1 = n00 / (2 * n00 + n01 + n10) + n11 / (2 * n11 + n01 + n10)
        return (result.low, result.high, truth), (*np.nanpercentile(f1, [2.5, 97.5]), truth)

    missed_by_dptext, bootstrap = misses(trials, sample)
    assert not too_often(missed_by_dptext, trials)
    assert too_often(bootstrap, trials)


def test_differences_are_not_found_where_there_are_none_and_by_others_they_are():
    """Exactly, over all pairs of counts: how often two groups that are served alike are found to differ."""

    def alarms(n, m, p, error, method):
        x, y = np.arange(n + 1.0)[:, None], np.arange(m + 1.0)
        (low, high), (other_low, other_high) = (method(*entry, error) for entry in ((x, n), (y, m)))
        gap = x / n - y / m
        distance = gap > np.sqrt((x / n - low) ** 2 + (other_high - y / m) ** 2)
        distance |= -gap > np.sqrt((high - x / n) ** 2 + (y / m - other_low) ** 2)
        return float((stats.binom.pmf(x, n, p) * stats.binom.pmf(y, m, p))[distance].sum())

    def exact(x, n, error):
        low = np.where(x > 0, stats.beta.ppf(error / 2, np.maximum(x, 1), n - x + 1), 0.0)
        return low, np.where(x < n, stats.beta.isf(error / 2, x + 1, np.maximum(n - x, 1)), 1.0)

    def wilson(x, n, error):
        z = stats.norm.isf(error / 2)
        middle, reach = x / n + z**2 / 2 / n, z * np.sqrt(x / n * (1 - x / n) / n + z**2 / 4 / n**2)
        return (middle - reach) / (1 + z**2 / n), (middle + reach) / (1 + z**2 / n)

    worst = {exact: 0.0, wilson: 0.0}
    for error in (0.05, 0.05 / 45):
        for n, m in ((30, 30), (30, 1000), (100, 100)):
            for p in (0.5, 0.8, 0.95, 0.99, 0.998):
                for method, so_far in worst.items():
                    worst[method] = max(so_far, alarms(n, m, p, error, method) / error)
    assert worst[exact] < 0.85
    assert worst[wilson] > 5  # Newcombe's interval, where tails are far out and groups unequal
    # the library computes the same
    for n, m, x, y in ((30, 30, 26, 30), (30, 1000, 29, 990), (40, 30, 40, 30)):
        result = difference(share(x, n), share(y, m))
        (low, _), (_, high) = exact(float(x), n, 0.05), exact(float(y), m, 0.05)
        assert result.low == pytest.approx(x / n - y / m - np.hypot(x / n - low, high - y / m))


def test_answers_to_the_same_rows_are_compared_row_by_row():
    """Two answer 30 rows, and each is right alone on three of them in the mean: all such counts, exactly."""
    alarms = {"exact": 0.0, "bootstrap": 0.0}
    for alone in range(11):
        for other in range(11):
            one, two = np.arange(30) < alone, (np.arange(30) >= 15) & (np.arange(30) < 15 + other)
            weight = stats.binom.pmf(alone, 30, 0.1) * stats.binom.pmf(other, 30, 0.1)
            gap = (alone - other) / 30
            missed_by_dptext = paired_difference(one, two, np.arange(30))
            assert missed_by_dptext.value == pytest.approx(gap)
            alarms["exact"] += weight * (missed_by_dptext.low > 0)
            reach = 1.96 * ((alone + other) / 30 - gap**2) ** 0.5 / 30**0.5
            alarms["bootstrap"] += weight * (gap > reach)  # its limit for many resamples
    assert alarms["exact"] < 0.025 < alarms["bootstrap"]
    unanimous = paired_difference([True] * 30, [True] * 30, np.arange(30))
    assert unanimous.low < 0 < unanimous.high


def test_what_has_no_interval_is_refused():
    for call, says in [
        (lambda: share(1, 0), "trials"),
        (lambda: share(3, 2), "successes"),
        (lambda: share(1, 2, confidence=95), "confidence must be a number above 0 and below 1"),
        (lambda: mean_over_runs([1.0]), "two runs, got 1"),
        (lambda: mean_over_runs([1.0, float("nan")]), "finite"),
        (lambda: mean_of_people([1.0, 0.0], ["a", "a"]), "two people, got 1"),
        (lambda: mean_of_people([1.0, 2.0], [0, 1]), "from 0 to 1"),
        (lambda: mean_of_people([], []), "from 0 to 1"),
        (lambda: macro_f1([0, 1], [0], [0, 1]), "named must have one class for each of 2 rows"),
        (lambda: area([1.0, 2.0], [True, True]), "positive must be true for some rows"),
        (lambda: area([1.0, 2.0], [True, False], parts=[0, 1]), "in at least one part"),
    ]:
        with pytest.raises(ParameterError, match=says):
            call()
