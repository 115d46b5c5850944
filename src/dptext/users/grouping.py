"""Documents grouped by user in one pass and bounded memory, and a memory-mapped store of users' words."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.batches import as_lists, describe_columns, row_batches
from dptext.io.documents import Document, DocumentReader, canonical_label, is_missing
from dptext.io.tables import is_table
from dptext.privacy.guarantee import canonical_id
from dptext.privacy.randomness import RandomBits
from dptext.processes import map_in_order
from dptext.text.tokens import Kind, Vocabulary, kind_of, pieces
from dptext.users.partition import Slab, UserPartition, nameless_file
from dptext.validation import check_choice, check_int, check_names

UserUnit: TypeAlias = Literal["user", "document"]
Level: TypeAlias = str | int | float | bool | None
Rows: TypeAlias = npt.NDArray[np.int32]
Lengths: TypeAlias = npt.NDArray[np.int64]
Chunk: TypeAlias = tuple[Sequence[str], npt.NDArray[np.int32]]
"""(documents,) texts; (documents,) their classes."""
ONE_NAME = (
    "each person has exactly one user id; a person with several ids is treated as several users",
    "no two people share a user id; people who share one are treated as a single user",
)
"""Assumptions of every user-level guarantee."""
OUTSIDE = -1
"""Row of a word that the vocabulary does not contain; class of a document that belongs to no class."""
NO_WORD = -2
"""Row of a token that is not a word."""
MAX_CLASSES = 1 << 28
MAX_LEVELS = 1000
CHUNK_SIZE = 1 << 20  # documents, and words or bytes of texts
_CACHE_SIZE = 1 << 18
_LONGEST_CACHED = 64
_WORD_BYTES = 4
T = TypeVar("T")
Value = TypeVar("Value")


# -- words ----------------------------------------------------------------------------------------------------


class UserWords:
    """The words of one user, as rows of a vocabulary."""

    __slots__ = ("_lengths", "_max_words", "_rows", "levels")

    def __init__(self, rows: Rows, lengths: Lengths, levels: tuple[Level, ...], max_words: int | None = None) -> None:
        self._rows, self._lengths, self.levels, self._max_words = rows, lengths, levels, max_words

    def chunks(self) -> Iterator[tuple[Rows, Lengths]]:
        """Yield (rows, lengths) of whole documents in the order of the input; at least one pair, of bounded size."""
        rows, lengths = self._rows, self._lengths
        if self._max_words is not None and rows.size >= self._max_words:
            ends = np.cumsum(lengths)
            last = int(np.searchsorted(ends, self._max_words))  # the document of the last word
            rows, lengths = rows[: self._max_words], lengths[: last + 1].copy()
            lengths[last] -= int(ends[last]) - self._max_words
        if max(rows.size, lengths.size) <= CHUNK_SIZE:
            yield rows, lengths
            return
        offsets = [0, *np.cumsum(lengths).tolist()]
        for start, stop in _chunk_bounds(offsets, 0, lengths.size):
            yield rows[offsets[start] : offsets[stop]], lengths[start:stop]


@contextmanager
def users_of(
    documents: DocumentReader | Iterable[Document],
    words: Vocabulary,
    *,
    unit: UserUnit = "user",
    level: str | None = None,
    most_words: int | None = None,
    processes: int = 1,
    seed: int | None = None,
    folder: str | Path | None = None,
) -> Iterator[Iterable[UserWords]]:
    """Group the words of documents by user."""
    check_choice("unit", unit, get_args(UserUnit))
    if most_words is not None:
        most_words = check_int("most_words", most_words, minimum=1)
    if not isinstance(words, Vocabulary):
        raise ParameterError(f"words must be a Vocabulary, got {type(words).__name__}")
    digests, codes = _UserDigests(seed), _LevelCodes()
    limit = None if most_words is None else _WORD_BYTES * most_words
    level_columns = Columns(() if level is None else (level,), is_level=True)
    with closing(UserPartition(folder, limit=limit, by_bytes=True)) as partition:
        parts = (
            ((digests.of(part), codes.of(part.values, len(part.texts))), part.texts)
            for part in _parts_of(documents, unit, level_columns)
        )
        with closing(map_in_order(WordIndexer(words), parts, processes=processes)) as results:
            for (users, levels), (rows, lengths) in results:
                partition.add(Slab(users, levels, _WORD_BYTES * lengths, rows.tobytes()))
        partition.flush()
        yield _Repeatable(lambda: _words_of(partition, codes.levels, most_words))


def _words_of(partition: UserPartition, levels: Sequence[Level], most_words: int | None) -> Iterator[UserWords]:
    for slab, bounds in partition.groups():
        rows = np.frombuffer(slab.content, np.int32).copy()
        lengths = slab.lengths // _WORD_BYTES
        words = np.concatenate([[0], np.cumsum(lengths)])[bounds].tolist()
        codes = slab.codes.tolist()
        for (start, stop), (first, last) in zip(pairwise(bounds), pairwise(words), strict=True):
            named = tuple(levels[code] for code in dict.fromkeys(codes[start:stop]))
            yield UserWords(rows[first:last], lengths[start:stop], named, most_words)


# -- texts ----------------------------------------------------------------------------------------------------


class UserTexts:
    """The texts of one user, with a class per document; valid until the context of `texts_of` ends."""

    __slots__ = ("_chunks",)

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks = chunks

    def chunks(self) -> Iterator[Chunk]:
        """Yield (texts, classes) in the order of the input; at least one pair, none of them empty."""
        return iter(self._chunks)


@contextmanager
def texts_of(
    documents: DocumentReader | Iterable[Document],
    *,
    columns: Sequence[str] = (),
    code: Callable[[tuple[str | None, ...]], int] | None = None,
    unit: UserUnit = "user",
    most_documents: int | None = None,
    reread: bool = False,
    folder: str | Path | None = None,
    seed: int | None = None,
) -> Iterator[Iterable[UserTexts]]:
    """Group texts by user."""
    check_choice("unit", unit, get_args(UserUnit))
    if most_documents is not None:
        most_documents = check_int("most_documents", most_documents, minimum=1)
    class_columns = Columns(check_names("columns", columns))
    if code is None and class_columns.names:
        raise ParameterError("columns require code=, a function from their values to the number of a class")
    class_of, digests = _class_function(code), _UserDigests(seed)
    parts = _parts_of(documents, unit, class_columns)
    if unit == "document" and not reread:
        with closing(parts):
            stream = iter([_single_texts(parts, class_of)])
            yield _Repeatable(lambda: next(stream, None) or _refuse_second_pass())
        return
    with closing(UserPartition(folder, limit=most_documents)) as partition:
        for part in parts:
            content = [(text or "").encode("utf-8", "surrogatepass") for text in part.texts]
            lengths = np.fromiter(map(len, content), np.int64, len(content))
            partition.add(Slab(digests.of(part), _classes(part, class_of), lengths, b"".join(content)))
        partition.flush()
        yield _Repeatable(lambda: _grouped_texts(partition))


def _classes(part: _Part, class_of: Callable[[tuple[Any, ...]], int]) -> npt.NDArray[np.int32]:
    if not part.values:
        return np.full(len(part.texts), class_of(()), dtype=np.int32)
    return np.fromiter(map(class_of, zip(*part.values, strict=True)), np.int32, len(part.texts))


def _single_texts(parts: Iterable[_Part], class_of: Callable[[tuple[Any, ...]], int]) -> Iterator[UserTexts]:
    for part in parts:
        codes = _classes(part, class_of)
        for row, text in enumerate(part.texts):
            yield UserTexts((([text or ""], codes[row : row + 1]),))


def _refuse_second_pass() -> Iterator[UserTexts]:
    raise ParameterError("with unit='document', documents can be read once: pass again=True for further passes")


def _grouped_texts(partition: UserPartition) -> Iterator[UserTexts]:
    for slab, bounds in partition.groups():
        offsets = [0, *np.cumsum(slab.lengths).tolist()]
        for start, stop in pairwise(bounds):
            yield UserTexts(_Repeatable(partial(_text_chunks, slab, offsets, start, stop)))


def _text_chunks(slab: Slab, offsets: list[int], start: int, stop: int) -> Iterator[Chunk]:
    for first, last in _chunk_bounds(offsets, start, stop):
        documents = (slab.content[begin:end] for begin, end in pairwise(offsets[first : last + 1]))
        yield [document.decode("utf-8", "surrogatepass") for document in documents], slab.codes[first:last]


def _class_function(code: Callable[[tuple[str | None, ...]], int] | None) -> Callable[[tuple[Any, ...]], int]:
    @lru_cache(maxsize=1 << 12)
    def cached(values: tuple[str | None, ...]) -> int:
        number = 0 if code is None else code(tuple(map(canonical_label, values)))
        return check_int("the code of a class", number, minimum=OUTSIDE, maximum=MAX_CLASSES - 1)

    def class_of(values: tuple[Any, ...]) -> int:
        if not all(type(value) is str for value in values):  # 1, 1.0 and True would be one key
            values = tuple(map(canonical_label, values))
        is_short = sum(len(value or "") for value in values) <= _LONGEST_CACHED
        return (cached if is_short else cached.__wrapped__)(values)

    return class_of


class _Repeatable(Generic[T]):
    """An iterable that calls a function for each iteration."""

    def __init__(self, iterate: Callable[[], Iterator[T]]) -> None:
        self._iterate = iterate

    def __iter__(self) -> Iterator[T]:
        return self._iterate()


def _chunk_bounds(offsets: list[int], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Cut documents ``start`` to ``stop`` into chunks of at most `CHUNK_SIZE`, but of at least one document."""
    while start < stop:
        fitting = bisect_right(offsets, offsets[start] + CHUNK_SIZE, start + 1, stop + 1) - 1
        end = min(max(fitting, start + 1), start + CHUNK_SIZE)
        yield start, end
        start = end


# -- reading --------------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """Consecutive documents; ``first`` is the number of the first, from 1. ``values`` has a sequence per column."""

    first: int
    texts: Sequence[str | None]
    users: Sequence[Any] | None
    values: tuple[Sequence[Any], ...]


@dataclass(frozen=True)
class Columns:
    """Columns that are read besides texts: the one with levels, or those with labels."""

    names: tuple[str, ...]
    is_level: bool = False

    def in_reader(self, reader: DocumentReader) -> tuple[str, ...]:
        """Return the names of the columns in a reader; raise a ParameterError if one is not read."""
        label = None if self.is_level else reader.label_column
        columns = []
        for name in self.names:
            if name in (*reader.kept_columns, label):
                columns.append(name)
            elif label is not None and len(self.names) == 1:
                columns.append(label)
            else:
                kind = "levels" if self.is_level else "labels"
                raise ParameterError(f"the column {name!r} of {kind} is not read: read_documents(..., keep=[{name!r}])")
        return tuple(columns)

    def in_document(self, document: Document, row: int) -> tuple[Any, ...]:
        """Return the values of the columns in a document; raise a DataError if it has no level."""
        values = document.attributes or {}
        if len(self.names) == 1:
            name = self.names[0]
            if self.is_level and name not in values:
                present = describe_columns(name, list(values), sure=True)
                raise DataError(f"row {row} has no attribute {name!r} for its level: {present}")
            return (values.get(name, document.label),)
        return tuple(map(values.get, self.names))


def check_users_are_read(documents: object, unit: UserUnit) -> None:
    """Raise a ParameterError for a table, which iterates over its column names, and for a reader without users."""
    if is_table(documents):
        raise ParameterError("expected documents, got a table: make dptext.Document objects of its rows")
    if isinstance(documents, DocumentReader) and unit == "user" and documents.user_column is None:
        raise ParameterError("the reader has no user column: name it (user=), or use unit='document'")


def _parts_of(documents: DocumentReader | Iterable[Document], unit: UserUnit, columns: Columns) -> Generator[_Part]:
    if isinstance(documents, DocumentReader):
        check_users_are_read(documents, unit)
        return _parts_of_reader(
            documents, documents.user_column if unit == "user" else None, columns.in_reader(documents)
        )
    if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
        raise ParameterError(f"documents must be Document objects or a reader, got {type(documents).__name__}")
    return _parts_of_documents(documents, unit, columns)


def _parts_of_reader(reader: DocumentReader, user: str | None, column_names: tuple[str, ...]) -> Generator[_Part]:
    with closing(reader):
        for block in reader.batches():
            columns = as_lists(block.columns)
            first = reader.count - len(block.texts) + 1
            users = None if user is None else columns[user]
            yield _Part(first, block.texts, users, tuple(columns[name] for name in column_names))


def _parts_of_documents(documents: Iterable[Document], unit: UserUnit, columns: Columns) -> Generator[_Part]:
    def rows() -> Iterator[tuple[str | None, tuple[Any, ...]]]:
        for row, document in enumerate(documents, 1):
            if not isinstance(document, Document):
                raise DataError(f"row {row} must be a Document, got {type(document).__name__}")
            if document.text is not None and not isinstance(document.text, str):
                raise DataError(f"row {row}: expected a string as text, got {type(document.text).__name__}")
            yield document.text, (document.user, *columns.in_document(document, row))

    first = 1
    for batch in row_batches(rows(), [str(place) for place in range(1 + len(columns.names))]):
        users, *values = batch.columns.values()
        yield _Part(first, batch.texts, users if unit == "user" else None, tuple(values))
        first += len(batch.texts)


class _UserDigests:
    """Digests of user ids under a key that is drawn here and exists nowhere else."""

    def __init__(self, seed: int | None) -> None:
        self._hash = hashlib.blake2b(digest_size=16, key=RandomBits(seed).take(32))

    def of(self, part: _Part) -> npt.NDArray[np.uint64]:
        """(documents, 2), 128 bits each: two users share them with a probability below n^2 / 2^129."""
        users = range(part.first, part.first + len(part.texts)) if part.users is None else part.users
        cache: dict[str, bytes] = {}
        digests = []
        for row, user in enumerate(users, part.first):
            digest = cache.get(user) if type(user) is str else None
            if digest is None:
                digest = self._digest(user_name(user, row))
                if type(user) is str:
                    cache[user] = digest
            digests.append(digest)
        return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64).reshape(-1, 2)

    def _digest(self, name: str) -> bytes:
        digest = self._hash.copy()
        digest.update(name.encode("utf-8", "surrogatepass"))
        return digest.digest()


def user_name(user: object, row: int | None = None) -> str:
    """Return the canonical id of a row's user; raise a DataError, with the number of the row, if there is none."""
    name = canonical_id(user)
    if name is None:
        where = "a row" if row is None else f"row {row}"
        raise DataError(f"{where} has no user: fill the column in, drop the row, or use unit='document'")
    return name


class _LevelCodes:
    """Numbers of levels, in the order in which they come."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self._codes: dict[tuple[type, Any], int] = {}

    def of(self, values: tuple[Sequence[Any], ...], count: int) -> npt.NDArray[np.int32]:
        if not values:
            return np.full(count, self._code(None), dtype=np.int32)
        return np.fromiter(map(self._code, values[0]), dtype=np.int32, count=count)

    def _code(self, level: Any) -> int:
        level = level.item() if isinstance(level, np.generic) else level
        level = None if is_missing(level) else level
        if not isinstance(level, str | int | float | None):
            raise DataError(f"a level must be a text or a number, got {type(level).__name__}")
        code = self._codes.setdefault((type(level), level), len(self.levels))
        if code == len(self.levels):
            if code >= MAX_LEVELS:
                raise DataError(f"the column of levels has more than {MAX_LEVELS:,} values: name another column")
            self.levels.append(level)
        return code


# -- tokens ---------------------------------------------------------------------------------------------------


class TokenRows:
    """The rows of the words of texts, one text after the other."""

    def __init__(self, row_of: Callable[[str], int]) -> None:
        rows: TokenCache[int] = TokenCache(row_of)

        def rows_in(chunk: str) -> tuple[int, ...]:  # not a method: in a circle, the caches would outlive this object
            return tuple([row for row in map(rows.__getitem__, pieces(chunk)) if row != NO_WORD])

        self._rows_in = rows_in
        self._chunks: TokenCache[tuple[int, ...]] = TokenCache(rows_in)

    def __call__(self, texts: Iterable[str | None]) -> tuple[Rows, Lengths]:
        """Return (words,) int32 rows and the number of words in each text."""
        rows: list[int] = []
        ends = [0]
        for text in texts:
            if text and text.isascii():  # no token contains a space and something else, so chunks can be cached
                rows += chain.from_iterable(map(self._chunks.__getitem__, text.split(" ")))
            elif text:
                rows += self._rows_in(text)
            ends.append(len(rows))
        return np.fromiter(rows, dtype=np.int32, count=len(rows)), np.diff(ends)


class WordIndexer:
    """Map the words of texts to rows of a vocabulary, `OUTSIDE` if it does not contain them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._rows = TokenRows(self._row_of)

    def __reduce__(self) -> tuple[Any, ...]:  # without the cache
        return (WordIndexer, (self._vocabulary,))

    def __call__(self, texts: Sequence[str | None]) -> tuple[Rows, Lengths]:
        return self._rows(texts)

    def _row_of(self, token: str) -> int:
        if kind_of(token) is not Kind.WORD:
            return NO_WORD
        row = self._vocabulary.row(token)
        return OUTSIDE if row == self._vocabulary.unknown_row else row


class TokenCache(dict[str, Value]):
    """Results of a function for tokens; it keeps short tokens, up to a fixed number."""

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


# -- users' words in a file ----------------------------------------------------------------------------------

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
