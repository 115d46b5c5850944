"""Folds and measures: people are in one fold, measures agree with scikit-learn, and intervals cover.

Intervals of 95 per cent are required to cover at least 92, and a correct one fails with probability below 1e-6.
Intervals over rows, for people with many rows, are far below.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from dptext.errors import ParameterError
from dptext.evaluation.measures import make_folds, measure

# -- folds ---------------------------------------------------------------------------------------------------------


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


def test_folds_are_balanced_in_classes_and_people_and_repeat_under_a_seed():
    labels = np.repeat([0, 1, 2], [53, 20, 7])
    for fold in make_folds(labels, count=5, seed=1):
        assert np.abs(np.bincount(labels[fold.test]) - np.array([53, 20, 7]) / 5).max() < 1
    generator = np.random.default_rng(2)
    people = np.repeat(np.arange(300), generator.geometric(1 / 20, size=300))
    labels = (generator.random(300) < 0.2)[people]
    folds = make_folds(labels, people=people, count=5, seed=1)
    shares, sizes = [labels[fold.test].mean() for fold in folds], [fold.test.size for fold in folds]
    assert max(shares) - min(shares) < 0.02
    assert max(sizes) - min(sizes) < 0.02 * people.size
    first, repeated, other = (make_folds([0, 1] * 50, seed=seed)[0].test.tolist() for seed in (1, 1, 2))
    assert first == repeated != other


def test_unsuitable_folds_are_refused():
    for targets, options, message in [
        ([0, 1], {}, "folds must be at most the number of rows, 2, got 5"),
        ([0, 1] * 9, {"count": 1}, "folds must be an integer of at least 2"),
        ([0] * 18, {}, "targets must have at least two classes,"),
        ([0] * 18 + [1] * 2, {}, "targets: the rarest class has 2 rows, fewer than 5 folds"),
        ([0, 1] * 9, {"people": [0, 1] * 9}, "folds must be at most the number of people, 2"),
        ([0] * 16 + [1] * 4, {"people": [*range(16), 0, 0, 0, 0]}, "the rarest class has 1 people"),
        ([0, 1] * 9, {"people": [1, 2]}, "people must have one entry for each of 18"),
        ([0, 1, None] * 9, {}, "targets must have no missing entries, row 2 is missing"),
        (["a", "b", float("nan")] * 9, {}, "targets must have no missing entries, row 2"),
        ([[0, 1]] * 9, {}, "targets must have one entry per row"),
        ([], {}, "targets must have one entry per row"),
    ]:
        with pytest.raises(ParameterError, match=message):
            make_folds(targets, **options)


# -- measures ------------------------------------------------------------------------------------------------------


def test_measures_agree_with_scikit_learn():
    generator = np.random.default_rng(1)
    true, predicted = generator.integers(0, 3, size=(2, 200))
    for name, expected, baseline in [
        ("accuracy", metrics.accuracy_score(true, predicted), np.bincount(true).max() / 200),
        ("macro-F1", metrics.f1_score(true, predicted, average="macro"), 1 / 3),
    ]:
        result = measure(name, true, predicted)
        assert (result.score.value, result.baseline) == pytest.approx((expected, baseline))
        assert result.gain.value == pytest.approx(expected - baseline)
    # labels are texts of any length, and an answer that is no label is wrong
    labels, answers = ["a", "bbb", "a", "bbb"], ["a", "a", "a", "cccc"]
    assert measure("accuracy", labels, answers).score.value == 0.5
    assert measure("macro-F1", ["a", "b"] * 20, ["a", "c"] * 20).score.value == 0.5


def test_no_guess_without_features_has_a_better_macro_f1_than_the_baseline():
    shares, rows, generator = np.array([0.7, 0.2, 0.1]), 300_000, np.random.default_rng(2)
    true = generator.choice(3, size=rows, p=shares)
    guesses = [shares, np.ones(3) / 3, [1, 0, 0], [0.8, 0.2, 0.0], [0.6, 0.25, 0.15]]
    results = [metrics.f1_score(true, generator.choice(3, size=rows, p=guess), average="macro") for guess in guesses]
    assert max(results) < 1 / 3 + 0.005
    assert results[0] == pytest.approx(1 / 3, abs=0.005)
    assert results[2] < 0.28  # the majority class, which would flatter every model


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["accuracy", "macro-F1"])
def test_intervals_over_people_cover_and_over_rows_do_not(name):
    generator, trials = np.random.default_rng(3), 80

    def sample(people):
        owners, skill = np.repeat(np.arange(people), 25), np.repeat(generator.beta(4, 2, size=people), 25)
        true = generator.integers(0, 2, size=owners.size)
        predicted = np.where(generator.random(owners.size) < skill, true, 1 - true)
        return owners, true, predicted

    owners, true, predicted = sample(10_000)
    whole = measure(name, true, predicted).score.value
    covered = {"people": 0, "rows": 0}
    for _ in range(trials):
        owners, true, predicted = sample(60)
        for kind, people in {"people": owners, "rows": np.arange(owners.size)}.items():
            score = measure(name, true, predicted, people=people).score
            covered[kind] += score.low <= whole <= score.high
    pvalues = {kind: stats.binomtest(hits, trials, 0.92, alternative="less").pvalue for kind, hits in covered.items()}
    assert pvalues["people"] > 1e-6
    assert pvalues["rows"] < 1e-6


def test_chance_is_seldom_a_gain_and_a_perfect_score_is_not_certain():
    generator = np.random.default_rng(4)
    alarms = {"accuracy": 0, "macro-F1": 0}
    for _ in range(100):
        true, predicted = (generator.random((2, 120)) < 0.6).astype(int)
        for name in alarms:
            alarms[name] += measure(name, true, predicted).gain.low > 0
    assert all(stats.binomtest(n, 100, 0.04, alternative="greater").pvalue > 1e-6 for n in alarms.values())
    for name in ("accuracy", "macro-F1"):
        alone = measure(name, [0, 1] * 10, [0, 1] * 10).score
        assert (alone.value, alone.high) == (1.0, 1.0)
        assert alone.low == pytest.approx(stats.binomtest(20, 20).proportion_ci().low)
        shared = measure(name, [0, 1] * 10, [0, 1] * 10, people=np.arange(20) // 4).score
        assert shared.low == pytest.approx(stats.binomtest(5, 5).proportion_ci().low)


def test_unsuitable_values_are_refused():
    for name, true, predicted, options, message in [
        ("F2", [0, 1], [0, 1], {}, "measure must be one of 'accuracy', 'macro-F1'"),
        ("accuracy", [0, 1], [0], {}, "predicted must have one entry for each of 2 rows"),
        ("accuracy", [], [], {}, "predicted must have one entry per row"),
        ("accuracy", [0, None], [0, 1], {}, "missing entries"),
        ("accuracy", [0, 1], [0, 1], {"people": [1]}, "people must have one entry for each of 2 rows"),
        ("macro-F1", [0, 1], [0, 1], {"people": [1, 1]}, "at least two people, got 1"),
    ]:
        with pytest.raises(ParameterError, match=message):
            measure(name, true, predicted, **options)
