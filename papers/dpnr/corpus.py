"""Training and test texts as buckets of n-grams, hashed once and kept in a work folder; words masked on the device."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from papers.data_sets import LabelledTexts

from dptext.privacy.randomness import RandomBits
from dptext.representations.trained_encoders import Buckets, NGrams

NGRAMS = NGrams(max_words=2, buckets=1 << 18)
Labels = npt.NDArray[np.intp]
Read = Callable[[], tuple[LabelledTexts, LabelledTexts]]


@dataclass(frozen=True, eq=False)
class Corpus:
    """One data set."""

    train: Buckets
    train_labels: Labels
    test: Buckets
    test_labels: Labels

    @property
    def classes(self) -> int:
        return int(self.test_labels.max()) + 1

    @property
    def majority(self) -> float:
        """The share of the most frequent class among those tested: what whoever sees no vector reaches."""
        return float(np.bincount(self.test_labels).max() / self.test_labels.size)

    def times(self, texts: int) -> int:
        """How often each training text has to be there for about so many."""
        return max(1, round(texts / len(self.train)))

    @property
    def digest(self) -> str:
        result = hashlib.sha256()
        for value in (self.train.values, self.train.starts, self.train_labels, self.test.values, self.test_labels):
            result.update(value.tobytes())
        return result.hexdigest()[:16]


def prepare(name: str, read: Read, work: Path, *, train_rows: int, test_rows: int | None) -> Path:
    """The file with a data set hashed, made if it is not there.

    Args:
        name: of the set.
        read: gives (training, test) texts.
        work: folder for the file; it holds hashed texts and must not be shared where the texts must not.
        train_rows: how many training texts at most: drawn at random, the same each time.
        test_rows: as many test texts; None: all.
    """
    path = work / f"{name} {train_rows} {test_rows}.npz"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        parts = {}
        for part, texts, maximum in zip(("train", "test"), read(), (train_rows, test_rows), strict=True):
            order = np.argsort(RandomBits(seed=1).uniform(len(texts.texts)), kind="stable")[:maximum]
            hashed = NGRAMS.of(texts.texts[place] for place in order)
            parts |= {f"{part}_values": hashed.values.astype(np.int32), f"{part}_starts": hashed.starts}
            parts |= {f"{part}_labels": texts.labels[order]}
        partial = path.with_suffix(".part.npz")
        np.savez(partial, **parts)
        partial.rename(path)
    return path


@lru_cache(maxsize=2)
def read(path: Path) -> Corpus:
    """What `prepare` made."""
    with np.load(path) as result:
        train, test = (
            Buckets(result[f"{part}_values"].astype(np.int64), result[f"{part}_starts"]) for part in ("train", "test")
        )
        return Corpus(train, result["train_labels"], test, result["test_labels"])


@lru_cache(maxsize=1)
def repeated(corpus: Corpus, texts: int) -> Corpus:
    """Each training text so many times that an epoch has about as many steps as one of so many texts."""
    times = corpus.times(texts)
    if times == 1:
        return corpus
    rows = np.tile(np.arange(len(corpus.train)), times)
    return replace(corpus, train=corpus.train.take(rows), train_labels=corpus.train_labels[rows])


def masked(texts: Buckets, mu: float, bits: RandomBits) -> Buckets:
    """Each word masked with chance mu; no n-gram is left of which a word is masked."""
    return NGRAMS.masked(texts, bits.uniform(int(NGRAMS.words_in(texts).sum())) > mu)
