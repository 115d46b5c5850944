"""A sentence model that encodes each text once per run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.reports import torch_device

from dptext import SentenceEncoder
from dptext.privacy.statement import Parameter
from dptext.representations.encoders import Progress, Vectors, check_texts

_BATCH = 512


class CachedSentences:
    """All-MiniLM-L6-v2 with a maximum number of tokens per text; vectors stay in memory."""

    name = "sentence-transformers, kept"
    dimension = 384

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self._vectors: dict[str, Vectors] = {}

    @cached_property
    def _model(self) -> Any:
        model = SentenceEncoder(device=torch_device(), threads=1)._loaded
        model.max_seq_length = self.tokens
        return model

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        values = check_texts(texts)
        digests = [_digest(text) for text in values]
        missing = {text for text, digest in zip(values, digests, strict=True) if digest not in self._vectors}
        by_length = sorted(missing, key=len)
        for start in range(0, len(by_length), _BATCH):
            part = by_length[start : start + _BATCH]
            vectors = self._model.encode(part, batch_size=32, show_progress_bar=False, convert_to_numpy=True)
            self._vectors.update(zip(map(_digest, part), vectors.astype(np.float32), strict=True))
        if progress is not None:
            progress(len(values))
        if not values:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.stack([self._vectors[digest] for digest in digests])

    def parameters(self) -> dict[str, Parameter]:
        return {"encoder": self.name, "encoder_dimension": self.dimension, "encoder_tokens": self.tokens}

    def assumptions(self) -> tuple[str, ...]:
        return ("the sentence model is public",)


def unit_rows(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return rows of length 1; zero rows stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _digest(text: str) -> str:
    """Return a digest of the words: a tokenizer ignores the spaces between them."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:32]
