"""Attribute inference: it finds a signal, finds nothing in noise, and does not memorise people.

Lines that noise must stay below are exact binomial quantiles at 1e-6 (an attacker who sees noise is right about each
of n rows with the frequency of its class, whatever he names).
"""

import numpy as np
import pytest
from scipy import stats

from dptext.attacks import attribute_inference
from laws import most_by_luck

ATTACKERS = ["linear", "mlp", "boosting"]


@pytest.fixture(scope="module")
def informative():
    """Vectors of 240 people in which a third of the numbers hang on the attribute."""
    generator = np.random.default_rng(5)
    labels = np.repeat(["old", "young"], 120)
    features = generator.normal(size=(240, 9))
    features[:, :3] += 1.2 * (labels == "old")[:, None]
    return features, labels


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_what_unprotected_vectors_tell_is_found(informative, attacker):
    accuracy, f1, area = attribute_inference(*informative, attackers=attacker, seed=1)
    assert accuracy.score.value > most_by_luck(240, 0.5)
    assert accuracy.succeeded
    assert f1.succeeded
    assert area.succeeded
    assert (accuracy.measure, f1.measure, area.measure) == ("accuracy", "macro-F1", "AUC")
    assert (accuracy.baseline, f1.baseline, area.baseline) == (0.5, 0.5, 0.5)
    assert f"empirical privacy, 1 - accuracy: {1 - accuracy.score.value:.3f}" in accuracy.detail
    assert accuracy.score.of == "people"


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_noise_tells_nothing(informative, attacker):
    noise = np.random.default_rng(6).normal(size=(240, 9))
    accuracy, f1, area = attribute_inference(noise, informative[1], attackers=attacker, seed=1)
    assert accuracy.score.value <= most_by_luck(240, 0.5)
    assert not accuracy.succeeded  # by the choice of the seeds: 2.5% of them give a false alarm
    assert not f1.succeeded
    assert not area.succeeded


def test_people_are_not_learnt_by_heart():
    """Each person has a place of his own and an attribute independent of it."""
    generator = np.random.default_rng(9)
    people = np.repeat(np.arange(60), 5)
    features = 40 * generator.normal(size=(60, 6))[people] + generator.normal(size=(300, 6))
    labels = (np.arange(60) % 2)[people]
    mixed = attribute_inference(features, labels, attackers="boosting", seed=2)[0]
    grouped = attribute_inference(features, labels, people=people, attackers="boosting", seed=2)[0]
    assert mixed.score.value > 0.9  # the same people in both parts
    assert grouped.score.value <= most_by_luck(60, 0.5)
    assert grouped.score.count == 60
    assert grouped.score.high - grouped.score.low > 2 * (mixed.score.high - mixed.score.low)


def test_a_blind_guess_is_at_least_the_most_frequent_answer():
    """Few people with many rows: the majority of the others is often not that of those who are judged."""
    for seed in range(8):
        generator = np.random.default_rng(seed)
        people = np.repeat(np.arange(12), generator.integers(1, 60, 12))
        noise, labels = generator.normal(size=(people.size, 2)), people % 2
        accuracy = attribute_inference(noise, labels, people=people, attackers="linear", folds=3, seed=seed)
        assert accuracy[0].baseline >= max(labels.mean(), 1 - labels.mean())


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_texts_without_words_and_huge_numbers_are_attacked(attacker, informative):
    """One text with a word: in one of the folds an attacker learns from empty texts alone."""
    result = attribute_inference(["word", *[None] * 19], list("ab") * 10, attackers=attacker, folds=2, seed=1)
    assert not result[0].succeeded
    features, labels = informative
    assert attribute_inference(1e200 * features, labels, attackers=attacker, folds=2, seed=1)[0].succeeded


def minority(generator, people=1000):
    """Vectors of people a tenth of whom are of another kind, which shows: no attacker exceeds an area of .81."""
    labels = (np.arange(people) % 10 == 0).astype(int)
    features = generator.normal(size=(people, 6))
    features[:, :3] += 0.71 * labels[:, None]
    return features, labels


@pytest.mark.statistical
@pytest.mark.parametrize("attacker", ATTACKERS)
def test_a_minority_that_is_told_apart_is_a_success(attacker):
    """An attacker who names the majority is right in 90%, and none is right more often."""
    features, labels = minority(np.random.default_rng(31))
    accuracy, f1, area = attribute_inference(features, labels, attackers=attacker, folds=2, seed=1)
    assert accuracy.baseline == 0.9
    assert not accuracy.succeeded
    assert area.succeeded
    assert area.score.value > 0.65
    if attacker != "boosting":
        assert area.score.value > 0.74
        assert f1.succeeded  # classes weigh the same
    noise = np.random.default_rng(32).normal(size=features.shape)
    assert not any(entry.succeeded for entry in attribute_inference(noise, labels, attackers=attacker, folds=2, seed=1))


def test_one_class_of_many_that_is_told_apart_is_a_success():
    generator = np.random.default_rng(33)
    labels = np.arange(600) % 12
    features = generator.normal(size=(600, 5))
    features[labels == 3, 0] += 3
    result = attribute_inference(features, labels, attackers="linear", seed=1)
    assert [entry.measure for entry in result[2:]] == ["AUC, mean of the classes", "AUC, most distinguishable class"]
    assert result[3].succeeded
    assert result[3].score.value > 0.95
    assert result[2].score.value < 0.65
    noise = attribute_inference(generator.normal(size=(600, 5)), labels, attackers="linear", seed=1)
    assert not any(entry.succeeded for entry in noise)


@pytest.mark.statistical
def test_noise_is_a_false_alarm_as_seldom_as_said():
    """2.5% of 150 for each number, for any number of folds, and areas spread as their intervals say (1e-6 each).

    The twin takes folds for independent: everybody teaches and is judged, so its variance is half of what it is.
    """
    alarms, spread, labels = np.zeros(3), 0.0, np.arange(120) % 2
    for seed in range(150):
        noise = np.random.default_rng(seed).normal(size=(120, 3))
        result = attribute_inference(noise, labels, attackers="linear", folds=2 + 3 * (seed % 2), seed=seed)
        alarms += [entry.succeeded for entry in result]
        score = result[2].score
        spread += (score.value - 0.5) ** 2 / ((score.high - score.low) / 2 / stats.norm.isf(0.025)) ** 2
    for alarm in alarms:
        assert stats.binomtest(int(alarm), 150, 0.025, alternative="greater").pvalue > 1e-6
    assert stats.chi2.sf(spread, 150) > 1e-6
    assert stats.chi2.sf(2 * spread, 150) < 1e-6


SPOILT = {
    "a few huge rows": lambda rows, _: np.where(np.isin(np.arange(len(rows)), [0, 1, 200])[:, None], 1e6, 1.0) * rows,
    "every row on its own scale": lambda rows, generator: rows * np.exp(5 * generator.normal(size=len(rows)))[:, None],
    "tiny": lambda rows, _: rows * 1e-200,
    "far from the origin": lambda rows, _: rows + 1e9,
    "constant columns, and one that is nearly constant": lambda rows, _: np.hstack(
        [rows, np.full((len(rows), 3), 7.0), 1e8 * (np.arange(len(rows)) == 5)[:, None]]
    ),
    "single precision": lambda rows, _: rows.astype(np.float32),
}
"""Rows that say as much as before, in a form that would stop a model from learning."""


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("attacker", "spoiling"),
    [*(("linear", settings) for settings in SPOILT), *(("boosting", settings) for settings in list(SPOILT)[:2])],
)
def test_scales_do_not_blind_an_attacker(attacker, spoiling):
    generator = np.random.default_rng(34)
    labels = np.arange(400) % 2
    features = generator.normal(size=(400, 9)) + labels[:, None]
    plain = attribute_inference(features, labels, attackers=attacker, folds=2, seed=1)[0].score.value
    assert plain > 0.84
    seen = SPOILT[spoiling](features, generator)
    assert attribute_inference(seen, labels, attackers=attacker, folds=2, seed=1)[0].score.value > plain - 0.08
    noise = SPOILT[spoiling](generator.normal(size=(400, 9)), generator)
    result = attribute_inference(noise, labels, attackers=attacker, folds=2, seed=1)[0]
    assert result.score.value <= most_by_luck(400, 0.5)


@pytest.mark.slow
def test_texts_and_bags_of_words_will_do():
    generator = np.random.default_rng(10)
    labels = [n % 2 for n in range(80)]
    bags = [[f"w{generator.integers(30)}" for _ in range(6)] + ["tax" if label else "cat"] for label in labels]
    texts = [" ".join(bag).upper() if n % 7 else None for n, bag in enumerate(bags)]
    for features in (bags, texts):
        result = attribute_inference(features, labels, attackers=["linear", "boosting"], folds=4, seed=3)
        assert [entry.attack for entry in result[::3]] == [
            "attribute inference (linear)",
            "attribute inference (gradient boosting)",
        ]
        assert all(entry.succeeded for entry in result[:2])
