"""The texts of the experiments: all bloggers, the bloggers who are not held out, and additional planted people."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from papers.blogs import Blogger, documents_of

from dptext import Document
from dptext.errors import DataError
from dptext.evaluation.utility import words_of


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents with a name that is unique in a run; ``base`` is a corpus whose documents come first."""

    name: str
    added: Sequence[Document] = field(repr=False)
    base: Corpus | None = field(default=None, repr=False)

    @property
    def documents(self) -> list[Document]:
        return [*(self.base.documents if self.base else ()), *self.added]

    @cached_property
    def sentences(self) -> list[list[str]]:
        """The words of each document that has any; equal words are one object."""
        once: dict[str, str] = {}
        added = ([once.setdefault(word, word) for word in words_of(entry.text or "")] for entry in self.added)
        return [*(self.base.sentences if self.base else ()), *(words for words in added if words)]

    @cached_property
    def digest(self) -> str:
        """Digest of all texts and their users."""
        result = hashlib.sha256(self.base.digest.encode() if self.base else b"")
        for document in self.added:
            result.update(f"{document.user}\0{document.text}\0".encode("utf-8", "surrogatepass"))
        return result.hexdigest()[:16]


def corpus_of(name: str, people: Iterable[Blogger]) -> Corpus:
    return Corpus(name, list(documents_of(list(people))))


def held_out(people: Sequence[Blogger], count: int) -> tuple[list[Blogger], list[Blogger]]:
    """Return (held out, others); held out are the ``count`` people with the smallest SHA-256 of their number."""
    if len(people) <= count:
        raise DataError(f"expected more than {count} bloggers, got {len(people)}")
    by_digest = sorted(people, key=lambda person: hashlib.sha256(person.user.encode()).digest())
    return by_digest[:count], by_digest[count:]
