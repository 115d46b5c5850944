"""The Blog Authorship Corpus (Schler, Koppel, Argamon and Pennebaker 2006): bloggers, their posts, and who they are.

A tar of ``blogs/ID.GENDER.AGE.INDUSTRY.SIGN.xml``, or the folder ``blogs`` itself. The bloggers are real people:
nothing here prints a post, and no result of an experiment may hold one.
"""

from __future__ import annotations

import html
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from dptext import Document
from dptext.errors import DataError

ARCHIVES = ("blog_authorship/blogs_subset.tar.xz", "blogs.tar.xz", "blogs.tar.gz", "blogs.tar", "blogs")
_NAME = re.compile(r"(\d+)\.(male|female)\.(\d+)\.([\w-]+)\.(\w+)\.xml")
_POST = re.compile(r"<post>(.*?)</post>", re.DOTALL)
_LINK = "urlLink"  # what the corpus has in place of each link


@dataclass(frozen=True)
class Blogger:
    """One person.

    Attributes:
        user: the number that names the file.
        gender, age, industry, sign: as they gave them; industry ``"indUnk"`` where they gave none.
        posts: as they stand in the file, spaces around them aside; empty ones are left out.
    """

    user: str = field(repr=False)
    gender: str
    age: int
    industry: str
    sign: str
    posts: tuple[str, ...] = field(repr=False)


def bloggers(data: Path) -> Iterator[Blogger]:
    """All bloggers below a folder, in the order of the archive; those without any post are left out.

    Raises:
        DataError: no archive there, or a file whose name says something else (its place is named).
    """
    for place, (name, content) in enumerate(_files(data), 1):
        match = _NAME.fullmatch(name)
        if match is None:
            raise DataError(f"blogs: file {place} is not called ID.GENDER.AGE.INDUSTRY.SIGN.xml")
        user, gender, age, industry, sign = match.groups()
        posts = (post.strip() for post in _POST.findall(content.decode("utf-8", "replace")))
        kept = tuple(post for post in posts if post)
        if kept:
            yield Blogger(user, gender, int(age), industry, sign, kept)


def documents_of(people: Iterator[Blogger] | list[Blogger]) -> Iterator[Document]:
    """The posts as documents with their user and attributes; entities are characters, links are gone."""
    for person in people:
        attributes = {"gender": person.gender, "age": person.age, "industry": person.industry, "sign": person.sign}
        for post in person.posts:
            yield Document(html.unescape(post.replace(_LINK, " ")), user=person.user, attributes=attributes)


def _files(data: Path) -> Iterator[tuple[str, bytes]]:
    source = next((data / name for name in ARCHIVES if (data / name).exists()), None)
    if source is None:
        raise DataError(
            f"expected one of {', '.join(ARCHIVES)} in {str(data)!r}: get the Blog Authorship Corpus from its authors "
            "(for research that is not commercial) and name its folder with --data"
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
