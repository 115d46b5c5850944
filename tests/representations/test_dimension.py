"""The default dimension keeps the directions of a task."""

import numpy as np

import dptext
from dptext.representations.bounds import fit_bound
from dptext.representations.published import DPNR
from dptext.representations.registry import USUAL, best_dimension

VARIANCES = 1 / np.arange(1, 41)
PUBLIC = np.random.default_rng(0).normal(size=(8000, 40)) * np.sqrt(VARIANCES)


def test_chosen_dimension_keeps_a_task_outside_the_first_directions():
    # seeded: the classes differ along a direction whose variance is about the fourth largest
    noise, labels = dptext.PrivUnit(epsilon=4.0), np.arange(len(PUBLIC)) % 2
    texts = PUBLIC + np.eye(40)[5] * np.where(labels, 0.3, -0.3)[:, None]

    def accuracy(dimension):
        vectors = fit_bound(texts, dimension=dimension).apply(texts)
        server = dptext.NoisyClassifier(channel=noise).fit(noise.randomize(vectors[:4000], seed=1), labels[:4000])
        return np.mean(server.device_model().predict(vectors[4000:]) == labels[4000:])

    chosen = accuracy(best_dimension(40, noise))
    tried = {dimension: accuracy(dimension) for dimension in (2, 4, 8, 16, 32)}
    assert chosen > max(tried.values()) - 0.02
    assert tried[2] < chosen - 0.1


def test_dimension_grows_with_epsilon_and_follows_bound_and_labels():
    noises = [dptext.PrivUnit(epsilon=epsilon) for epsilon in (1.0, 4.0, 8.0, 16.0)]
    for projection, expected in (("pca", [9, 12, 16, 24]), ("random", [27, 36, 40, 40])):
        assert [best_dimension(40, noise, projection=projection) for noise in noises] == expected
    for randomizer, bound in ((dptext.L2Laplace, "clip"), (dptext.Piecewise, "cube"), (dptext.OneBit, "cube")):
        assert [best_dimension(40, randomizer(epsilon=epsilon), bound=bound) for epsilon in (2.0, 40.0)] == [10, 40]
    labels = np.arange(99) % 5
    assert best_dimension(40, noises[2], projection="supervised", labels=labels) == 4
    assert best_dimension(40, noises[2], projection="supervised", labels=labels % 2) == 2


WORDS = dptext.WordVectors([f"w{n}" for n in range(99)] + ["<unk>"], PUBLIC[:100])


def test_encoders_state_their_dimension():
    published = DPNR(epsilon=0.5, unsafe_as_published=True)
    assert best_dimension(99, dptext.SymmetricUnary(epsilon=4.0), bound="one-hot") == USUAL
    assert best_dimension(99, published) == USUAL
    encoder = dptext.PrivateEncoder(WORDS, published).fit(["w1 w2", "w3", "w4 w9"])
    assert encoder.release_.bound.dimension == min(USUAL, 40)
    encoder = dptext.PrivateEncoder(WORDS, dptext.PrivUnit(epsilon=6.0)).fit()
    assert encoder.get_params()["dimension"] is None
    chosen = best_dimension(40, dptext.PrivUnit(epsilon=6.0))
    assert encoder.release_.statement.parameters["dimension"] == chosen == 14
    assert encoder.set_params(dimension=5).fit().release_.bound.dimension == 5
