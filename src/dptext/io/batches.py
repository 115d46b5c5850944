"""Batches of rows, and the input streams that they are read from."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import lzma
import math
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from dptext.errors import DataError, StorageError
from dptext.validation import format_names

BATCH_ROWS = 1 << 16
BATCH_CHARACTERS = 1 << 20
"""A batch ends with the row that brings it to this many rows or characters: the input alone decides where."""

BATCH_REJECTS = 1 << 12
"""Number of rejected rows that form a batch without texts."""

STANDARD = Path("-")
"""Standard input, or standard output."""

Columns: TypeAlias = Any
"""Kept columns: a mapping from names to lists, or a pyarrow table, as their reader has them."""


# -- batches --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reject:
    """A row of a file that could not be read, and why; never its content."""

    file: str
    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows in the order of the input."""

    texts: Sequence[str | None]
    columns: Columns
    rejects: tuple[Reject, ...] = ()

    def digest(self) -> bytes:
        """SHA-256 of the texts, each with its length."""
        lengths = np.array([-1 if text is None else len(text) for text in self.texts], dtype="<i8")
        content = hashlib.sha256(lengths.tobytes())
        content.update("".join(text for text in self.texts if text is not None).encode("utf-8", "surrogatepass"))
        return content.digest()

    def identity(self) -> bytes:
        """SHA-256 of the texts and of all columns, to detect a changed input."""
        content = hashlib.sha256(self.digest())
        if isinstance(self.columns, Mapping):
            content.update(repr(dict(self.columns)).encode("utf-8", "backslashreplace"))
        else:
            for batch in self.columns.to_batches():
                content.update(batch.serialize())
        return content.digest()


def as_lists(columns: Columns) -> Mapping[str, Sequence[Any]]:
    """Kept columns as Python lists by name; `DataError` for values that Python has no type for."""
    if isinstance(columns, Mapping):
        return columns
    import pyarrow

    lists: dict[str, list[Any]] = {}
    for name in columns.column_names:
        column = columns.column(name)
        if pyarrow.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = column.cast(pyarrow.string())  # Python's own times end at microseconds
        with suppress(UnicodeDecodeError, ValueError, OverflowError, pyarrow.ArrowException):
            lists[name] = column.to_pylist()
        if name not in lists:
            raise DataError(f"the kept {name!r} has values that cannot be read: convert it, or do not keep it")
    return lists


def unknown_type(name: object, kind: str) -> DataError:
    """The error for a kept column that cannot be rebuilt from its values; ``kind`` is the type."""
    return DataError(
        f"the kept column {name!r} holds values of the type {kind!r}, which may carry more along than the rows that "
        "are kept: convert it, or do not keep it"
    )


def batch_limits() -> tuple[int, int]:
    """Return the numbers of rows and characters that end a batch."""
    return BATCH_ROWS, BATCH_CHARACTERS


def row_batches(
    rows: Iterable[Reject | tuple[str | None, Sequence[Any]]], names: Sequence[str] = ()
) -> Iterator[Batch]:
    """Rows (a text and the values of its other columns) and rejected rows, in batches."""
    max_rows, max_characters = batch_limits()
    texts: list[str | None] = []
    columns: dict[str, list[Any]] = {name: [] for name in names}
    rejects: list[Reject] = []
    characters = 0
    for row in rows:
        if isinstance(row, Reject):
            rejects.append(row)
            if len(rejects) >= BATCH_REJECTS:
                yield Batch([], {name: [] for name in names}, tuple(rejects))
                rejects = []
            continue
        text, others = row
        texts.append(text)
        for values, value in zip(columns.values(), others, strict=True):
            values.append(value)
        characters += 0 if text is None else len(text)
        if characters >= max_characters or len(texts) >= max_rows:
            yield Batch(texts, columns, tuple(rejects))
            texts, columns, rejects, characters = [], {name: [] for name in names}, [], 0
    if texts or rejects:
        yield Batch(texts, columns, tuple(rejects))


def text_batches(texts: Iterable[str | None]) -> Iterator[Batch]:
    """Texts without other columns, in batches."""
    return row_batches((text, ()) for text in texts)


_SURROGATE = re.compile("[\ud800-\udfff]")


def has_lone_surrogate(text: str) -> bool:
    """True if a string holds half a surrogate pair, which no encoding can write."""
    return not text.isascii() and _SURROGATE.search(text) is not None


# -- streams --------------------------------------------------------------------------------------------------


def is_pipe(path: Path) -> bool:
    """True if this can be read only once: standard input, a pipe, a device. An impossible path is none."""
    with suppress(OSError, ValueError):  # it is refused when it is opened
        return path == STANDARD or (path.exists() and not path.is_file() and not path.is_dir())
    return False


def display_name(path: Path) -> str:
    """The name of a file on one line."""
    if path == STANDARD:
        return "standard input"
    return path.name if path.name.isprintable() else repr(path.name)[1:-1]


def open_stored(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a regular file for reading; `StorageError` for a pipe or device, which may never end."""
    try:
        # a pipe without a writer opens immediately, and is refused below
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    problem = os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "expected a file, got a pipe or a device"
    raise StorageError(f"cannot read {os.fspath(path)!r}: {problem}")


def standard_input() -> IO[bytes]:
    """The bytes of standard input; `StorageError` if it is closed."""
    if sys.stdin is None:
        raise StorageError("cannot read standard input: it is closed")
    return sys.stdin.buffer


class OpenedFile(io.RawIOBase):
    """The decompressed bytes of a file or of standard input; raises EOFError for broken compressed data."""

    longest_line: float = math.inf

    def __init__(self, path: Path, compression: str = "") -> None:
        self.name = display_name(path)
        self._is_own, self._line = path != STANDARD, 0
        try:
            self._file: IO[bytes] = path.open("rb") if self._is_own else standard_input()
            self.size = os.fstat(self._file.fileno()).st_size if self._is_own else 0
        except StorageError:
            raise
        except OSError as error:
            raise StorageError.of("open", path, error) from None
        self._stream: Any = self._file
        if compression == ".gz":
            self._stream = gzip.GzipFile(fileobj=self._file)
        elif compression == ".xz":
            self._stream = lzma.LZMAFile(self._file)  # noqa: SIM115
        elif compression == ".zst":
            import pyarrow as arrow

            self._stream = io.BufferedReader(
                arrow.CompressedInputStream(arrow.PythonFile(self._file, mode="r"), "zstd")
            )

    @property
    def position(self) -> int:
        return 0 if self.size == 0 else self.size if self._file.closed else self._file.tell()

    def close(self) -> None:
        if self._is_own and hasattr(self, "_file"):
            self._file.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        try:
            while len(data) < min(40, len(buffer)) and b"\n" not in data:  # enough to tell an encoding by
                more = self._stream.read1(len(buffer) - len(data))
                if not more:
                    break
                data += more
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError):
            raise EOFError from None
        except OSError as error:
            if error.errno is None:  # of pyarrow: broken data
                raise EOFError from None
            raise StorageError.of("read", self.name, error) from None
        buffer[: len(data)] = data
        end = data.rfind(b"\n")
        self._line = self._line + len(data) if end < 0 else len(data) - end - 1
        if self._line > self.longest_line:
            raise DataError(f"{self.name}: expected lines of at most {self.longest_line:,} bytes, got a longer one")
        return len(data)


# -- column names in errors -----------------------------------------------------------------------------------

_NAME = re.compile(r"[^\W\d][\w.:/()#%-]*( [\w.:/()#%-]+){0,3}")
_NUMBERED = re.compile(r"_?(c|col|column|f|feature|field|v|var|x)_?[0-9]{1,4}", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")
_USUAL_WORDS = (
    "abstract address age answer article author authors body business category city class client comment comments "
    "content country created customer date day description document doc email gender group id index key kind label "
    "lang language length level line location mail message month name note notes number occupation patient person "
    "phone post price product question rating record reply response result review reviewer reviews row score sender "
    "sentence sentiment sex split stars state status subject summary tag tags target text texts ticket time timestamp "
    "title topic tweet txt type uid url user username utterance value verified visit vote votes year zip "
    "autor benutzer datum datei frage antwort geschlecht kommentar kunde nachricht nutzer ort sprache sterne titel "
    "auteur avis commentaire contenu date langue nom note sujet texte titre utilisateur "
    "autor comentario contenido estrellas fecha idioma mensaje nombre texto titulo usuario"
)


def describe_columns(
    missing: object, names: Sequence[object], *, required: Sequence[object] = (), sure: bool = False
) -> str:
    """Describe the present columns in an error about a missing one; never show values."""
    count = f"none among its {len(names)}"
    if names and not sure and may_be_values(names, required=required):
        return f"{count} (not shown: they may be values; a file begins with a line of names)"
    present = [str(name) for name in names if _could_be_name(name)]
    return f"{count}: {format_names(present, near=missing)}" if present else count


def may_be_values(names: Sequence[object], *, required: Sequence[object] = ()) -> bool:
    """True unless every entry could be a column name (short, no sentence) and one is usual or ``required``."""
    return not (all(map(_could_be_name, names)) and any(name in required or _is_usual(str(name)) for name in names))


def _could_be_name(name: object) -> bool:
    return isinstance(name, str) and len(name) <= 40 and _NAME.fullmatch(name) is not None


def _is_usual(name: str) -> bool:
    """True if all words are usual in column names: ``review_text``, ``userId``, ``col_3``."""
    words = {word.casefold() for word in _WORD.findall(name)}
    return _NUMBERED.fullmatch(name) is not None or (bool(words) and words <= set(_USUAL_WORDS.split()))
