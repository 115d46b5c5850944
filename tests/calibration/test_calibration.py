"""The epsilon that reaches a target, and the message if none does."""

import math

import numpy as np
import pytest

import dptext
from dptext import TEM, Madlib, calibrate, deniability
from dptext.calibration.reidentification import UnreachableError, crossing
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits


@pytest.mark.parametrize("metric", ["euclidean", "angular"])
def test_a_keep_rate_is_reached(small, metric):
    for keep_rate in (0.05, 0.5, 0.95):
        calibration = calibrate(small, keep_rate=keep_rate, metric=metric)
        assert calibration.reached == pytest.approx(keep_rate, abs=1e-3)
        assert deniability(TEM(small, epsilon=calibration.epsilon, metric=metric)).mean("keep") == calibration.reached
        assert calibration.epsilon == float(f"{calibration.epsilon:.4g}")


def test_epsilon_agrees_with_a_calculation_by_hand():
    """cat: 1 / (1 + e^-t + e^-2t), t = epsilon / 2; with all weight on cat, e^-t + e^-2t = 1 at t = ln golden ratio."""
    pair = dptext.load_vectors((["cat", "dog"], [[0.0], [2.0]]))  # the unknown word lies between them
    calibration = calibrate(pair, keep_rate=0.5, weights=[1.0, 0.0, 0.0], beta=1e-6)
    assert calibration.epsilon == pytest.approx(2 * math.log((1 + math.sqrt(5)) / 2), rel=1e-3)
    assert calibration.reached == pytest.approx(0.5, abs=1e-3)


def test_a_sampled_mechanism_is_calibrated_within_its_stated_error(small, sampled_only):
    exact = calibrate(small, keep_rate=0.5)
    calibration = calibrate(small, sampled_only, keep_rate=0.5, draws=200, seed=5)
    assert 0 < calibration.error < 0.05
    truth = deniability(TEM(small, epsilon=calibration.epsilon)).mean("keep")
    assert truth == pytest.approx(0.5, abs=2.5 * calibration.error + 0.005)
    assert calibration.epsilon == pytest.approx(exact.epsilon, rel=0.1)
    assert calibrate(small, sampled_only, keep_rate=0.5, draws=200, seed=5).epsilon == calibration.epsilon
    # Madlib
    calibration = calibrate(small, "madlib", keep_rate=0.5, rows=60, draws=60, seed=5)
    fresh = deniability(Madlib(small, epsilon=calibration.epsilon), draws=60, seed=6)
    assert fresh.mean("keep") == pytest.approx(0.5, abs=2.5 * (calibration.error + fresh.error("keep")))


def test_a_pure_epsilon_sets_the_threshold(small):
    calibration = calibrate(small, keep_rate=0.5, pure_epsilon=15.0)
    assert calibration.mechanism.word_guarantee().pure_epsilon == pytest.approx(15.0)
    assert calibration.reached == pytest.approx(0.5, abs=1e-3)


def test_keep_rates_grow_with_epsilon(small, glove):
    for vectors, options in ((small, {}), (small, {"beta": 0.5}), (glove, {})):
        words = list(vectors.words[:60:10])
        keep = [deniability(TEM(vectors, epsilon=e, **options), words).keep for e in (0.5, 1, 2, 4, 8, 16, 32)]
        assert (np.diff(keep, axis=0) >= -1e-9).all()
    # Madlib, draw by draw: a word that stays at one epsilon stays at every larger one
    rows = np.repeat(np.arange(0, 4000, 10), 10)
    stays = [Madlib(glove, epsilon=e).sample_rows(rows, RandomBits(7)) == rows for e in (6.0, 8.0, 11.0)]
    assert 0.1 < stays[0].mean() < stays[1].mean() < stays[2].mean() < 0.9
    assert not (stays[0] & ~stays[1]).any()
    assert not (stays[1] & ~stays[2]).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep_rate": 0.9999}, "TEM cannot reach a keep rate of 0.9999 here: the largest is 0.9787"),
        ({"keep_rate": 1e-3}, "the smallest is 0.003333"),
        ({}, "keep_rate is required"),
        ({"keep_rate": 1.5}, "keep_rate must be a number above 0 and below 1"),
        ({"mechanism": "tme", "keep_rate": 0.5}, "did you mean 'tem'"),
        ({"relinking": 0.1}, "relinking= is a target for a bank."),
    ],
)
def test_unreachable_targets_are_refused(small, options, message):
    vectors = dptext.WordVectors((*small.words[:299], "<unk>"), small.matrix[:300])
    with pytest.raises(ParameterError, match=message):
        calibrate(vectors, **options)


def test_a_crossing_of_a_crooked_curve_is_one():
    def excess(epsilon):
        return math.sin(3 * math.log(epsilon)) + math.log(epsilon) - 2

    result = crossing(excess, start=1.0, tolerance=1e-6)
    assert abs(excess(result)) < 1e-3
    steps = crossing(lambda epsilon: math.floor(epsilon) - 6.5, start=0.3, tolerance=0.0)
    assert steps == pytest.approx(7.0, rel=1e-3)
    assert steps < 7
    for never in (lambda _: -1.0, lambda _: 1.0):
        with pytest.raises(UnreachableError):
            crossing(never, start=1.0, tolerance=0.0)


SAMPLED = [pytest.param(name, marks=pytest.mark.statistical) for name in ("vickrey", "mahalanobis")]


@pytest.mark.parametrize("name", ["santext", "santext+", "custext", *SAMPLED])
@pytest.mark.usefixtures("same_draws")
def test_every_mechanism_of_the_registry_can_be_calibrated(name, glove):
    vectors = dptext.load_vectors(glove, limit=40 if name == "vickrey" else 120)  # Vickrey searches draw by draw
    assert abs(calibrate(vectors, name, keep_rate=0.5).reached - 0.5) <= 0.05


def test_subset_selection_is_calibrated_below_its_jumps_and_at_any_scale(glove):
    vectors = dptext.load_vectors(glove, limit=120)
    calibration = calibrate(vectors, "subsetselection", keep_rate=0.5)
    above = dptext.SubsetSelection(vectors, epsilon=calibration.epsilon + 2e-3)
    assert (calibration.mechanism.size, above.size) == (2, 1)
    assert calibration.reached < 0.5 < above.probabilities("the").max()
    tiny = dptext.WordVectors(vectors.words, vectors.matrix * np.float32(1e-4))
    results = [calibrate(entry, "subsetselection", keep_rate=0.5, size=1).epsilon for entry in (vectors, tiny)]
    assert results[0] == pytest.approx(np.log(120), abs=1e-2)
    assert results[1] == pytest.approx(results[0], rel=1e-3)
