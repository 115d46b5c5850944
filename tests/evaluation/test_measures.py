"""Measures agree with scikit-learn, blind guesses do not pass for models, and intervals cover.

The bootstrap is an approximation: intervals of 95 per cent are asked to cover at least 92, and a correct one fails
that with probability below 1e-6. Intervals over rows, for people with many rows, are far below.
"""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from dptext.errors import ParameterError
from dptext.evaluation.measures import measure


def enough(hits, trials, share=0.92):
    return stats.binomtest(hits, trials, share, alternative="less").pvalue > 1e-6


def test_measures_are_those_of_scikit_learn():
    generator = np.random.default_rng(1)
    true, predicted = generator.integers(0, 3, size=(2, 200))
    x, y = generator.normal(size=(2, 200))
    few = {"resamples": 20, "seed": 1}
    result = {name: measure(name, true, predicted, **few) for name in ("accuracy", "macro-F1")}
    result |= {name: measure(name, x, y, **few) for name in ("RMSE", "MAE")}
    expected = {
        "accuracy": metrics.accuracy_score(true, predicted),
        "macro-F1": metrics.f1_score(true, predicted, average="macro"),
        "RMSE": metrics.root_mean_squared_error(x, y),
        "MAE": metrics.mean_absolute_error(x, y),
    }
    baselines = {
        "accuracy": np.bincount(true).max() / 200,
        "macro-F1": 1 / 3,
        "RMSE": x.std(),
        "MAE": np.abs(x - np.median(x)).mean(),
    }
    for name, entry in result.items():
        assert entry.score.value == pytest.approx(expected[name])
        assert entry.baseline == pytest.approx(baselines[name])
        sign = -1 if name in ("RMSE", "MAE") else 1
        assert entry.gain.value == pytest.approx(sign * (expected[name] - baselines[name]))


def test_no_blind_guess_has_a_better_macro_f1_than_the_baseline():
    shares = np.array([0.7, 0.2, 0.1])
    rows = 300_000
    generator = np.random.default_rng(2)
    true = generator.choice(3, size=rows, p=shares)
    guesses = [shares, np.ones(3) / 3, [1, 0, 0], [0.8, 0.2, 0.0], [0.6, 0.25, 0.15]]
    results = [metrics.f1_score(true, generator.choice(3, size=rows, p=guess), average="macro") for guess in guesses]
    assert max(results) < 1 / 3 + 0.005
    assert results[0] == pytest.approx(1 / 3, abs=0.005)
    assert results[2] < 0.28  # the majority class, which would flatter every model


def test_labels_may_be_texts_of_any_length_and_answers_outside_are_wrong():
    result = measure("accuracy", ["a", "bbb", "a", "bbb"], ["a", "a", "a", "cccc"], resamples=20, seed=1)
    assert result.score.value == 0.5
    assert measure("macro-F1", ["a", "b"] * 20, ["a", "c"] * 20, resamples=20, seed=1).score.value == 0.5


def _people(generator, people=60, rows=25):
    """Whose row each is, and an accuracy of each person's own."""
    skill = generator.beta(4, 2, size=people)
    return np.repeat(np.arange(people), rows), np.repeat(skill, rows)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["accuracy", "macro-F1", "RMSE"])
def test_intervals_over_people_cover_and_over_rows_do_not(name):
    generator = np.random.default_rng(3)
    trials = 80

    def sample(people):
        owners, skill = _people(generator, people)
        true = generator.integers(0, 2, size=owners.size)
        predicted = np.where(generator.random(owners.size) < skill, true, 1 - true)
        if name == "RMSE":
            return owners, true.astype(float), true + generator.normal(size=owners.size) * (2 - skill * 1.9)
        return owners, true, predicted

    owners, true, predicted = sample(10_000)
    whole = measure(name, true, predicted, resamples=2, seed=1).score.value
    over = {"people": 0, "rows": 0}
    for _ in range(trials):
        owners, true, predicted = sample(60)
        kinds = {"people": owners} if name == "RMSE" else {"people": owners, "rows": np.arange(owners.size)}
        for kind, people in kinds.items():
            score = measure(name, true, predicted, people=people, resamples=100, seed=1).score
            over[kind] += score.low <= whole <= score.high
    assert enough(over["people"], trials)
    if name != "RMSE":  # errors of one person are less alike
        assert not enough(over["rows"], trials)


def test_where_nothing_was_learnt_no_gain_is_shown_too_often():
    generator = np.random.default_rng(4)
    alarms = {"accuracy": 0, "macro-F1": 0, "RMSE": 0}
    for _ in range(100):
        true, predicted = (generator.random((2, 120)) < 0.6).astype(int)
        for name in alarms:
            alarms[name] += measure(name, true, predicted, resamples=100, seed=1).gain.low > 0
    for count in alarms.values():
        assert stats.binomtest(count, 100, 0.04, alternative="greater").pvalue > 1e-6


def test_all_right_is_no_certainty():
    for name in ("accuracy", "macro-F1"):
        alone = measure(name, [0, 1] * 10, [0, 1] * 10, resamples=50, seed=1).score
        assert (alone.value, alone.high) == (1.0, 1.0)
        assert alone.low == pytest.approx(stats.binomtest(20, 20).proportion_ci().low)
        shared = measure(name, [0, 1] * 10, [0, 1] * 10, people=np.arange(20) // 4, resamples=50, seed=1).score
        assert shared.low == pytest.approx(stats.binomtest(5, 5).proportion_ci().low)


def test_what_cannot_be_measured_is_named():
    for name, true, predicted, options, says in [
        ("F2", [0, 1], [0, 1], {}, "measure must be one of 'accuracy', 'macro-F1', 'RMSE', 'MAE'"),
        ("accuracy", [0, 1], [0], {}, "predicted must have one entry for each of 2 rows"),
        ("accuracy", [], [], {}, "predicted must be one entry per row"),
        ("accuracy", [0, None], [0, 1], {}, "missing entries"),
        ("RMSE", [0.0, 1.0], [0.0, float("nan")], {}, "predicted must be finite numbers, row 1"),
        ("MAE", [float("inf"), 1.0], [0.0, 1.0], {}, "true must be finite numbers, row 0"),
        ("MAE", ["a", "b"], [0.0, 1.0], {}, "true must be one number per row"),
        ("MAE", [[1.0]], [0.0], {}, "true must be one number per row"),
        ("accuracy", [0, 1], [0, 1], {"people": [1]}, "people must have one entry for each of 2 rows"),
        ("macro-F1", [0, 1], [0, 1], {"people": [1, 1]}, "at least two people, got 1"),
    ]:
        with pytest.raises(ParameterError, match=says):
            measure(name, true, predicted, **options)
