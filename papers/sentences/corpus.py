"""Private texts and public banks: sentences of restaurant reviews, news, reviews of films, questions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from papers.data_sets import LabelledTexts, snips, yelp
from papers.synthesis import corpus as documents
from papers.synthesis.corpus import newswire, shuffled, wikipedia

MIN_WORDS, MAX_WORDS = 10, 14
"""Length of a private sentence."""
_SENTENCES, _LEARNED, _BANK, _DOCUMENTS = 300, 20_000, 20_000, 5000
NO_LABELS = np.array([], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Split:
    """One split of a data set.

    Attributes:
        private: 300 sentences of 10 to 14 words, or 5,000 documents.
        other: 20,000 other sentences, to train a classifier of sentiment; or test documents.
        banks: public texts by name, without texts of the first two, with labels if they have any.
        max_words: number of words of a document that word mechanisms protect; later words are dropped.
    """

    private: LabelledTexts
    other: LabelledTexts
    banks: dict[str, LabelledTexts]
    max_words: int


def split_of(data: Path, name: str, seed: int) -> Split:
    return {"sentences": _sentences, "news": _news, "reviews": _reviews}[name](data, seed)


@cache
def _yelp(data: Path) -> LabelledTexts:
    return yelp(data)


@cache
def _sentences(data: Path, seed: int) -> Split:
    result = _yelp(data)
    order = shuffled(len(result.texts), seed).tolist()
    private = [row for row in order if MIN_WORDS <= len(result.texts[row].split()) <= MAX_WORDS][:_SENTENCES]
    chosen = set(private)
    others = [row for row in order if row not in chosen]
    bank = result.take(others[_LEARNED:])
    banks = {
        "20,000": LabelledTexts(bank.texts[:_BANK], NO_LABELS),
        "all": bank,
        "wiki and news": LabelledTexts((*newswire(data), *wikipedia(data)), NO_LABELS),
    }
    return Split(result.take(private), result.take(others[:_LEARNED]), banks, MAX_WORDS)


@cache
def _news(data: Path, seed: int) -> Split:
    """AG News; the banks are newswire, Wikipedia and restaurants, or the other rows."""
    split = documents.news(data, seed)
    rows = LabelledTexts(split.texts, split.labels)
    banks = {
        "wiki and news": LabelledTexts(split.pool, NO_LABELS),
        "own": rows.take(range(_DOCUMENTS, len(split.texts))),
    }
    return Split(rows.take(range(_DOCUMENTS)), LabelledTexts(split.test, split.test_labels), banks, 48)


@cache
def _reviews(data: Path, seed: int) -> Split:
    """IMDb; the bank is 6,000 other reviews, or sentences of newswire, Wikipedia and restaurants."""
    split = documents.imdb(data, seed)
    assert split.truth is not None
    other = documents.imdb(data, seed, "no reviews of films")
    banks = {"own": LabelledTexts(split.pool, split.truth), "wiki and news": LabelledTexts(other.pool, NO_LABELS)}
    private, test = LabelledTexts(split.texts, split.labels), LabelledTexts(split.test, split.test_labels)
    return Split(private, test, banks, 256)


def questions(data: Path, count: int) -> tuple[LabelledTexts, LabelledTexts]:
    """Return questions of the test part of SNIPS (public domain, CC0), and the others as a bank."""
    result = snips(data)
    chosen = result.test.take(shuffled(len(result.test.texts), 0)[:count])
    known = set(chosen.texts)
    return chosen, result.train.take(row for row, text in enumerate(result.train.texts) if text not in known)
