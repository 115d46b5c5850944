"""The default dimension keeps the directions of a task; equation (recovered) is the share of a regression."""

import numpy as np
import pytest

import dptext
from dptext.representations.bounds import fit_bound
from dptext.representations.encoders import MeanOfWords
from dptext.representations.published import DPNR
from dptext.representations.registry import USUAL, best_dimension, kept_of

VARIANCES = 1 / np.arange(1, 41)
PUBLIC = np.random.default_rng(0).normal(size=(8000, 40)) * np.sqrt(VARIANCES)


def regained(noise, dimension, projection="pca"):
    """The share of vectors that the best linear guess from private vectors gives back, found by regression."""
    bound = fit_bound(PUBLIC, dimension=dimension, projection=projection)
    arrived = noise.randomize(bound.apply(PUBLIC), seed=3).astype(float)
    centred = PUBLIC - PUBLIC.mean(axis=0)
    guess = arrived @ np.linalg.lstsq(arrived, centred, rcond=None)[0]
    return float((guess * centred).sum() / (centred**2).sum())


@pytest.mark.parametrize(("epsilon", "dimension", "within"), [(4.0, 4, 0.2), (4.0, 40, 0.1), (16.0, 12, 0.1)])
def test_recovered_share_is_that_of_a_regression(epsilon, dimension, within):
    # seeded: nothing is left to chance; vectors of few dimensions are not brought to length 1 by a linear map
    noise = dptext.PrivUnit(epsilon=epsilon)
    text, result = kept_of(PUBLIC, noise, dimension), regained(noise, dimension)
    assert text.recovered == pytest.approx(result, rel=within)
    assert text.kept == pytest.approx(VARIANCES[:dimension].sum() / VARIANCES.sum(), rel=0.05)
    variances, whole = VARIANCES[:dimension], VARIANCES.sum()
    broken = sum(v**2 / (v + text.error / dimension) for v in variances) / whole  # in the wrong unit
    assert broken != pytest.approx(result, rel=within)


@pytest.mark.parametrize("epsilon", [2.0, 4.0, 8.0])
def test_chosen_dimension_keeps_a_task_outside_the_first_directions(epsilon):
    # seeded: the classes differ along a direction whose variance is about the fourth largest
    noise, labels = dptext.PrivUnit(epsilon=epsilon), np.arange(len(PUBLIC)) % 2
    texts = PUBLIC + np.eye(40)[5] * np.where(labels, 0.3, -0.3)[:, None]

    def accuracy(dimension):
        vectors = fit_bound(texts, dimension=dimension).apply(texts)
        server = dptext.NoisyClassifier(channel=noise).fit(noise.randomize(vectors[:4000], seed=1), labels[:4000])
        return np.mean(server.device_model().predict(vectors[4000:]) == labels[4000:])

    chosen = best_dimension(texts, noise)
    tried = {dimension: accuracy(dimension) for dimension in (2, 4, 8, 16, 32)}
    assert accuracy(chosen.dimension) > max(tried.values()) - 0.02
    assert tried[2] < accuracy(chosen.dimension) - 0.1


@pytest.mark.parametrize(("projection", "expected"), [("pca", [9, 12, 16, 24]), ("random", [27, 36, 40, 40])])
def test_dimension_grows_with_epsilon(projection, expected):
    noises = [dptext.PrivUnit(epsilon=epsilon) for epsilon in (1.0, 4.0, 8.0, 16.0)]
    assert [best_dimension(PUBLIC, noise, projection=projection).dimension for noise in noises] == expected
    random = kept_of(PUBLIC, noises[2], 20, projection="random")
    assert (random.kept, random.recovered) == (0.5, 0.5 / (1 + random.error))


@pytest.mark.parametrize("randomizer", [dptext.L2Laplace, dptext.Piecewise, dptext.OneBit])
def test_dimension_grows_for_ball_and_cube(randomizer):
    bound = {"L2Laplace": "clip"}.get(randomizer.name, "cube")
    few, many = (best_dimension(PUBLIC, randomizer(epsilon=epsilon), bound=bound) for epsilon in (2.0, 40.0))
    assert (few.dimension, many.dimension) == (10, 40)
    assert 0 < few.recovered < many.recovered <= 1


def test_supervised_dimension_is_the_number_of_discriminants():
    labels = np.arange(len(PUBLIC)) % 5
    separated = PUBLIC + 3 * np.eye(40)[labels + 10]
    noise = dptext.PrivUnit(epsilon=8.0)
    result = best_dimension(separated, noise, projection="supervised", labels=labels)
    assert result.dimension == 4
    assert result.kept == pytest.approx(1.0)
    two = best_dimension(separated, noise, projection="supervised", labels=labels % 2)
    assert two.dimension == 2


WORDS = dptext.WordVectors([f"w{n}" for n in range(99)] + ["<unk>"], PUBLIC[:100])


def test_one_hot_and_published_noise_have_the_usual_dimension():
    assert best_dimension(PUBLIC, dptext.SymmetricUnary(epsilon=4.0), bound="one-hot") is None
    published = DPNR(epsilon=0.5, unsafe_as_published=True)
    assert best_dimension(PUBLIC, published) is None
    encoder = dptext.PrivateEncoder(WORDS, published).fit(["w1 w2", "w3", "w4 w9"])
    assert encoder.kept_ is None
    assert encoder.release_.bound.dimension == min(USUAL, 40)


def test_encoder_without_a_dimension_states_the_chosen_one():
    encoder = dptext.PrivateEncoder(WORDS, dptext.PrivUnit(epsilon=6.0)).fit()
    assert encoder.get_params()["dimension"] is None
    chosen = best_dimension(MeanOfWords(WORDS, weighting=1e-3).public_sample(), dptext.PrivUnit(epsilon=6.0))
    assert encoder.kept_ == chosen
    assert encoder.release_.statement.parameters["dimension"] == chosen.dimension
    fitted = encoder.set_params(dimension=5).fit()
    assert (fitted.kept_.dimension, fitted.release_.bound.dimension) == (5, 5)
