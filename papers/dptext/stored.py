"""Stored vectors of posts: what heads are trained on. Made once, kept in a folder that git ignores.

*GloVe*: the mean of public word vectors, 50 dimensions. *MiniLM*: all-MiniLM-L6-v2, 384 dimensions, by
sentence-transformers (extra ``encoders``) where it is installed. Both are public, and know nothing of the bloggers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from papers.blogs_posts import Posts

from dptext import load_vectors
from dptext.representations.mean_of_words import MeanOfWords
from dptext.representations.sentence_encoder import SentenceEncoder
from dptext.text.files import replacing

__all__ = ["ENCODERS", "GLOVE", "MINILM", "stored_vectors"]

GLOVE, MINILM = "GloVe", "MiniLM"
ENCODERS = (GLOVE, MINILM)
_WORDS, _WEIGHTING = 50_000, 1e-3


def stored_vectors(encoder: str, posts: Posts, work: Path) -> npt.NDArray[np.float64]:
    """(n, D) the vector of each post.

    Args:
        encoder: one of `ENCODERS`.
        posts: which.
        work: where they are kept, for this user alone: they are the bloggers' own data.
    """
    kept = work / f"{encoder}-{posts.digest}.npy"
    if kept.exists():
        return np.load(kept).astype(np.float64)
    if encoder == GLOVE:
        vectors = MeanOfWords(load_vectors("glove-6b-50d", limit=_WORDS), weighting=_WEIGHTING).encode(posts.texts)
    else:
        vectors = SentenceEncoder(threads=1).encode(posts.texts)
    work.mkdir(parents=True, exist_ok=True, mode=0o700)
    with replacing(kept, owner_only=True) as stream:
        np.save(stream, vectors)
    return vectors.astype(np.float64)
