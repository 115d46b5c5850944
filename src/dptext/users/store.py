"""Users whose texts lie on disk, to be read at random: in memory an offset and a level for each.

`dptext.users.grouping.users_of` gives the users one after the other; training meets the same users again and again,
some of them at a time, and of each a few places of their texts. So the texts are written once more, user after user,
into a file without a name (`dptext.users.sorting` says what that covers), and mapped into memory: what is not looked at
stays on disk.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import StorageError
from dptext.users.grouping import Level, Person
from dptext.users.sorting import Lengths, Rows, nameless_file

__all__ = ["DOCUMENT_END", "UserStore", "stored_users"]

DOCUMENT_END = -2
"""Stands after the last word of each document."""

_WRITTEN = 1 << 20  # words that are gathered before they are written


@dataclass(frozen=True, eq=False)
class UserStore:
    """The texts of all users. Good until the `stored_users` that it came from ends.

    Attributes:
        rows: (words,) int32, the rows of all words, user after user, `DOCUMENT_END` after each document; on disk.
        offsets: (users + 1,) int64, where each user begins.
        levels: (users,) uint16, what ``code`` said of each.
    """

    rows: Rows
    offsets: npt.NDArray[np.int64]
    levels: npt.NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.levels)

    def digest(self) -> bytes:
        """SHA-256 of all of it: **private**; equal for equal texts of equal users, in the order in which they stand."""
        content = hashlib.sha256(np.array([len(self.rows), len(self)], dtype="<i8").tobytes())
        for each in (self.rows, self.offsets, self.levels):
            content.update(np.ascontiguousarray(each).data)
        return content.digest()


@contextmanager
def stored_users(
    users: Iterable[Person], code: Callable[[tuple[Level, ...]], int] = lambda _: 0, *, folder: str | Path | None = None
) -> Iterator[UserStore]:
    """Write users (of `dptext.users.grouping.users_of`) to disk, and forget them at the end.

    Args:
        code: a small number from a user's levels.
        folder: where the nameless file lies; None: where the system has its temporary files.

    Raises:
        StorageError: it cannot be written.
    """
    file, place = nameless_file(folder)
    with closing(file):
        try:
            store = _stored(file, users, code)
        except StorageError:
            raise
        except OSError as error:
            raise StorageError.of("write a temporary file in", place, error) from None
        yield store


def _stored(file: Any, users: Iterable[Person], code: Callable[[tuple[Level, ...]], int]) -> UserStore:
    writing = _Writing()
    for person in users:
        for rows, lengths in person.chunks():
            if writing.gathered >= _WRITTEN:
                file.write(writing.taken().data)
            writing.add(rows, lengths)
        writing.end_user(code(person.levels))
    file.write(writing.taken().data)
    file.flush()
    words = writing.offsets[-1]
    return UserStore(
        rows=np.memmap(file, dtype=np.int32, mode="r", shape=(words,)) if words else np.empty(0, dtype=np.int32),
        offsets=np.frombuffer(writing.offsets, dtype=np.int64),
        levels=np.frombuffer(writing.levels, dtype=np.uint16),
    )


class _Writing:
    """What has been seen of the users, and what waits to be written."""

    def __init__(self) -> None:
        self.offsets, self.levels = array("q", [0]), array("H")
        self.gathered = 0
        self._written = 0
        self._waiting: list[tuple[Rows, Lengths]] = []

    def add(self, rows: Rows, lengths: Lengths) -> None:
        self._waiting.append((rows, lengths))
        self.gathered += len(rows) + len(lengths)

    def end_user(self, code: int) -> None:
        self.offsets.append(self._written + self.gathered)
        self.levels.append(code)

    def taken(self) -> Rows:
        """What waits, with the ends of documents."""
        if not self._waiting:
            return np.empty(0, dtype=np.int32)
        rows, lengths = (np.concatenate(each) for each in zip(*self._waiting, strict=True))
        marked = np.full(self.gathered, DOCUMENT_END, dtype=np.int32)
        marked[np.arange(len(rows)) + np.repeat(np.arange(len(lengths)), lengths)] = rows
        self._written += self.gathered
        self._waiting, self.gathered = [], 0
        return marked
