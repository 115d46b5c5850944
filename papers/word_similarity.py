"""Agreement of word vectors with human ratings of word pairs: WordSim-353, SimLex-999, MEN and similar lists.

The score is Spearman's rank correlation of ratings with cosines, 0 for uninformative vectors.

**Missing words.** A pair with a missing word has no cosine. It is usual to leave such pairs out, which favours a small
vocabulary: only the frequent, easy words are tested. Scores are comparable at equal coverage only.

**Intervals** come from a bootstrap over pairs. Pairs share words, so they are a little too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from papers.bootstrap import over_people

from dptext.errors import DataError, ParameterError, StorageError, extra
from dptext.intervals import Estimate
from dptext.vectors.word_vectors import WordVectors

RatedPair: TypeAlias = tuple[str, str, float]
Floats: TypeAlias = npt.NDArray[np.float64]

BENCHMARKS = {
    "WordSim-353": "EN-WS-353-ALL.txt",
    "SimLex-999": "EN-SIMLEX-999.txt",
    "MEN": "EN-MEN-TR-3k.txt",
    "MTurk-771": "EN-MTurk-771.txt",
    "RG-65": "EN-RG-65.txt",
}
"""Finkelstein et al. 2002, Hill et al. 2015, Bruni et al. 2014, Halawi et al. 2012, Rubenstein and Goodenough 1965;
files as in the collection of Faruqui and Dyer 2014."""


def read_pairs(folder: str | Path, benchmark: str) -> list[RatedPair]:
    """Read a benchmark of `BENCHMARKS`, or any file with two words and a number per line, from a folder."""
    path = Path(folder) / BENCHMARKS.get(benchmark, benchmark)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    pairs = []
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        try:
            first, second, rating = fields
            pairs.append((first, second, float(rating)))
        except ValueError:
            raise DataError(f"{path.name}: line {number}: expected two words and a number") from None
    return pairs


def similarity(
    vectors: WordVectors, pairs: Sequence[RatedPair], *, resamples: int = 1000, seed: int | None = None
) -> Estimate:
    """Return Spearman's correlation of ratings with cosines, on the pairs that have vectors.

    >>> vectors = WordVectors(["<unk>", "cat", "dog", "tax"], [[0.0, 0.1], [1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> rated = [("cat", "dog", 9.0), ("cat", "tax", 1.0), ("dog", "tax", 2.0), ("cat", "zebra", 5.0)]
    >>> result = similarity(vectors, rated, seed=1)
    >>> result.value, result.count
    (1.0, 3)
    """
    ratings, cosines = np.array([rating for _, _, rating in pairs]), cosines_of(vectors, pairs)
    covered = np.isfinite(cosines)
    if covered.sum() < 3:
        raise ParameterError(f"pairs: both words of at least 3 pairs must have a vector, got {covered.sum()}")
    ratings, cosines = ratings[covered], cosines[covered]

    def statistic(rows: npt.NDArray[np.int64]) -> float:
        return spearman(ratings[rows], cosines[rows])

    options: dict[str, Any] = {"resamples": resamples, "seed": seed, "bounds": (-1.0, 1.0)}
    return replace(over_people(statistic, np.arange(len(ratings)), **options), of="pairs")


def cosines_of(vectors: WordVectors, pairs: Sequence[RatedPair]) -> Floats:
    """Return (pairs,) cosines; NaN where a word has no vector or no direction. Words are case-folded."""
    unknown = vectors.vocabulary.unknown_row
    rows = np.array([[vectors.vocabulary.row(word) for word in pair[:2]] for pair in pairs], dtype=np.int64)
    points = vectors.matrix[rows.reshape(-1, 2)].astype(np.float64)
    lengths = np.linalg.norm(points, axis=2).prod(axis=1)
    known = (rows.reshape(-1, 2) != unknown).all(axis=1) & (lengths > 0)
    return np.where(known, (points[:, 0] * points[:, 1]).sum(axis=1) / np.where(known, lengths, 1.0), np.nan)


def spearman(one: Floats, other: Floats) -> float:
    """Return the rank correlation; 0 if all values of a side are equal."""
    return correlation(centred_ranks(one), centred_ranks(other))


def centred_ranks(values: Floats) -> Floats:
    result: Floats = extra("scipy.stats", "audit", "a rank correlation").rankdata(values)
    return result - result.mean()


def correlation(one: Floats, other: Floats) -> float:
    """Return the correlation of centred numbers."""
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size else 0.0
