"""How many texts of a release are one person's: counted as the rows go by, for the owner of the texts alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dptext.errors import DptextError
from dptext.io.batches import Batch, as_lists
from dptext.privacy.guarantee import canonical_id
from dptext.privacy.randomness import RandomBits
from dptext.privacy.restating import statement_for_user
from dptext.privacy.statement import PrivacyStatement

__all__ = ["MostTexts", "TextsOfPeople", "promise_to", "user_digest"]

_AT_LEAST = 1 << 16  # rows that wait for each other before they are sorted


class MostTexts(NamedTuple):
    """What was counted."""

    texts: int
    unnamed: int = 0


class TextsOfPeople:
    """A count for each person: 16 bytes for each, however long their names and however many their rows."""

    def __init__(self, column: str, *, missing: str | None = None) -> None:
        self.column = column
        self._missing = missing
        self._who: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._texts: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._waiting: list[NDArray[np.uint64]] = []
        self._unnamed = 0

    def counting(self, blocks: Iterable[Batch]) -> Iterator[Batch]:
        """The blocks, each counted before it goes on."""
        for block in blocks:
            if len(block.texts):
                self.add(as_lists(block.columns)[self.column], block.texts)
            yield block

    def add(self, people: Iterable[object], texts: Sequence[str | None]) -> None:
        """Count rows: who wrote each, and its text."""
        there = (who for who, text in zip(people, texts, strict=True) if text is not None or self._missing is not None)
        names = [canonical_id(who) for who in there]
        found = [user_digest(name, _key()) for name in names if name is not None]
        self._unnamed += len(names) - len(found)
        self._waiting.append(np.frombuffer(b"".join(found), dtype=np.uint64))
        if sum(map(len, self._waiting)) >= max(_AT_LEAST, len(self._who) // 4):  # in all, every person is moved rarely
            self._settle(self._waiting, [])

    def __add__(self, other: TextsOfPeople) -> TextsOfPeople:
        both = TextsOfPeople(self.column, missing=self._missing)
        for each in (self, other):
            each._settle(each._waiting, [])
        both._settle([self._who, other._who], [self._texts, other._texts])
        both._unnamed = self._unnamed + other._unnamed
        return both

    @property
    def most(self) -> MostTexts:
        """What was counted so far."""
        self._settle(self._waiting, [])
        return MostTexts(int(self._texts.max(initial=0)), self._unnamed)

    def _settle(self, who: Sequence[NDArray[np.uint64]], texts: Sequence[NDArray[np.int64]]) -> None:
        """Add people with their numbers of texts, one for each that has none."""
        if not who:
            return
        counts = texts or [np.ones(len(each), dtype=np.int64) for each in who]
        self._who, at = np.unique(np.concatenate([self._who, *who]), return_inverse=True)
        total = np.zeros(len(self._who), dtype=np.int64)
        np.add.at(total, at.reshape(-1), np.concatenate([self._texts, *counts]))
        self._texts, self._waiting = total, []


@cache
def _key() -> bytes:
    return RandomBits().take(16)


def user_digest(name: str, key: bytes) -> bytes:
    """Return 64 bits that stand for a user while texts are counted."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()


def promise_to(most: MostTexts, statements: Sequence[PrivacyStatement]) -> PrivacyStatement | None:
    """What the person with the most texts is promised for all of them, for the owner of the texts alone."""
    if not most.texts:
        return None
    weakest = max(statements, key=lambda each: each.epsilon)
    try:
        return statement_for_user(weakest, most.texts)
    except DptextError:
        return None
