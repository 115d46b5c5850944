"""Private texts and public banks: sentences of restaurant reviews, news, reviews of films, questions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from papers.data_sets import LabelledTexts, snips, yelp
from papers.synthesis import corpus as documents
from papers.synthesis.corpus import newswire, shuffled, wikipedia

Labels = npt.NDArray[np.intp]

_LEAST_WORDS, MOST_WORDS = 10, 14
"""Of a private sentence."""
_SENTENCES, _LEARNT, _BANK = 300, 20_000, 20_000


@dataclass(frozen=True, eq=False)
class Sentences:
    """One division of the sentences of restaurant reviews.

    Attributes:
        private: 300 sentences of 10 to 14 words.
        learnt: 20,000 other ones, for what tells positive from negative sentences.
        banks: by name; none of them holds a sentence of the first two.
    """

    private: LabelledTexts
    learnt: LabelledTexts
    banks: dict[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Documents:
    """One division of documents.

    Attributes:
        private: 5,000 documents.
        banks: by name: public texts, and their labels where they have some that nobody looked at.
        test: real documents that nothing was made of.
        max_words: how many words of a document word mechanisms spend their budget on; what follows is dropped.
    """

    private: LabelledTexts
    banks: dict[str, LabelledTexts]
    test: LabelledTexts
    max_words: int


@cache
def _yelp(data: Path) -> LabelledTexts:
    return yelp(data)


def sentences(data: Path, seed: int) -> Sentences:
    """Divided by the seed."""
    result = _yelp(data)
    order = shuffled(len(result.texts), seed).tolist()
    fit = [row for row in order if _LEAST_WORDS <= len(result.texts[row].split()) <= MOST_WORDS]
    private = fit[:_SENTENCES]
    chosen = set(private)
    others = [row for row in order if row not in chosen]
    bank = [result.texts[row] for row in others[_LEARNT:]]
    return Sentences(
        _rows(result, private),
        _rows(result, others[:_LEARNT]),
        {"20,000": tuple(bank[:_BANK]), "all": tuple(bank), "wiki and news": (*newswire(data), *wikipedia(data))},
    )


def news(data: Path, seed: int) -> Documents:
    """AG News: 5,000 private rows; the banks are newswire, Wikipedia and restaurants, or the other rows."""
    split = documents.news(data, seed)
    rows = LabelledTexts(split.texts, split.labels)
    banks = {
        "wiki and news": LabelledTexts(split.pool, np.array([], dtype=np.intp)),
        "own": _rows(rows, range(5000, len(split.texts))),
    }
    return Documents(_rows(rows, range(5000)), banks, LabelledTexts(split.test, split.test_labels), 48)


def reviews(data: Path, seed: int) -> Documents:
    """IMDb: 5,000 private reviews; the bank is 6,000 others, or sentences of newswire, Wikipedia and restaurants."""
    split = documents.imdb(data, seed)
    assert split.truth is not None
    other = documents.imdb(data, seed, "no reviews of films")
    banks = {
        "own": LabelledTexts(split.pool, split.truth),
        "wiki and news": LabelledTexts(other.pool, np.array([], dtype=np.intp)),
    }
    return Documents(LabelledTexts(split.texts, split.labels), banks, LabelledTexts(split.test, split.test_labels), 256)


def questions(data: Path, count: int) -> tuple[LabelledTexts, LabelledTexts]:
    """SNIPS, which is in the public domain (CC0): questions of the test part, and the others as a bank."""
    result = snips(data)
    requested = _rows(result.test, shuffled(len(result.test.texts), 0)[:count].tolist())
    known = set(requested.texts)
    return requested, _rows(result.train, [row for row, text in enumerate(result.train.texts) if text not in known])


def _rows(found: LabelledTexts, rows: list[int] | range) -> LabelledTexts:
    return LabelledTexts(tuple(found.texts[row] for row in rows), found.labels[list(rows)])
