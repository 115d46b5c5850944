"""Private texts, public pools and test texts: news, reviews, blogs."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import AGES, Posts, bloggers, posts_for, sample_posts
from papers.data_sets import AG_NEWS_CLASSES, LabelledTexts, ag_news, imdb_reviews, mrpc, wikitext_users, yelp
from papers.reports import torch_device

from dptext import Document, SentenceEncoder
from dptext.privacy.statement import Parameter
from dptext.representations.encoders import Progress, Vectors, check_texts

Labels = npt.NDArray[np.intp]
NAMES = {
    "news": ("world politics news", "sports", "business", "science and technology"),
    "reviews": ("a negative review, bad", "a positive review, good"),
}
"""Names of labels that are compared with texts; chosen before any result."""
_WORDS = 60  # of a post
_SENTENCE = re.compile(r"(?<=[.!?]) +")


@dataclass(frozen=True, eq=False)
class Split:
    """One split of a data set.

    ``texts, labels, people``: the private documents and their authors. ``test, test_labels``: other real documents.
    """

    texts: tuple[str, ...]
    labels: Labels
    people: Labels
    pool: tuple[str, ...]  # public texts
    truth: Labels | None  # labels of the pool, if it has any; used only to count correct labels
    test: tuple[str, ...]
    test_labels: Labels
    classes: tuple[str, ...]  # names of labels

    def documents(self, rows: Labels | None = None) -> list[Document]:
        places = range(len(self.texts)) if rows is None else rows.tolist()
        return [
            Document(self.texts[row], user=f"person {self.people[row]}", label=self.classes[self.labels[row]])
            for row in places
        ]

    def first(self, count: int, rarest: int | None = None) -> Labels:
        """Return the first rows; ``rarest`` limits those of the first class."""
        rows = np.arange(len(self.texts))
        if rarest is not None:
            rows = np.setdiff1d(rows, np.flatnonzero(self.labels == 0)[rarest:])
        return rows[:count]


def shuffled(count: int, seed: int) -> Labels:
    """Return a permutation, the same each time."""
    return np.random.default_rng(seed).permutation(count)  # noqa: TID251  splits of data are no secret


def select(texts: Sequence[str], rows: Labels) -> tuple[str, ...]:
    return tuple(texts[row] for row in rows.tolist())


# -- pools ----------------------------------------------------------------------------------------------------


@cache
def newswire(data: Path) -> tuple[str, ...]:
    """Return both sentences of all pairs of MRPC."""
    parts = mrpc(data)
    assert parts.others is not None
    return tuple(dict.fromkeys(text for part in (parts.train, parts.test, *parts.others) for text in part.texts))


@cache
def wikipedia(data: Path) -> tuple[str, ...]:
    """Return 12,000 sentences of WikiText-2 with 8 to 60 words."""
    sentences = []
    for document in wikitext_users(data):
        text = re.sub(r" @(.)@ ", r"\1", document.text or "")
        sentences += [" ".join(sentence.split()) for sentence in _SENTENCE.split(text)]
    sentences = list(dict.fromkeys(sentence for sentence in sentences if 8 <= len(sentence.split()) <= 60))
    return select(sentences, np.sort(shuffled(len(sentences), 0)[:12_000]))


@cache
def restaurants(data: Path) -> tuple[str, ...]:
    """Return 6,000 sentences of restaurant reviews with at least 5 words."""
    texts = [text for text in yelp(data, ("dev",)).texts if len(text.split()) >= 5]
    return select(texts, np.sort(shuffled(len(texts), 0)[:6000]))


# -- news and reviews: a document is protected -------------------------------------------------------------------


@cache
def _ag_news(data: Path) -> tuple[LabelledTexts, LabelledTexts]:
    train, test = ag_news(data)
    return train, test.take(shuffled(len(test.texts), 0)[:4000])


def news(data: Path, seed: int, pool: str = "news") -> Split:
    """Return AG News: all available training rows in an order of the seed, and 4,000 test rows."""
    train, test = _ag_news(data)
    order = shuffled(len(train.texts), seed)
    pools = {
        "news": (*newswire(data), *wikipedia(data), *restaurants(data)),
        "no news": (*wikipedia(data), *restaurants(data)),
        "restaurants": restaurants(data),
    }
    private = train.take(order)
    return Split(private.texts, private.labels, order, pools[pool], None, test.texts, test.labels, AG_NEWS_CLASSES)


@cache
def _imdb(data: Path) -> LabelledTexts:
    """Return 14,000 reviews, drawn from all 50,000."""
    reviews = list(imdb_reviews(data))
    rows = shuffled(len(reviews), 0)[:14_000].tolist()
    return LabelledTexts.of((reviews[row].text, reviews[row].label) for row in rows)


def imdb(data: Path, seed: int, pool: str = "reviews") -> Split:
    """Return IMDb: 5,000 private reviews, a pool of 6,000 others without their labels, and 3,000 for tests."""
    reviews = _imdb(data)
    order = shuffled(len(reviews.texts), seed)
    private, others, test = (reviews.take(rows) for rows in (order[:5000], order[5000:11_000], order[11_000:]))
    texts: tuple[str, ...] = others.texts
    if pool == "no reviews of films":
        texts = (*newswire(data)[:6000], *wikipedia(data), *restaurants(data))
    return Split(
        private.texts,
        private.labels,
        order[:5000],
        texts,
        others.labels if pool == "reviews" else None,
        test.texts,
        test.labels,
        ("negative", "positive"),
    )


# -- blogs: a person is protected --------------------------------------------------------------------------------


@cache
def _posts(data: Path, label: str) -> tuple[Posts, npt.NDArray[np.str_]]:
    """Return up to 20 posts of each blogger, and their labels."""
    people = list(bloggers(data))
    if label == "topic":
        posts = posts_for("topic", people, max_posts=20, min_bloggers=50)
        return posts, posts.labels
    posts = sample_posts("industry", people, max_posts=20)
    return posts, posts.attributes[label]


def blogs(data: Path, seed: int, label: str, *, joined: bool = False) -> Split:
    """Return blogs: half of the bloggers are private, a quarter are the pool without labels, a quarter for tests.

    ``joined``: the posts of a blogger are one text of 60 words, except in the pool.
    """
    posts, names = _posts(data, label)
    classes = AGES if label == "age" else tuple(np.unique(names).tolist())
    labels = np.array([classes.index(name) for name in names.tolist()])
    count = int(posts.people.max()) + 1
    place = np.empty(count, dtype=np.intp)
    place[shuffled(count, seed)] = np.arange(count)
    part = np.searchsorted([count // 2, count // 2 + count // 4], place[posts.people], side="right")
    texts = [" ".join(html.unescape(text).split()[:_WORDS]) for text in posts.texts]
    rows = [np.flatnonzero(part == index) for index in range(3)]
    private, public, test = (select(texts, chosen) for chosen in rows)
    people, private_labels, test_labels = posts.people[rows[0]], labels[rows[0]], labels[rows[2]]
    if joined:
        private, people, private_labels = _join_posts(private, people, private_labels)
        test, _, test_labels = _join_posts(test, posts.people[rows[2]], test_labels)
    return Split(private, private_labels, people, public, labels[rows[1]], test, test_labels, classes)


def _join_posts(texts: Sequence[str], people: Labels, labels: Labels) -> tuple[tuple[str, ...], Labels, Labels]:
    """Return one text, author and label for each person."""
    authors, first, place = np.unique(people, return_index=True, return_inverse=True)
    words: list[list[str]] = [[] for _ in authors]
    for text, author in zip(texts, place.tolist(), strict=True):
        words[author] += text.split()
    return tuple(" ".join(part[:_WORDS]) for part in words), authors, labels[first]


_BATCH = 512


class CachedSentences:
    """All-MiniLM-L6-v2 with a maximum number of tokens per text; vectors stay in memory."""

    name = "sentence-transformers, kept"
    dimension = 384

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self._vectors: dict[str, Vectors] = {}

    @cached_property
    def _model(self) -> Any:
        model = SentenceEncoder(device=torch_device(), threads=1)._loaded
        model.max_seq_length = self.tokens
        return model

    def encode(self, texts: Iterable[str | None], *, progress: Progress | None = None) -> Vectors:
        values = check_texts(texts)
        digests = [_digest(text) for text in values]
        missing = {text for text, digest in zip(values, digests, strict=True) if digest not in self._vectors}
        by_length = sorted(missing, key=len)
        for start in range(0, len(by_length), _BATCH):
            part = by_length[start : start + _BATCH]
            vectors = self._model.encode(part, batch_size=32, show_progress_bar=False, convert_to_numpy=True)
            self._vectors.update(zip(map(_digest, part), vectors.astype(np.float32), strict=True))
        if progress is not None:
            progress(len(values))
        if not values:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.stack([self._vectors[digest] for digest in digests])

    def parameters(self) -> dict[str, Parameter]:
        return {"encoder": self.name, "encoder_dimension": self.dimension, "encoder_tokens": self.tokens}

    def assumptions(self) -> tuple[str, ...]:
        return ("the sentence model is public",)


def unit_rows(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return rows of length 1; zero rows stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _digest(text: str) -> str:
    """Return a digest of the words: a tokenizer ignores the spaces between them."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest()[:32]
