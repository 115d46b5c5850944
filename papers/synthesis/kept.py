"""A sentence model whose vectors are kept in a file, so that five seeds and forty settings encode each text once.

The files hold vectors of texts by the digest of the text, in a folder that git ignores. For experiments alone: private
texts have no business in a cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from papers.reports import torch_device

from dptext import SentenceEncoder
from dptext.privacy.statement import Parameter
from dptext.representations.encoders import Progress, Vectors, check_texts

_DIMENSION = 384
_AT_ONCE = 512


class KeptSentences:
    """All-MiniLM-L6-v2, of each text so many tokens at most; vectors are kept in ``folder``."""

    name = "sentence-transformers, kept"
    dimension = _DIMENSION

    def __init__(self, folder: Path, *, tokens: int) -> None:
        self.tokens = tokens
        self._file = folder / f"sentences-{tokens}.npz"

    @cached_property
    def _kept(self) -> dict[str, Vectors]:
        if not self._file.exists():
            return {}
        with np.load(self._file) as stored:
            return dict(zip(stored["digests"].tolist(), stored["vectors"], strict=True))

    @cached_property
    def _model(self) -> Any:
        model = SentenceEncoder(device=torch_device(), threads=1)._loaded
        model.max_seq_length = self.tokens
        return model

    def keep(self, texts: Sequence[str]) -> None:
        """Encode what is not there yet, and write it down."""
        missing = sorted({text for text in texts if _digest(text) not in self._kept}, key=len)
        for start in range(0, len(missing), _AT_ONCE):
            part = missing[start : start + _AT_ONCE]
            result = self._model.encode(part, batch_size=32, show_progress_bar=False, convert_to_numpy=True)
            self._kept.update(zip(map(_digest, part), result.astype(np.float32), strict=True))
        if missing:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            digests, vectors = list(self._kept), np.stack(list(self._kept.values()))
            np.savez(self._file, digests=np.array(digests), vectors=vectors)

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        values = check_texts(texts)
        if any(_digest(text) not in self._kept for text in values):
            self.keep(values)
        result = np.stack([self._kept[_digest(text)] for text in values]) if values else np.empty((0, _DIMENSION))
        if progress is not None:
            progress(len(values))
        return result.astype(np.float32)

    def parameters(self) -> dict[str, Parameter]:
        return {"encoder": self.name, "encoder_dimension": self.dimension, "encoder_tokens": self.tokens}

    def assumptions(self) -> tuple[str, ...]:
        return ("the sentence model is public",)


def _digest(text: str) -> str:
    """Of its words: a tokenizer does not see how much space is between them."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:32]
