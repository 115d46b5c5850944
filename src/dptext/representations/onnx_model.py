"""Sentence models in ONNX format, run by ONNX Runtime on the CPU (extra ``onnx``) without torch."""

from __future__ import annotations

import gzip
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dptext.representations.encoders import Vectors
from dptext.threads import for_each_block

__all__ = ["OnnxModel", "is_onnx_folder", "onnx_files"]

_MODEL, _TOKENIZER, _CONFIG = "model.onnx", "tokenizer.json", "sentence_bert_config.json"
_MINILM_TOKENIZER = Path(__file__).parent / "minilm" / f"{_TOKENIZER}.gz"
_MAX_TOKENS = 256


class OnnxModel:
    """A transformer with its tokenizer: the mean of the token vectors of a text, scaled to length 1."""

    def __init__(self, files: dict[str, Path]) -> None:
        runtime, tokenizers = import_module("onnxruntime"), import_module("tokenizers")
        runtime.disable_telemetry_events()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # prints nothing; errors are raised
        contents = {name: file.read_bytes() for name, file in files.items()}
        self._session = runtime.InferenceSession(contents[_MODEL], options, providers=["CPUExecutionProvider"])
        self._inputs = [node.name for node in self._session.get_inputs()]
        tokenizer = contents[_TOKENIZER]
        is_packed = files[_TOKENIZER] == _MINILM_TOKENIZER
        self._tokenizer: Any = tokenizers.Tokenizer.from_buffer(gzip.decompress(tokenizer) if is_packed else tokenizer)
        self._tokenizer.no_padding()
        length = json.loads(contents.get(_CONFIG, b"{}")).get("max_seq_length", _MAX_TOKENS)
        self._tokenizer.enable_truncation(length)
        # the longest text of the last token: if the model can encode it, it can encode every text
        self.dimension = len(self._mean([self._tokenizer.get_vocab_size() - 1] * length))

    def encode(self, texts: list[str]) -> Vectors:
        """(n, D) float32, one vector per text. Several texts run at a time, each on one thread."""
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)

        def encode_row(row: int) -> None:
            vectors[row] = self._mean(self._tokenizer.encode(texts[row]).ids or [0])

        for_each_block(encode_row, range(len(texts)))
        return vectors

    def _mean(self, tokens: list[int]) -> Any:
        ids = np.array([tokens], dtype=np.int64)
        values = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (vectors,) = self._session.run(None, {name: values[name] for name in self._inputs})[0]
        mean = vectors.mean(axis=0, dtype=np.float64)
        return mean / max(np.sqrt((mean * mean).sum()), 1e-12)


def is_onnx_folder(folder: Path) -> bool:
    """Whether a folder holds a model in ONNX format, and none for sentence-transformers."""
    return (folder / _MODEL).is_file() and not (folder / "modules.json").exists()


def onnx_files(folder: Path, *, is_minilm: bool) -> dict[str, Path]:
    """The files that decide the vectors of a model, by name."""
    files = {name: folder / name for name in (_MODEL, _TOKENIZER, _CONFIG)}
    if is_minilm and not files[_TOKENIZER].exists():
        files[_TOKENIZER] = _MINILM_TOKENIZER
    if not files[_CONFIG].exists():
        del files[_CONFIG]
    return files
