"""The epsilon that reaches a target, and plain words where there is none."""

import math

import numpy as np
import pytest

import dptext
from dptext import TEM, Madlib, calibrate, deniability
from dptext.calibration.reidentification import UnreachableError, crossing
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits


@pytest.fixture(scope="module")
def pair():
    """Two words and the unknown one between them: a keep rate that can be solved by hand."""
    return dptext.load_vectors((["cat", "dog"], [[0.0], [2.0]]))


def test_the_epsilon_is_the_one_found_by_hand(pair):
    """cat: 1 / (1 + e^-t + e^-2t), t = epsilon / 2; with all weight on cat, e^-t + e^-2t = 1 at t = ln golden ratio."""
    calibration = calibrate(pair, keep_rate=0.5, weights=[1.0, 0.0, 0.0], beta=1e-6)
    assert calibration.epsilon == pytest.approx(2 * math.log((1 + math.sqrt(5)) / 2), rel=1e-3)
    assert calibration.reached == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("keep_rate", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("metric", ["euclidean", "angular"])
def test_a_keep_rate_is_reached(small, keep_rate, metric):
    calibration = calibrate(small, keep_rate=keep_rate, metric=metric)
    assert calibration.reached == pytest.approx(keep_rate, abs=1e-3)
    assert deniability(TEM(small, epsilon=calibration.epsilon, metric=metric)).mean("keep") == calibration.reached
    assert calibration.epsilon == float(f"{calibration.epsilon:.4g}")


@pytest.mark.parametrize("support", [5, 50, 200])
def test_a_support_is_reached_and_not_by_much(small, support):
    calibration = calibrate(small, support=support)
    assert support <= calibration.reached <= support * 1.05 + 1
    more = deniability(TEM(small, epsilon=calibration.epsilon * 1.05))
    assert more.quantile("support", 0.5) < calibration.reached


def test_a_sampled_mechanism_is_calibrated_within_its_stated_error(small, sampled_only):
    exact = calibrate(small, keep_rate=0.5)
    calibration = calibrate(small, sampled_only, keep_rate=0.5, draws=200, seed=5)
    assert 0 < calibration.error < 0.05
    truth = deniability(TEM(small, epsilon=calibration.epsilon)).mean("keep")
    assert truth == pytest.approx(0.5, abs=2.5 * calibration.error + 0.005)
    assert calibration.epsilon == pytest.approx(exact.epsilon, rel=0.1)
    assert calibrate(small, sampled_only, keep_rate=0.5, draws=200, seed=5).epsilon == calibration.epsilon


def test_madlib_is_calibrated(small):
    calibration = calibrate(small, "madlib", keep_rate=0.5, rows=60, draws=60, seed=5)
    fresh = deniability(Madlib(small, epsilon=calibration.epsilon), draws=60, seed=6)
    assert fresh.mean("keep") == pytest.approx(0.5, abs=2.5 * (calibration.error + fresh.error("keep")))
    by_support = calibrate(small, "madlib", support=20, draws=100, rows=30, seed=5)
    assert 20 <= by_support.reached <= 22


def test_a_pure_epsilon_sets_the_threshold(small):
    calibration = calibrate(small, keep_rate=0.5, pure_epsilon=15.0)
    assert calibration.mechanism.word_guarantee().pure_epsilon == pytest.approx(15.0)
    assert calibration.reached == pytest.approx(0.5, abs=1e-3)


def test_the_keep_rate_of_tem_grows_with_epsilon(small, glove):
    for vectors, options in ((small, {}), (small, {"beta": 0.5}), (glove, {})):
        words = list(vectors.words[:60:10])
        keep = [deniability(TEM(vectors, epsilon=e, **options), words).keep for e in (0.5, 1, 2, 4, 8, 16, 32)]
        assert (np.diff(keep, axis=0) >= -1e-9).all()


def test_what_stays_under_madlib_stays_at_every_larger_epsilon_draw_for_draw(glove):
    rows = np.repeat(np.arange(0, 4000, 10), 10)
    stays = [Madlib(glove, epsilon=e).sample_rows(rows, RandomBits(7)) == rows for e in (6.0, 8.0, 11.0)]
    assert 0.1 < stays[0].mean() < stays[1].mean() < stays[2].mean() < 0.9
    assert not (stays[0] & ~stays[1]).any()
    assert not (stays[1] & ~stays[2]).any()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"keep_rate": 0.9999}, "out of reach of TEM here: the most is 0.9787 .*lower beta"),
        ({"keep_rate": 1e-3}, "the least is 0.003333 .*1 in 300"),
        ({"keep_rate": 0.5, "pure_epsilon": 4.0}, "the most is 0.0.* beyond the threshold"),
        ({"support": 299}, "the most is 28.* ask for fewer"),
        ({"keep_rate": 0.5, "support": 10}, "give one target"),
        ({"mechanism": "madlib", "keep_rate": 0.5, "pure_epsilon": 3.0}, "Madlib has no threshold"),
        ({"keep_rate": 0.5, "pure_epsilon": 100.0}, "use a threshold of at most"),
        ({"mechanism": "madlib", "support": 200, "draws": 100}, "cannot be seen in 100 draws .* at least 422 draws"),
    ],
)
def test_targets_out_of_reach_are_explained(small, asked, message):
    with pytest.raises(ParameterError, match=message):
        calibrate(small.__class__((*small.words[:299], "<unk>"), small.matrix[:300]), **asked)


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
    vectors = dptext.load_vectors(
        glove, limit=40 if name == "vickrey" else 120
    )  # its neighbours are found draw by draw
    calibration = dptext.calibrate(vectors, name, keep_rate=0.5)
    assert abs(calibration.reached - 0.5) <= 0.05


def test_a_keep_rate_that_jumps_is_met_just_below_the_jump(glove):
    vectors = dptext.load_vectors(glove, limit=120)
    calibration = dptext.calibrate(vectors, "subsetselection", keep_rate=0.5)
    above = dptext.SubsetSelection(vectors, epsilon=calibration.epsilon + 2e-3)
    assert (calibration.mechanism.size, above.size) == (2, 1)
    assert calibration.reached < 0.5 < above.probabilities("the").max()


def test_a_pure_epsilon_is_found_where_distances_are_small(glove):
    few = dptext.load_vectors(glove, limit=120)
    tiny = dptext.WordVectors(few.words, few.matrix * np.float32(1e-4))
    results = [dptext.calibrate(entry, "subsetselection", keep_rate=0.5, size=1).epsilon for entry in (few, tiny)]
    assert results[0] == pytest.approx(np.log(120), abs=1e-2)
    assert results[1] == pytest.approx(results[0], rel=1e-3)
    with pytest.raises(ParameterError, match="cosine"):
        dptext.calibrate(tiny, "subsetselection", keep_rate=0.5, similarity="manhattan")
