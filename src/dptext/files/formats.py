"""The formats of files of documents: what a name announces, how rows are read, and how they are written.

`FORMATS` is the one list of them: readers, writers, errors and the help of commands go by it. A new format of lines is
one more entry with two functions, one that reads rows and one that spells a row; another format is a `Format` like that
of parquet. All text is UTF-8, and rows are counted from 1 in each file.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from dptext.errors import DataError, ParameterError, extra
from dptext.files.blocks import BLOCK_REJECTS, Block, Columns, Reject, add_reject, block_limits, is_no_text
from dptext.files.column import columns_there
from dptext.files.parquet import ParquetSource, as_lists, as_table, assemble, parquet_rows, segment
from dptext.files.sheets import SheetFile
from dptext.files.streams import OpenedFile, compress
from dptext.own_files import HashedFile

__all__ = [
    "FORMATS",
    "NAMES_OF_FORMATS",
    "SUFFIXES",
    "BadRow",
    "FileFormat",
    "Format",
    "Lines",
    "Row",
    "Source",
    "announced_by",
    "file_format",
    "written_format",
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
Names: TypeAlias = tuple[str, ...]
Values: TypeAlias = tuple[Any, ...]


class Source(Protocol):
    """One file as blocks."""

    size: int
    name: str

    @property
    def position(self) -> int:
        """Bytes read so far."""
        ...

    def blocks(self, by_rows: int | None) -> Iterator[Block]:
        """Its rows, once; see `dptext.files.documents.DocumentReader.blocks`."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class Format(ABC):
    """What readers and writers ask of a format.

    Attributes:
        suffixes: how names end, the usual one first.
        has_columns: whether a row can hold more than its text.
        is_compressed: whether a compression may be added to the name.
        needs_file: whether it cannot be read from a pipe.
        is_assembled: whether a file is made by `finish`, not by the bytes of the blocks alone.
        package: what reads and writes it, if that is optional.
        is_written: whether files of it are written, not only read.
    """

    suffixes: Names
    has_columns: bool = True
    is_compressed: bool = True
    needs_file: bool = False
    is_assembled: bool = False
    package: str | None = None
    is_written: bool = True

    @abstractmethod
    def source(self, path: Path, compression: str, /, *, text: str, columns: Names, skip: bool) -> Source:
        """A file to be read: the column of the text, further columns, and whether broken rows are left out.

        Raises:
            StorageError: it cannot be opened.
            DataError: it is not of this format, or lacks a column.
            MissingExtraError: a package is not installed.
        """

    @abstractmethod
    def rows(self, path: Path, compression: str, /, *, only: Collection[str] | None) -> Iterator[dict[str, Any]]:
        """Rows with all their columns, or with some where they have these, for a look at them: in order, without those
        that cannot be read.

        Raises:
            StorageError: the file cannot be opened.
            DataError: it is not of this format.
            MissingExtraError: a package is not installed.
        """

    @abstractmethod
    def encode(self, names: Names, texts: Sequence[str | None], columns: Columns, row: int, first: bool, /) -> bytes:
        """The bytes of one block: ``names`` are the columns of the text and of what is kept beside it.

        Raises:
            DataError: a row cannot be written; it is named by its number, counted from ``row``.
        """

    @abstractmethod
    def finish(self, blocks: Path, ends: Sequence[int], out: HashedFile, compression: str, /) -> None:
        """Make the file of the bytes of all blocks; ``ends`` says where each of them ends."""


# -- lines in -------------------------------------------------------------------------------------------------


class Lines(Iterator[str]):
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


def _read_txt(lines: Lines, columns: Sequence[str]) -> Iterator[Row]:
    for line in lines:
        yield lines.undecoded() or {columns[0]: line.removesuffix("\n").rstrip("\r")}


def _read_jsonl(lines: Lines, _columns: Sequence[str]) -> Iterator[Row]:
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


def _read_tsv(lines: Lines, columns: Sequence[str]) -> Iterator[Row]:
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


def _read_csv(lines: Lines, columns: Sequence[str]) -> Iterator[Row]:
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
                f"{name}: expected a column {column!r}, the header has "
                f"{columns_there(column, header, wanted=columns)}; name the right column"
            )
    return header


def _wrong_width(header: list[str], row: list[str], where: str = "") -> BadRow:
    return BadRow(f"expected {len(header)} columns as in the header, got {len(row)}{where}; {_CUT}")


class _LineSource:
    """A file of lines as blocks."""

    def __init__(
        self,
        file: OpenedFile,
        read: Callable[[Lines, Sequence[str]], Iterator[Row]],
        text: str,
        columns: Names,
        skip: bool,
    ) -> None:
        self._file, self._read = file, read
        self._text, self._columns, self._skip = text, columns, skip
        self.size, self.name = file.size, file.name

    @property
    def position(self) -> int:
        return self._file.position

    def close(self) -> None:
        self._file.close()

    def blocks(self, by_rows: int | None) -> Iterator[Block]:
        most_rows, most_characters = block_limits(by_rows)
        texts: list[str | None] = []
        columns: dict[str, list[Any]] = {name: [] for name in self._columns}
        rejects: list[Reject] = []
        characters = 0
        for number, row in self._numbered():
            reason = row.reason if isinstance(row, BadRow) else self._what_is_wrong(row)
            if reason is not None or isinstance(row, BadRow):
                if not self._skip:
                    if not isinstance(row, BadRow):
                        reason = self._what_is_wrong(row, to_owner=True)
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

    def _numbered(self) -> Iterator[tuple[int, Row]]:
        return enumerate(self._read(Lines(self._file), (self._text, *self._columns)), 1)

    def _what_is_wrong(self, row: dict[str, Any], *, to_owner: bool = False) -> str | None:
        """None where nothing is; ``to_owner`` names the columns that there are: a list of rejects may be handed on."""
        for column in (self._text, *self._columns):
            if column not in row:
                there = columns_there(column, list(row), sure=True) if to_owner else "none"
                return f"expected a column {column!r}, the row has {there}; name the right column or repair the row"
        value = row[self._text]
        if value is None:
            return None
        if not isinstance(value, str):
            return f"expected a string in {self._text!r}, the value is of type {type(value).__name__}"
        return None


class _SheetSource(_LineSource):
    """A sheet as blocks."""

    def __init__(self, path: Path, text: str, columns: Names, skip: bool) -> None:
        self._sheet = SheetFile(path)
        self._text, self._columns, self._skip = text, columns, skip
        self.size, self.name = self._sheet.size, self._sheet.name
        try:
            if self._sheet.header:
                _checked_header(self._sheet.header, None, (text, *columns), self.name)
        except DataError:
            self.close()
            raise

    @property
    def position(self) -> int:
        return self._sheet.position

    def close(self) -> None:
        self._sheet.close()

    def _numbered(self) -> Iterator[tuple[int, Row]]:
        width = len(self._sheet.header)
        beyond = BadRow(
            f"expected {width} columns as in the first row, got a value beyond them; name the column or remove the "
            "value"
        )
        for number, row in self._sheet.rows():
            yield number, beyond if row is None else row


# -- lines out ------------------------------------------------------------------------------------------------


def _txt_line(_names: Names, values: Values, number: int) -> str:
    text = values[0] or ""
    if "\n" in text or text.endswith("\r"):
        raise DataError(f"row {number} holds a line break, which a .txt file cannot: write .jsonl or .csv instead")
    return f"{text}\n"


def _json_line(names: Names, values: Values, number: int) -> str:
    fields = dict(zip(names, values, strict=True))
    try:
        try:
            return _JSON.encode(fields) + "\n"
        except ValueError:  # JSON has no NaN; null is what others write
            return _JSON.encode({name: None if value != value else value for name, value in fields.items()}) + "\n"
    except (TypeError, ValueError, RecursionError):
        kept = ", ".join(map(repr, names[1:]))
        raise DataError(f"row {number}: the kept {kept} cannot all be written as JSON") from None


def _spelled(value: object) -> str:
    """What JSON has no type for and everybody spells alike."""
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
        return value.isoformat()
    raise TypeError


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_spelled)


def _tsv_line(names: Names, values: Values, number: int) -> str:
    fields = ["" if value is None else str(value) for value in values]
    for name, value in zip(names, fields, strict=True):
        if "\t" in value or "\n" in value or "\r" in value:
            raise DataError(
                f"row {number}: {name!r} holds a tab or a line break, which .tsv cannot: write .jsonl or .csv instead"
            )
    return "\t".join(fields) + "\n"


def _csv_line(_names: Names, values: Values, _number: int) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(values)  # with \r among the line ends, it is quoted
    return line.getvalue().removesuffix("\r\n") + "\n"


# -- the formats ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _LineFormat(Format):
    """A format of lines: the bytes of its blocks one after the other are the file.

    Attributes:
        read: from lines, and names that a header must have (of a .txt file: the name of the line), to rows in order.
            DataError: damage after which nobody can tell where a row starts.
        line: from names, values and the number of a row to the line that spells it. DataError: it cannot.
        has_header: whether the names stand in the first line.
    """

    suffixes: Names
    read: Callable[[Lines, Sequence[str]], Iterator[Row]]
    line: Callable[[Names, Values, int], str]
    has_header: bool = False
    has_columns: bool = True

    def source(self, path: Path, compression: str, /, *, text: str, columns: Names, skip: bool) -> Source:
        return _LineSource(OpenedFile(path, compression), self.read, text, columns, skip)

    def rows(self, path: Path, compression: str, /, *, only: Collection[str] | None) -> Iterator[dict[str, Any]]:
        file = OpenedFile(path, compression)
        with closing(file):
            for row in self.read(Lines(file), () if self.has_columns else ("text",)):
                if not isinstance(row, BadRow):
                    yield row if only is None else {name: row[name] for name in only if name in row}

    def encode(self, names: Names, texts: Sequence[str | None], columns: Columns, row: int, first: bool, /) -> bytes:
        lists = as_lists(columns)
        missing = next((name for name in names[1:] if name not in lists), None)
        if missing is not None:
            raise DataError(f"expected a column {missing!r}, which is to be kept; the documents have none")
        rows = zip(texts, *(lists[name] for name in names[1:]), strict=True)
        lines = [self.line(names, values, number) for number, values in enumerate(rows, row)]
        starts_file = first if self.has_header else row == 1
        if first and self.has_header:
            lines.insert(0, self.line(names, names, 0))
            row -= 1
        if starts_file and lines and lines[0].startswith("\ufeff"):
            lines[0] = "\ufeff" + lines[0]  # readers drop the first one of a file
        with suppress(UnicodeEncodeError):  # such an error holds the text: none must be chained
            return "".join(lines).encode("utf-8")
        number = next(number for number, line in enumerate(lines, row) if is_no_text(line))
        raise DataError(f"row {number} holds half a surrogate pair, which is no text")

    def finish(self, blocks: Path, _ends: Sequence[int], out: HashedFile, compression: str, /) -> None:
        # as one piece: a member of .gz for each block would show where it ended
        with blocks.open("rb") as stream:
            compress(stream, out, compression)


class _ParquetFormat(Format):
    """Parquet, which compresses by itself."""

    suffixes = (".parquet",)
    is_compressed = False
    needs_file = True
    is_assembled = True
    package = "pyarrow"

    def source(self, path: Path, _compression: str, /, *, text: str, columns: Names, skip: bool) -> Source:
        return ParquetSource(path, text=text, columns=columns, skip=skip)

    def rows(self, path: Path, _compression: str, /, *, only: Collection[str] | None) -> Iterator[dict[str, Any]]:
        return parquet_rows(path, only)

    def encode(self, names: Names, texts: Sequence[str | None], columns: Columns, row: int, _first: bool, /) -> bytes:
        return segment(as_table(names[0], texts, columns, names[1:], row), row)

    def finish(self, blocks: Path, ends: Sequence[int], out: HashedFile, _compression: str, /) -> None:
        assemble(blocks, ends, out)


class _SheetFormat(Format):
    """A sheet of Excel: read, and never written, for it would lose what a sheet holds besides its values."""

    suffixes = (".xlsx",)
    is_compressed = False
    needs_file = True
    is_written = False

    def source(self, path: Path, _compression: str, /, *, text: str, columns: Names, skip: bool) -> Source:
        return _SheetSource(path, text, columns, skip)

    def rows(self, path: Path, _compression: str, /, *, only: Collection[str] | None) -> Iterator[dict[str, Any]]:
        with closing(SheetFile(path)) as sheet:
            for _, row in sheet.rows():
                if row is None:
                    continue
                yield row if only is None else {name: row[name] for name in only if name in row}

    def encode(self, *_: Any) -> bytes:
        raise ParameterError("an .xlsx file is read, not written")

    def finish(self, *_: Any) -> None:
        raise ParameterError("an .xlsx file is read, not written")


_ALL: tuple[Format, ...] = (
    _LineFormat((".txt",), _read_txt, _txt_line, has_columns=False),
    _LineFormat((".jsonl", ".ndjson"), _read_jsonl, _json_line),
    _LineFormat((".csv",), _read_csv, _csv_line, has_header=True),
    _LineFormat((".tsv",), _read_tsv, _tsv_line, has_header=True),
    _ParquetFormat(),
    _SheetFormat(),
)
FORMATS = {each.suffixes[0]: each for each in _ALL}
"""All formats, by the suffix that is usual for them."""

_BY_SUFFIX = {suffix: kind for kind, each in FORMATS.items() for suffix in each.suffixes}
_COMPRESSIONS = {".gz": None, ".zst": "zstandard"}  # and the package that each needs
SUFFIXES = (*_COMPRESSIONS, *FORMATS, *(each for each in _BY_SUFFIX if each not in FORMATS))
"""All endings of names that say something, those of compressions first."""

_PLAIN = ", ".join(kind for kind, each in FORMATS.items() if each.is_compressed)
_OTHERS = ", ".join(kind for kind, each in FORMATS.items() if not each.is_compressed)
NAMES_OF_FORMATS = f"{_PLAIN}, each may be {' or '.join(_COMPRESSIONS)}; {_OTHERS}"
"""How names end, for the help of commands."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """What a file name announces: a key of `FORMATS`, and ``""``, ``".gz"`` or ``".zst"``."""

    kind: str
    compression: str = ""

    @property
    def format(self) -> Format:
        """How such files are read and written."""
        return FORMATS[self.kind]

    @property
    def is_assembled(self) -> bool:
        """Whether a file is made when all of its blocks are there."""
        return self.format.is_assembled or self.compression != ""

    @property
    def packages(self) -> list[str]:
        """What it takes to read and write such files, from the extra ``files``."""
        of_kind = FORMATS[self.kind].package if self.kind in FORMATS else None
        return [each for each in (of_kind, _COMPRESSIONS.get(self.compression)) if each is not None]

    def check_packages(self, name: str) -> None:
        """Whether what it takes to write a file of this name is there.

        Raises:
            MissingExtraError: it is not.
        """
        for package in self.packages:
            extra(package, "files", name)


def written_format(path: Path) -> FileFormat:
    """The format that the name of an output announces.

    Raises:
        ParameterError: a suffix that no writer knows.
    """
    found = file_format(path)
    if not found.format.is_written:
        written = ", ".join(kind for kind, each in FORMATS.items() if each.is_written)
        raise ParameterError(f"a {found.kind} file is read and not written: end OUT in {written}, got {path.name!r}")
    return found


def announced_by(path: Path) -> FileFormat:
    """What a name says of its format; the kind may be one that nobody knows, or none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes[-1:] and suffixes[-1] in _COMPRESSIONS else ""
    kind = suffixes[-1] if suffixes else ""
    return FileFormat(_BY_SUFFIX.get(kind, kind), compression)


def file_format(path: Path) -> FileFormat:
    """The format that a file name announces.

    Raises:
        ParameterError: a suffix that no reader knows.
    """
    found = announced_by(path)
    if found.kind not in FORMATS or (found.compression and not found.format.is_compressed):
        raise ParameterError(
            f"expected a file name that ends in {_PLAIN} (each may have {' or '.join(_COMPRESSIONS)} added) or "
            f"{_OTHERS}, got {path.name!r}"
        )
    return found
