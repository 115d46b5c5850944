"""papers/ome: its one-bit channel, its public projections, the perceptron on bits, and the printed tables."""

import math

import numpy as np
import pytest

from dptext.privacy.randomness import RandomBits
from dptext.representations.networks import TrainingOptions, train_mlp

PAPERS = ("ome.decay", "ome.perceptron", "ome.printed", "ome.printed_report", "ome.settings", "data_sets")
OPTIONS = {"hidden": 14, "epochs": 6, "validation_fraction": 0.0, "batch_size": 16}
torch = pytest.importorskip("torch")
pytest.importorskip("numba")


@pytest.mark.parametrize(("epsilon", "refuted"), [(1.0, False), (1.5, True)])
def test_the_sign_keeps_its_epsilon_and_one_and_a_half_times_it_is_noticed(papers, epsilon, refuted):
    """10^5 draws, 5.5 standard errors: false alarm below 1e-7."""
    signs = papers.settings.Sign(epsilon).sample(np.ones((100_000, 1)), RandomBits(seed=3))[:, 0] > 0
    chance = 1 / (1 + math.exp(-1.0))
    assert (abs(signs.mean() - chance) > 5.5 * (chance * (1 - chance) / 100_000) ** 0.5) == refuted


def test_the_sign_is_unbiased_and_its_error_is_the_stated_one(papers):
    channel = papers.settings.Sign(2.0)
    draws = channel.sample(np.full((100_000, 1), -0.3), RandomBits(seed=4)).astype(float)
    assert abs(draws.mean() + 1) < 5.5 * draws.std() / 100_000**0.5
    assert np.mean((draws + 1) ** 2) == pytest.approx(channel.expected_squared_error, rel=0.05)


def test_the_first_supervised_axis_is_the_label_and_the_energy_is_shared(papers):
    rng = np.random.default_rng(5)
    labels = np.arange(1000) % 2
    vectors = rng.normal(size=(1000, 10)) * np.arange(10, 0, -1)
    vectors[:, 9] += 3.0 * labels
    result = papers.settings.supervised(vectors, labels, 4)
    mapped = (vectors - result.centre) @ result.axes
    assert np.abs(np.corrcoef(mapped[:, 0], labels)[0, 1]) > 0.7
    assert mapped[:, 0].var() == pytest.approx(1.0)
    assert mapped[:, 1:].var(axis=0).sum() == pytest.approx(1.0)
    assert np.abs(np.corrcoef(mapped.T)[0, 1:]).max() < 0.05
    np.testing.assert_allclose(np.linalg.norm(result(vectors), axis=1), 1.0)


# -- the perceptron ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bits():
    """Half of the bits are rare, as those that OME sends as 1 by chance alone; one never occurs."""
    draws = np.random.default_rng(1).random((70, 90)) < np.where(np.arange(90) % 2, 0.03, 0.4)
    draws[:, 3] = False
    return draws.astype(np.uint8), np.arange(70) % 3


@pytest.mark.parametrize("decay", [1e-6, 1e-2])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_perceptron_trains_what_the_library_trains(papers, monkeypatch, bits, decay, dropout):
    """With dropout drawn as torch draws it, weights differ by rounding; 1e-6 of them is 300 times less than a step."""

    def as_torch(_, rows, width, share):
        return torch.empty(rows, width).bernoulli_(1 - share).numpy().astype(np.uint8)

    if dropout:
        monkeypatch.setattr(papers.perceptron, "_dropout", as_torch)
    options = TrainingOptions(**OPTIONS, weight_decay=decay, dropout=dropout)
    one = papers.perceptron.BitPerceptron(options, 3, device="cpu").fit(*bits)
    other = train_mlp(bits[0].astype(np.float64), bits[1], 3, options, seed=3)
    for (weights, bias), (expected, expected_bias) in zip(one.layers, other.layers, strict=True):
        np.testing.assert_allclose(weights, expected, atol=1e-6)
        np.testing.assert_allclose(bias, expected_bias, atol=1e-6)


def test_dropout_keeps_half_of_the_bits_and_another_half_each_time(papers):
    random = RandomBits(seed=2)
    first, second = (papers.perceptron._dropout(random, 32, 1001, 0.5) for _ in range(2))
    for entry in (first, second, first == second):
        assert abs(entry.mean() - 0.5) < 5.5 * 0.5 / entry.size**0.5  # false alarms below 1e-7


def test_the_learning_rate_decays_as_that_of_keras(papers, bits):
    """A rate that is divided by 1 + 1e9 t is 0 after the first step."""
    options = TrainingOptions(**OPTIONS | {"batch_size": 70, "epochs": 3}, weight_decay=0.0)
    stopped = papers.perceptron.BitPerceptron(options, 5, rate_decay=1e9).fit(*bits)
    once = papers.perceptron.BitPerceptron(TrainingOptions(**vars(options) | {"epochs": 1}), 5, device="cpu").fit(*bits)
    np.testing.assert_allclose(stopped.layers[0][0], once.layers[0][0], atol=1e-7)
    assert set(papers.decay.READINGS.values()) == {(1e-6, 0.0), (0.0, 1e-6), (0.0, 0.0)}


# -- the tables --------------------------------------------------------------------------------------------------------
