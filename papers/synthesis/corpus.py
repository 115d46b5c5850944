"""Private texts, public pools and test texts: news, reviews, blogs."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from papers.ag_news import CLASSES, ag_news
from papers.blogs import bloggers
from papers.blogs_posts import AGES, Posts, drawn, posts_for
from papers.data_sets import mrpc, yelp
from papers.imdb import reviews
from papers.made_up_users import wikitext_users

from dptext import Document

Labels = npt.NDArray[np.intp]
NAMES = {
    "news": ("world politics news", "sports", "business", "science and technology"),
    "reviews": ("a negative review, bad", "a positive review, good"),
}
"""What labels are called where texts are compared with their names; chosen before any result."""
_WORDS = 60  # of a post
_SENTENCE = re.compile(r"(?<=[.!?]) +")


@dataclass(frozen=True, eq=False)
class Split:
    """One division of the data.

    Attributes:
        texts, labels, people: the private documents; whose each is.
        pool: public texts.
        truth: of the pool, where it has labels; never used but to count how many are right.
        test, test_labels: real documents that nothing was made of.
        classes: names of labels.
    """

    texts: tuple[str, ...]
    labels: Labels
    people: Labels
    pool: tuple[str, ...]
    truth: Labels | None
    test: tuple[str, ...]
    test_labels: Labels
    classes: tuple[str, ...]

    def documents(self, chosen: Labels | None = None) -> list[Document]:
        rows = range(len(self.texts)) if chosen is None else chosen.tolist()
        return [
            Document(self.texts[row], user=f"person {self.people[row]}", label=self.classes[self.labels[row]])
            for row in rows
        ]

    def first(self, count: int, rarest: int | None = None) -> Labels:
        """The rows of so many private documents; with ``rarest``, only so many of the first class."""
        rows = np.arange(len(self.texts))
        if rarest is not None:
            rare = np.flatnonzero(self.labels == 0)
            rows = np.setdiff1d(rows, rare[rarest:])
        return rows[:count]


def shuffled(count: int, seed: int) -> Labels:
    """The same order each time."""
    return np.random.default_rng(seed).permutation(count)  # noqa: TID251  how data are divided is no secret


def _taken(texts: Sequence[str], rows: Iterable[int]) -> tuple[str, ...]:
    return tuple(texts[row] for row in rows)


# -- pools ----------------------------------------------------------------------------------------------------


@cache
def newswire(data: Path) -> tuple[str, ...]:
    """Both sentences of every pair of MRPC, train and test."""
    parts = mrpc(data)
    assert parts.others is not None
    return tuple(dict.fromkeys(text for part in (parts.train, parts.test, *parts.others) for text in part.texts))


@cache
def wikipedia(data: Path) -> tuple[str, ...]:
    """12,000 sentences of WikiText-2 of 8 to 60 words."""
    plains = []
    for document in wikitext_users(data):
        text = re.sub(r" @(.)@ ", r"\1", document.text or "")
        for sentence in _SENTENCE.split(text):
            plain = " ".join(sentence.split())
            if 8 <= len(plain.split()) <= 60:
                plains.append(plain)
    plains = list(dict.fromkeys(plains))
    return _taken(plains, np.sort(shuffled(len(plains), 0)[:12_000]).tolist())


@cache
def restaurants(data: Path) -> tuple[str, ...]:
    """6,000 sentences of restaurant reviews of 5 words or more."""
    texts = [text for text in yelp(data, ("dev",)).texts if len(text.split()) >= 5]
    return _taken(texts, np.sort(shuffled(len(texts), 0)[:6000]).tolist())


# -- news and reviews: a document is protected -------------------------------------------------------------------


@cache
def _ag(data: Path) -> tuple[tuple[str, ...], Labels, tuple[str, ...], Labels]:
    train, test = ag_news(data)
    rows = shuffled(len(test.texts), 0)[:4000]
    return train.texts, train.labels, _taken(test.texts, rows.tolist()), test.labels[rows]


def news(data: Path, seed: int, pool: str = "news") -> Split:
    """AG News: all training rows at hand in an order of the seed; 4,000 test rows."""
    texts, labels, test, test_labels = _ag(data)
    order = shuffled(len(texts), seed)
    parts = {
        "news": (*newswire(data), *wikipedia(data), *restaurants(data)),
        "no news": (*wikipedia(data), *restaurants(data)),
        "restaurants": restaurants(data),
    }
    return Split(_taken(texts, order.tolist()), labels[order], order, parts[pool], None, test, test_labels, CLASSES)


@cache
def _imdb(data: Path) -> tuple[tuple[str, ...], Labels]:
    """14,000 reviews, drawn from all 50,000."""
    result = list(reviews(data))
    rows = shuffled(len(result), 0)[:14_000].tolist()
    return tuple(result[row].text for row in rows), np.array([int(result[row].positive) for row in rows])


def imdb(data: Path, seed: int, pool: str = "reviews") -> Split:
    """IMDb: 5,000 private reviews, 6,000 others without their labels, 3,000 to test on."""
    texts, labels = _imdb(data)
    order = shuffled(len(texts), seed)
    private, others, tested = order[:5000], order[5000:11_000], order[11_000:]
    result, truth = _taken(texts, others.tolist()), labels[others]
    if pool == "no reviews of films":
        result = (*newswire(data)[:6000], *wikipedia(data), *restaurants(data))
    return Split(
        _taken(texts, private.tolist()),
        labels[private],
        private,
        result,
        truth if pool == "reviews" else None,
        _taken(texts, tested.tolist()),
        labels[tested],
        ("negative", "positive"),
    )


# -- blogs: a person is protected --------------------------------------------------------------------------------


@cache
def posts_of(data: Path, label: str) -> tuple[Posts, npt.NDArray[np.str_]]:
    """Up to 20 posts of each blogger, and the label of each."""
    people = list(bloggers(data))
    posts = posts_for("topic", people, most=20, smallest=50) if label == "topic" else drawn("industry", people, most=20)
    return posts, {"age": posts.age, "gender": posts.gender, "topic": posts.labels}[label]


def blogs(data: Path, seed: int, label: str, *, joined: bool = False) -> Split:
    """Half of the bloggers are described, a quarter are the pool, without labels; a quarter are tested on.

    Args:
        data, seed, label: folder of the posts, division of the people, and label to learn.
        joined: join the posts of a blogger to one text of 60 words, except in the pool.
    """
    posts, names = posts_of(data, label)
    classes = AGES if label == "age" else tuple(np.unique(names).tolist())
    labels = np.array([classes.index(name) for name in names.tolist()])
    count = int(posts.people.max()) + 1
    place = np.empty(count, dtype=np.intp)
    place[shuffled(count, seed)] = np.arange(count)
    part = np.searchsorted([count // 2, count // 2 + count // 4], place[posts.people], side="right")
    texts = [" ".join(html.unescape(text).split()[:_WORDS]) for text in posts.texts]
    rows = [np.flatnonzero(part == index) for index in range(3)]
    private, public, tested = (_taken(texts, chosen.tolist()) for chosen in rows)
    people, codes, truth = posts.people[rows[0]], labels[rows[0]], labels[rows[2]]
    if joined:
        private, people, codes = _joined(private, people, codes)
        tested, _, truth = _joined(tested, posts.people[rows[2]], truth)
    return Split(private, codes, people, public, labels[rows[1]], tested, truth, classes)


def _joined(texts: Sequence[str], people: Labels, labels: Labels) -> tuple[tuple[str, ...], Labels, Labels]:
    """One text, name and label for each person."""
    named, first, place = np.unique(people, return_index=True, return_inverse=True)
    written: list[list[str]] = [[] for _ in named]
    for text, person in zip(texts, place.tolist(), strict=True):
        written[person] += text.split()
    return tuple(" ".join(words[:_WORDS]) for words in written), named, labels[first]
