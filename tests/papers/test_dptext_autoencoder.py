"""papers/dptext/autoencoder.py: training is repeatable and learns to reconstruct."""

import numpy as np
import pytest

PAPERS = ("dptext.autoencoder",)
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def auto(papers):
    return papers.autoencoder


@pytest.fixture(scope="module")
def texts():
    draw = np.random.default_rng(0)
    words = [["ship", "sea", "sail"], ["wheat", "field", "plough"]]
    return [" ".join([*draw.choice(words[place % 2], 4), f"word{place % 20}"]) for place in range(120)]


def test_training_learns_and_repeats_under_a_seed(auto, texts):
    before = torch.get_rng_state()
    (one, losses), (two, _), (other, _) = (
        auto.train_autoencoder(texts, epochs=40, seed=seed, dimension=8, units=12) for seed in (1, 1, 2)
    )
    assert torch.equal(before, torch.get_rng_state())
    assert losses[-1] < losses[0] - 0.2
    vectors = one.encode([*texts[:70], "", "qqq zzz"])
    assert vectors.shape == (72, 8) and np.isfinite(vectors).all()
    np.testing.assert_array_equal(two.encode(texts), one.encode(texts))
    assert (other.encode(texts) != one.encode(texts)).any()


def test_sampled_loss_is_that_of_the_whole_softmax(auto):
    """With many draws the corrected sample gives the loss of the whole softmax (seeded)."""
    table = auto.WordTable([" ".join(f"w{number}" for number in range(60))] * 2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        network = auto.AutoEncoder(torch, table, dimension=4, units=8)
        parts = network.parts
        queries, target = torch.empty(200, 8).normal_(std=2.0), torch.arange(200) % table.size
        parts["words_bias"].weight.data.normal_()
        with torch.no_grad():
            sampled = float(np.mean([float(network.choice(queries, target)) for _ in range(60)]))
            scores = queries @ parts["embedding"].weight.T + parts["words_bias"].weight[:, 0]
            whole = float(torch.nn.functional.cross_entropy(scores, target))
            network._corrections = torch.zeros(table.size)
            uncorrected = float(np.mean([float(network.choice(queries, target)) for _ in range(60)]))
    assert sampled == pytest.approx(whole, rel=0.02)
    assert abs(uncorrected - whole) > 0.2  # the known-broken version
