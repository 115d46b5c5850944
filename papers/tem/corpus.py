"""The reviews as rows of word ids, and the quarters of a trial."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from papers.imdb import Review
from papers.tem.fasttext import Ragged

from dptext import TEM, WordVectors
from dptext.privacy.randomness import RandomBits
from dptext.text.tokens import pieces
from dptext.words.replacing import Codes

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Reviews without what is not a word.

    Attributes:
        ids: for each review the rows of its words in the vocabulary; unknown ones are ``"<unk>"``.
        positive: (n,) labels, 0 or 1.
        train: (n,) whether it is from the train part of the collection.
    """

    ids: Ragged
    positive: Ids
    train: npt.NDArray[np.bool_]

    def frequencies(self, words: int) -> npt.NDArray[np.float64]:
        """(words,) how often each word occurs."""
        return np.bincount(self.ids.values, minlength=words).astype(np.float64)


@dataclass(frozen=True)
class Quarters:
    """Indices of reviews: TR1 trains the target, TR2 does not; TE1 tests it; TE2 trains the shadow model."""

    tr1: Ids
    tr2: Ids
    te1: Ids
    te2: Ids


def read_corpus(reviews: Iterable[Review], vectors: WordVectors) -> Corpus:
    """Cut into words once: what follows works on integers."""
    codes = Codes(TEM(vectors, epsilon=1.0))
    rows, positive, train = [], [], []
    for review in reviews:
        tokens = pieces(review.text)
        result = np.fromiter(map(codes.__getitem__, tokens), dtype=np.int64, count=len(tokens))
        rows.append(result[result >= 0])  # numbers, addresses and punctuation are no words
        positive.append(review.positive)
        train.append(review.train)
    return Corpus(Ragged.of(rows), np.array(positive, dtype=np.int64), np.array(train))


def quarters(corpus: Corpus, *, reviews: int | None, seed: int) -> Quarters:
    """Halves of the train and of the test part at random, as many positive as negative reviews in each.

    Args:
        corpus: all reviews.
        reviews: how many a quarter; None: as many as there are.
        seed: of the trial.
    """
    bits = RandomBits(seed)
    result: list[Ids] = []
    for part in (corpus.train, ~corpus.train):
        sides = [np.flatnonzero(part & (corpus.positive == label)) for label in (0, 1)]
        size = min(side.size // 2 for side in sides)
        size = size if reviews is None else min(size, reviews // 2)
        mixed = [shuffled(side, bits) for side in sides]
        result += [shuffled(np.concatenate([side[half * size :][:size] for side in mixed]), bits) for half in (0, 1)]
    return Quarters(*result)


def shuffled(ids: Ids, bits: RandomBits) -> Ids:
    order: Ids = ids[np.argsort(bits.integers(ids.size), kind="stable")]
    return order
