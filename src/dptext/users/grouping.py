"""Group documents by user in bounded memory, and store the words of users in a memory-mapped file."""

from __future__ import annotations

import hashlib
import math
import struct
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, StorageError, storage_errors
from dptext.io.batches import describe_columns
from dptext.io.documents import Document, DocumentReader, canonical_label, text_of, without_user
from dptext.io.tables import is_table, table_documents, table_kind
from dptext.privacy.guarantee import canonical_id
from dptext.privacy.randomness import RandomBits
from dptext.text.tokens import Kind, Vocabulary, kind_of, pieces
from dptext.validation import is_missing

UserUnit: TypeAlias = Literal["user", "document"]
Level: TypeAlias = str | int | float | bool | None
Rows: TypeAlias = npt.NDArray[np.int32]
Lengths: TypeAlias = npt.NDArray[np.int64]
Chunk: TypeAlias = tuple[Sequence[str], npt.NDArray[np.int32]]
"""Texts of documents, and their (documents,) classes."""
ONE_NAME = (
    "each person has exactly one user id; a person with several ids is treated as several users",
    "no two people share a user id; people who share one are treated as a single user",
)
"""Assumptions of every user-level guarantee."""
OUTSIDE = -1
"""Row of a word outside the vocabulary; class of a document outside all classes."""
NO_WORD = -2
"""Row of a token that is not a word."""
DOCUMENT_END = -2
"""Marker after the last word of each document in a `UserStore`."""
MAX_LEVELS = 1000
CHUNK_SIZE = 1 << 20  # bytes of text, or number of words
BUFFER_BYTES = 1 << 22
LARGE_BUCKET = 1 << 25  # bytes; a larger bucket is read in several passes
_RECORD = struct.Struct("<16siI")  # digest of the user, class or level, size of the content
_CACHE_SIZE = 1 << 18
_LONGEST_CACHED = 64
_WORD_BYTES = 4
_END = np.int32(DOCUMENT_END).tobytes()
T = TypeVar("T")
Value = TypeVar("Value")


# -- the partition --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _UserDocuments:
    """Documents of one user up to a limit, and the numbers (levels) of all of them, in input order."""

    documents: list[tuple[int, bytes]] = field(default_factory=list)
    numbers: dict[int, None] = field(default_factory=dict)
    size: int = 0


class _Partition:
    """Documents by user in 256 buckets of an unnamed temporary file, encrypted with a key that is only in memory."""

    def __init__(self, seed: int | None) -> None:
        # the key is secret, because users are read in the order of their digests
        self._hash = hashlib.blake2b(digest_size=16, key=RandomBits(seed).take(32))
        self._key = RandomBits().take(32)
        self._encryptor = _cipher(self._key, 0)
        self._file = temporary_file()
        self._buffers = [bytearray() for _ in range(256)]
        self._runs: list[list[tuple[int, int]]] = [[] for _ in range(256)]  # offset and number of bytes
        self._end = self._buffered = 0

    def close(self) -> None:
        """Close the file, which deletes it."""
        self._file.close()

    def add(self, user: str, number: int, content: bytes) -> None:
        """Add a document, in input order."""
        hasher = self._hash.copy()
        hasher.update(user.encode("utf-8", "surrogatepass"))
        digest = hasher.digest()  # the collision probability of n users is below n^2 / 2^129
        buffer = self._buffers[digest[0]]
        buffer += _RECORD.pack(digest, number, len(content))
        buffer += content
        self._buffered += _RECORD.size + len(content)
        if self._buffered >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        with storage_errors("write a temporary file in", tempfile.gettempdir()):
            self._file.seek(self._end)
            for buffer, runs in zip(self._buffers, self._runs, strict=True):
                if buffer:
                    self._file.write(self._encryptor.update(buffer))
                    runs.append((self._end, len(buffer)))
                    self._end += len(buffer)
                    buffer.clear()
            self._file.flush()
        self._buffered = 0

    def users(self, limit: float, size: Callable[[bytes], int]) -> Iterator[_UserDocuments]:
        """Yield users with their first documents, up to a limit on the total ``size`` of these."""
        for runs in self._runs:
            passes = min(256, 1 + sum(length for _, length in runs) // LARGE_BUCKET)
            for number in range(passes):
                users: dict[bytes, _UserDocuments] = {}
                for digest, code, content in self._records(runs):
                    if digest[1] * passes >> 8 == number:
                        user = users.setdefault(digest, _UserDocuments())
                        user.numbers[code] = None
                        if user.size < limit:
                            user.documents.append((code, content))
                            user.size += size(content)
                for digest in sorted(users):
                    yield users.pop(digest)

    def _records(self, runs: Iterable[tuple[int, int]]) -> Iterator[tuple[bytes, int, bytes]]:
        for start, length in runs:
            self._file.seek(start)
            data = _cipher(self._key, start).update(self._file.read(length))
            if len(data) != length:
                raise StorageError(f"a temporary file in {tempfile.gettempdir()!r} was truncated while it was in use")
            end = 0
            while end < length:
                digest, number, size = _RECORD.unpack_from(data, end)
                begin = end + _RECORD.size
                end = begin + size
                yield digest, number, data[begin:end]


def temporary_file() -> Any:
    """Return an unnamed file that is deleted when it is closed."""
    with storage_errors("write a temporary file in", tempfile.gettempdir()):
        return tempfile.TemporaryFile(prefix="dptext-")


def _cipher(key: bytes, position: int) -> Any:
    """Return AES-CTR from a position of the file, for encryption and decryption."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    block, skipped = divmod(position, 16)
    cipher = Cipher(algorithms.AES(key), modes.CTR(block.to_bytes(16, "big"))).encryptor()
    cipher.update(bytes(skipped))
    return cipher


class _Repeatable(Generic[T]):
    """Iterable that calls a function for each iteration."""

    def __init__(self, iterate: Callable[[], Iterator[T]]) -> None:
        self._iterate = iterate

    def __iter__(self) -> Iterator[T]:
        return self._iterate()


# -- words ----------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class UserWords:
    """Words of one user as vocabulary rows, with `DOCUMENT_END` after each document, and the levels of the user."""

    rows: Rows
    levels: tuple[Level, ...]

    def chunks(self) -> Iterator[tuple[Rows, Lengths]]:
        """Yield (rows, lengths) of whole documents in input order: at least one pair, of bounded size."""
        ends = np.flatnonzero(self.rows == DOCUMENT_END)
        first = start = 0
        while first < ends.size:
            stop = max(first + 1, int(np.searchsorted(ends, start + CHUNK_SIZE)))
            end = int(ends[stop - 1])
            rows = self.rows[start:end]
            yield rows[rows != DOCUMENT_END], np.diff(ends[first:stop], prepend=start - 1) - 1
            first, start = stop, end + 1


@contextmanager
def users_of(
    documents: DocumentReader | Iterable[Document],
    words: Vocabulary,
    *,
    unit: UserUnit = "user",
    level: str | None = None,
    most_words: int | None = None,
    seed: int | None = None,
) -> Iterator[Iterable[UserWords]]:
    """Group the words of documents by user."""

    def row_of(token: str) -> int:
        if kind_of(token) is not Kind.WORD:
            return NO_WORD
        row = words.row(token)
        return OUTSIDE if row == words.unknown_row else row

    rows_of, levels = TokenRows(row_of), _Levels()
    limit = math.inf if most_words is None else most_words
    with closing(_Partition(seed)) as partition:
        for user, text, values in _rows_in(documents, unit, () if level is None else (level,), required=True):
            partition.add(user, levels.number_of(*values), rows_of.of(text) + _END)
        partition.flush()
        yield _Repeatable(lambda: _words_of(partition, levels.values, limit))


def _words_of(partition: _Partition, levels: Sequence[Level], limit: float) -> Iterator[UserWords]:
    for user in partition.users(limit, lambda content: len(content) // _WORD_BYTES - 1):
        contents = [content for _, content in user.documents]
        if user.size > limit:  # drop excess words of the last document
            contents[-1] = contents[-1][: -_WORD_BYTES * (user.size - int(limit) + 1)] + _END
        yield UserWords(np.frombuffer(b"".join(contents), np.int32), tuple(levels[number] for number in user.numbers))


class _Levels:
    """Numbers of levels, in order of first occurrence."""

    def __init__(self) -> None:
        self.values: list[Level] = []
        self._numbers: dict[tuple[type, Level], int] = {}

    def number_of(self, level: Any = None) -> int:
        level = level.item() if isinstance(level, np.generic) else level
        level = None if is_missing(level) else level
        if not isinstance(level, str | int | float | None):
            raise DataError(f"a level must be a text or a number, got {type(level).__name__}")
        number = self._numbers.setdefault((type(level), level), len(self.values))
        if number == len(self.values):
            if number >= MAX_LEVELS:
                raise DataError(f"the column of levels has more than {MAX_LEVELS:,} values: choose another column")
            self.values.append(level)
        return number


class TokenRows:
    """Mapping from texts to the rows of their words, as the bytes of int32 numbers."""

    def __init__(self, row_of: Callable[[str], int]) -> None:
        rows: _TokenCache[int] = _TokenCache(row_of)

        def rows_in(chunk: str) -> bytes:  # a method would make a reference cycle that keeps the caches
            return array("i", [row for row in map(rows.__getitem__, pieces(chunk)) if row != NO_WORD]).tobytes()

        self._rows_in = rows_in
        self._chunks: _TokenCache[bytes] = _TokenCache(rows_in)

    def of(self, text: str | None) -> bytes:
        """Return the rows of the words of one text."""
        if text and text.isascii():  # no token contains a space and other characters, so chunks can be cached
            return b"".join(map(self._chunks.__getitem__, text.split(" ")))
        return self._rows_in(text) if text else b""

    def __call__(self, texts: Iterable[str | None]) -> tuple[Rows, Lengths]:
        """Return (words,) int32 rows and the number of words in each text."""
        parts = list(map(self.of, texts))
        lengths = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)) // _WORD_BYTES
        return np.frombuffer(b"".join(parts), dtype=np.int32), lengths


class _TokenCache(dict[str, Value]):
    """Cache for a function of tokens; it stores short tokens only, up to a fixed number."""

    def __init__(self, function: Callable[[str], Value]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, token: str) -> Value:
        if len(self) >= _CACHE_SIZE:
            self.clear()
        value = self._function(token)
        if len(token) <= _LONGEST_CACHED:
            self[token] = value
        return value


# -- texts ----------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class UserTexts:
    """Texts of one user, with one class per document."""

    _chunks: Iterable[Chunk]

    def chunks(self) -> Iterator[Chunk]:
        """Yield (texts, classes) in input order: at least one pair, and no empty pair."""
        return iter(self._chunks)


@contextmanager
def texts_of(
    documents: DocumentReader | Iterable[Document],
    *,
    columns: Sequence[str] = (),
    code: Callable[[tuple[str | None, ...]], int] = lambda _: 0,
    unit: UserUnit = "user",
    most_documents: int | None = None,
    seed: int | None = None,
    required: bool = False,
) -> Iterator[Iterable[UserTexts]]:
    """Group texts by user; ``code`` maps the values of the columns (`canonical_label`) to a class."""
    limit = math.inf if most_documents is None else most_documents
    with closing(_Partition(seed)) as partition:
        for user, text, values in _rows_in(documents, unit, columns, required=required):
            partition.add(user, code(tuple(map(canonical_label, values))), text.encode("utf-8", "surrogatepass"))
        partition.flush()
        yield _Repeatable(lambda: (UserTexts(list(_text_chunks(user))) for user in partition.users(limit, lambda _: 1)))


def _text_chunks(user: _UserDocuments) -> Iterator[Chunk]:
    """Split the documents of a user into chunks of at most `CHUNK_SIZE` bytes or of one document."""
    texts: list[str] = []
    codes: list[int] = []
    size = 0
    for code, content in user.documents:
        if texts and size + len(content) > CHUNK_SIZE:
            yield texts, np.array(codes, dtype=np.int32)
            texts, codes, size = [], [], 0
        texts.append(content.decode("utf-8", "surrogatepass"))
        codes.append(code)
        size += len(content)
    yield texts, np.array(codes, dtype=np.int32)


# -- reading --------------------------------------------------------------------------------------------------


def documents_of(
    documents: Any,
    unit: str,
    *,
    text: str = "text",
    user: str | None = None,
    label: str | Sequence[str] | None = None,
    columns: Sequence[str | None] = (),
) -> DocumentReader | Iterable[Document]:
    """Return the rows of a table as documents (``label``: its columns of the attributes), others after checks."""
    if is_table(documents):
        if user is None and unit == "user":
            raise ParameterError("the table has no user column: pass user=, or use unit='document'")
        names = [name for name in columns if name is not None]
        labels = names if label is None else [label] if isinstance(label, str) else list(label)
        if len(labels) != len(names):
            raise ParameterError(f"label must name one column per label column of the model ({names}), got {labels}")
        if text in (user, *labels) or user in labels:
            raise ParameterError("text, user and labels must be three different columns")
        table = table_documents(documents, text=text, user=user, attributes=dict(zip(names, labels, strict=True)))
        users = [] if user is None or unit != "user" else list(table_kind(documents).read(user))
        if missing := sum(canonical_id(name) is None for name in users):
            raise without_user(f"{missing:,} of {len(users):,} rows have", str(user), can_skip=False, has_unit=True)
        return table
    if user is not None or label is not None:
        name = "label" if user is None else "user"
        raise ParameterError(f"{name} names a column of a table, got documents: pass a table, or omit {name}")
    if isinstance(documents, str) or not isinstance(documents, Iterable):
        raise ParameterError(f"documents must be a table, Document objects or a reader, got {type(documents).__name__}")
    if isinstance(documents, DocumentReader) and unit == "user":
        if documents.user_column is None:
            raise ParameterError("the reader has no user column: pass user=, or use unit='document'")
        documents.check_users(has_unit=True)
    rows: Iterable[Document] = documents
    return rows


def _rows_in(
    documents: DocumentReader | Iterable[Document], unit: UserUnit, columns: Sequence[str], *, required: bool = False
) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    """Yield the user, the text and the values of the columns of each document."""
    documents = documents_of(documents, unit)
    if isinstance(documents, DocumentReader):
        has_label = documents.label_column is not None and len(columns) == 1 and not required
        for name in columns:
            if name not in documents.kept_columns and not has_label:
                raise ParameterError(f"the column {name!r} is not read: use read_documents(..., keep=[{name!r}])")
    for row, document in enumerate(documents, 1):
        if not isinstance(document, Document):
            raise DataError(f"row {row} must be a Document, got {type(document).__name__}: pass a table instead")
        text = text_of(document, row) or ""
        user = str(row) if unit == "document" else user_name(document.user, row)
        attributes = document.attributes or {}
        if required and any(name not in attributes for name in columns):
            present = describe_columns(columns[0], list(attributes), sure=True)
            raise DataError(f"row {row} has no attribute {columns[0]!r}: {present}")
        if len(columns) == 1:
            values: tuple[Any, ...] = (attributes.get(columns[0], document.label),)
        else:
            values = tuple(map(attributes.get, columns))
        yield user, text, values


def user_name(user: object, row: int | None = None) -> str:
    """Return the canonical user id of a row; raise a DataError with the row number if it is missing."""
    name = canonical_id(user)
    if name is None:
        where = "a row" if row is None else f"row {row}"
        raise DataError(f"{where} has no user: fill the column in, drop the row, or use unit='document'")
    return name


# -- users' words in a file ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UserStore:
    """Words of all users, with `DOCUMENT_END` after each document; valid inside the context of `stored_users`."""

    rows: Rows
    offsets: npt.NDArray[np.int64]
    levels: npt.NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.levels)

    def digest(self) -> bytes:
        """Return the SHA-256 digest of the content; it depends on the order of the users. **Private.**"""
        content = hashlib.sha256(np.array([len(self.rows), len(self)], dtype="<i8").tobytes())
        for values in (self.rows, self.offsets, self.levels):
            content.update(np.ascontiguousarray(values).data)
        return content.digest()


@contextmanager
def stored_users(
    users: Iterable[UserWords], code: Callable[[tuple[Level, ...]], int] = lambda _: 0
) -> Iterator[UserStore]:
    """Write the users of `users_of` to an unnamed temporary file."""
    offsets, levels = array("q", [0]), array("H")
    with closing(temporary_file()) as file:
        with storage_errors("write a temporary file in", tempfile.gettempdir()):
            for user in users:
                file.write(user.rows.data)
                offsets.append(offsets[-1] + len(user.rows))
                levels.append(code(user.levels))
            file.flush()
            total = offsets[-1]
            rows = np.memmap(file, np.int32, mode="r", shape=(total,)) if total else np.empty(0, dtype=np.int32)
        yield UserStore(
            rows=rows, offsets=np.frombuffer(offsets, dtype=np.int64), levels=np.frombuffer(levels, dtype=np.uint16)
        )
