"""Stored vectors of posts: what heads are trained on. Made once, kept in a folder that git ignores.

*GloVe*: the mean of public word vectors, 50 dimensions. *MiniLM*: all-MiniLM-L6-v2, 384 dimensions, by
sentence-transformers (extra ``encoders``) where it is installed. Both know nothing of the bloggers. *GRU*: the paper's
auto-encoder, 64 dimensions, trained anew in each fold on the posts of its public bloggers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from papers.blogs_posts import Posts
from papers.dptext.attributed import Attributed
from papers.reports import torch_device

from dptext import load_vectors
from dptext.hiding.autoencoder import AutoEncoder
from dptext.io.atomic import hashed_file
from dptext.representations.encoders import MeanOfWords
from dptext.representations.sentence_encoder import SentenceEncoder

GLOVE, MINILM, GRU = "GloVe", "MiniLM", "GRU"
ENCODERS = (GLOVE, MINILM, GRU)
_WORDS, _WEIGHTING = 50_000, 1e-3

Vectors = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


def stored_vectors(
    encoder: str, posts: Posts | Attributed, work: Path, public: Sequence[Rows], *, seed: int, epochs: int = 10
) -> tuple[Vectors, ...]:
    """For each fold (n, D), the vector of each post.

    Args:
        encoder: one of `ENCODERS`.
        posts: which.
        work: where they are kept, for this user alone: they are the bloggers' own data.
        public: of each fold, the posts that an encoder may be trained on.
        seed, epochs: of such a training.
    """
    if encoder != GRU:
        result = _kept(work / f"{encoder}-{posts.digest}.npy", lambda: _fixed(encoder, posts))
        return (result,) * len(public)
    return tuple(
        _kept(
            work / f"{GRU}-{epochs}-{posts.digest}-{seed}-{place + 1}-of-{len(public)}.npy",
            lambda rows=rows: _pretrained(posts, rows, seed, epochs),
        )
        for place, rows in enumerate(public)
    )


def _fixed(encoder: str, posts: Posts | Attributed) -> npt.NDArray[np.float32]:
    if encoder == GLOVE:
        words = load_vectors("glove-6b-50d", limit=_WORDS)
        return MeanOfWords(words, weighting=_WEIGHTING).encode(posts.texts)
    return SentenceEncoder(device=torch_device(), threads=1).encode(posts.texts)


def _pretrained(posts: Posts | Attributed, public: Rows, seed: int, epochs: int) -> npt.NDArray[np.float32]:
    trained = AutoEncoder(seed=seed, epochs=epochs, public=True).fit([posts.texts[row] for row in public])
    return trained.text_encoder_.encode(posts.texts)


def _kept(path: Path, make: Callable[[], npt.NDArray[np.float32]]) -> Vectors:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        vectors = make()
        with hashed_file(path, owner_only=True) as stream:
            np.save(stream, vectors)
    return np.load(path).astype(np.float64)
