"""Nearest words, and MAP-Word and MAP-Char of dpUGC (Vu et al. 2019), which compare them with a gold model.

For a query, both models list their K nearest words by cosine. Each rank r of the list under test is a *hit* or not.
The average precision is the mean over hits of (hits up to r) / r, and 0 without a hit. MAP is its mean over queries.

* **MAP-Word**: a hit is a word among the K words of the gold model.
* **MAP-Char**: the words of each list are joined without separators; rank r is the r-th character, and a hit is a
  character that occurs among the *first r characters* of the gold model's string.

The paper leaves open the divisor of the precisions and the comparison in MAP-Char. Both follow the authors' published
code and agree with its table 2: eleven of its twelve numbers are reproduced (within .0001, reading 3.814 as .3814).
Where it prints .1347 for "eight" this definition gives .2347.

Dividing by the number of hits instead of K (``per="relevant"``, as in information retrieval) counts one lucky first
word as 1. MAP-Char hardly depends on the model: after the first hundred characters nearly every letter is a hit, and
lists of random English words reach .88, the value of all models in the paper's figure. *Both scores are therefore
compared with lists of random words.*
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.intervals import Estimate, mean_of_people
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_choice, check_int
from dptext.vectors.word_vectors import WordVectors

PAPER_QUERIES = ("been", "time", "over", "not", "three", "between", "from", "eight", "they", "more", "other")
_RANDOM_LISTS = 20


@dataclass(frozen=True)
class Neighbours:
    """The nearest words of a query, nearest first, without itself and ``"<unk>"``."""

    query: str
    words: tuple[str, ...]
    cosines: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class MapScore:
    """Agreement of neighbours with a gold model, the baseline of random words, and the precision of each query."""

    measure: str
    score: Estimate
    baseline: float
    baseline_name: str
    by_query: dict[str, float]
    top: int

    def __str__(self) -> str:
        return f"{self.measure} {self.score} against {self.baseline:.3f} ({self.baseline_name})"


def neighbours(vectors: WordVectors, queries: Iterable[str], *, top: int = 10) -> list[Neighbours]:
    """Return the nearest words by cosine, exactly.

    >>> vectors = WordVectors(["<unk>", "cat", "dog", "tax"], [[0.0, 0.1], [1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> neighbours(vectors, ["cat"], top=2)[0].words
    ('dog', 'tax')
    """
    requested = [queries] if isinstance(queries, str) else list(queries)
    if not requested:
        raise ParameterError("queries must hold at least one word, got none")
    top = check_int("top", top, minimum=1, maximum=len(vectors) - 2)
    unknown = vectors.vocabulary.unknown_row
    rows = [vectors.vocabulary.row(word) for word in requested]
    if unknown in rows:
        raise ParameterError(f"queries: word {rows.index(unknown)} has no vector")
    points = vectors.matrix.astype(np.float64)
    lengths = np.linalg.norm(points, axis=1)
    points /= np.where(lengths > 0, lengths, 1.0)[:, None]
    result = []
    for word, row in zip(requested, rows, strict=True):
        cosines = points @ points[row]
        cosines[[row, unknown]] = -np.inf
        nearest = np.lexsort((np.arange(cosines.size), -cosines))[:top]
        result.append(
            Neighbours(word, tuple(vectors.words[entry] for entry in nearest), tuple(cosines[nearest].tolist()))
        )
    return result


def neighbour_table(models: dict[str, WordVectors], queries: Iterable[str], *, top: int = 4) -> str:
    """Return a Markdown table of neighbours, one column per model, as table 2 of the paper.

    >>> vectors = WordVectors(["<unk>", "cat", "dog", "tax"], [[0.0, 0.1], [1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> print(neighbour_table({"gold": vectors}, ["cat"], top=2))
    | query | gold |
    |---|---|
    | cat | dog, tax |
    """
    requested = list(queries)
    lists = [neighbours(vectors, requested, top=top) for vectors in models.values()]
    rows = [[query, *(", ".join(result[place].words) for result in lists)] for place, query in enumerate(requested)]
    lines = [["query", *models], ["---"] * (len(models) + 1), *rows]
    return "\n".join("|---" * len(line) + "|" if line[0] == "---" else f"| {' | '.join(line)} |" for line in lines)


def map_score(
    vectors: WordVectors,
    gold: WordVectors,
    *,
    measure: str = "MAP-Word",
    queries: Sequence[str] = PAPER_QUERIES,
    top: int = 100,
    per: str = "hits",
    seed: int | None = None,
) -> MapScore:
    """Return MAP-Word or MAP-Char against a gold model; ``per`` is "hits", as printed, or "relevant" (MAP-Word)."""
    check_choice("measure", measure, ("MAP-Word", "MAP-Char"))
    if per not in ("hits", "relevant") or (measure == "MAP-Char" and per != "hits"):
        raise ParameterError(f"per must be 'hits', or for MAP-Word also 'relevant', got {per!r}")
    right = neighbours(gold, queries, top=top)
    result = neighbours(vectors, queries, top=top)
    bits = RandomBits(seed)

    def precision(words: Sequence[str], gold_words: Sequence[str]) -> float:
        if measure == "MAP-Char":
            return character_precision(words, gold_words)
        return word_precision(words, gold_words, per=per)

    values = np.array([precision(one.words, other.words) for one, other in zip(result, right, strict=True)])
    blind = [
        precision(_random_words(vectors, query, top, bits), other.words)
        for query, other in zip(queries, right, strict=True)
        for _ in range(_RANDOM_LISTS)
    ]
    score = mean_of_people(values, np.arange(values.size))
    return MapScore(
        measure=measure,
        score=Estimate(score.value, score.low, score.high, score.count, "queries"),
        baseline=float(np.mean(blind)),
        baseline_name="random words",
        by_query=dict(zip(queries, values.tolist(), strict=True)),
        top=top,
    )


def word_precision(words: Sequence[str], gold: Sequence[str], *, per: str = "hits") -> float:
    """Return the average precision of words.

    >>> word_precision(["cornerback", "four", "stockholders", "zero"], ["seven", "nine", "six", "four"])
    0.5
    """
    right = frozenset(gold)
    hits = np.array([word in right for word in words], dtype=bool)
    return _average_precision(hits, None if per == "hits" else len(gold))


def character_precision(words: Sequence[str], gold: Sequence[str]) -> float:
    """Return the average precision of the characters of joined words.

    >>> round(character_precision(["zero", "one", "feeder", "nine"], ["four", "two", "five", "seven"]), 4)
    0.3814
    """
    text, right = "".join(words), "".join(gold)
    first: dict[str, int] = {}
    for place, character in enumerate(right):
        first.setdefault(character, place)
    hits = np.array([first.get(character, len(text)) <= place for place, character in enumerate(text)], dtype=bool)
    return _average_precision(hits, None)


def _average_precision(hits: npt.NDArray[np.bool_], relevant: int | None) -> float:
    precision = np.cumsum(hits) / np.arange(1, hits.size + 1)
    total = float(precision[hits].sum())
    divisor = int(hits.sum()) if relevant is None else relevant
    return total / divisor if divisor else 0.0


def _random_words(vectors: WordVectors, query: str, top: int, bits: RandomBits) -> list[str]:
    left_out = {vectors.vocabulary.row(query), vectors.vocabulary.unknown_row}
    order = np.argsort(bits.integers(len(vectors)), kind="stable")[: top + len(left_out)]
    return [vectors.words[row] for row in order if int(row) not in left_out][:top]
