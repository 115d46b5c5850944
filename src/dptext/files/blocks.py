"""A run of rows on its way through: texts to change, columns to carry, and what was left out."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "BLOCK_CHARACTERS",
    "BLOCK_REJECTS",
    "BLOCK_ROWS",
    "Block",
    "Columns",
    "Reject",
    "add_reject",
    "block_limits",
    "in_blocks",
    "in_runs",
    "is_no_text",
]

BLOCK_ROWS = 1 << 16
BLOCK_CHARACTERS = 1 << 20
"""A block ends with the row that brings it to this many rows or characters: the input alone decides where."""

BLOCK_REJECTS = 1 << 12
"""So many entries about rows that were left out leave in a block of their own, without texts."""

Columns: TypeAlias = Any
"""Kept columns: a mapping from names to lists, or a pyarrow table, as their reader has them."""


@dataclass(frozen=True, slots=True)
class Reject:
    """Rows that could not be read: from ``first`` to ``last`` of a file, and why; never what they hold."""

    file: str
    first: int
    last: int
    reason: str

    @property
    def count(self) -> int:
        """How many rows these are."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Block:
    """Rows in a row, in the order of the input.

    Attributes:
        texts: one for each row; None where there is none (null).
        columns: what was read beside them, row for row.
        rejects: rows that were left out since the last block.
    """

    texts: Sequence[str | None]
    columns: Columns
    rejects: tuple[Reject, ...] = ()

    def digest(self) -> bytes:
        """SHA-256 of the texts: equal for equal texts only, wherever one ends and the next begins."""
        lengths = np.array([-1 if text is None else len(text) for text in self.texts], dtype="<i8")
        content = hashlib.sha256(lengths.tobytes())
        content.update("".join(text for text in self.texts if text is not None).encode("utf-8", "surrogatepass"))
        return content.digest()

    def identity(self) -> bytes:
        """SHA-256 of the texts and of all that was read beside them, to tell whether an input is still the same."""
        content = hashlib.sha256(self.digest())
        if isinstance(self.columns, Mapping):
            content.update(repr(dict(self.columns)).encode("utf-8", "backslashreplace"))
        else:
            for batch in self.columns.to_batches():
                content.update(batch.serialize())
        return content.digest()


def block_limits(by_rows: int | None = None) -> tuple[int, float]:
    """With how many rows and characters a block ends; ``by_rows``: after this many rows, and for no other reason."""
    return (BLOCK_ROWS, BLOCK_CHARACTERS) if by_rows is None else (by_rows, math.inf)


def in_runs(rejects: Iterable[Reject]) -> Iterator[Reject]:
    """Rejects in order, those of rows in a row with one reason as one."""
    run: Reject | None = None
    for each in rejects:
        if run is not None and (each.file, each.reason, each.first) == (run.file, run.reason, run.last + 1):
            run = Reject(run.file, run.first, each.last, run.reason)
            continue
        if run is not None:
            yield run
        run = each
    if run is not None:
        yield run


def add_reject(rejects: list[Reject], reject: Reject) -> None:
    """Append one to a list, or to the run that the list ends with."""
    rejects[-1:] = in_runs((*rejects[-1:], reject))


def is_no_text(value: str) -> bool:
    """Whether a string holds half a surrogate pair: no encoding can write it."""
    return any("\ud800" <= letter <= "\udfff" for letter in value)


def in_blocks(texts: Iterable[str | None]) -> Iterator[Block]:
    """Texts without columns, in blocks."""
    most_rows, most_characters = block_limits()
    waiting: list[str | None] = []
    characters = 0
    for text in texts:
        waiting.append(text)
        characters += 0 if text is None else len(text)
        if characters >= most_characters or len(waiting) >= most_rows:
            yield Block(waiting, {})
            waiting, characters = [], 0
    if waiting:
        yield Block(waiting, {})
