"""Users' words in a temporary file that is mapped into memory, for training that reads users at random."""

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
from dptext.users.grouping import Lengths, Level, Rows, UserWords
from dptext.users.partition import nameless_file

__all__ = ["DOCUMENT_END", "UserStore", "stored_users"]

DOCUMENT_END = -2
"""Follows the last word of each document."""
BUFFER_WORDS = 1 << 20


@dataclass(frozen=True, eq=False)
class UserStore:
    """The words of all users; valid until the context of `stored_users` ends."""

    rows: Rows
    offsets: npt.NDArray[np.int64]
    levels: npt.NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.levels)

    def digest(self) -> bytes:
        """Return the SHA-256 digest of the content, which depends on the order of the users. **Private.**"""
        content = hashlib.sha256(np.array([len(self.rows), len(self)], dtype="<i8").tobytes())
        for values in (self.rows, self.offsets, self.levels):
            content.update(np.ascontiguousarray(values).data)
        return content.digest()


@contextmanager
def stored_users(
    users: Iterable[UserWords],
    code: Callable[[tuple[Level, ...]], int] = lambda _: 0,
    *,
    folder: str | Path | None = None,
) -> Iterator[UserStore]:
    """Write users (of `dptext.users.grouping.users_of`) to a nameless temporary file in ``folder``."""
    file, place = nameless_file(folder)
    with closing(file):
        try:
            store = _written(file, users, code)
        except StorageError:
            raise
        except OSError as error:
            raise StorageError.of("write a temporary file in", place, error) from None
        yield store


def _written(file: Any, users: Iterable[UserWords], code: Callable[[tuple[Level, ...]], int]) -> UserStore:
    offsets, levels = array("q", [0]), array("H")
    waiting: list[tuple[Rows, Lengths]] = []
    size = total = 0
    for user in users:
        for rows, lengths in user.chunks():
            if size >= BUFFER_WORDS:
                file.write(_marked(waiting).data)
                waiting, size = [], 0
            waiting.append((rows, lengths))
            size += len(rows) + len(lengths)
            total += len(rows) + len(lengths)
        offsets.append(total)
        levels.append(code(user.levels))
    if total:
        file.write(_marked(waiting).data)
    file.flush()
    return UserStore(
        rows=np.memmap(file, dtype=np.int32, mode="r", shape=(total,)) if total else np.empty(0, dtype=np.int32),
        offsets=np.frombuffer(offsets, dtype=np.int64),
        levels=np.frombuffer(levels, dtype=np.uint16),
    )


def _marked(chunks: Iterable[tuple[Rows, Lengths]]) -> Rows:
    """Concatenate chunks, with `DOCUMENT_END` after each document."""
    rows, lengths = (np.concatenate(column) for column in zip(*chunks, strict=True))
    marked = np.full(len(rows) + len(lengths), DOCUMENT_END, dtype=np.int32)
    marked[np.arange(len(rows)) + np.repeat(np.arange(len(lengths)), lengths)] = rows
    return marked
