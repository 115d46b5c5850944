"""Documents and who wrote them, some in a row: digests instead of names, codes instead of levels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.files.blocks import BLOCK_CHARACTERS, BLOCK_ROWS
from dptext.files.column import is_missing
from dptext.files.documents import Document, DocumentReader
from dptext.files.keys import spelled_key
from dptext.files.parquet import as_lists
from dptext.privacy.randomness import RandomBits
from dptext.users.sorted_runs import Digests

__all__ = ["Digester", "Level", "LevelCodes", "Part", "UserUnit", "check_users_are_read", "parts_of", "user_name"]

UserUnit: TypeAlias = Literal["user", "document"]
Level: TypeAlias = str | int | float | bool | None
_MOST_LEVELS = 1000


class Part(NamedTuple):
    """Some documents in a row; ``first`` counts them from 1."""

    first: int
    texts: Sequence[str | None]
    users: Sequence[Any] | None
    levels: Sequence[Any] | None


def parts_of(documents: DocumentReader | Iterable[Document], unit: UserUnit, level: str | None) -> Iterator[Part]:
    """The documents in parts; see `dptext.users.by_user.users_of`."""
    if isinstance(documents, DocumentReader):
        return _parts_of_reader(documents, unit, level)
    if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
        raise ParameterError(f"documents must be Document objects or a reader of them, got {type(documents).__name__}")
    return _parts_of_documents(documents, unit, level)


def check_users_are_read(documents: object, unit: UserUnit) -> None:
    """Whether a reader gives the users that are to be protected.

    Raises:
        ParameterError: it does not.
    """
    if isinstance(documents, DocumentReader) and unit == "user" and documents.user_column is None:
        raise ParameterError(
            "nobody knows who wrote these documents: name the column, read_documents(..., user=...), or protect single "
            "documents, unit='document'"
        )


def _parts_of_reader(reader: DocumentReader, unit: UserUnit, level: str | None) -> Iterator[Part]:
    check_users_are_read(reader, unit)
    column = reader.user_column if unit == "user" else None
    if level is not None and level not in reader.kept_columns:
        raise ParameterError(f"the column {level!r} of levels is not read: read_documents(..., keep=[{level!r}])")
    with closing(reader):
        for block in reader.blocks():
            columns = as_lists(block.columns)
            yield Part(
                reader.count - len(block.texts) + 1,
                block.texts,
                None if column is None else columns[column],
                None if level is None else columns[level],
            )


def _parts_of_documents(documents: Iterable[Document], unit: UserUnit, level: str | None) -> Iterator[Part]:
    texts: list[str | None] = []
    users: list[Any] = []
    levels: list[Any] = []
    first, characters = 1, 0
    for number, document in enumerate(documents, 1):
        if not isinstance(document, Document):
            raise DataError(f"row {number} must be a Document, got {type(document).__name__}")
        if document.text is not None and not isinstance(document.text, str):
            raise DataError(f"row {number}: expected a string as text, got {type(document.text).__name__}")
        if level is not None and level not in (document.attributes or {}):
            raise DataError(f"row {number} has no attribute {level!r}, which was to be its level")
        texts.append(document.text)
        users.append(document.user)
        if level is not None:
            levels.append((document.attributes or {})[level])
        characters += len(document.text or "")
        if characters >= BLOCK_CHARACTERS or len(texts) >= BLOCK_ROWS:
            yield Part(first, texts, users if unit == "user" else None, None if level is None else levels)
            first, characters = number + 1, 0
            texts, users, levels = [], [], []
    if texts:
        yield Part(first, texts, users if unit == "user" else None, None if level is None else levels)


class Digester:
    """Names of users as digests under a key that is drawn here and kept nowhere else."""

    def __init__(self, seed: int | None) -> None:
        self._key = RandomBits(seed).take(32)

    def of(self, part: Part) -> Digests:
        """(documents, 2), 128 bits for each: two people share them with a probability of less than n^2 / 2^129."""
        if part.users is None:
            found = [self._digest(str(number)) for number in range(part.first, part.first + len(part.texts))]
        else:
            once: dict[Any, bytes] = {}
            found = []
            for number, user in enumerate(part.users, part.first):
                digest = once.get(user) if type(user) is str else None
                if digest is None:
                    digest = self._digest(user_name(user, number))
                    if type(user) is str:
                        once[user] = digest
                found.append(digest)
        return np.frombuffer(b"".join(found), dtype=">u8").astype(np.uint64).reshape(-1, 2)

    def _digest(self, name: str) -> bytes:
        content = name.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16, key=self._key).digest()


def user_name(user: object, number: int) -> str:
    """How the user of a row is spelled.

    Raises:
        DataError: the row has none.
    """
    name = spelled_key(user)
    if name is None:
        raise DataError(
            f"row {number} has no user, and nobody could be protected in it: a text or a whole number is needed for "
            "every row; complete the column, leave such rows out, or protect single documents (unit='document')"
        )
    return name


class LevelCodes:
    """Numbers for levels, in the order in which they come."""

    def __init__(self) -> None:
        self.values: list[Level] = []
        self._codes: dict[tuple[type, Any], int] = {}

    def of(self, levels: Sequence[Any] | None, count: int) -> npt.NDArray[np.int32]:
        """(count,) int32."""
        if levels is None:
            return np.full(count, self._code(None), dtype=np.int32)
        return np.fromiter(map(self._code, levels), dtype=np.int32, count=count)

    def _code(self, level: Any) -> int:
        if isinstance(level, np.generic):
            level = level.item()
        if is_missing(level):
            level = None
        if not isinstance(level, str | int | float | None):
            raise DataError(f"a level must be a text or a number, got {type(level).__name__}")
        code = self._codes.setdefault((type(level), level), len(self.values))
        if code == len(self.values):
            if code >= _MOST_LEVELS:
                raise DataError(
                    f"the column of levels holds more than {_MOST_LEVELS:,} different ones: is it the right one?"
                )
            self.values.append(level)
        return code
