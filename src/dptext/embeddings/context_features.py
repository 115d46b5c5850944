"""What a word says about the words around it, as numbers: public, fixed before any private text is read.

Two kinds of features, both of them functions of a public vocabulary alone:

* of public vectors: centred, weighted and whitened;
* of no vectors at all: a public random projection, where equal words have equal directions and nothing else is known.

Words of the vocabulary are taken to be sorted by their public frequency, as vectors are published, and the r-th to have
the frequency p_r of Zipf and Mandelbrot,

    p_r proportional to 1 / (r + 2.7),   weight_r = a / (a + p_r),   a = 1e-4,                               (weights)

so that words that stand everywhere say little (the weights are those of Arora, Liang and Ma 2017).

Whitening is what makes a bounded contribution say most: a user's matrix is cut to a given length, and every feature
takes part of that length in proportion to its variance, whether it tells words apart or not. Features of equal variance
and no correlation are those of Fisher's discriminant, where single contexts spread equally in all directions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.text.tokens import Vocabulary

__all__ = ["LARGEST", "UNIT", "ContextFeatures", "features_of_vectors", "public_frequencies", "random_features"]

UNIT = 2.0**-22
"""Of a feature."""
LARGEST = 64.0
"""No feature is larger: white ones seldom exceed 10."""

Floats = npt.NDArray[np.float64]

_MANDELBROT = 2.7
_FREQUENT = 1e-4  # a of equation (weights)
_FLAT, _ROUNDING = 1e-9, 1e-13  # of the largest variance, of the square of the largest mean: below is rounding only


@dataclass(frozen=True, eq=False)
class ContextFeatures:
    """Frozen features.

    Attributes:
        matrix: (V + 1, k) int32 in units of 2^-22, a row a word; the last one (also -1) is that of all other words: 0.
            Whole numbers, because sums of them are exact in any order.
        fingerprint: SHA-256 of the matrix.
    """

    matrix: npt.NDArray[np.int32]
    fingerprint: str

    @classmethod
    def of(cls, rows: Floats, unknown_row: int) -> ContextFeatures:
        """Features from (V, k) numbers; the unknown word, and what is no number, say nothing."""
        matrix = np.zeros((len(rows) + 1, rows.shape[1]), dtype=np.int32)
        finite = np.where(np.isfinite(rows), rows, 0.0)
        matrix[:-1] = np.rint(np.clip(finite, -LARGEST, LARGEST) / UNIT)
        matrix[unknown_row] = 0
        matrix.flags.writeable = False
        return cls(matrix, hashlib.sha256(np.ascontiguousarray(matrix, dtype="<i4").tobytes()).hexdigest())

    @property
    def words(self) -> int:
        """V."""
        return len(self.matrix) - 1

    @property
    def dimension(self) -> int:
        """k."""
        return int(self.matrix.shape[1])


def public_frequencies(words: int) -> Floats:
    """(words,) p_r of equation (weights): what a word's place in a public list says about how often it is used."""
    frequencies = 1.0 / (np.arange(1, words + 1) + _MANDELBROT)
    normalised: Floats = frequencies / frequencies.sum()
    return normalised


def features_of_vectors(matrix: npt.NDArray[np.float32], vocabulary: Vocabulary) -> ContextFeatures:
    """Centred, whitened, weighted public vectors: (P, d) of the first P words; the words after them say nothing."""
    known = len(matrix)
    frequencies = public_frequencies(len(vocabulary))[:known]
    weights = _FREQUENT / (_FREQUENT + frequencies)  # (weights)
    share = frequencies * weights
    if vocabulary.unknown_row < known:
        share[vocabulary.unknown_row] = 0.0
    share /= share.sum()
    points = matrix.astype(np.float64)
    mean = share @ points
    points -= mean
    variances, directions = np.linalg.eigh((share[:, None] * points).T @ points)
    kept = variances > _FLAT * max(float(variances.max()), 0.0) + _ROUNDING * float(np.abs(mean).max()) ** 2
    white = (points @ directions[:, kept]) / np.sqrt(variances[kept])
    rows = np.zeros((len(vocabulary), max(1, int(kept.sum()))))
    rows[:known, : white.shape[1]] = white * weights[:, None]
    return ContextFeatures.of(rows, vocabulary.unknown_row)


def random_features(vocabulary: Vocabulary, dimension: int) -> ContextFeatures:
    """A direction drawn at random for every word, weighted: the same for the same word in every run, and so public."""
    weights = _FREQUENT / (_FREQUENT + public_frequencies(len(vocabulary)))  # (weights)
    rows = np.empty((len(vocabulary), dimension))
    for row, word in enumerate(vocabulary.words):
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        seed = int.from_bytes(digest[:8], "big")
        rows[row] = RandomBits.keyed(seed_bytes(b"dptext context features", seed)).normal(dimension)
    return ContextFeatures.of(rows * weights[:, None] / np.sqrt(dimension), vocabulary.unknown_row)
