"""The Blog Authorship Corpus (Schler, Koppel, Argamon and Pennebaker 2006): bloggers, and posts with a task.

The three tasks are the **topic** of a post, made as the BLOG data of the DPNR paper (a topic model of the posts
themselves); the **industry** of its author; and the same without students, most of whom are 13 to 17, so that their
industry reveals their age. Bloggers are real people: no experiment prints or stores a post or a blogger's number.
"""

from __future__ import annotations

import hashlib
import html
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext import Document
from dptext.errors import DataError, extra
from dptext.evaluation.utility import words_of
from dptext.privacy.randomness import RandomBits

ARCHIVES = ("blog_authorship/blogs_subset.tar.xz", "blogs.tar.xz", "blogs.tar.gz", "blogs.tar", "blogs")
AGES = ("13-17", "23-27", "33-48")
"""The age groups in which the corpus was collected."""
TOPIC, INDUSTRY, NO_STUDENT = "topic", "industry", "industry without students"
TASKS = (TOPIC, INDUSTRY, NO_STUDENT)
MIN_WORDS = 20
SEED = 2020
_NAME = re.compile(r"(\d+)\.(male|female)\.(\d+)\.([\w-]+)\.(\w+)\.xml")
_POST = re.compile(r"<post>(.*?)</post>", re.DOTALL)
_LINK = "urlLink"  # replaces each link in the corpus
_UNKNOWN, _STUDENT = "indUnk", "Student"
_TOPICS, _MIN_SHARE = 10, 0.8  # number of topics and minimum share of a post's topic, as in BLOG (its authors' code)
_MIN_POSTS, _MAX_SHARE = 2, 0.1  # words of a single post and words of more than a tenth of all posts show no topic

Names = npt.NDArray[np.str_]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Blogger:
    """One person; ``user`` is the number in the file name, and ``industry`` is "indUnk" if it is unknown."""

    user: str = field(repr=False)
    gender: str
    age: float
    industry: str
    sign: str
    posts: tuple[str, ...] = field(repr=False)

    @property
    def age_group(self) -> str:
        return AGES[0] if self.age < 20 else AGES[1] if self.age < 30 else AGES[2]


def bloggers(data: Path) -> Iterator[Blogger]:
    """Yield all bloggers with a post, in the order of the archive."""
    for place, (name, content) in enumerate(_files(data), 1):
        match = _NAME.fullmatch(name)
        if match is None:
            raise DataError(f"blogs: file {place} is not called ID.GENDER.AGE.INDUSTRY.SIGN.xml")
        user, gender, age, industry, sign = match.groups()
        posts = tuple(post.strip() for post in _POST.findall(content.decode("utf-8", "replace")) if post.strip())
        if posts:
            yield Blogger(user, gender, int(age), industry, sign, posts)


def documents_of(people: Iterable[Blogger]) -> Iterator[Document]:
    """Yield the posts as documents with user and attributes, without entities and links."""
    for person in people:
        attributes = {"gender": person.gender, "age": person.age, "industry": person.industry, "sign": person.sign}
        for post in person.posts:
            yield Document(html.unescape(post.replace(_LINK, " ")), user=person.user, attributes=attributes)


def _files(data: Path) -> Iterator[tuple[str, bytes]]:
    source = next((data / name for name in ARCHIVES if (data / name).exists()), None)
    if source is None:
        raise DataError(
            f"expected one of {', '.join(ARCHIVES)} in {str(data)!r}: get the Blog Authorship Corpus from its authors "
            "(for non-commercial research) and name its folder with --data"
        )
    if source.is_dir():
        for path in sorted(source.glob("*.xml")):
            yield path.name, path.read_bytes()
        return
    with tarfile.open(source) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None and member.name.endswith(".xml"):
                yield PurePosixPath(member.name).name, content.read()


# -- posts with a task and attributes --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Posts:
    """Texts with their authors, labels of a task, and attributes of the authors."""

    task: str  # name of the task
    texts: tuple[str, ...] = field(repr=False)  # (n,) texts
    people: Rows = field(repr=False)  # (n,) authors, counted from 0
    labels: Names = field(repr=False)  # (n,) labels of the task
    attributes: dict[str, Names] = field(repr=False)  # (n,) values by name; adversaries try to infer them
    industry: Names | None = field(default=None, repr=False)  # (n,) industry of the author, for posts of bloggers

    def take(self, rows: npt.NDArray[np.intp]) -> Posts:
        """Return the posts of these rows, with authors counted anew."""
        return replace(
            self,
            texts=tuple(self.texts[row] for row in rows),
            people=np.unique(self.people[rows], return_inverse=True)[1].astype(np.int64),
            labels=self.labels[rows],
            attributes={name: values[rows] for name, values in self.attributes.items()},
            industry=None if self.industry is None else self.industry[rows],
        )

    @property
    def facts(self) -> dict[str, Any]:
        """Counts, shares of the groups and the digest, as constants of an experiment."""
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
        result = hashlib.sha256()
        for row in zip(self.texts, self.people.tolist(), self.labels, *self.attributes.values(), strict=True):
            result.update(repr(row).encode("utf-8", "surrogatepass"))
        return result.hexdigest()[:16]


def posts_for(task: str, people: Sequence[Blogger], *, max_posts: int, min_bloggers: int, passes: int = 10) -> Posts:
    """Return the posts of one of `TASKS`, by bloggers with a known industry, with labels of enough bloggers.

    A blogger has at most ``max_posts``; for the topic twice as many, because most posts have none.
    """
    known = [person for person in people if person.industry != _UNKNOWN]
    if task == TOPIC:
        known = [person for person in known if person.age_group != AGES[1]]  # young and old, as in BLOG
        posts = sample_posts(task, known, max_posts=2 * max_posts)
        return _frequent(replace(posts, labels=_topics(posts.texts, passes)), min_bloggers)
    if task == NO_STUDENT:
        known = [person for person in known if person.industry != _STUDENT]
    return _frequent(sample_posts(task, known, max_posts=max_posts), min_bloggers)


def sample_posts(task: str, people: Iterable[Blogger], *, max_posts: int) -> Posts:
    """Return random posts of at least `MIN_WORDS` words, the same each time, with the industry as label."""
    bits = RandomBits(seed=SEED)
    rows: list[tuple[str, int, str, str, str]] = []
    for place, person in enumerate(people):
        texts = [document.text or "" for document in documents_of([person])]
        long = [text for text in texts if len(text.split()) >= MIN_WORDS]
        chosen = np.sort(bits.integers(len(long)).argsort()[:max_posts])
        rows += [(long[row], place, person.industry, person.gender, person.age_group) for row in chosen]
    if not rows:
        raise DataError(f"blogs: no blogger for the task {task!r} has a post of {MIN_WORDS} words")
    texts, owners, industries, genders, ages = zip(*rows, strict=True)
    return Posts(
        task=task,
        texts=tuple(texts),
        people=np.unique(owners, return_inverse=True)[1],
        labels=np.array(industries),
        attributes={"gender": np.array(genders), "age": np.array(ages)},
        industry=np.array(industries),
    )


def _topics(texts: Sequence[str], passes: int) -> Names:
    """Return the topic of each post by latent Dirichlet allocation, "" where none has a share above .8."""
    text, models = (
        extra(f"sklearn.{entry}", "sklearn", "topics") for entry in ("feature_extraction.text", "decomposition")
    )
    counts = text.CountVectorizer(analyzer=words_of, min_df=_MIN_POSTS, max_df=_MAX_SHARE).fit_transform(texts)
    model = models.LatentDirichletAllocation(
        _TOPICS, learning_method="online", learning_offset=1.0, batch_size=2000, max_iter=passes, random_state=SEED
    )
    shares = model.fit_transform(counts)
    return np.where(shares.max(axis=1) > _MIN_SHARE, np.char.add("topic ", shares.argmax(axis=1).astype(str)), "")


def _frequent(posts: Posts, min_bloggers: int) -> Posts:
    counts = Counter(label for label, _ in set(zip(posts.labels.tolist(), posts.people.tolist(), strict=True)))
    frequent = sorted(label for label, count in counts.items() if label and count >= min_bloggers)
    if len(frequent) < 2:
        raise DataError(
            f"blogs: the task {posts.task!r} needs two labels of at least {min_bloggers} bloggers each, "
            f"got {len(frequent)}"
        )
    return posts.take(np.flatnonzero(np.isin(posts.labels, frequent)))
