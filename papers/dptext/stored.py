"""Stored vectors of posts, on which the methods work; kept in a folder that git ignores.

*GloVe*: the mean of public word vectors, 50 dimensions. *MiniLM*: all-MiniLM-L6-v2, 384 dimensions, by
sentence-transformers (extra ``encoders``). Both are independent of the bloggers. *GRU*: the paper's auto-encoder, 64
dimensions, trained in each fold on the posts of its public bloggers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from papers.blogs import Posts
from papers.dptext.autoencoder import train_autoencoder
from papers.reports import torch_device

from dptext import load_vectors
from dptext.io.atomic import hashed_file
from dptext.representations.encoders import MeanOfWords
from dptext.representations.sentence_encoder import SentenceEncoder

GLOVE, MINILM, GRU = "GloVe", "MiniLM", "GRU"
ENCODERS = (GLOVE, MINILM, GRU)

Vectors = npt.NDArray[np.float64]


def stored_vectors(
    encoder: str, posts: Posts, work: Path, public: Sequence[npt.NDArray[np.int64]], *, seed: int
) -> tuple[Vectors, ...]:
    """Return the (n, D) vectors of all posts for each fold; ``public`` are the rows that may train an encoder."""
    if encoder != GRU:
        vectors = _load_or_compute(work / f"{encoder}-{posts.digest}.npy", lambda: _fixed_encoder(encoder)(posts.texts))
        return (vectors,) * len(public)

    def encode(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        encoder, _ = train_autoencoder([posts.texts[row] for row in rows], epochs=10, seed=seed)
        return encoder.encode(posts.texts)

    name = f"{GRU}-{posts.digest}-{seed}"
    return tuple(
        _load_or_compute(work / f"{name}-{place + 1}-of-{len(public)}.npy", lambda rows=rows: encode(rows))
        for place, rows in enumerate(public)
    )


def _fixed_encoder(encoder: str) -> Callable[[Sequence[str]], npt.NDArray[np.float32]]:
    if encoder == GLOVE:
        return MeanOfWords(load_vectors("glove-6b-50d", limit=50_000), weighting=1e-3).encode
    return SentenceEncoder(device=torch_device(), threads=1).encode


def _load_or_compute(path: Path, compute: Callable[[], npt.NDArray[np.float32]]) -> Vectors:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        vectors = compute()
        with hashed_file(path, owner_only=True) as stream:  # they are the bloggers' own data
            np.save(stream, vectors)
    return np.load(path).astype(np.float64)
