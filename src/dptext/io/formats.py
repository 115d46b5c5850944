"""The formats of files of documents: what a file name announces, how rows are read and how they are written."""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import io
import json
import shutil
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from dptext.errors import DataError, ParameterError, extra
from dptext.io.atomic import HashedFile
from dptext.io.batches import (
    Batch,
    Columns,
    OpenedFile,
    Reject,
    as_lists,
    describe_columns,
    has_lone_surrogate,
    row_batches,
)

LONGEST = 1 << 28
"""Bytes of the longest row: a longer one is a file without line ends, or a quote that was never closed."""

_CUT = "repair it, or copy the file again if it was cut"
_SEPARATORS = ";\t|"
_BETWEEN = ", \t\r\n"  # the items of a JSON list


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    text: str = "text"
    columns: tuple[str, ...] = ()
    skip: bool = False
    encoding: str | None = None
    separator: str | None = None


@dataclass(frozen=True, slots=True)
class BadRow:
    """Why a row cannot be read; never its content."""

    reason: str


Row: TypeAlias = dict[str, Any] | BadRow
Names: TypeAlias = tuple[str, ...]
Values: TypeAlias = tuple[Any, ...]


class Source(Protocol):
    """One file in batches."""

    size: int
    name: str

    @property
    def position(self) -> int: ...

    def batches(self) -> Iterator[Batch]: ...
    def close(self) -> None: ...


# -- lines in -------------------------------------------------------------------------------------------------


_BYTE_ORDER_MARKS = {  # the mark of UTF-32 begins with that of UTF-16
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
_NOT_UTF8 = BadRow(
    "expected UTF-8, the row holds other bytes; name the encoding (--encoding windows-1252), or copy the file again if "
    "it was cut"
)


def _text_of(file: OpenedFile, encoding: str | None) -> io.TextIOWrapper:
    """The decoded lines of a file with their line ends; bytes that are not UTF-8 become surrogates."""
    file.longest_line = LONGEST
    buffer = io.BufferedReader(file, 1 << 16)
    head = buffer.peek(40)[:40]
    is_utf8 = encoding in (None, "utf-8", "utf-8-sig")
    for marked, marks in _BYTE_ORDER_MARKS.items():
        if head.startswith(marks) and (is_utf8 or str(encoding).startswith(marked)):
            return io.TextIOWrapper(buffer, marked, newline="\n")
    line = head[: head.find(b"\n") + 1 or None]
    for name, zeros, others in (("utf-16-le", line[1::2], line[::2]), ("utf-16-be", line[::2], line[1::2])):
        if encoding is None and len(line) >= 8 and not zeros.strip(b"\0") and 0 not in others:
            raise DataError(f"{file.name}: this looks like UTF-16, not UTF-8. Add --encoding {name}")
    if is_utf8:
        return io.TextIOWrapper(buffer, "utf-8-sig", errors="surrogateescape", newline="\n")
    return io.TextIOWrapper(buffer, encoding, newline="\n")


def _read_txt(lines: io.TextIOWrapper, _reading: Reading, required: Names) -> Iterator[Row]:
    for line in lines:
        yield _NOT_UTF8 if has_lone_surrogate(line) else {required[0]: line.removesuffix("\n").rstrip("\r")}


def _read_jsonl(lines: io.TextIOWrapper, _reading: Reading, _required: Names) -> Iterator[Row]:
    for number, line in enumerate(lines):
        if has_lone_surrogate(line):
            yield _NOT_UTF8
            continue
        if number == 0 and line.lstrip().startswith("["):
            yield from _read_json_list(line, lines)
            return
        row, problem = None, ""
        try:
            row = _json_row(json.loads(line), line)
        except json.JSONDecodeError:  # it holds the line: nothing must be chained to it
            problem = "is not valid JSON" if line.strip() else "is empty"
        except ValueError:
            problem = "holds a number of too many digits"
        except RecursionError:
            problem = "is nested too deep"
        yield BadRow(f"expected a JSON object, the line {problem}; {_CUT}") if row is None else row


def _read_json_list(buffer: str, lines: io.TextIOWrapper) -> Iterator[Row]:
    """The objects of one JSON list."""
    decoder, start, number, line_number = json.JSONDecoder(), buffer.index("[") + 1, 0, 1
    while True:
        while buffer[start : start + 1] in _BETWEEN and start < len(buffer):
            start += 1
        if buffer.startswith("]", start):
            break
        try:
            value, end = decoder.raw_decode(buffer, start)
        except json.JSONDecodeError as error:  # more lines may complete a value
            is_cut = error.pos >= len(buffer.rstrip()) - 1
        except (ValueError, RecursionError):
            is_cut = False
        else:
            number += 1
            yield _json_row(value, buffer[start:end])
            start = end
            continue
        line = next(lines, None) if is_cut else None
        line_number += line is not None
        if line is None or has_lone_surrogate(line):
            reason = _NOT_UTF8.reason if line else f"the JSON list is broken or ends early; {_CUT}"
            raise DataError(f"{lines.name}, row {number + 1} (line {line_number}): {reason}")
        buffer, start = buffer[start:] + line, 0
    if buffer[start + 1 :].strip() or any(line.strip() for line in lines):
        raise DataError(f"{lines.name}: expected one JSON list, or one JSON object per line, got more after a list")


def _json_row(value: Any, source: str) -> Row:
    if not isinstance(value, dict):
        return BadRow("expected a JSON object, got another JSON value")
    if "\\u" in source:
        is_text = False
        with suppress(RecursionError):
            is_text = not has_lone_surrogate(json.dumps(value, ensure_ascii=False))
        if not is_text:
            return BadRow("the row holds half a surrogate pair, which is no text; repair it")
    return value


def _read_tsv(lines: io.TextIOWrapper, reading: Reading, required: Names) -> Iterator[Row]:
    """Tabs separate, nothing quotes (text/tab-separated-values): a field holds neither a tab nor a line break."""
    yield from _read_csv(lines, replace(reading, separator=reading.separator or "\t"), required, csv.QUOTE_NONE)


def _read_csv(
    lines: io.TextIOWrapper, reading: Reading, required: Names, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
) -> Iterator[Row]:
    csv.field_size_limit(LONGEST)  # a long review is not an error
    first = next(lines, None)
    if first is None:
        return
    separator = reading.separator or _sniffed_separator(first, required)
    reader = csv.reader(chain([first], lines), strict=True, delimiter=separator, quoting=quoting)
    number = 0
    try:
        header = _validate_header(next(reader), required, str(lines.name))
        width = len(header)
        for row in reader:
            number += 1
            if not "".join(row).isascii() and has_lone_surrogate("".join(row)):
                yield _NOT_UTF8
            elif len(row) == width:
                yield dict(zip(header, row, strict=True))
            else:  # csv reads the empty line of a one-column file as no fields
                yield _fields(header, row or [""] * (width == 1), f" (line {reader.line_num})")
    except csv.Error as error:
        problem = "is not valid CSV"
        if "unexpected end" in str(error):
            problem = "ends inside quotes"
        elif "field limit" in str(error):
            problem = f"holds a field of more than {LONGEST:,} bytes: a quote is not closed"
        # never skipped: a guess where the next row starts could take a piece of a text for a kept column
        raise DataError(
            f"{lines.name}, row {number + 1} (line {reader.line_num}): the row {problem}, and where the next one "
            f"starts is uncertain; {_CUT}"
        ) from None


def _sniffed_separator(line: str, required: Names) -> str:
    """Another separator than the comma only if the header gives the wanted columns with it and not with the comma."""
    fields = {}
    for separator in f",{_SEPARATORS}":
        with suppress(csv.Error, StopIteration):
            fields[separator] = next(csv.reader([line], delimiter=separator))
    complete = (separator for separator, names in fields.items() if required and set(required) <= set(names))
    several = (separator for separator, names in fields.items() if len(names) > 1)
    return next(complete, None) or next(several, ",")


def _validate_header(header: list[str], required: Names, name: str) -> list[str]:
    if has_lone_surrogate("".join(header)):
        raise DataError(f"{name}, the header: {_NOT_UTF8.reason}")
    if len(set(header)) != len(header):
        raise DataError(f"{name}: two columns of the header have the same name; rename one")
    for column in required:
        if column not in header:
            other = any(separator in field for field in header for separator in _SEPARATORS)
            raise DataError(
                f"{name}: expected a column {column!r}, the header has "
                f"{describe_columns(column, header, required=required)}; name the right column"
                + (", or the separator (separator=)" if other else "")
            )
    return header


def _fields(header: list[str], row: list[str], where: str = "") -> Row:
    if len(row) == len(header):
        return dict(zip(header, row, strict=True))
    return BadRow(f"expected {len(header)} columns as in the header, got {len(row)}{where}; {_CUT}")


class _RowSource:
    """A file of rows in batches; the header and the first row are read, and validated, when it is opened."""

    def __init__(self, file: OpenedFile, rows: Iterator[tuple[int, Row]], reading: Reading) -> None:
        self._file, self._reading = file, reading
        self.size, self.name = file.size, file.name
        usable = self._usable_rows(rows)
        try:
            self._rows = chain(list(islice(usable, 1)), usable)
        except BaseException:
            self.close()
            raise

    @property
    def position(self) -> int:
        return self._file.position

    def close(self) -> None:
        self._file.close()

    def batches(self) -> Iterator[Batch]:
        return row_batches(self._rows, self._reading.columns)

    def _usable_rows(self, rows: Iterator[tuple[int, Row]]) -> Iterator[Reject | tuple[str | None, list[Any]]]:
        columns, name = self._reading.columns, self._reading.text
        for number, row in rows:
            if not isinstance(row, BadRow):
                try:
                    text, values = row[name], list(map(row.__getitem__, columns))
                    if text is None or isinstance(text, str):
                        yield text, values
                        continue
                except KeyError:
                    pass
            if not self._reading.skip:
                raise DataError(f"{self.name}, row {number}: {self._problem(row, to_owner=True)}")
            yield Reject(self.name, number, self._problem(row))

    def _problem(self, row: Row, *, to_owner: bool = False) -> str:
        """Why a row cannot be used; only ``to_owner`` names its columns, since rejects may be handed on."""
        if isinstance(row, BadRow):
            return row.reason
        for column in (self._reading.text, *self._reading.columns):
            if column not in row:
                present = describe_columns(column, list(row), sure=True) if to_owner else "none"
                return f"expected a column {column!r}, the row has {present}; name the right column or repair the row"
        kind = type(row[self._reading.text]).__name__
        return f"expected a string in {self._reading.text!r}, the value is of type {kind}"


# -- sheets ---------------------------------------------------------------------------------------------------


def _read_sheet(path: Path, name: str) -> list[tuple[int, Values]]:
    """The numbered rows that hold something, of the one sheet of a workbook that has some."""
    openpyxl = extra("openpyxl", "excel", name)
    sheets = None
    # errors of openpyxl may hold a value, its warnings are about parts that are not read
    with path.open("rb") as file, warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # the size that a file states may be wrong
        rows = [list(enumerate(sheet.iter_rows(values_only=True), 1)) for sheet in book.worksheets]
        filled = [[(n, row) for n, row in sheet if any(value is not None for value in row)] for sheet in rows]
        sheets = [sheet for sheet in filled if sheet]
    if sheets is None:
        raise DataError(f"{name} is not an .xlsx file, or is truncated or damaged. Copy the file again")
    if len(sheets) > 1:
        raise DataError(f"{name}: {len(sheets)} sheets have rows. Save one of them as a separate file")
    return sheets[0] if sheets else []


def _sheet_rows(path: Path, name: str, required: Names) -> Iterator[tuple[int, Row]]:
    """Rows by the names in the first row; its empty last cells are no columns."""
    (_, first), *rows = _read_sheet(path, name) or [(0, ())]
    header = list(first)
    while header and header[-1] is None:
        header.pop()
    if not all(isinstance(column, str) and column for column in header):
        raise DataError(f"{name}: the first row must contain the column names")
    width = len(_validate_header(header, required if header else (), name))
    for number, values in rows:
        if any(value is not None for value in values[width:]):
            problem = f"expected {width} columns as in the first row, got a value beyond them"
            yield number, BadRow(f"{problem}; name the column or remove the value")
        else:
            padded = (*values[:width], *[None] * (width - len(values)))
            yield number, dict(zip(header, map(_plain, padded), strict=True))


def _plain(value: Any) -> Any:
    """A date or a time in its ISO spelling; a day as a date alone."""
    if isinstance(value, datetime.datetime):
        return (value.date() if value.time() == datetime.time() else value).isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, datetime.timedelta) else value


# -- lines out ------------------------------------------------------------------------------------------------


def _txt_lines(_names: Names, rows: Iterator[Values], number: int) -> Iterator[str]:
    for row, (text,) in enumerate(rows, number):
        if text and ("\n" in text or text.endswith("\r")):
            raise DataError(
                f"row {row} contains a line break, which a .txt file cannot represent: write .jsonl or .csv instead"
            )
        yield f"{text or ''}\n"


def _json_lines(names: Names, rows: Iterator[Values], number: int) -> Iterator[str]:
    for row, values in enumerate(rows, number):
        fields = dict(zip(names, values, strict=True))
        line = None
        try:
            line = _JSON.encode(fields)
        except (TypeError, ValueError, RecursionError):  # JSON has no NaN; other programs write null
            with suppress(TypeError, ValueError, RecursionError):
                line = _JSON.encode({name: None if value != value else value for name, value in fields.items()})
        if line is None:
            kept = ", ".join(map(repr, names[1:]))
            raise DataError(f"row {row}: the kept {kept} cannot all be written as JSON")
        yield line + "\n"


def _to_json(value: object) -> str:
    """What JSON has no type for and everybody spells alike."""
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
        return value.isoformat()
    raise TypeError


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_to_json)


class _Written(list[str]):
    """A file for `csv.writer`, which writes row by row."""

    write = list.append


def _csv_lines(_names: Names, rows: Iterator[Values], _number: int) -> Iterator[str]:
    lines = _Written()
    csv.writer(lines, lineterminator="\r\n").writerows(rows)  # with \r among the line ends, it is quoted
    return (line[:-2] + "\n" for line in lines)


# -- the formats ----------------------------------------------------------------------------------------------


class _RowFormat(ABC):
    """A format that is read row by row."""

    has_columns = True

    @abstractmethod
    def _open(
        self, path: Path, compression: str, reading: Reading, required: Names
    ) -> tuple[OpenedFile, Iterator[tuple[int, Row]]]:
        """Open a file, and yield its numbered rows."""

    def source(self, path: Path, compression: str, reading: Reading, /) -> Source:
        return _RowSource(*self._open(path, compression, reading, (reading.text, *reading.columns)), reading)

    def rows(self, path: Path, compression: str, reading: Reading, /) -> Iterator[dict[str, Any]]:
        """The rows that can be read, with all columns unless some are named."""
        file, rows = self._open(path, compression, reading, () if self.has_columns else ("text",))
        with closing(file):
            for _, row in rows:
                if not isinstance(row, BadRow):
                    yield {name: row[name] for name in reading.columns if name in row} if reading.columns else row


@dataclass(frozen=True)
class _LineFormat(_RowFormat):
    """A format of lines, which may be compressed and piped: the bytes of its batches are the file."""

    suffixes: Names
    read: Callable[[io.TextIOWrapper, Reading, Names], Iterator[Row]]
    write: Callable[[Names, Iterator[Values], int], Iterator[str]] | None = None
    has_header: bool = False
    has_columns: bool = True
    is_lines = True

    @property
    def is_written(self) -> bool:
        return self.write is not None

    def _open(
        self, path: Path, compression: str, reading: Reading, required: Names
    ) -> tuple[OpenedFile, Iterator[tuple[int, Row]]]:
        file = OpenedFile(path, compression)
        return file, enumerate(self._rows_of(file, reading, required), 1)

    def _rows_of(self, file: OpenedFile, reading: Reading, required: Names) -> Iterator[Row]:
        encoding = reading.encoding
        try:
            lines = _text_of(file, encoding)
            encoding = lines.encoding
            yield from self.read(lines, reading, required)
            return
        except EOFError:
            problem = "the compressed data is broken or ends early; copy the file again"
        except UnicodeError:  # such an error holds the data: none must be chained
            problem = f"expected text in the encoding {encoding}; name the right one (--encoding)"
        raise DataError(f"{file.name}: {problem}")

    def encode(self, names: Names, texts: Sequence[str | None], columns: Columns, row: int, first: bool, /) -> bytes:
        assert self.write is not None
        lists = as_lists(columns)
        missing = next((name for name in names[1:] if name not in lists), None)
        if missing is not None:
            raise DataError(f"the documents have no column {missing!r} to keep")
        rows: Iterator[Values] = zip(texts, *(lists[name] for name in names[1:]), strict=True)
        starts_file = first if self.has_header else row == 1
        if first and self.has_header:
            rows, row = chain([names], rows), row - 1
        lines = list(self.write(names, rows, row))
        if starts_file and lines and lines[0].startswith("\ufeff"):
            lines[0] = "\ufeff" + lines[0]  # readers drop the first one of a file
        with suppress(UnicodeEncodeError):  # such an error holds the text: none must be chained
            return "".join(lines).encode("utf-8")
        number = next(number for number, line in enumerate(lines, row) if has_lone_surrogate(line))
        raise DataError(f"row {number} contains a lone surrogate, which UTF-8 cannot encode")

    def finish(self, batches: Path, _ends: Sequence[int], out: HashedFile, /) -> None:
        """Compress as one member without name and time: one per batch would show where it ended."""
        with batches.open("rb") as stream, gzip.GzipFile("", "wb", 6, out, mtime=0) as packed:
            shutil.copyfileobj(stream, packed, 1 << 20)


class _ParquetFormat:
    suffixes = (".parquet",)
    has_columns, is_lines, is_written = True, False, True

    def source(self, path: Path, _compression: str, reading: Reading, /) -> Source:
        from dptext.io.parquet import ParquetSource

        return ParquetSource(path, reading.text, reading.columns)

    def rows(self, path: Path, _compression: str, reading: Reading, /) -> Iterator[dict[str, Any]]:
        from dptext.io.parquet import parquet_rows

        return parquet_rows(path, reading.columns or None)

    def encode(self, names: Names, texts: Sequence[str | None], columns: Columns, row: int, _first: bool, /) -> bytes:
        from dptext.io.parquet import as_table, segment

        return segment(as_table(names[0], texts, columns, names[1:], row), row)

    def finish(self, batches: Path, ends: Sequence[int], out: HashedFile, /) -> None:
        from dptext.io.parquet import assemble

        assemble(batches, ends, out)


class _SheetFormat(_RowFormat):
    """A sheet of Excel: only read, since writing would lose everything besides its values."""

    suffixes = (".xlsx",)
    is_lines = is_written = False

    def _open(
        self, path: Path, compression: str, _reading: Reading, required: Names
    ) -> tuple[OpenedFile, Iterator[tuple[int, Row]]]:
        file = OpenedFile(path, compression)
        return file, _sheet_rows(path, file.name, required)

    def encode(self, *_: Any) -> bytes:
        raise AssertionError("an .xlsx file is only read: is_written")

    finish: Any = encode


Format: TypeAlias = _LineFormat | _ParquetFormat | _SheetFormat
_ALL: tuple[Format, ...] = (
    _LineFormat((".txt",), _read_txt, _txt_lines, has_columns=False),
    _LineFormat((".jsonl", ".ndjson"), _read_jsonl, _json_lines),
    _LineFormat((".csv",), _read_csv, _csv_lines, has_header=True),
    _LineFormat((".tsv",), _read_tsv, has_header=True),
    _ParquetFormat(),
    _SheetFormat(),
)
FORMATS = {kind.suffixes[0]: kind for kind in _ALL}
"""All formats, by their usual suffix."""

_BY_SUFFIX = {suffix: name for name, kind in FORMATS.items() for suffix in kind.suffixes}
_COMPRESSIONS = (".gz", ".zst", ".xz")
SUFFIXES = (*_COMPRESSIONS, *FORMATS, *(suffix for suffix in _BY_SUFFIX if suffix not in FORMATS))
"""All known endings of names, compressions first."""

_PLAIN = ", ".join(name for name, kind in FORMATS.items() if kind.is_lines)
_OTHERS = ", ".join(name for name, kind in FORMATS.items() if not kind.is_lines)
NAMES_OF_FORMATS = f"{_PLAIN}, each may be {', '.join(_COMPRESSIONS[:-1])} or {_COMPRESSIONS[-1]}; {_OTHERS}"
"""How names end, for the help of commands."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """What a file name announces: a key of `FORMATS`, and ``""``, ``".gz"``, ``".zst"`` or ``".xz"``."""

    kind: str
    compression: str = ""

    @property
    def format(self) -> Format:
        return FORMATS[self.kind]

    @property
    def is_assembled(self) -> bool:
        return not self.format.is_lines or self.compression != ""

    @property
    def is_written(self) -> bool:
        return self.format.is_written and self.compression in ("", ".gz")


def announced_by(path: Path) -> FileFormat:
    """What a name says of its format; the kind may be unknown, or empty."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes[-1:] and suffixes[-1] in _COMPRESSIONS else ""
    kind = suffixes[-1] if suffixes else ""
    return FileFormat(_BY_SUFFIX.get(kind, kind), compression)


def file_format(path: Path) -> FileFormat:
    """The format that a file name announces; `ParameterError` for an unknown one."""
    announced = announced_by(path)
    if announced.kind not in FORMATS or (announced.compression and not announced.format.is_lines):
        raise ParameterError(f"expected a file name that ends in {NAMES_OF_FORMATS}, got {path.name!r}")
    return announced


def written_format(path: Path) -> FileFormat:
    """The format that the name of an output announces; `ParameterError` if it is not written."""
    announced = file_format(path)
    if not announced.is_written:
        written = ", ".join(name for name, kind in FORMATS.items() if kind.is_written)
        raise ParameterError(
            f"{announced.kind}{announced.compression} files are only read: end OUT in {written} (or .jsonl.gz, "
            f".csv.gz, .txt.gz), got {path.name!r}"
        )
    return announced
