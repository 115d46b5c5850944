"""Encoders as the JSON and the arrays of a device's folder, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.privacy.statement import PrivacyStatement
from dptext.representations.embedding_bag import EmbeddingBag
from dptext.representations.encoders import TextEncoder
from dptext.representations.gru import GruEncoder
from dptext.representations.known_words import WordTable
from dptext.representations.layers import HidingLayers, LayeredEncoder
from dptext.representations.mean_of_words import MeanOfWords
from dptext.representations.ngrams import NGrams
from dptext.representations.provenance import Provenance
from dptext.representations.sentence_encoder import SentenceEncoder
from dptext.vectors.word2vec import encoded_words
from dptext.vectors.word_vectors import WordVectors

__all__ = ["Described", "described", "rebuilt", "unknown_names"]

Tensors = dict[str, npt.NDArray[Any]]
Described = tuple[dict[str, Any], Tensors, PrivacyStatement | None]
"""What the configuration says of an encoder, its arrays, and the statement of its vectors."""

_GRU = "gru."
_LAYER, _BELOW = "layer.", "below."
"""Arrays of layers, and what stands before the names of those that other layers stand on."""
_PROVENANCE = tuple(each.name for each in fields(Provenance))
_NAMES = {
    MeanOfWords.name: ("source", "weighting"),
    EmbeddingBag.name: ("most", "trained_on", "trained_texts"),
    SentenceEncoder.name: ("model", "batch_size"),
    LayeredEncoder.name: ("base", "layers", "provenance"),
    GruEncoder.name: ("longest", "pooling", "provenance"),
    "given": ("name",),
}
"""What `described` says of an encoder of each kind."""


def unknown_names(config: Mapping[str, Any]) -> Iterator[str]:
    """The names of a configuration, with those that they stand under, that `described` never gives for its kind."""
    known = ("kind", *_NAMES.get(str(config.get("kind")), config))
    yield from (name for name in config if name not in known)
    base, provenance = config.get("base"), config.get("provenance")
    if isinstance(base, Mapping):
        yield from (f"base.{name}" for name in unknown_names(base))
    if isinstance(provenance, Mapping):
        yield from (f"provenance.{name}" for name in provenance if name not in _PROVENANCE)


def described(encoder: TextEncoder) -> Described:
    """The parts of an encoder that a folder holds: all of it, or (of a caller's function) its name.

    Raises:
        DataError: a word that no file can hold; its row is named.
    """
    config: dict[str, Any]
    if isinstance(encoder, MeanOfWords):
        vectors = encoder.vectors
        config = {"kind": encoder.name, "source": vectors.source, "weighting": encoder.weighting}
        return config, {"words": _bytes_of(vectors.words), "vectors": vectors.matrix}, vectors.statement
    if isinstance(encoder, EmbeddingBag):
        config = {"kind": encoder.name, "most": encoder.ngrams.most}
        config |= {"trained_on": encoder.trained_on, "trained_texts": encoder.trained_texts}
        return config, {"vectors": encoder.matrix}, None
    if isinstance(encoder, SentenceEncoder):
        return {"kind": encoder.name, "model": encoder.model, "batch_size": encoder.batch_size}, {}, None
    if isinstance(encoder, LayeredEncoder):
        base, below, statement = described(encoder.encoder)
        tensors = {f"{_BELOW}{name}" if _LAYER in name else name: array for name, array in below.items()}
        layers = encoder.layers.layers
        config = {"kind": encoder.name, "base": base, "layers": len(layers)}
        for place, (weights, bias) in enumerate(layers):
            tensors |= {f"{_LAYER}{place}.weights": weights, f"{_LAYER}{place}.bias": bias}
        return config | {"provenance": encoder.provenance.as_dict()}, tensors, statement
    if isinstance(encoder, GruEncoder):
        config = {"kind": encoder.name, "longest": encoder.table.longest, "pooling": encoder.pooling}
        tensors = {f"{_GRU}{name}": array for name, array in encoder.arrays.items()}
        tensors["words"] = _bytes_of(encoder.table.words)
        return config | {"provenance": encoder.provenance.as_dict()}, tensors, None
    return {"kind": "given", "name": encoder.name}, {}, None


def rebuilt(
    config: Mapping[str, Any],
    tensors: Tensors,
    training: PrivacyStatement | None,
    source: str,
    given: TextEncoder | None,
) -> TextEncoder:
    """The encoder of which a folder speaks.

    Args:
        config, tensors, training: what `described` gave.
        source: what errors call the folder.
        given: the encoder, or (for layers) the one underneath, where the folder cannot hold it.

    Raises:
        DataError: it has to be given.
        ParameterError, KeyError, TypeError, UnicodeDecodeError: parts that are not what `described` gives.
        MissingExtraError: it needs a package.
    """
    kind = config.get("kind")
    if kind == LayeredEncoder.name and not isinstance(given, LayeredEncoder):
        if not isinstance(config["base"], Mapping) or type(config["layers"]) is not int:
            raise TypeError("a folder says how many layers there are, and on what they stand")
        below = {name.removeprefix(_BELOW): each for name, each in tensors.items() if not name.startswith(_LAYER)}
        base = rebuilt(config["base"], below, training, source, given)
        names = range(config["layers"])
        layers = tuple((tensors[f"{_LAYER}{place}.weights"], tensors[f"{_LAYER}{place}.bias"]) for place in names)
        return LayeredEncoder(base, HidingLayers(layers), Provenance(**config["provenance"]))
    if given is not None:
        return given
    if kind == MeanOfWords.name:
        words = _words_of(tensors["words"])
        vectors = WordVectors(words, tensors["vectors"], source=str(config["source"]), statement=training, copy=False)
        return MeanOfWords(vectors, weighting=config["weighting"])
    if kind == EmbeddingBag.name:
        ngrams = NGrams(most=config["most"], buckets=len(tensors["vectors"]))
        told = {name: config[name] for name in ("trained_on", "trained_texts")}
        return EmbeddingBag(tensors["vectors"], ngrams, **told)
    if kind == GruEncoder.name:
        arrays = {name.removeprefix(_GRU): array for name, array in tensors.items() if name.startswith(_GRU)}
        table = WordTable(tuple(_words_of(tensors["words"])), config["longest"])
        return GruEncoder(table, arrays, pooling=config["pooling"], provenance=Provenance(**config["provenance"]))
    if kind == SentenceEncoder.name:
        try:
            return SentenceEncoder(str(config["model"]), batch_size=config["batch_size"])
        except ParameterError as error:
            raise DataError(
                f"{source}: the model of the encoder is not here ({error}); give it as encoder=SentenceEncoder(folder)"
            ) from None
    raise DataError(f"{source}: its encoder is a caller's, which no folder holds; give the same one as encoder=...")


def _bytes_of(words: tuple[str, ...]) -> npt.NDArray[Any]:
    for row, word in enumerate(words):
        if "\n" in word:
            raise DataError(f"row {row}: the word holds a line feed, which the file cannot; leave it out")
    return np.frombuffer(b"\n".join(encoded_words(words)), dtype=np.uint8)


def _words_of(stored: npt.NDArray[Any]) -> list[str]:
    return stored.tobytes().decode().split("\n")
