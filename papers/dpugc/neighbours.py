"""Nearest words, and MAP-Word and MAP-Char of dpUGC (Vu et al. 2019), which compare them with a gold model.

For a query, both models list their K nearest words by cosine. Each rank r of the list under test is a *hit* or not.
The average precision is the mean over hits of (hits up to r) / r, and 0 without a hit. MAP is its mean over queries.

* **MAP-Word**: a hit is a word among the K words of the gold model.
* **MAP-Char**: the words of each list are joined without separators; rank r is the r-th character, and a hit is a
  character that occurs among the *first r characters* of the gold model's string.

The paper leaves open the divisor of the precisions and the comparison in MAP-Char. Both follow the authors' published
code and agree with its table 2: eleven of its twelve numbers are reproduced (within .0001, reading 3.814 as .3814).
Where it prints .1347 for "eight" this definition gives .2347.

Dividing by the number of possible hits K, as in information retrieval, instead of the number of hits, avoids that one
lucky first word counts as 1. MAP-Char hardly depends on the model: after the first hundred characters nearly every
letter is a hit, and lists of random English words reach .88, the value of all models in the paper's figure. *Both
scores are therefore compared with lists of random words.*
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.vectors.word_vectors import WordVectors

PAPER_QUERIES = ("been", "time", "over", "not", "three", "between", "from", "eight", "they", "more", "other")
TOP = 100
_RANDOM_LISTS = 20


def neighbours(vectors: WordVectors, queries: Sequence[str], *, top: int = 10) -> list[list[str]]:
    """Return the nearest words of each query by cosine, exactly, without itself and ``"<unk>"``.

    >>> vectors = WordVectors(["<unk>", "cat", "dog", "tax"], [[0.0, 0.1], [1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> neighbours(vectors, ["cat"], top=2)
    [['dog', 'tax']]
    """
    unknown = vectors.vocabulary.unknown_row
    rows = [vectors.vocabulary.row(word) for word in queries]
    if unknown in rows:
        raise ParameterError(f"queries: word {rows.index(unknown)} has no vector")
    points = vectors.matrix.astype(np.float64)
    lengths = np.linalg.norm(points, axis=1)
    points /= np.where(lengths > 0, lengths, 1.0)[:, None]
    result = []
    for row in rows:
        cosines = points @ points[row]
        cosines[[row, unknown]] = -np.inf
        nearest = np.lexsort((np.arange(cosines.size), -cosines))[:top]
        result.append([vectors.words[entry] for entry in nearest])
    return result


def map_numbers(vectors: WordVectors, gold: WordVectors) -> dict[str, float]:
    """Return MAP-Word and MAP-Char against a gold model, with the precision of each query and of random words."""
    gold_lists = neighbours(gold, PAPER_QUERIES, top=TOP)
    lists = neighbours(vectors, PAPER_QUERIES, top=TOP)
    result: dict[str, float] = {}
    for measure, precision in (("MAP-Word", word_precision), ("MAP-Char", character_precision)):
        bits = RandomBits(1)
        values = [precision(words, target) for words, target in zip(lists, gold_lists, strict=True)]
        random = [
            precision(_random_words(vectors, query, bits), target)
            for query, target in zip(PAPER_QUERIES, gold_lists, strict=True)
            for _ in range(_RANDOM_LISTS)
        ]
        result |= {measure: float(np.mean(values)), f"{measure} random": float(np.mean(random))}
        result |= {f"{measure} {query}": value for query, value in zip(PAPER_QUERIES, values, strict=True)}
    return result


def map_per_list(vectors: WordVectors, gold: WordVectors) -> dict[str, float]:
    """Return MAP-Word divided by the number of possible hits."""
    lists = [neighbours(entry, PAPER_QUERIES, top=TOP) for entry in (vectors, gold)]
    values = [word_precision(words, target, divisor=TOP) for words, target in zip(*lists, strict=True)]
    return {"MAP-Word per 100": float(np.mean(values))}


def frequent_words_numbers(words: Sequence[str], gold: WordVectors) -> dict[str, float]:
    """Return the scores of the most frequent words as neighbours of every query, a baseline."""
    result: dict[str, float] = {}
    for query, target in zip(PAPER_QUERIES, neighbours(gold, PAPER_QUERIES, top=TOP), strict=True):
        frequent = [word for word in words if word != query][:TOP]
        result[f"MAP-Word {query}"] = word_precision(frequent, target)
        result[f"MAP-Char {query}"] = character_precision(frequent, target)
    return result


def neighbour_table(models: Mapping[str, WordVectors], queries: Sequence[str]) -> list[list[str]]:
    """Return the lines of table 2 of the paper: a query, and its four nearest words in each model."""
    lists = [neighbours(vectors, queries, top=4) for vectors in models.values()]
    return [[query, *(", ".join(result[place]) for result in lists)] for place, query in enumerate(queries)]


def word_precision(words: Sequence[str], gold: Sequence[str], *, divisor: int | None = None) -> float:
    """Return the average precision of words.

    >>> word_precision(["cornerback", "four", "stockholders", "zero"], ["seven", "nine", "six", "four"])
    0.5
    """
    right = frozenset(gold)
    return _average_precision(np.array([word in right for word in words], dtype=bool), divisor)


def character_precision(words: Sequence[str], gold: Sequence[str]) -> float:
    """Return the average precision of the characters of joined words.

    >>> round(character_precision(["zero", "one", "feeder", "nine"], ["four", "two", "five", "seven"]), 4)
    0.3814
    """
    text, first = "".join(words), dict[str, int]()
    for place, character in enumerate("".join(gold)):
        first.setdefault(character, place)
    hits = [first.get(character, len(text)) <= place for place, character in enumerate(text)]
    return _average_precision(np.array(hits, dtype=bool), None)


def _average_precision(hits: npt.NDArray[np.bool_], divisor: int | None) -> float:
    precision = np.cumsum(hits) / np.arange(1, hits.size + 1)
    count = int(hits.sum()) if divisor is None else divisor
    return float(precision[hits].sum()) / count if count else 0.0


def _random_words(vectors: WordVectors, query: str, bits: RandomBits) -> list[str]:
    left_out = {vectors.vocabulary.row(query), vectors.vocabulary.unknown_row}
    order = np.argsort(bits.integers(len(vectors)), kind="stable")[: TOP + len(left_out)]
    return [vectors.words[row] for row in order if int(row) not in left_out][:TOP]
