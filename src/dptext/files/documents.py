"""Documents, and the files they come from: a stream of blocks of rows, in constant memory.

``.txt`` (a document a line), ``.jsonl``, ``.csv``, ``.tsv``, each plain, ``.gz`` or ``.zst``; ``.parquet``; UTF-8.
Rows are counted from 1 in each file.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from dptext.errors import DataError, ParameterError
from dptext.files.blocks import BLOCK_CHARACTERS, BLOCK_REJECTS, BLOCK_ROWS, Block, Reject, add_reject
from dptext.files.column import is_missing
from dptext.files.formats import FileFormat, file_format
from dptext.files.parquet import ParquetSource, as_lists
from dptext.files.streams import STANDARD, OpenedFile, is_pipe

__all__ = [
    "BadRow",
    "Document",
    "DocumentReader",
    "NoDocumentsError",
    "OnError",
    "Row",
    "check_kept_columns",
    "read_documents",
    "rows_of",
]

LONGEST = 1 << 28
"""Bytes of the longest row: what is longer is a file without line ends, or a quote that was never closed."""

_NOT_JSON = object()
_CUT = "repair it, or copy the file again if it was cut"


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot be read, and why; never what it holds."""

    reason: str


Row: TypeAlias = dict[str, Any] | BadRow


def rows_of(kind: str, file: OpenedFile, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a file, in order, each with its columns by name.

    Args:
        kind: ``".txt"`` (a line is the first of the ``columns``), ``".jsonl"``, ``".csv"`` or ``".tsv"``.
        file: where the bytes come from.
        columns: names that a header must have.

    Raises:
        DataError: damage after which nobody can tell where a row starts; a header without a column, or with two
            of one name.
        StorageError: the system cannot read.
    """
    lines = _Lines(file)
    return {".txt": _rows_of_txt, ".jsonl": _rows_of_jsonl, ".csv": _rows_of_csv, ".tsv": _rows_of_tsv}[kind](
        lines, columns
    )


class _Lines(Iterator[str]):
    """Decoded lines with their line ends; a byte order mark at the start is dropped.

    Attributes:
        name: of the file.
        number: of the line just read, from 1.
    """

    def __init__(self, file: OpenedFile) -> None:
        self._file = file
        self.name = file.name
        self.number = 0
        self._broken: tuple[int, int] | None = None

    def __next__(self) -> str:
        line = None
        with suppress(EOFError):
            line = self._file.readline(LONGEST + 1)
        if line is None:
            raise DataError(
                f"{self.name}: the compressed data is broken or ends early, after line {self.number}; copy the file "
                "again"
            )
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > LONGEST:
            raise DataError(f"{self.name}, line {self.number}: expected rows of at most {LONGEST:,} bytes, got more")
        try:
            decoded = line.decode("utf-8")
        except UnicodeDecodeError as error:
            self._broken = self._broken or (error.start + 1, self.number)
            decoded = line.decode("utf-8", "surrogateescape")
        return decoded.removeprefix("\ufeff") if self.number == 1 else decoded

    def undecoded(self) -> BadRow | None:
        """The row just read, if one of its lines was not UTF-8."""
        if self._broken is None:
            return None
        (place, line), self._broken = self._broken, None
        return BadRow(
            f"expected UTF-8, byte {place} of line {line} is not; convert the file to UTF-8, or copy it again "
            "if it was cut"
        )


def _rows_of_txt(lines: _Lines, columns: Sequence[str]) -> Iterator[Row]:
    for line in lines:
        yield lines.undecoded() or {columns[0]: line.removesuffix("\n").rstrip("\r")}


def _rows_of_jsonl(lines: _Lines, _columns: Sequence[str]) -> Iterator[Row]:
    for line in lines:
        broken = lines.undecoded()
        if broken is not None:
            yield broken
            continue
        row, what = _NOT_JSON, ""
        try:
            row = json.loads(line)
        except json.JSONDecodeError:  # it holds the line: nothing must be chained to it
            what = "is not valid JSON" if line.strip() else "is empty"
        except ValueError:
            what = "holds a number of too many digits"
        except RecursionError:
            what = "is nested too deep"
        if row is _NOT_JSON:
            yield BadRow(f"expected a JSON object, the line {what}; {_CUT}")
        elif not isinstance(row, dict):
            yield BadRow("expected a JSON object, got another JSON value")
        elif "\\u" in line and _is_no_text(row):
            yield BadRow("the row holds half a surrogate pair, which is no text; repair it")
        else:
            yield row


def _is_no_text(row: dict[str, Any]) -> bool:
    with suppress(UnicodeEncodeError, RecursionError):
        json.dumps(row, ensure_ascii=False).encode("utf-8")
        return False
    return True


def _rows_of_tsv(lines: _Lines, columns: Sequence[str]) -> Iterator[Row]:
    """Tabs separate, nothing quotes (text/tab-separated-values): a field holds neither a tab nor a line break."""
    header: list[str] | None = None
    for line in lines:
        fields = line.removesuffix("\n").rstrip("\r").split("\t")
        broken = lines.undecoded()
        if header is None:
            header = _checked_header(fields, broken, columns, lines.name)
        elif broken is not None:
            yield broken
        elif len(fields) != len(header):
            yield _wrong_width(header, fields)
        else:
            yield dict(zip(header, fields, strict=True))


def _rows_of_csv(lines: _Lines, columns: Sequence[str]) -> Iterator[Row]:
    csv.field_size_limit(LONGEST)  # a long review is not an error
    reader = csv.reader(lines, strict=True)
    number = 0
    try:
        first = next(reader, None)
        if first is None:
            return
        header = _checked_header(first, lines.undecoded(), columns, lines.name)
        for row in reader:
            number += 1
            broken = lines.undecoded()
            if not row and len(header) == 1:
                row = [""]  # csv reads the empty line of a one-column file as no fields
            if broken is not None:
                yield broken
            elif len(row) != len(header):
                yield _wrong_width(header, row, f" (line {reader.line_num})")
            else:
                yield dict(zip(header, row, strict=True))
    except csv.Error as error:
        what = "is not valid CSV"
        if "unexpected end" in str(error):
            what = "ends inside quotes"
        elif "field limit" in str(error):
            what = f"holds a field of more than {LONGEST:,} bytes: a quote is not closed"
        # never skipped: to guess where the next row starts could take a piece of a text for a kept column
        raise DataError(
            f"{lines.name}, row {number + 1} (line {reader.line_num}): the row {what}, and where the next one starts "
            f"is uncertain; {_CUT}"
        ) from None


def _checked_header(header: list[str], broken: BadRow | None, columns: Sequence[str], name: str) -> list[str]:
    if broken is not None:
        raise DataError(f"{name}, the header: {broken.reason}")
    if len(set(header)) != len(header):
        raise DataError(f"{name}: two columns of the header have the same name; rename one")
    for column in columns:
        if column not in header:
            raise DataError(
                f"{name}: expected a column {column!r}, the header has none among its {len(header)}; name the right "
                "column"
            )
    return header


def _wrong_width(header: list[str], row: list[str], where: str = "") -> BadRow:
    return BadRow(f"expected {len(header)} columns as in the header, got {len(row)}{where}; {_CUT}")


OnError: TypeAlias = Literal["fail", "skip"]
PathLike: TypeAlias = str | os.PathLike[str]
_REJECTS_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Document:
    """One text and what is known about it.

    Attributes:
        text: the text; None where a row has none (null).
        user: who wrote it, where users are the privacy unit.
        label: what it is used for (a class).
        attributes: other columns by name.
    """

    text: str | None = field(repr=False)  # what is private stays out of logs and tracebacks
    user: str | None = field(default=None, repr=False)
    label: Any = None
    attributes: Mapping[str, Any] | None = field(default=None, repr=False)


def read_documents(
    source: PathLike | Sequence[PathLike],
    *,
    text: str = "text",
    user: str | None = None,
    label: str | None = None,
    keep: Sequence[str] = (),
    on_error: OnError = "fail",
    suffix: str | None = None,
) -> DocumentReader:
    """Stream the documents of a file, or of several one after the other.

    Args:
        source: a .txt, .jsonl, .csv, .tsv (plain, .gz or .zst) or .parquet file; ``"-"`` for standard input;
            or several of them.
        text: the column that holds the text (all but .txt).
        user: the column that names the author, if any.
        label: the column that holds the label, if any.
        keep: further columns to read into ``attributes``; all others are dropped.
        on_error: ``"fail"`` at the first row that cannot be read, or ``"skip"`` it (`DocumentReader.rejects`).
        suffix: says the format where the name does not (``".jsonl"``; standard input).

    Raises:
        StorageError: a file cannot be opened or read.
        DataError: a row is broken (not UTF-8, cut, not JSON, without the column, not a string); the row is named,
            its content never is.
        ParameterError: an unknown suffix; columns asked of a .txt file.
        MissingExtraError: the package that reads .parquet or .zst is not installed.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    if on_error not in ("fail", "skip"):
        raise ParameterError(f"on_error must be 'fail' or 'skip', got {on_error!r}")
    check_kept_columns(text, keep)
    columns = tuple(dict.fromkeys(name for name in (user, label, *keep) if name is not None))
    files = [(Path(each), file_format(Path(f"x{suffix}" if suffix else each))) for each in sources]
    for path, announced in files:
        if announced.kind == ".txt" and columns:
            raise ParameterError(
                f"a .txt file has no columns to keep ({path.name!r}): use .jsonl or .csv, or keep nothing"
            )
        if announced.kind == ".parquet" and is_pipe(path):
            what = "standard input" if path == STANDARD else f"{path.name!r}, a pipe or a device"
            raise ParameterError(f"parquet cannot be read from {what}: name a file, or pipe .jsonl")
    return DocumentReader(
        files, text=text, user=user, label=label, keep=tuple(keep), columns=columns, skip=on_error == "skip"
    )


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


class NoDocumentsError(DataError):
    """There is not one row."""


class Source(Protocol):
    """One file as blocks."""

    size: int
    name: str

    @property
    def position(self) -> int:
        """Bytes read so far."""
        ...

    def blocks(self, by_rows: int | None) -> Iterator[Block]:
        """Its rows, once; see `DocumentReader.blocks`."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class DocumentReader(Iterator[Document]):
    """The documents of one or more files, once, in order (made by `read_documents`): one by one, or in `blocks`.

    Attributes:
        size: bytes in the files; 0 where nobody knows (standard input).
        rejects: the rows left out so far, as runs; of a great many, the first thousand runs.
        skipped: how many rows were left out so far.
        count: the rows read so far, without those.
    """

    def __init__(
        self,
        files: Sequence[tuple[Path, FileFormat]],
        *,
        text: str,
        user: str | None,
        label: str | None,
        keep: tuple[str, ...],
        columns: tuple[str, ...],
        skip: bool,
    ) -> None:
        self._user, self._label, self._keep = user, label, keep
        self.rejects: list[Reject] = []
        self.skipped = 0
        self.count = 0
        self._watchers: list[Callable[[Block], None]] = []
        self._current: Source | None = None
        self._done = 0
        self._turns: list[partial[Source]] = []
        self._names: list[str] = []
        sizes = []
        for path, announced in files:
            turn = partial(_open, path, announced, text, columns, skip)
            source = turn()  # what cannot be opened is said before anything is read
            sizes.append(source.size)
            self._names.append(source.name)
            if len(files) == 1 or not path.is_file():
                turn = partial(_as_it_is, source)  # a pipe can be opened once only
            else:
                source.close()  # a folder may hold more files than a process may open
            self._turns.append(turn)
        self.size = 0 if 0 in sizes else sum(sizes)
        self._documents: Iterator[Document] | None = None

    @property
    def user_column(self) -> str | None:
        """The column that names the author, if one was asked for."""
        return self._user

    @property
    def kept_columns(self) -> tuple[str, ...]:
        """The further columns that are read."""
        return self._keep

    @property
    def position(self) -> int:
        """Bytes of the files read so far."""
        return self._done + (0 if self._current is None else self._current.position)

    def watch(self, watcher: Callable[[Block], None]) -> None:
        """Show every block to this function as well, before it is worked on: for progress, and to compare readings."""
        self._watchers.append(watcher)

    def close(self) -> None:
        """Close the files."""
        if self._current is not None:
            self._current.close()
        for turn in self._turns:
            if turn.func is _as_it_is:
                turn().close()

    def blocks(self, by_rows: int | None = None) -> Iterator[Block]:
        """The rows in blocks; where one ends depends on the content of the files alone.

        Args:
            by_rows: end a block after this many rows, and for no other reason: where others can see the end of one,
                the length of the texts must not decide about it.

        Raises:
            DataError: a broken row (unless they are skipped); no row at all.
        """
        try:
            for turn in self._turns:
                self._current = turn()
                for block in self._current.blocks(by_rows):
                    self._remember(block.rejects)
                    self.count += len(block.texts)
                    for watcher in self._watchers:
                        watcher(block)
                    yield block
                self._current.close()
                self._done, self._current = self._done + self._current.size, None
        finally:
            self.close()
        if self.count == 0 and self.rejects:
            first = self.rejects[0]
            raise DataError(f"no row could be read; the first is {first.file}, row {first.first}: {first.reason}")
        if self.count == 0:
            names = ", ".join(self._names[:3]) or "nothing"
            raise NoDocumentsError(f"{names} holds no documents: expected at least one row")

    def _remember(self, rejects: Sequence[Reject]) -> None:
        self.skipped += sum(each.count for each in rejects)
        for each in rejects:
            if len(self.rejects) < _REJECTS_KEPT:  # memory is not to grow with the input
                add_reject(self.rejects, each)

    def __next__(self) -> Document:
        if self._documents is None:
            self._documents = self._one_by_one()
        return next(self._documents)

    def __del__(self) -> None:
        if hasattr(self, "_turns"):
            self.close()

    def _one_by_one(self) -> Iterator[Document]:
        for block in self.blocks():
            columns = as_lists(block.columns)
            users = columns[self._user] if self._user is not None else None
            labels = columns[self._label] if self._label is not None else None
            for place, text in enumerate(block.texts):
                author = None if users is None else users[place]
                yield Document(
                    text,
                    user=None if is_missing(author) else str(author),
                    label=None if labels is None else labels[place],
                    attributes={name: columns[name][place] for name in self._keep} if self._keep else None,
                )


def _as_it_is(source: Source) -> Source:
    return source


def _open(path: Path, announced: FileFormat, text: str, columns: tuple[str, ...], skip: bool) -> Source:
    if announced.kind == ".parquet":
        return ParquetSource(path, text=text, columns=columns, skip=skip)
    return _LineSource(path, announced, text=text, columns=columns, skip=skip)


class _LineSource:
    """A file of lines as blocks."""

    def __init__(self, path: Path, announced: FileFormat, *, text: str, columns: tuple[str, ...], skip: bool) -> None:
        self._file = OpenedFile(path, announced.compression)
        self._kind, self._text, self._columns, self._skip = announced.kind, text, columns, skip
        self.size, self.name = self._file.size, self._file.name

    @property
    def position(self) -> int:
        return self._file.position

    def close(self) -> None:
        self._file.close()

    def blocks(self, by_rows: int | None) -> Iterator[Block]:
        most_rows, most_characters = (BLOCK_ROWS, BLOCK_CHARACTERS) if by_rows is None else (by_rows, math.inf)
        texts: list[str | None] = []
        columns: dict[str, list[Any]] = {name: [] for name in self._columns}
        rejects: list[Reject] = []
        characters = 0
        for number, row in enumerate(rows_of(self._kind, self._file, (self._text, *self._columns)), 1):
            reason = row.reason if isinstance(row, BadRow) else self._what_is_wrong(row)
            if reason is not None or isinstance(row, BadRow):
                if not self._skip:
                    raise DataError(f"{self.name}, row {number}: {reason}")
                add_reject(rejects, Reject(self.name, number, number, str(reason)))
                if len(rejects) >= BLOCK_REJECTS:
                    yield Block([], {name: [] for name in self._columns}, tuple(rejects))
                    rejects = []
                continue
            text = row[self._text]
            texts.append(text)
            for name, values in columns.items():
                values.append(row[name])
            characters += 0 if text is None else len(text)
            if characters >= most_characters or len(texts) >= most_rows:
                yield Block(texts, columns, tuple(rejects))
                texts, columns, rejects = [], {name: [] for name in self._columns}, []
                characters = 0
        if texts or rejects:
            yield Block(texts, columns, tuple(rejects))

    def _what_is_wrong(self, row: dict[str, Any]) -> str | None:
        for column in (self._text, *self._columns):
            if column not in row:
                return f"expected a column {column!r}, the row has none; name the right column or repair the row"
        value = row[self._text]
        if value is None:
            return None
        if not isinstance(value, str):
            return f"expected a string in {self._text!r}, the value is of type {type(value).__name__}"
        return None
