"""One user's words at a time, out of documents in any order: the input of what is private at the level of users.

The documents are read once, cut into tokens (numbers, addresses, punctuation and space are no words), mapped to the
rows of a vocabulary and grouped on disk (`dptext.users.sorting`). Memory grows neither with the number of users nor
with what one of them wrote: a user with many words comes in several chunks.

Names of users are replaced at once by digests under a key that is drawn afresh and forgotten, levels by codes. The
users come out in the order of these digests: a random order, on which neither the order of the input nor a name has any
influence.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from dptext.checks import choice, whole
from dptext.errors import DataError, ParameterError
from dptext.files.blocks import block_limits
from dptext.files.column import columns_there, is_missing
from dptext.files.documents import Document, DocumentReader
from dptext.files.parquet import as_lists
from dptext.files.table_kinds import is_table
from dptext.privacy.randomness import RandomBits
from dptext.privacy.unit import canonical_id
from dptext.processes import in_order
from dptext.text.tokens import Kind, Vocabulary, kind_of, pieces
from dptext.users.sorting import Digests, Lengths, Prolific, Rows, SortedRuns

__all__ = [
    "ONE_NAME",
    "OUTSIDE",
    "Digester",
    "LabelColumns",
    "Level",
    "Part",
    "Person",
    "ReadColumns",
    "Remembered",
    "RowsOfTexts",
    "UserUnit",
    "Users",
    "check_users_are_read",
    "grouped_users",
    "parts_of",
    "user_name",
    "users_of",
]

UserUnit: TypeAlias = Literal["user", "document"]
Level: TypeAlias = str | int | float | bool | None
_MOST_LEVELS = 1000
ONE_NAME = (
    "a person writes under one name; whoever has several counts as several users",
    "no two people write under one name; those who do count as one user together",
)
"""What is taken for granted where users are protected."""


OUTSIDE = -1
"""The row of a word that the vocabulary does not hold."""
_NO_WORD = -2
_TOKENS_REMEMBERED = 1 << 18
_LONGEST_REMEMBERED = 64
Found = TypeVar("Found")


def users_of(
    documents: DocumentReader | Iterable[Document],
    vocabulary: Vocabulary,
    *,
    unit: UserUnit = "user",
    level: str | None = None,
    most_words: int | None = None,
    processes: int = 1,
    seed: int | None = None,
    folder: str | Path | None = None,
) -> AbstractContextManager[Users]:
    """Group documents by user, in one pass over them.

    Args:
        documents: of `dptext.files.documents.read_documents` with ``user=`` (which is faster), or any `Document`
            objects; they may come in any order. A text that is None counts as one without words.
        vocabulary: public words, or words released under a statement.
        unit: ``"user"``: `Document.user` says who is one person: 7, 7.0, "7" and " 7" are the same
            (`dptext.privacy.unit.canonical_id`). ``"document"``: every document stands for itself.
        level: a public column (of ``keep``, or of `Document.attributes`) that is carried along, for personal budgets.
        most_words: of each user, this many words are looked at: the first ones in the order of their documents. Words
            outside the vocabulary count. It bounds what one person can do to the time and memory of all that follows.
        processes: how many cut texts into words; the result does not depend on it.
        seed: makes the order of the users repeatable, for tests and papers only; None: a fresh random order.
        folder: where the nameless temporary file lies; None: where the system has its temporary files.

    Raises:
        DataError: a row without a user (it is named, nobody else is), a text that is no string; more than 1,000
            different levels.
        ParameterError: the reader was not asked for the user or the level; an argument out of range.
        StorageError: the temporary file cannot be written; a process died.

    >>> words = Vocabulary(["cat", "sat", "<unk>"])
    >>> documents = [Document("A cat!", user="Ann"), Document("Cats sat.", user="Bo"), Document("Sat 2 s", user="Ann")]
    >>> with users_of(documents, words) as users:
    ...     sorted([rows.tolist(), lengths.tolist()] for person in users for rows, lengths in person.chunks())
    [[[-1, 0, 1, -1], [2, 2]], [[-1, 1], [2]]]
    """
    if not isinstance(vocabulary, Vocabulary):
        raise ParameterError(f"vocabulary must be a Vocabulary, got {type(vocabulary).__name__}")
    return grouped_users(
        documents,
        RowsOfTexts(vocabulary),
        lambda found: found,
        unit=unit,
        level=level,
        most_words=most_words,
        processes=processes,
        seed=seed,
        folder=folder,
    )


@contextmanager
def grouped_users(
    documents: DocumentReader | Iterable[Document],
    work: Callable[[Any], Any],
    settle: Callable[[Any], tuple[Rows, Lengths]],
    *,
    columns: ReadColumns | None = None,
    unit: UserUnit = "user",
    level: str | None = None,
    most_words: int | None = None,
    processes: int = 1,
    seed: int | None = None,
    folder: str | Path | None = None,
) -> Iterator[Users]:
    """`users_of` for any numbering of words, or of values of columns.

    Args:
        work: from texts to what ``settle`` understands; in each of the processes, so it is pickled.
        settle: from there to (words,) rows and (documents,) lengths; in this process, in the order of the documents.
        columns: work on the values of these, column by column, instead of the texts (and without levels).
    """
    choice("unit", unit, get_args(UserUnit))
    if most_words is not None:
        most_words = whole("most_words", most_words, least=1)
    whole("processes", processes, least=1)
    names = Digester(seed)
    levels = _LevelCodes()
    with closing(SortedRuns(folder)) as runs:
        parts = (
            ((names.of(part), levels.of(part.values if columns is None else (), len(part.texts))), content)
            for part in parts_of(documents, unit, _LevelColumn(level) if columns is None else columns)
            for content in [part.texts if columns is None else part.values]
        )
        with closing(in_order(work, parts, processes=processes)) as done:
            for (digests, codes), found in done:
                rows, lengths = settle(found)
                runs.add(digests, codes, lengths, rows)
        runs.close_input()
        yield Users(runs, levels.values, most_words)


class Person:
    """What one user wrote. Good until the `users_of` that it came from ends.

    Attributes:
        levels: their distinct levels, in the order in which they came; one, unless their rows disagree. Where levels
            are budgets, the strictest has to count: no row may loosen what another one asks for.
    """

    __slots__ = ("_most", "_pieces", "levels")

    def __init__(self, pieces: Iterable[tuple[Rows, Lengths]], levels: tuple[Level, ...], most: int | None) -> None:
        self._pieces, self.levels, self._most = pieces, levels, most

    def chunks(self) -> Iterator[tuple[Rows, Lengths]]:
        """Their documents in the order of the input, in chunks of bounded size; each time from the start.

        Returns:
            Pairs (rows, lengths): (words,) int32, the rows of the words of all documents of the chunk one after the
            other, `OUTSIDE` for a word that the vocabulary does not hold; (documents,) int64, how many words each
            document has. No document goes on in the next chunk. Someone who wrote no word has a chunk all the same.
        """
        left = math.inf if self._most is None else self._most
        for rows, lengths in self._pieces:
            if rows.size >= left:
                yield _first_words(rows, lengths, int(left))
                return
            left -= rows.size
            yield rows, lengths


class Users:
    """Users one by one, in random order (see `users_of`); another iteration gives the same users in the same order."""

    def __init__(self, runs: SortedRuns, levels: Sequence[Level], most_words: int | None) -> None:
        self._runs, self._levels, self._most = runs, levels, most_words

    def __iter__(self) -> Iterator[Person]:
        for batch in self._runs.batches():
            if isinstance(batch, Prolific):
                yield Person(batch, self._named(batch.levels), self._most)
                continue
            row = document = 0
            users = zip(batch.words.tolist(), batch.documents.tolist(), batch.levels, strict=True)
            for words, documents, codes in users:
                piece = (batch.rows[row : row + words], batch.lengths[document : document + documents])
                row, document = row + words, document + documents
                yield Person((piece,), self._named(codes), self._most)

    def _named(self, codes: tuple[int, ...]) -> tuple[Level, ...]:
        return tuple(self._levels[code] for code in codes)


def _first_words(rows: Rows, lengths: Lengths, count: int) -> tuple[Rows, Lengths]:
    ends = np.cumsum(lengths)
    last = int(np.searchsorted(ends, count))  # the document in which that word stands
    kept = lengths[: last + 1].copy()
    kept[last] -= int(ends[last]) - count
    return rows[:count], kept


# -- documents in parts ---------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Some documents in a row; ``first`` counts them from 1. ``values`` has one sequence for each further column."""

    first: int
    texts: Sequence[str | None]
    users: Sequence[Any] | None
    values: tuple[Sequence[Any], ...]


class ReadColumns(Protocol):
    """The further columns that are wanted of documents."""

    def of_reader(self, reader: DocumentReader) -> tuple[str, ...]:
        """Their names there; a ParameterError where one is not read."""

    def of_document(self, document: Document, row: int) -> tuple[Any, ...]:
        """Their values there; a DataError where one has to be and is not."""


def parts_of(documents: DocumentReader | Iterable[Document], unit: UserUnit, columns: ReadColumns) -> Generator[Part]:
    """Documents in parts of bounded size, in the order of the input.

    Raises:
        ParameterError: these are no documents; the reader was not asked for the user, or for a column.
        DataError: from the iterator: a row is no document, or its text no string.
    """
    if isinstance(documents, DocumentReader):
        check_users_are_read(documents, unit)
        names = columns.of_reader(documents)
        return _parts_of_reader(documents, documents.user_column if unit == "user" else None, names)
    if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
        raise ParameterError(f"documents must be Document objects or a reader of them, got {type(documents).__name__}")
    return _parts_of_documents(documents, unit, columns)


def check_users_are_read(documents: object, unit: UserUnit) -> None:
    """Whether a reader gives the users that are to be protected, and whether these are documents at all.

    Raises:
        ParameterError: it does not; a table, which gives the names of its columns to whoever goes over it.
    """
    if is_table(documents):
        who = ', user=who) for text, who in zip(table["text"], table["author"])]' if unit == "user" else ""
        raise ParameterError(
            "expected documents, got a table: make documents of its columns, [dptext.Document(text"
            + (who or ') for text in table["text"]]')
            + ", or read a file with dptext.read_documents"
        )
    if isinstance(documents, DocumentReader) and unit == "user" and documents.user_column is None:
        raise ParameterError(
            "nobody knows who wrote these documents: name the column, read_documents(..., user=...), or protect single "
            "documents, unit='document'"
        )


def _parts_of_reader(reader: DocumentReader, user: str | None, names: tuple[str, ...]) -> Generator[Part]:
    with closing(reader):
        for block in reader.blocks():
            columns = as_lists(block.columns)
            yield Part(
                reader.count - len(block.texts) + 1,
                block.texts,
                None if user is None else columns[user],
                tuple(columns[name] for name in names),
            )


def _parts_of_documents(documents: Iterable[Document], unit: UserUnit, columns: ReadColumns) -> Generator[Part]:
    most_rows, most_characters = block_limits()
    waiting: list[Document] = []
    values: list[tuple[Any, ...]] = []
    first, characters = 1, 0

    def part() -> Part:
        return Part(
            first,
            [each.text for each in waiting],
            [each.user for each in waiting] if unit == "user" else None,
            tuple(zip(*values, strict=True)),
        )

    for number, document in enumerate(documents, 1):
        if not isinstance(document, Document):
            raise DataError(f"row {number} must be a Document, got {type(document).__name__}")
        if document.text is not None and not isinstance(document.text, str):
            raise DataError(f"row {number}: expected a string as text, got {type(document.text).__name__}")
        values.append(columns.of_document(document, number))
        waiting.append(document)
        characters += len(document.text or "")
        if characters >= most_characters or len(waiting) >= most_rows:
            yield part()
            first, characters, waiting, values = number + 1, 0, [], []
    if waiting:
        yield part()


class _LevelColumn:
    """The column of levels, if there is one."""

    def __init__(self, name: str | None) -> None:
        self._name = name

    def of_reader(self, reader: DocumentReader) -> tuple[str, ...]:
        name = self._name
        if name is None:
            return ()
        if name not in reader.kept_columns:
            raise ParameterError(f"the column {name!r} of levels is not read: read_documents(..., keep=[{name!r}])")
        return (name,)

    def of_document(self, document: Document, row: int) -> tuple[Any, ...]:
        name = self._name
        if name is None:
            return ()
        if name not in (document.attributes or {}):
            there = columns_there(name, list(document.attributes or {}), sure=True)
            raise DataError(f"row {row} has no attribute {name!r}, which was to be its level: {there}")
        return ((document.attributes or {})[name],)


class LabelColumns:
    """Columns of labels by name: kept ones, or one alone as the label of documents where there is none of that name.

    A value that is not there is None, and no error.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def of_reader(self, reader: DocumentReader) -> tuple[str, ...]:
        """As in `ReadColumns`."""
        return tuple(self._in_reader(reader, name) for name in self.names)

    def _in_reader(self, reader: DocumentReader, name: str) -> str:
        if name in (*reader.kept_columns, reader.label_column):
            return name
        if reader.label_column is not None and len(self.names) == 1:
            return reader.label_column
        raise ParameterError(f"the column {name!r} of labels is not read: read_documents(..., keep=[{name!r}])")

    def of_document(self, document: Document, row: int) -> tuple[Any, ...]:  # noqa: ARG002  nothing has to be there
        """As in `ReadColumns`."""
        found = document.attributes or {}
        if len(self.names) == 1:
            return (found.get(self.names[0], document.label),)
        return tuple(map(found.get, self.names))


# -- users and levels as numbers ------------------------------------------------------------------------------


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


def user_name(user: object, number: int | None = None) -> str:
    """How the user of a row is spelled; ``number`` is that of the row, where rows have one.

    Raises:
        DataError: the row has none.
    """
    name = canonical_id(user)
    if name is None:
        row = "a row" if number is None else f"row {number}"
        raise DataError(
            f"{row} has no user, and nobody could be protected in it: a text or a whole number is needed for every "
            "row; complete the column, leave such rows out, or protect single documents (unit='document')"
        )
    return name


class _LevelCodes:
    """Numbers for levels, in the order in which they come."""

    def __init__(self) -> None:
        self.values: list[Level] = []
        self._codes: dict[tuple[type, Any], int] = {}

    def of(self, values: tuple[Sequence[Any], ...], count: int) -> npt.NDArray[np.int32]:
        if not values:
            return np.full(count, self._code(None), dtype=np.int32)
        return np.fromiter(map(self._code, values[0]), dtype=np.int32, count=count)

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


# -- words as numbers -----------------------------------------------------------------------------------------


class RowsOfTexts:
    """The rows of the words of texts, text after text. Its memory of tokens stays behind when it is pickled."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._rows: Remembered[int] = Remembered(self._row_of)

    def __reduce__(self) -> tuple[Any, ...]:
        return (RowsOfTexts, (self._vocabulary,))

    def __call__(self, texts: Sequence[str | None]) -> tuple[Rows, Lengths]:
        """(words,) int32 rows, `OUTSIDE` for words that the vocabulary does not hold; (texts,) words in each."""
        tokens: list[str] = []
        ends = [0]
        for text in texts:
            if text:
                tokens += pieces(text)
            ends.append(len(tokens))
        found = np.fromiter(map(self._rows.__getitem__, tokens), dtype=np.int32, count=len(tokens))
        is_word = found != _NO_WORD
        before = np.concatenate([[0], np.cumsum(is_word)])
        return found[is_word], np.diff(before[ends])

    def _row_of(self, token: str) -> int:
        if kind_of(token) is not Kind.WORD:
            return _NO_WORD
        row = self._vocabulary.row(token)
        return OUTSIDE if row == self._vocabulary.unknown_row else row


class Remembered(dict[str, Found]):
    """What a function finds for tokens, remembered for the short ones among many that come again and again."""

    def __init__(self, find: Callable[[str], Found]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, token: str) -> Found:
        if len(self) >= _TOKENS_REMEMBERED:
            self.clear()
        found = self._find(token)
        if len(token) <= _LONGEST_REMEMBERED:
            self[token] = found
        return found
