"""Words drawn as texts have them: the probability of the word of rank r is proportional to 1 / r."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from dptext import WordVectors

_DOCUMENTS_A_CHUNK = 50_000


def draw_words(vectors: WordVectors, count: int, *, seed: int = 1) -> list[str]:
    """The same words for the same seed; the last row, ``"<unk>"``, is no word of a text and is left out."""
    known = vectors.words[:-1]
    return [known[rank] for rank in _ranks(len(known), count, np.random.default_rng(seed))]


def texts(words: Sequence[str], documents: int, length: int, *, seed: int = 2) -> Iterator[str]:
    """``documents`` texts of ``length`` words each; the same ones for the same seed."""
    known = np.array(words, dtype=object)
    generator = np.random.default_rng(seed)
    for start in range(0, documents, _DOCUMENTS_A_CHUNK):
        rows = min(_DOCUMENTS_A_CHUNK, documents - start)
        chunk = known[_ranks(known.size, rows * length, generator)].reshape(rows, length)
        yield from (" ".join(row) for row in chunk.tolist())


def write_documents(path: Path, vectors: WordVectors, *, documents: int, length: int, seed: int = 2) -> None:
    """A .jsonl file of such texts; the same bytes for the same seed."""
    with path.open("w", encoding="utf-8") as stream:
        for text in texts(vectors.words[:-1], documents, length, seed=seed):
            stream.write(json.dumps({"text": text}) + "\n")


def _ranks(size: int, count: int, generator: np.random.Generator) -> list[int]:
    cumulative = np.cumsum(1.0 / np.arange(1, size + 1))
    ranks: list[int] = np.searchsorted(cumulative, generator.random(count) * cumulative[-1], side="right").tolist()
    return ranks
