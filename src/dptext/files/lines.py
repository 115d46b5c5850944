"""Bytes to rows, for formats made of lines: .txt, .jsonl, .csv, .tsv; UTF-8, and only a line feed ends a line.

A row that cannot be read comes out as a `BadRow` with a reason, in its place; what makes all that follows uncertain
(broken compression, a damaged quote) is an error.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from dptext.errors import DataError
from dptext.files.formats import OpenedFile

__all__ = ["BadRow", "Row", "rows_of"]

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
