"""Documents, and the files they come from and go to: a stream, one row at a time, in constant memory.

``.txt`` (a document a line), ``.jsonl`` and ``.csv``, each plain or ``.gz``; UTF-8. Rows are counted from 1.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from dptext.errors import DataError, ParameterError, StorageError
from dptext.privacy.randomness import RandomBits

__all__ = ["Document", "DocumentReader", "DocumentWriter", "file_digest", "read_documents", "replacing"]

_FORMATS = (".txt", ".jsonl", ".csv")
_NOT_JSON = object()


@dataclass(frozen=True, slots=True)
class Document:
    """One text and what is known about it.

    Attributes:
        text: the text.
        user: who wrote it, where users are the privacy unit.
        label: what it is used for (a class).
        attributes: other columns by name.
    """

    text: str = field(repr=False)  # what is private stays out of logs and tracebacks
    user: str | None = field(default=None, repr=False)
    label: Any = None
    attributes: Mapping[str, Any] | None = field(default=None, repr=False)


def file_format(path: Path) -> tuple[str, bool]:
    """The format that a file name announces, and whether it is gzipped.

    Raises:
        ParameterError: a suffix that no reader knows.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    kind = (suffixes[:-1] if zipped else suffixes)[-1:]
    if not kind or kind[0] not in _FORMATS:
        raise ParameterError(
            f"expected a file name that ends in .txt, .jsonl or .csv (each may have .gz added), got {path.name!r}"
        )
    return kind[0], zipped


def read_documents(
    path: str | os.PathLike[str],
    *,
    text: str = "text",
    user: str | None = None,
    label: str | None = None,
    keep: Sequence[str] = (),
) -> DocumentReader:
    """Stream the documents of a file.

    Args:
        path: a .txt, .jsonl or .csv file, plain or .gz.
        text: the column that holds the text (.jsonl, .csv).
        user: the column that names the author, if any.
        label: the column that holds the label, if any.
        keep: further columns to read into ``attributes``; all others are dropped.

    Raises:
        StorageError: the file cannot be opened or read.
        DataError: a row is broken (not UTF-8, cut, not JSON, without the column, null); the row is named, its
            content never is.
        ParameterError: an unknown suffix; columns asked of a .txt file.
    """
    source = Path(path)
    kind, _ = file_format(source)
    check_kept_columns(text, keep)
    if kind == ".txt" and (keep or user is not None or label is not None):
        raise ParameterError("a .txt file has no columns to keep: use .jsonl or .csv, or keep nothing")
    return DocumentReader(source, text=text, user=user, label=label, keep=tuple(keep))


def check_kept_columns(text: str, keep: Sequence[str]) -> None:
    """Refuse to keep the text itself, or a column twice.

    Raises:
        ParameterError: the text would leave as it was, beside (or in place of) the private one.
    """
    if text in keep:
        raise ParameterError(f"the column {text!r} holds the text: to keep it would release it as it was")
    twice = next((name for name in keep if list(keep).count(name) > 1), None)
    if twice is not None:
        raise ParameterError(f"the column {twice!r} is named twice among those to keep: name it once")


class DocumentReader(Iterator[Document]):
    """The documents of one file, once, in order (made by `read_documents`).

    Attributes:
        size: bytes in the file.
    """

    def __init__(self, source: Path, *, text: str, user: str | None, label: str | None, keep: tuple[str, ...]) -> None:
        kind, zipped = file_format(source)
        self._name = source.name
        self._text, self._user, self._label, self._keep = text, user, label, keep
        try:
            self._file = source.open("rb")
            self.size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise StorageError.of("open", source, error) from None
        rows = {".txt": _rows_of_txt, ".jsonl": _rows_of_jsonl, ".csv": _rows_of_csv}[kind]
        stream: Any = gzip.GzipFile(fileobj=self._file) if zipped else self._file
        self._rows = enumerate(rows(_lines(stream, self._name), self._name, text), 1)
        self._count = 0

    @property
    def position(self) -> int:
        """Bytes of the file read so far."""
        return self.size if self._file.closed else self._file.tell()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __next__(self) -> Document:
        try:
            self._count, row = next(self._rows)
            return self._document(row)
        except StopIteration:
            self.close()
            if self._count == 0:
                raise DataError(f"{self._name} holds no documents: expected at least one row") from None
            raise
        except BaseException:
            self.close()
            raise

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def _document(self, row: dict[str, Any]) -> Document:
        for column in (self._text, self._user, self._label, *self._keep):
            if column is not None and column not in row:
                raise DataError(
                    f"{self._name}, row {self._count}: expected a column {column!r}, the row has none; "
                    "name the right column or repair the row"
                )
        value = row[self._text]
        if not isinstance(value, str):
            what = "null" if value is None else f"of type {type(value).__name__}"
            raise DataError(
                f"{self._name}, row {self._count}: expected a string in {self._text!r}, the value is {what}"
            )
        author = row[self._user] if self._user is not None else None
        return Document(
            value,
            user=None if author is None else str(author),
            label=row[self._label] if self._label is not None else None,
            attributes={name: row[name] for name in self._keep} if self._keep else None,
        )


# -- bytes to rows --------------------------------------------------------------------------------------------


def _lines(stream: IO[bytes], name: str) -> Iterator[str]:
    """Decoded lines with their line ends; only a line feed ends one. A byte order mark at the start is dropped."""
    number = 0
    while True:
        try:
            line = stream.readline()
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise DataError(
                f"{name}: the compressed data is broken or ends early, after line {number}; copy the file again"
            ) from None
        except OSError as error:
            raise StorageError.of("read", name, error) from None
        if not line:
            return
        number += 1
        wrong = None
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = error.start + 1
        if wrong is not None:  # raised out here: the error above holds the line
            raise DataError(
                f"{name}, line {number}: expected UTF-8, byte {wrong} of the line is not; "
                "convert the file to UTF-8, or copy it again if it was cut"
            )
        yield text.removeprefix("\ufeff") if number == 1 else text


def _rows_of_txt(lines: Iterator[str], _name: str, text: str) -> Iterator[dict[str, Any]]:
    for line in lines:
        yield {text: line.removesuffix("\n").rstrip("\r")}


def _rows_of_jsonl(lines: Iterator[str], name: str, _text: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        row = _NOT_JSON
        with suppress(ValueError, RecursionError):  # such an error holds the line: none must be chained
            row = json.loads(line)
        if row is _NOT_JSON:
            what = "is empty" if not line.strip() else "is not valid JSON"
            raise DataError(
                f"{name}, row {number}: expected a JSON object, the line {what}; repair it, or copy the file "
                "again if it was cut"
            )
        if not isinstance(row, dict):
            raise DataError(f"{name}, row {number}: expected a JSON object, got another JSON value")
        yield row


def _rows_of_csv(lines: Iterator[str], name: str, _text: str) -> Iterator[dict[str, Any]]:
    if csv.field_size_limit() < sys.maxsize >> 32:
        csv.field_size_limit(sys.maxsize >> 32)  # a long review is not an error
    reader = csv.reader(lines, strict=True)
    number = 0
    try:
        header = next(reader, None)
        if header is None:
            return
        if len(set(header)) != len(header):
            raise DataError(f"{name}: two columns of the header have the same name; rename one")
        for number, row in enumerate(reader, 1):
            if not row and len(header) == 1:
                row = [""]  # csv reads the empty line of a one-column file as no fields
            if len(row) != len(header):
                raise DataError(
                    f"{name}, row {number} (line {reader.line_num}): expected {len(header)} columns as in the "
                    f"header, got {len(row)}; repair the row, or copy the file again if it was cut"
                )
            yield dict(zip(header, row, strict=True))
    except csv.Error as error:
        what = "ends inside quotes" if "unexpected end" in str(error) else "is not valid CSV"
        raise DataError(
            f"{name}, row {number + 1} (line {reader.line_num}): the row {what}; repair it, or copy the file "
            "again if it was cut"
        ) from None


# -- rows to bytes --------------------------------------------------------------------------------------------


class HashedFile:
    """Bytes to a file, and their SHA-256."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Append bytes."""
        self._digest.update(data)
        return self._stream.write(data)

    def flush(self) -> None:
        """Hand buffered bytes to the operating system."""
        self._stream.flush()

    def digest(self) -> str:
        """SHA-256 of the bytes so far, in hexadecimal."""
        return self._digest.hexdigest()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[HashedFile]:
    """Write a file whole or not at all: a temporary name beside it, renamed when the block ends without an error.

    Raises:
        StorageError: the folder is missing, read-only or full.
    """
    target = Path(path)
    name = target.name.encode()[:200].decode(errors="ignore")  # most systems allow 255 bytes
    part = target.with_name(f".{name}.{RandomBits().take(6).hex()}.part")
    try:
        try:
            with part.open("xb") as stream:
                yield HashedFile(stream)
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(target)
        except OSError as error:
            if isinstance(error, StorageError | FileExistsError):
                raise
            raise StorageError.of("write", target, error) from None
    finally:
        with suppress(OSError):  # never there, if the folder is none
            part.unlink()


class DocumentWriter:
    """Documents as lines of bytes in the format that a file name announces.

    Args:
        path: decides the format; the caller opens the stream (`replacing`), so that a file and its statement
            appear together.
        text: the column to write the text to (.jsonl, .csv).
        keep: the attributes to write beside it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        stream: HashedFile | IO[bytes],
        *,
        text: str = "text",
        keep: Sequence[str] = (),
    ) -> None:
        kind, zipped = file_format(Path(path))
        check_kept_columns(text, keep)
        if kind == ".txt" and keep:
            raise ParameterError("a .txt file cannot hold kept columns: write .jsonl or .csv, or keep nothing")
        self._text, self._keep = text, tuple(keep)
        self._encode = {".txt": self._txt, ".jsonl": self._jsonl, ".csv": self._csv}[kind]
        self._stream = stream
        # 31: a gzip header without name and time, so that equal documents give equal bytes
        self._compressor = zlib.compressobj(wbits=31) if zipped else None
        self._empty = True
        self.count = 0
        if kind == ".csv":
            self._write(self._csv_line([text, *self._keep]))

    def write(self, document: Document) -> None:
        """Append one document.

        Raises:
            DataError: the document cannot be written in this format; the row is named.
        """
        self.count += 1
        self._write(self._encode(document))

    def close(self) -> None:
        """Finish the format (a gzip trailer); the stream below stays open."""
        if self._compressor is not None:
            self._stream.write(self._compressor.flush())
            self._compressor = None

    def _write(self, line: str) -> None:
        if self._empty and line.startswith("\ufeff"):
            line = "\ufeff" + line  # readers drop the first one of a file
        self._empty = False
        data = b""
        with suppress(UnicodeEncodeError):  # such an error holds the line: none must be chained
            data = line.encode("utf-8")
        if not data:
            raise DataError(f"row {self.count} holds half a surrogate pair, which is no text")
        self._stream.write(data if self._compressor is None else self._compressor.compress(data))

    def _kept(self, document: Document) -> dict[str, Any]:
        attributes = document.attributes or {}
        for name in self._keep:
            if name not in attributes:
                raise DataError(f"row {self.count}: expected the attribute {name!r}, which is to be kept; it has none")
        return {name: attributes[name] for name in self._keep}

    def _txt(self, document: Document) -> str:
        if "\n" in document.text or document.text.endswith("\r"):
            raise DataError(
                f"row {self.count} holds a line break, which a .txt file cannot: write .jsonl or .csv instead"
            )
        return document.text + "\n"

    def _jsonl(self, document: Document) -> str:
        fields = {self._text: document.text, **self._kept(document)}
        try:
            return json.dumps(fields, ensure_ascii=False) + "\n"
        except (TypeError, ValueError, RecursionError):
            kept = ", ".join(map(repr, self._keep))
            raise DataError(f"row {self.count}: the kept {kept} cannot all be written as JSON") from None

    def _csv(self, document: Document) -> str:
        return self._csv_line([document.text, *self._kept(document).values()])

    @staticmethod
    def _csv_line(fields: list[Any]) -> str:
        line = io.StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(fields)  # with \r among the line ends, it is quoted
        return line.getvalue().removesuffix("\r\n") + "\n"


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, in hexadecimal.

    Raises:
        StorageError: the file cannot be read.
    """
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise StorageError.of("read", path, error) from None
