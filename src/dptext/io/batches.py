"""Batches of rows, and the input files that contain them."""

from __future__ import annotations

import codecs
import errno
import gzip
import hashlib
import io
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar

import numpy as np

from dptext.errors import DataError, DptextError, StorageError, storage_errors
from dptext.validation import format_names

BATCH_ROWS = 1 << 16
BATCH_CHARACTERS = 1 << 20
"""A batch ends with the row that reaches one of these limits, so its end depends on the input only."""

BATCH_REJECTS = 1 << 12
"""Number of rejected rows that form a batch without texts."""

STANDARD = Path("-")
"""Standard input."""

Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""Kept columns by name."""
T = TypeVar("T")


# -- batches --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reject:
    """A row of a file that could not be read, and the reason; never its content."""

    file: str
    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows in input order."""

    texts: Sequence[str | None]
    columns: Columns
    rejects: tuple[Reject, ...] = ()

    def digest(self) -> bytes:
        """Return the SHA-256 digest of the texts and their lengths."""
        lengths = np.array([-1 if text is None else len(text) for text in self.texts], dtype="<i8")
        content = hashlib.sha256(lengths.tobytes())
        content.update("".join(text for text in self.texts if text is not None).encode("utf-8", "surrogatepass"))
        return content.digest()

    def identity(self) -> bytes:
        """Return the SHA-256 digest of the texts and all columns, to detect a changed input."""
        return hashlib.sha256(self.digest() + repr(dict(self.columns)).encode("utf-8", "backslashreplace")).digest()


def row_batches(
    rows: Iterable[Reject | tuple[str | None, Sequence[Any]]], names: Sequence[str] = ()
) -> Iterator[Batch]:
    """Yield batches of rows (a text and the values of its other columns) and of rejected rows."""
    texts: list[str | None] = []
    columns: dict[str, list[Any]] = {name: [] for name in names}
    rejects: list[Reject] = []
    characters = 0
    for row in rows:
        if isinstance(row, Reject):
            rejects.append(row)
        else:
            text, others = row
            texts.append(text)
            for values, value in zip(columns.values(), others, strict=True):
                values.append(value)
            characters += 0 if text is None else len(text)
        if characters >= BATCH_CHARACTERS or len(texts) >= BATCH_ROWS or len(rejects) >= BATCH_REJECTS:
            yield Batch(texts, columns, tuple(rejects))
            texts, columns, rejects, characters = [], {name: [] for name in names}, [], 0
    if texts or rejects:
        yield Batch(texts, columns, tuple(rejects))


def text_batches(texts: Iterable[str | None]) -> Iterator[Batch]:
    """Yield batches of texts without other columns."""
    return row_batches((text, ()) for text in texts)


_SURROGATE = re.compile("[\ud800-\udfff]")


def has_lone_surrogate(text: str) -> bool:
    """Return True if a string contains a lone surrogate, which UTF-8 cannot encode."""
    return not text.isascii() and _SURROGATE.search(text) is not None


# -- files ----------------------------------------------------------------------------------------------------


def is_pipe(path: Path) -> bool:
    """Return True if a path can be read only once (standard input, a pipe, a device); False for an invalid path."""
    with suppress(OSError, ValueError):  # opening it raises
        return path == STANDARD or (path.exists() and not path.is_file() and not path.is_dir())
    return False


def display_name(path: Path) -> str:
    """Return the name of a file as one printable line."""
    if path == STANDARD:
        return "standard input"
    return path.name if path.name.isprintable() else repr(path.name)[1:-1]


def open_stored(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a regular file for reading; raise `StorageError` for a pipe or device, which may never end."""
    with storage_errors("read", path):  # a pipe without a writer opens immediately, and raises below
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    problem = os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "it is a pipe or a device, not a file"
    raise StorageError(f"cannot read {os.fspath(path)!r}: {problem}")


def standard_input() -> IO[bytes]:
    """Return the binary standard input; raise `StorageError` if it is closed."""
    if sys.stdin is None:
        raise StorageError("cannot read standard input: it is closed")
    return sys.stdin.buffer


_BROKEN = ": the compressed data is broken or ends early"


class InputFile:
    """An open input file, or standard input, and the stream of its decompressed bytes."""

    def __init__(self, path: Path, compression: str = "") -> None:
        self.name = display_name(path)
        self._is_own = path != STANDARD
        with storage_errors("open", path):
            self.file: Any = (
                path.open("rb") if self._is_own else open(standard_input().fileno(), "rb", closefd=False)  # noqa: SIM115
            )
            self.size = os.fstat(self.file.fileno()).st_size if self._is_own else 0
        self.stream: Any = self.file
        if compression:
            self.stream = io.BufferedReader(_DECOMPRESSORS[compression](self.file), 1 << 16)

    @property
    def position(self) -> int:
        return 0 if self.size == 0 else self.size if self.file.closed else self.file.tell()

    def close(self) -> None:
        self.stream.close()
        self.file.close()

    def lines(self, encoding: str | None) -> io.TextIOWrapper:
        """Return the decoded lines with their line ends; bytes that are not UTF-8 become surrogates."""
        is_utf8, errors = encoding in (None, "utf-8", "utf-8-sig"), None
        start = self.stream.peek(64)[:64]
        has_mark = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        if has_mark and (is_utf8 or str(encoding).startswith("utf-16")):
            encoding = "utf-16"
        elif is_utf8:
            for name, zeros in (("utf-16-le", start[1::2]), ("utf-16-be", start[::2])):
                if encoding is None and len(zeros) > 4 and zeros.count(0) > len(zeros) / 2:
                    raise DataError(f"{self.name}: this looks like UTF-16, not UTF-8. Add --encoding {name}")
            encoding, errors = "utf-8-sig", "surrogateescape"
        lines = self.stream = io.TextIOWrapper(self.stream, encoding, errors=errors, newline="\n")
        return lines

    def guarded(self, rows: Iterator[T], damage: str = _BROKEN, *kinds: type[Exception]) -> Iterator[T]:
        """Yield rows of the file; replace errors that may quote it, and system errors, by one that names the file."""
        system: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, lzma.LZMAError)
        try:
            yield from rows
            return
        except DptextError:
            raise
        except system + kinds as error:
            number = getattr(error, "errno", None)  # errors about damaged data have no number
        if number is not None:
            raise StorageError(f"cannot read {self.name!r}: {os.strerror(number)}")
        raise DataError(f"{self.name}{damage}. Copy the file again")


def _zstd_file(file: Any) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")


_DECOMPRESSORS: Mapping[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".zst": _zstd_file}


# -- column names in errors -----------------------------------------------------------------------------------

_NAME = re.compile(r"[^\W\d][\w.:/()#%-]*( [\w.:/()#%-]+){0,3}")
_NUMBERED = re.compile(r"_?(c|col|column|f|feature|field|v|var|x)_?[0-9]{1,4}", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")
_USUAL_WORDS = (
    "answer author body category city comment comments content country created customer date day description doc email "
    "gender group id index key kind label lang language message month name number patient person post product question "
    "rating response result review reviewer reviews score sentence sentiment sex source split stars status subject tag "
    "target text texts time timestamp title topic tweet type url user username value year "
    "autor datum frage antwort kommentar nutzer sterne titel auteur avis commentaire texte usuario texto fecha"
)


def describe_columns(
    missing: object, names: Sequence[object], *, required: Sequence[object] = (), sure: bool = False
) -> str:
    """Describe the existing columns for an error about a missing one; never show values."""
    count = f"{len(names)} other{'' if len(names) == 1 else 's'}"
    if names and not sure and may_be_values(names, required=required):
        return f"{count} (not shown, because they may be values: add a first line with column names)"
    present = [str(name) for name in names if _could_be_name(name)]
    return f"{count}: {format_names(present, near=missing)}" if present else count


def check_header(names: Sequence[str], required: Sequence[str], file: str, *, sure: bool = False) -> None:
    """Raise `DataError` unless a file has each required column once; ``sure`` means that names are not values."""
    if len(set(names)) != len(names):
        raise DataError(f"{file}: two columns have the same name. Rename one")
    for column in required:
        if column not in names:
            present = describe_columns(column, names, required=required, sure=sure)
            raise DataError(f"{file}: expected a column {column!r}, the file has {present}; name the right column")


def may_be_values(names: Sequence[object], *, required: Sequence[object] = ()) -> bool:
    """Return False if all entries look like column names (short, not sentences) and one is usual or ``required``."""
    return not (all(map(_could_be_name, names)) and any(name in required or _is_usual(str(name)) for name in names))


def _could_be_name(name: object) -> bool:
    return isinstance(name, str) and len(name) <= 40 and _NAME.fullmatch(name) is not None


def _is_usual(name: str) -> bool:
    """Return True if all words are usual in column names, such as ``review_text``, ``userId``, ``col_3``."""
    words = {word.casefold() for word in _WORD.findall(name)}
    return _NUMBERED.fullmatch(name) is not None or (bool(words) and words <= set(_USUAL_WORDS.split()))
