"""The default dimension keeps the directions of a task."""

import numpy as np
import pytest

import dptext
from dptext.representations.bounds import fit_bound
from dptext.representations.published import DPNR
from dptext.representations.registry import USUAL, best_dimension

VARIANCES = 1 / np.arange(1, 41)
PUBLIC = np.random.default_rng(0).normal(size=(8000, 40)) * np.sqrt(VARIANCES)


@pytest.mark.parametrize("epsilon", [2.0, 4.0, 8.0])
def test_chosen_dimension_keeps_a_task_outside_the_first_directions(epsilon):
    # seeded: the classes differ along a direction whose variance is about the fourth largest
    noise, labels = dptext.PrivUnit(epsilon=epsilon), np.arange(len(PUBLIC)) % 2
    texts = PUBLIC + np.eye(40)[5] * np.where(labels, 0.3, -0.3)[:, None]

    def accuracy(dimension):
        vectors = fit_bound(texts, dimension=dimension).apply(texts)
        server = dptext.NoisyClassifier(channel=noise).fit(noise.randomize(vectors[:4000], seed=1), labels[:4000])
        return np.mean(server.device_model().predict(vectors[4000:]) == labels[4000:])

    chosen = best_dimension(40, noise)
    tried = {dimension: accuracy(dimension) for dimension in (2, 4, 8, 16, 32)}
    assert accuracy(chosen) > max(tried.values()) - 0.02
    assert tried[2] < accuracy(chosen) - 0.1


@pytest.mark.parametrize(("projection", "expected"), [("pca", [9, 12, 16, 24]), ("random", [27, 36, 40, 40])])
def test_dimension_grows_with_epsilon(projection, expected):
    noises = [dptext.PrivUnit(epsilon=epsilon) for epsilon in (1.0, 4.0, 8.0, 16.0)]
    assert [best_dimension(40, noise, projection=projection) for noise in noises] == expected


@pytest.mark.parametrize("randomizer", [dptext.L2Laplace, dptext.Piecewise, dptext.OneBit])
def test_dimension_grows_for_ball_and_cube(randomizer):
    bound = {"L2Laplace": "clip"}.get(randomizer.name, "cube")
    assert [best_dimension(40, randomizer(epsilon=epsilon), bound=bound) for epsilon in (2.0, 40.0)] == [10, 40]


def test_supervised_dimension_is_the_number_of_discriminants():
    noise, labels = dptext.PrivUnit(epsilon=8.0), np.arange(99) % 5
    assert best_dimension(40, noise, projection="supervised", labels=labels) == 4
    assert best_dimension(40, noise, projection="supervised", labels=labels % 2) == 2


WORDS = dptext.WordVectors([f"w{n}" for n in range(99)] + ["<unk>"], PUBLIC[:100])


def test_one_hot_and_published_noise_have_the_usual_dimension():
    assert best_dimension(99, dptext.SymmetricUnary(epsilon=4.0), bound="one-hot") == USUAL
    published = DPNR(epsilon=0.5, unsafe_as_published=True)
    assert best_dimension(99, published) == USUAL
    encoder = dptext.PrivateEncoder(WORDS, published).fit(["w1 w2", "w3", "w4 w9"])
    assert encoder.release_.bound.dimension == min(USUAL, 40)


def test_encoder_without_a_dimension_states_the_chosen_one():
    encoder = dptext.PrivateEncoder(WORDS, dptext.PrivUnit(epsilon=6.0)).fit()
    assert encoder.get_params()["dimension"] is None
    chosen = best_dimension(40, dptext.PrivUnit(epsilon=6.0))
    assert encoder.release_.statement.parameters["dimension"] == chosen == 14
    assert encoder.set_params(dimension=5).fit().release_.bound.dimension == 5
