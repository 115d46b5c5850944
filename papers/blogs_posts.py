"""Posts with a label to be learnt and two attributes to be hidden, from the Blog Authorship Corpus.

Three tasks: the **topic** of a post, made as the paper's BLOG was (a topic model of the posts themselves); the
**industry** of who wrote it; and the same without students, most of whom are 13 to 17: their industry gives away their
age. Bloggers are real people: no post and no number of a blogger leaves the process, here or anywhere else.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from papers.blogs import Blogger, documents_of

from dptext.errors import DataError, extra
from dptext.evaluation.utility import words_of
from dptext.io.atomic import hashed_file
from dptext.privacy.randomness import RandomBits

AGES = ("13-17", "23-27", "33-48")
"""The groups in which the corpus was collected."""
TOPIC, INDUSTRY, NO_STUDENT = "topic", "industry", "industry without students"
TASKS = (TOPIC, INDUSTRY, NO_STUDENT)

LEAST_WORDS = 20
SEED = 2020
_UNKNOWN, _STUDENT = "indUnk", "Student"
_TOPICS, _SURE = 10, 0.8  # as many, and as sure of one of them, as in BLOG (its authors' code)
_RAREST, _MOST_COMMON = 2, 0.1  # words of a single post, and of more than a tenth of all, tell no topic
_PASSES = 10

Names = npt.NDArray[np.str_]
Rows = npt.NDArray[np.int64]


class WithAttributes:
    """Texts, whose they are, a label and attributes: what all such texts say of themselves."""

    texts: tuple[str, ...]
    people: Rows
    labels: Names
    attributes: dict[str, Names]

    @property
    def facts(self) -> dict[str, Any]:
        """Counts and shares, for a table and the constants of an experiment; and the digest."""
        result: dict[str, Any] = {
            "posts": len(self.texts),
            "bloggers": int(self.people.max()) + 1,
            "classes": int(np.unique(self.labels).size),
            "digest": self.digest,
        }
        for name, values in self.attributes.items():
            groups, counts = np.unique(values, return_counts=True)
            shares = zip(groups, counts / values.size, strict=True)
            result |= {f"{name} {group}": round(float(share), 4) for group, share in shares}
        return result

    @property
    def digest(self) -> str:
        """Of all of these: rows of other texts are not mixed with theirs."""
        result = hashlib.sha256()
        for row in zip(self.texts, self.people.tolist(), self.labels, *self.attributes.values(), strict=True):
            result.update(repr(row).encode("utf-8", "surrogatepass"))
        return result.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Posts(WithAttributes):
    """Posts, whose they are, and what is to be learnt of them.

    Attributes:
        task: one of `TASKS`.
        texts: (n,) posts.
        people: (n,) whose post each is, bloggers counted from 0.
        labels: (n,) of the task.
        gender, age, industry: (n,) of the blogger.
    """

    task: str
    texts: tuple[str, ...] = field(repr=False)
    people: Rows = field(repr=False)
    labels: Names = field(repr=False)
    gender: Names = field(repr=False)
    age: Names = field(repr=False)
    industry: Names = field(repr=False)

    def of(self, kept: npt.NDArray[np.bool_], labels: Names) -> Posts:
        """Those kept, with these labels (of all)."""
        return replace(
            self,
            texts=tuple(text for text, keep in zip(self.texts, kept, strict=True) if keep),
            people=np.unique(self.people[kept], return_inverse=True)[1],
            labels=labels[kept],
            gender=self.gender[kept],
            age=self.age[kept],
            industry=self.industry[kept],
        )

    @property
    def attributes(self) -> dict[str, Names]:
        return {"gender": self.gender, "age": self.age}


def posts_for(
    task: str,
    people: Sequence[Blogger],
    *,
    most: int,
    smallest: int,
    passes: int = _PASSES,
    work: Path | None = None,
) -> Posts:
    """The posts of a task.

    Args:
        task: one of `TASKS`.
        people: all bloggers; those who gave no industry are left out.
        most: posts of one blogger (for the topic: twice as many, most of which have none).
        smallest: bloggers that a label must have.
        passes: of the topic model.
        work: a folder in which the topics are kept, for this user alone: the model takes most of a minute. None: they
            are found anew.

    Raises:
        DataError: fewer than two labels are left.
    """
    known = [person for person in people if person.industry != _UNKNOWN]
    if task == TOPIC:
        outer = [person for person in known if age_group(person.age) != AGES[1]]  # young and old, as in BLOG
        posts = drawn(task, outer, most=2 * most)
        return _frequent(posts, _kept_topics(posts, passes, work), smallest)
    if task == NO_STUDENT:
        known = [person for person in known if person.industry != _STUDENT]
    posts = drawn(task, known, most=most)
    return _frequent(posts, posts.labels, smallest)


def drawn(task: str, people: Iterable[Blogger], *, most: int) -> Posts:
    """Up to so many posts of `LEAST_WORDS` words of each blogger, the same each time, with the industry as label."""
    bits = RandomBits(seed=SEED)
    texts: list[str] = []
    columns: list[tuple[int, str, str, str]] = []
    for place, person in enumerate(people):
        long = [
            document.text or ""
            for document in documents_of([person])
            if len((document.text or "").split()) >= LEAST_WORDS
        ]
        for which in np.sort(bits.integers(len(long)).argsort()[:most]):
            texts.append(long[which])
            columns.append((place, person.industry, person.gender, age_group(person.age)))
    if not texts:
        raise DataError(f"blogs: no blogger for the task {task!r} has a post of {LEAST_WORDS} words")
    owners, industries, genders, ages = zip(*columns, strict=True)
    return Posts(
        task=task,
        texts=tuple(texts),
        people=np.unique(owners, return_inverse=True)[1],
        labels=np.array(industries),
        gender=np.array(genders),
        age=np.array(ages),
        industry=np.array(industries),
    )


def age_group(age: int) -> str:
    return AGES[0] if age < 20 else AGES[1] if age < 30 else AGES[2]


def _kept_topics(posts: Posts, passes: int, work: Path | None) -> Names:
    if work is None:
        return _topics(posts.texts, passes)
    path = work / f"topics-{passes}-{posts.digest}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        result = _topics(posts.texts, passes)
        with hashed_file(path, owner_only=True) as stream:
            np.save(stream, result)
    topics: Names = np.load(path)
    return topics


def _topics(texts: Sequence[str], passes: int) -> Names:
    """The topic of each post, "" where it is sure of none: latent Dirichlet allocation, learnt from these posts."""
    text, models = (
        extra(f"sklearn.{entry}", "sklearn", "topics") for entry in ("feature_extraction.text", "decomposition")
    )
    counts = text.CountVectorizer(analyzer=words_of, min_df=_RAREST, max_df=_MOST_COMMON).fit_transform(texts)
    model = models.LatentDirichletAllocation(
        _TOPICS, learning_method="online", learning_offset=1.0, batch_size=2000, max_iter=passes, random_state=SEED
    )
    shares = model.fit_transform(counts)
    return np.where(shares.max(axis=1) > _SURE, np.char.add("topic ", shares.argmax(axis=1).astype(str)), "")


def _frequent(posts: Posts, labels: Names, smallest: int) -> Posts:
    """Posts of labels that enough bloggers have."""
    counts = Counter(label for label, _ in set(zip(labels.tolist(), posts.people.tolist(), strict=True)))
    frequent = sorted(label for label, count in counts.items() if label and count >= smallest)
    if len(frequent) < 2:
        raise DataError(
            f"blogs: the task {posts.task!r} needs two labels of at least {smallest} bloggers each, got {len(frequent)}"
        )
    return posts.of(np.isin(labels, frequent), labels)
