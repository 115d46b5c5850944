"""Do word vectors agree with people about which words are alike? WordSim-353, SimLex-999, MEN and lists like them.

People rated pairs of words; the score is Spearman's rank correlation of their ratings with the cosine of the vectors,
0 for vectors that know nothing.

**Missing words.** A pair of which a word is missing has no cosine. Leaving such pairs out is the custom, and flatters
a small vocabulary: it is tested on the frequent, easy words. The other way keeps every pair and gives those without
a cosine the mean of the others. Which one was taken stands in the result, and so does the coverage: two scores are
comparable at equal coverage only. `compare_similarity` looks at the pairs that two sets of vectors share.

**Intervals** come from a bootstrap over pairs. Pairs share words, so they are a little too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, StorageError, extra
from dptext.intervals import Estimate, over_people
from dptext.validation import check_choice
from dptext.vectors.word_vectors import WordVectors

RatedPair: TypeAlias = tuple[str, str, float]
Floats: TypeAlias = npt.NDArray[np.float64]

BENCHMARKS = {
    "WordSim-353": "EN-WS-353-ALL.txt",
    "SimLex-999": "EN-SIMLEX-999.txt",
    "MEN": "EN-MEN-TR-3k.txt",
}
"""Finkelstein et al. 2002, Hill et al. 2015, Bruni et al. 2014; files as in the collection of Faruqui and Dyer 2014."""


@dataclass(frozen=True, kw_only=True)
class SimilarityScore:
    """How well vectors agree with people about pairs of words.

    Attributes:
        benchmark: whose ratings.
        score: Spearman's correlation, with its interval over pairs.
        baseline: 0, of vectors that know nothing.
        pairs: in the list.
        covered: of these, pairs of which both words have a vector.
        missing: what became of the others: "left out", or "average" (they have the mean cosine).
    """

    benchmark: str
    score: Estimate
    baseline: float = 0.0
    pairs: int
    covered: int
    missing: str

    @property
    def coverage(self) -> float:
        """The share of pairs of which both words have a vector."""
        return self.covered / self.pairs

    def __str__(self) -> str:
        return (
            f"{self.benchmark}: Spearman {self.score} ({self.covered:,} of {self.pairs:,} pairs, others {self.missing})"
        )


def read_pairs(folder: str | Path, benchmark: str) -> list[RatedPair]:
    """The pairs of a benchmark, from a folder that holds its file (`BENCHMARKS`, or two words and a number a line).

    Raises:
        StorageError: the file cannot be read.
        DataError: a line is something else; its number is named.
    """
    path = Path(folder) / BENCHMARKS.get(benchmark, benchmark)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: expected UTF-8") from None
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
    _ratings(pairs)
    return pairs


def similarity(
    vectors: WordVectors,
    pairs: Iterable[RatedPair],
    *,
    benchmark: str = "pairs",
    missing: str = "left out",
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int | None = None,
) -> SimilarityScore:
    """Spearman's correlation of ratings with cosines.

    Args:
        vectors: words are looked up with case folded.
        pairs: (word, word, rating); see `read_pairs`.
        benchmark: its name, for the result.
        missing: what happens to pairs without a cosine: "left out" or "average".
        resamples, confidence, seed: of the interval.

    Raises:
        ParameterError: fewer than three pairs with both words, ratings that are no numbers or all the same.

    >>> vectors = WordVectors(["<unk>", "cat", "dog", "tax"], [[0.0, 0.1], [1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> rated = [("cat", "dog", 9.0), ("cat", "tax", 1.0), ("dog", "tax", 2.0), ("cat", "zebra", 5.0)]
    >>> found = similarity(vectors, rated, seed=1)
    >>> found.score.value, found.covered, found.coverage
    (1.0, 3, 0.75)
    """
    check_choice("missing", missing, ("left out", "average"))
    rated = list(pairs)
    ratings, cosines = _ratings(rated), _cosines(vectors, rated)
    there = np.isfinite(cosines)
    covered = int(there.sum())
    if covered < 3:
        raise ParameterError(f"pairs: both words of at least 3 pairs must have a vector, got {covered}")
    if missing == "left out":
        ratings, cosines = ratings[there], cosines[there]
    else:
        cosines = np.where(there, cosines, cosines[there].mean())
    fields: dict[str, Any] = {"resamples": resamples, "confidence": confidence, "seed": seed}
    score = _over_pairs(_spearman(ratings, cosines), len(ratings), bounds=(-1.0, 1.0), **fields)
    return SimilarityScore(benchmark=benchmark, score=score, pairs=len(rated), covered=covered, missing=missing)


def compare_similarity(
    first: WordVectors,
    second: WordVectors,
    pairs: Iterable[RatedPair],
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int | None = None,
) -> Estimate:
    """How much better the first vectors agree with people than the second, on the pairs that both cover.

    The two answer the same pairs, so their difference is more certain than either score.

    Raises:
        ParameterError: see `similarity`.
    """
    rated = list(pairs)
    ratings = _ratings(rated)
    one, other = (_cosines(vectors, rated) for vectors in (first, second))
    there = np.isfinite(one) & np.isfinite(other)
    if there.sum() < 3:
        raise ParameterError(f"pairs: both vectors must cover at least 3 of the same pairs, got {there.sum()}")
    ones, others = (_spearman(ratings[there], entry[there]) for entry in (one, other))
    fields: dict[str, Any] = {"resamples": resamples, "confidence": confidence, "seed": seed}
    return _over_pairs(lambda rows: ones(rows) - others(rows), int(there.sum()), **fields)


def _ratings(pairs: Sequence[RatedPair]) -> Floats:
    try:
        ratings = np.array([float(rating) for _, _, rating in pairs])
    except (TypeError, ValueError):
        raise ParameterError("pairs must be (word, word, rating), got something else") from None
    if not np.isfinite(ratings).all():
        raise ParameterError(f"pairs: rating {int(np.argmin(np.isfinite(ratings)))} is not a finite number")
    if np.unique(ratings).size < 2:
        raise ParameterError("pairs: the ratings must differ, got none or all the same")
    return ratings


def _cosines(vectors: WordVectors, pairs: Sequence[RatedPair]) -> Floats:
    """(pairs,) cosines, NaN where a word has no vector (or one without a direction)."""
    unknown = vectors.vocabulary.unknown_row
    rows = np.array([[vectors.vocabulary.row(word) for word in pair[:2]] for pair in pairs])
    points = vectors.matrix[rows].astype(np.float64)
    lengths = np.linalg.norm(points, axis=2)
    there = (rows != unknown).all(axis=1) & (lengths > 0).all(axis=1)
    products = (points[:, 0] * points[:, 1]).sum(axis=1)
    cosines = np.full(len(pairs), np.nan)
    np.divide(products, lengths.prod(axis=1), out=cosines, where=there)
    return cosines


def _spearman(ratings: Floats, cosines: Floats) -> Callable[[npt.NDArray[np.int64]], float]:
    rank = extra("scipy.stats", "audit", "a rank correlation").rankdata

    def correlation(rows: npt.NDArray[np.int64]) -> float:
        one, other = rank(ratings[rows]), rank(cosines[rows])
        one, other = one - one.mean(), other - other.mean()
        size = float(np.sqrt((one @ one) * (other @ other)))
        return float(one @ other) / size if size else float("nan")

    return correlation


def _over_pairs(statistic: Callable[[npt.NDArray[np.int64]], float], count: int, **options: Any) -> Estimate:
    return replace(over_people(statistic, np.arange(count), **options), of="pairs")
