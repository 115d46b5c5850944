"""papers/dptext/autoencoder.py: numpy agrees with torch, and training is repeatable and learns to reconstruct."""

import numpy as np
import pytest

from dptext.errors import ParameterError

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


def test_words_become_rows_and_texts_are_cut(auto):
    table = auto.WordTable(["The cat sat.", "the dog sat", "\ud800 the \ud800", "\ud800"], max_words=10, longest=2)
    assert table.words == ["the", "sat"]
    assert [table.rows(text).tolist() for text in ("THE cat the sat", "", "sat")] == [[2, 0], [], [3]]
    with pytest.raises(ParameterError, match="no word occurs in two of the texts"):
        auto.WordTable(["a", "b"])


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
    for place, text in enumerate(["", "sea", "sea " * 500]):  # of its own text alone
        together, alone = one.encode(["ship", text, "field"])[1], one.encode([text])[0]
        np.testing.assert_array_equal(together, alone, err_msg=str(place))


def test_numpy_encoder_agrees_with_torch(auto, texts):
    table = auto.WordTable(texts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        network = auto.Network(torch, table, texts, dimension=8, units=12)
        words, lengths = map(torch.from_numpy, auto.padded([table.rows(text) for text in texts]))
        with torch.no_grad():
            raw = network.encode(words, lengths).numpy()
    np.testing.assert_allclose(network.encoder().encode(texts), raw, atol=1e-5)


def test_sampled_loss_is_that_of_the_whole_softmax(auto):
    """With many draws the corrected sample gives the loss of the whole softmax (seeded)."""
    table = auto.WordTable([" ".join(f"w{number}" for number in range(60))] * 2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        network = auto.Network(torch, table, ["w1"], dimension=4, units=8)
        parts = network.parts
        queries, target = torch.empty(200, 8).normal_(std=2.0), torch.arange(200) % table.size
        parts["words_bias"].weight.data.normal_()
        with torch.no_grad():
            sampled = float(np.mean([float(network.choice(queries, target)) for _ in range(60)]))
            scores = queries @ parts["embedding"].weight.T + parts["words_bias"].weight[:, 0]
            whole = float(torch.nn.functional.cross_entropy(scores, target))
            network.corrections = torch.zeros(table.size)
            uncorrected = float(np.mean([float(network.choice(queries, target)) for _ in range(60)]))
    assert sampled == pytest.approx(whole, rel=0.02)
    assert abs(uncorrected - whole) > 0.2  # the known-broken version
