"""File formats of documents: recognise them by the file name, read rows and write rows."""

from __future__ import annotations

import csv
import datetime
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dptext.errors import DataError, ParameterError, extra
from dptext.io.batches import Columns, InputFile, check_header, has_lone_surrogate

_LONGEST_FIELD = 1 << 28  # bytes; longer fields are unclosed quotes
_CUT = "repair it, or copy the file again if it was truncated"
_SEPARATORS = ",;\t|"


@dataclass(frozen=True)
class Reading:
    """Options for reading files."""

    text: str = "text"
    columns: tuple[str, ...] = ()
    skip: bool = False
    encoding: str | None = None
    separator: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class BadRow:
    """Reason why a row cannot be read; never its content."""

    reason: str


Row: TypeAlias = dict[str, Any] | BadRow
Names: TypeAlias = tuple[str, ...]
Values: TypeAlias = tuple[Any, ...]


# -- in -------------------------------------------------------------------------------------------------------

_NOT_UTF8 = BadRow(
    "expected UTF-8, got other bytes; name the encoding (such as --encoding windows-1252), or copy the file again if "
    "it was truncated"
)


def read_rows(file: InputFile, kind: Format, reading: Reading, required: Names) -> Iterator[Row]:
    """Yield the rows of a file; raise `DataError` if a required column is missing or reading cannot continue."""
    with suppress(UnicodeError):  # contains private data, so it must not be chained
        yield from file.guarded(kind.read(file, reading, required))
        return
    encoding = reading.encoding or "of its byte order mark"
    raise DataError(f"{file.name}: expected text in the encoding {encoding}; name the right one (--encoding)")


def _read_txt(file: InputFile, reading: Reading, _required: Names) -> Iterator[Row]:
    for line in file.lines(reading.encoding):
        yield _NOT_UTF8 if has_lone_surrogate(line) else {reading.text: line.removesuffix("\n").rstrip("\r")}


def _read_jsonl(file: InputFile, reading: Reading, _required: Names) -> Iterator[Row]:
    lines = file.lines(reading.encoding)
    first = next(lines, None)
    if first is not None and first.lstrip().startswith("["):
        yield from _read_json_list(first + lines.read(), file.name)
        return
    for line in lines if first is None else chain([first], lines):
        yield _NOT_UTF8 if has_lone_surrogate(line) else _read_json(line)


def _read_json(line: str) -> Row:
    try:
        return _json_row(json.loads(line), line)
    except json.JSONDecodeError:
        problem = "is not valid JSON" if line.strip() else "is empty"
    except ValueError:
        problem = "contains a number with too many digits"
    except RecursionError:
        problem = "is nested too deeply"
    return BadRow(f"expected a JSON object, the line {problem}; {_CUT}")


def _read_json_list(content: str, name: str) -> Iterator[Row]:
    values = None
    with suppress(ValueError, RecursionError):
        values = json.loads(content)
    if not isinstance(values, list) or has_lone_surrogate(content):
        raise DataError(
            f"{name}: expected one JSON list in UTF-8, or one JSON object per line; the list is broken, ends early or "
            f"is followed by other data; {_CUT}"
        )
    for value in values:
        yield _json_row(value, content)


def _json_row(value: Any, source: str) -> Row:
    if not isinstance(value, dict):
        return BadRow("expected a JSON object, got another JSON value")
    if "\\u" in source:
        with suppress(RecursionError):
            if not has_lone_surrogate(json.dumps(value, ensure_ascii=False)):
                return value
        return BadRow("the row contains a lone surrogate, which is not valid text; repair it")
    return value


def _read_csv(
    file: InputFile, reading: Reading, required: Names, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
) -> Iterator[Row]:
    csv.field_size_limit(_LONGEST_FIELD)  # long reviews are not errors
    lines = file.lines(reading.encoding)
    first = next(lines, None)
    if first is None:
        return
    separator = reading.separator or ("\t" if quoting == csv.QUOTE_NONE else _sniffed_separator(first, required))
    reader = csv.reader(chain([first], lines), strict=True, delimiter=separator, quoting=quoting)
    number = 0
    try:
        header = next(reader)
        if has_lone_surrogate("".join(header)):
            raise DataError(f"{file.name}, the header: {_NOT_UTF8.reason}")
        check_header(header, required, file.name)
        width = len(header)
        for row in reader:
            number += 1
            if not "".join(row).isascii() and has_lone_surrogate("".join(row)):
                yield _NOT_UTF8
            elif len(row) == width or (width == 1 and not row):  # csv reads an empty line as a row without fields
                yield dict(zip(header, row or [""], strict=True))
            else:
                place = f"(line {reader.line_num})"
                yield BadRow(f"expected {width} columns as in the header, got {len(row)} {place}; {_CUT}")
    except csv.Error as error:
        problem = "is not valid CSV"
        if "unexpected end" in str(error) or "field limit" in str(error):
            problem = "has an unclosed quote"
        # never skipped: with a wrong start of the next row, a part of a text could become a kept column
        raise DataError(
            f"{file.name}, row {number + 1} (line {reader.line_num}): the row {problem}, and where the next one starts "
            f"is uncertain; {_CUT}"
        ) from None


def _sniffed_separator(line: str, required: Names) -> str:
    """Return the comma, or another separator if only that one gives a header with the required columns."""
    headers: dict[str, list[str]] = {}
    for separator in _SEPARATORS:
        with suppress(csv.Error, StopIteration):
            headers[separator] = next(csv.reader([line], delimiter=separator))
    complete = (separator for separator, names in headers.items() if required and set(required) <= set(names))
    several = (separator for separator, names in headers.items() if len(names) > 1)
    return next(complete, None) or next(several, ",")


def _read_parquet(file: InputFile, _reading: Reading, required: Names) -> Iterator[Row]:
    from dptext.io.parquet import parquet_rows

    return parquet_rows(file, required)


def _read_xlsx(file: InputFile, _reading: Reading, required: Names) -> Iterator[Row]:
    """Yield the non-empty rows of the only non-empty sheet; the first row has the column names."""
    openpyxl = extra("openpyxl", "excel", file.name)
    sheets = None
    # errors of openpyxl may contain a value; its warnings concern parts that are not read
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(file.file, read_only=True, data_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # the stated size may be wrong
        tables = (
            [row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
            for sheet in book.worksheets
        )
        sheets = [table for table in tables if table]
    if sheets is None:
        raise DataError(f"{file.name} is not an .xlsx file, or is truncated or damaged. Copy the file again")
    if len(sheets) > 1:
        raise DataError(f"{file.name}: {len(sheets)} sheets have rows. Save one of them as a separate file")
    rows = sheets[0] if sheets else []
    names = list(rows[0]) if rows else []
    while names and names[-1] is None:
        names.pop()
    header, width = ["" if name is None else str(name) for name in names], len(names)
    if rows:
        check_header(header, required, file.name)
    for row in rows[1:]:
        if any(value is not None for value in row[width:]):
            yield BadRow(f"expected {width} columns as in the first row, got more; name the column or remove the value")
        else:
            values = (*map(_plain, row[:width]), *[None] * (width - len(row)))
            yield dict(zip(header, values, strict=True))


def _plain(value: Any) -> Any:
    """Convert dates and times to ISO format, and a datetime at midnight to a date."""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
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
        line = None
        with suppress(TypeError, ValueError, RecursionError):  # NaN becomes null, as in other programs
            fields = zip(names, values, strict=True)
            line = _JSON.encode({name: None if value != value else value for name, value in fields})
        if line is None:
            kept = ", ".join(map(repr, names[1:]))
            raise DataError(f"row {row}: the kept columns {kept} cannot be written as JSON. Convert or drop them")
        yield line + "\n"


def _to_json(value: object) -> str:
    """Convert dates and times, which JSON has no type for."""
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
        return value.isoformat()
    raise TypeError


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_to_json)


class _Written(list[str]):
    """List with the file interface that `csv.writer` needs."""

    write = list.append


def _csv_lines(_names: Names, rows: Iterator[Values], _number: int) -> Iterator[str]:
    lines = _Written()
    present = ([None if value != value else value for value in values] for values in rows)  # NaN as in .jsonl
    # a line end with \r makes the writer quote \r in fields
    csv.writer(lines, lineterminator="\r\n").writerows(present)
    return (line[:-2] + "\n" for line in lines)


# -- the formats ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """Functions that read and write files of a format. Line formats may be compressed and piped."""

    suffixes: Names
    read: Callable[[InputFile, Reading, Names], Iterator[Row]]
    lines: Callable[[Names, Iterator[Values], int], Iterator[str]] | None = None
    has_header: bool = False
    has_columns: bool = True
    is_lines: bool = True
    is_written: bool = True

    def encode(self, names: Names, texts: Sequence[str | None], columns: Columns, row: int, *, first: bool) -> bytes:
        """Return the bytes of a batch: the lines of the file, or a segment of parquet."""
        for number, text in enumerate(texts, row):
            if text is not None and has_lone_surrogate(text):
                raise DataError(f"row {number} contains a lone surrogate, which UTF-8 cannot encode")
        if self.lines is None:
            from dptext.io.parquet import segment

            return segment(names[0], texts, columns, names[1:], row)
        rows: Iterator[Values] = zip(texts, *(columns[name] for name in names[1:]), strict=True)
        starts_file = first if self.has_header else row == 1
        if first and self.has_header:
            rows, row = chain([names], rows), row - 1
        lines = list(self.lines(names, rows, row))
        if starts_file and lines and lines[0].startswith("\ufeff"):
            lines[0] = "\ufeff" + lines[0]  # readers drop the first byte order mark
        with suppress(UnicodeEncodeError):  # contains private data, so it must not be chained
            return "".join(lines).encode("utf-8")
        number = next(number for number, line in enumerate(lines, row) if has_lone_surrogate(line))
        raise DataError(f"row {number} contains a lone surrogate, which UTF-8 cannot encode")


FORMATS = {
    kind.suffixes[0]: kind
    for kind in (
        Format((".txt",), _read_txt, _txt_lines, has_columns=False),
        Format((".jsonl", ".ndjson"), _read_jsonl, _json_lines),
        Format((".csv",), _read_csv, _csv_lines, has_header=True),
        # no tabs or line breaks in fields
        Format((".tsv",), partial(_read_csv, quoting=csv.QUOTE_NONE), is_written=False),
        Format((".parquet",), _read_parquet, is_lines=False),
        Format((".xlsx",), _read_xlsx, is_lines=False, is_written=False),
    )
}
"""All formats, by main suffix."""

_BY_SUFFIX = {suffix: name for name, kind in FORMATS.items() for suffix in kind.suffixes}
_COMPRESSIONS = (".gz", ".zst", ".xz")
NAMES_OF_FORMATS = ".txt, .jsonl, .csv, .tsv, each may be .gz, .zst or .xz; .parquet, .xlsx"
"""Suffixes of file names, for help texts."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """Format of a file name: a key of `FORMATS`, and a compression ``""``, ``".gz"``, ``".zst"`` or ``".xz"``."""

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
    """Return the format by the suffixes of a file name; the kind may be unknown or empty."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes[-1:] and suffixes[-1] in _COMPRESSIONS else ""
    kind = suffixes[-1] if suffixes else ""
    return FileFormat(_BY_SUFFIX.get(kind, kind), compression)


def file_format(path: Path) -> FileFormat:
    """Return the format of a file name; raise `ParameterError` if it is unknown."""
    announced = announced_by(path)
    if announced.kind not in FORMATS or (announced.compression and not announced.format.is_lines):
        raise ParameterError(f"expected a file name that ends in {NAMES_OF_FORMATS}, got {path.name!r}")
    return announced


def written_format(path: Path) -> FileFormat:
    """Return the format of an output name; raise `ParameterError` if the format cannot be written."""
    announced = file_format(path)
    if not announced.is_written:
        raise ParameterError(
            f"{announced.kind}{announced.compression} files are only read: end OUT in .txt, .jsonl, .csv (each may be "
            f".gz) or .parquet, got {path.name!r}"
        )
    return announced
