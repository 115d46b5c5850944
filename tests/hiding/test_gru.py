"""The recurrent encoder and its decoder: numpy agrees with torch, and training resumes from a checkpoint."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import dptext
from dptext.hiding.autoencoder import AutoEncoder, GruBody
from dptext.hiding.training import AutoEncoderOptions
from dptext.representations.device import DeviceEncoder
from dptext.representations.trained_encoders import END, GruEncoder, WordTable

torch = pytest.importorskip("torch")

ODD = ["", None, "sea", "qqq zzz", "\ud800", "sea " * 500, "7, 8!", "<end> <unk>"]


def auto(**options):
    return AutoEncoder(**({"dimension": 8, "units": 12, "epochs": 2, "longest": 10, "seed": 1} | options))


@pytest.fixture(scope="module")
def trained(made_texts):
    return auto(epochs=30, learning_rate=1e-2, public_name="made-up texts").fit(made_texts.rows)


# -- words --------------------------------------------------------------------------------------------------------


def test_words_become_rows_and_texts_are_cut():
    texts = ["The cat sat.", "the dog sat", "\ud800 the \ud800", "\ud800"]
    table = WordTable.from_texts(texts, max_words=10, longest=2)
    assert table.words == ("the", "sat")
    rows = table.rows(["THE cat the sat", "", "sat"])
    assert rows.lengths.tolist() == [2, 0, 1]
    assert rows.values.tolist() == [2, 0, 3]
    assert table.text([3, 0, END, 2]) == "sat <unk>"
    assert WordTable.from_texts(["the cat sat", "the dog sat"], max_words=1, longest=2).words == ("sat",)


# -- numpy and torch ----------------------------------------------------------------------------------------------


def test_numpy_encoder_agrees_with_torch(trained, made_texts):
    texts = [*made_texts.rows[:70], "", "sea"]
    body = trained.body(torch, texts)
    with torch.no_grad():
        raw = body.module(body.take(np.arange(len(texts)))).numpy()
    np.testing.assert_allclose(trained.text_encoder_.encode(texts), raw, atol=1e-5)


@pytest.mark.slow
def test_numpy_decoder_agrees_with_torch(trained, made_texts):
    """The likeliest words, from torch's own decoder with its own output as input."""
    body = trained.body(torch, made_texts.rows)
    parts = body.module.parts
    z = torch.from_numpy(trained.text_encoder_.encode(made_texts.rows[:20]))
    with torch.no_grad():
        state = torch.tanh(parts["begin"](z))[None]
        word, rows = torch.full((20, 1), END), []
        for _ in range(10):
            inputs = torch.cat([parts["embedding"](word), z[:, None, :]], dim=2)
            out, state = parts["decoder"](inputs, state)
            scores = parts["project"](out[:, 0]) @ parts["embedding"].weight.T + parts["words_bias"].weight[:, 0]
            word = scores.argmax(dim=1, keepdim=True)
            rows.append(word[:, 0].tolist())
    expected = [trained.text_encoder_.table.text(entry) for entry in zip(*rows, strict=True)]
    assert trained.decode(z.numpy()) == expected


def test_sampled_loss_is_that_of_the_whole_softmax():
    """With many draws the corrected sample gives the loss of the whole softmax (seeded)."""
    table = WordTable(tuple(f"w{number}" for number in range(60)), 4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        body = GruBody(torch, table, ["w1"], AutoEncoderOptions(units=8, dimension=4))
        parts = body.module.parts
        queries, target = torch.empty(200, 8).normal_(std=2.0), torch.arange(200) % table.size
        parts["words_bias"].weight.data.normal_()
        with torch.no_grad():
            sampled = float(np.mean([float(body._choice(queries, target)) for _ in range(60)]))
            scores = queries @ parts["embedding"].weight.T + parts["words_bias"].weight[:, 0]
            whole = float(torch.nn.functional.cross_entropy(scores, target))
            body._corrections = torch.zeros(table.size)
            uncorrected = float(np.mean([float(body._choice(queries, target)) for _ in range(60)]))
    assert sampled == pytest.approx(whole, rel=0.02)
    assert abs(uncorrected - whole) > 0.2  # the known-broken version


# -- an encoder like any other ------------------------------------------------------------------------------------


def test_text_vector_depends_on_the_text_alone(trained):
    encoder = trained.text_encoder_
    together = encoder.encode(ODD)
    assert together.shape == (8, 8) and np.isfinite(together).all()
    for place, text in enumerate(ODD):
        assert encoder.encode(["sea ship " * place, text, "field"])[1].tolist() == together[place].tolist()
    shrunk = {name: array * 1e-20 for name, array in encoder.arrays.items()}
    tiny = GruEncoder(encoder.table, shrunk | {"out_bias": shrunk["out_bias"] * 0})
    with np.errstate(all="raise"):
        assert np.isfinite(tiny.encode(ODD)).all() and np.isfinite(encoder.encode(ODD)).all()
    repeated = pickle.loads(pickle.dumps(encoder))
    assert repeated.parameters() == encoder.parameters()
    assert repeated.encode(ODD).tolist() == together.tolist()
    with pytest.raises(AttributeError, match="frozen"):
        encoder.table = None


def test_decoder_writes_words_of_the_topic(trained, made_texts):
    assert trained.epochs_[-1].loss < trained.epochs_[0].loss - 0.5
    written = trained.decode(trained.text_encoder_.encode(made_texts.rows))
    seas = [any(word in text for word in ("ship", "sea", "sail")) for text in written]
    assert np.mean(np.array(seas) == (np.array(made_texts.task) == 0)) > 0.9
    assert all(len(text.split()) <= 10 for text in written)
    assert len(trained.decode([[np.nan] * 8, [1e300] * 8])) == 2


# -- training to hide ---------------------------------------------------------------------------------------------


def fitted(made_texts, encoder, **options):
    options = {"dimension": 8, "epochs": 8, "learning_rate": 5e-3, "seed": 1} | options
    return dptext.HidingEncoder(encoder, options.pop("randomizer", None), **options).fit(
        made_texts.rows, **made_texts.labels
    )


@pytest.mark.slow
def test_training_hides_the_group_and_keeps_the_topic(trained, made_texts):
    hidden = fitted(made_texts, trained, batch_size=16)
    labels = {"task": np.array(made_texts.task), "group": np.array(made_texts.attributes["group"])}

    def read(vectors, name):
        model = LogisticRegression(max_iter=500).fit(vectors[:200], labels[name][:200])
        return model.score(vectors[200:], labels[name][200:])

    before, after = trained.text_encoder_.encode(made_texts.rows), hidden.clean(made_texts.rows)
    assert read(before, "group") > 0.9  # positive control
    assert read(after, "group") < 0.7
    assert read(after, "task") > 0.9
    assert hidden.provenance_.texts == 2 * len(made_texts.rows)
    assert hidden.provenance_.trained_on == "made-up texts"


@pytest.mark.slow
def test_recurrent_encoder_is_released_decoded_and_saved(made_texts, tmp_path):
    hidden = fitted(made_texts, auto(), randomizer=dptext.PrivUnit(epsilon=12.0), epochs=1)
    assert [epoch.phase for epoch in hidden.epochs_] == ["rebuild", "rebuild", "hide"]
    texts = hidden.decode(hidden.transform(["the sea", ""]))
    assert len(texts) == 2
    assert hidden.statement_.epsilon == 12.0
    hidden.save(tmp_path / "device")
    loaded = DeviceEncoder.load(tmp_path / "device")
    assert loaded.statement == hidden.release_.statement
    assert loaded.encode(["sea", ""], seed=1).tolist() == hidden.release_.encode(["sea", ""], seed=1).tolist()


class InterruptedHereError(Exception):
    """Raised to simulate a crash."""


@pytest.mark.slow
@pytest.mark.parametrize("last", [("rebuild", 1), ("hide", 1)])
def test_resumed_training_equals_an_uninterrupted_one(made_texts, tmp_path, last, monkeypatch):
    usual = AutoEncoderOptions.__init__
    monkeypatch.setattr(usual, "__kwdefaults__", usual.__kwdefaults__ | {"epochs": 2})

    def stop(epoch):
        if (epoch.phase, epoch.number) == last:
            raise InterruptedHereError

    options = {"epochs": 2, "randomizer": dptext.PrivUnit(epsilon=12.0), "dimension": 4}
    with pytest.raises(InterruptedHereError):
        fitted(made_texts, "gru", checkpoint=tmp_path / "run", progress=stop, **options)
    resumed = fitted(made_texts, "gru", checkpoint=tmp_path / "run", **options)
    whole = fitted(made_texts, "gru", **options)
    assert resumed.text_encoder_.sha256 == whole.text_encoder_.sha256
    assert resumed.epochs_ == whole.epochs_
    assert resumed.decode(np.eye(4)) == whole.decode(np.eye(4))
