"""Rows of an Excel sheet (.xlsx), as plain values, in constant memory (package openpyxl, extra ``excel``).

The first row holds the names of the columns; rows are numbered as in the sheet. A formula counts as the value that was
stored with it, a date or a time as its ISO spelling, and a row without any value is no row.
"""

from __future__ import annotations

import datetime
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

from dptext.errors import DataError, StorageError, extra
from dptext.files.streams import shown

__all__ = ["SheetFile"]

_MOST_ROWS = 1 << 20
"""Of a sheet, by its format."""
_LARGEST_ROW = 1 << 24
"""Bytes of XML. The reader holds a row in memory as a whole; a cell has at most 32,767 characters in Excel."""
_PARSED = re.compile("sheet|strings|styles|workbook", re.IGNORECASE)
_ROW = re.compile(rb"<(?:\w+:)?(?:row|si)[\s>]")


class SheetFile:
    """A workbook with one sheet that holds something.

    Attributes:
        name: of the file.
        size: its bytes.
        header: the names of the columns; empty where the sheet is.

    Raises:
        StorageError: it cannot be opened.
        DataError: it is no workbook, several of its sheets hold something, or the header is none.
        MissingExtraError: openpyxl is not installed.
    """

    def __init__(self, path: Path) -> None:
        self.name = shown(path)
        self._file: Any = None
        openpyxl = extra("openpyxl", "excel", self.name)
        try:
            self._file = path.open("rb")
            self.size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise StorageError.of("open", path, error) from None
        self._book: Any = None
        self._read = 0
        self._failed = DataError(f"{self.name} is not an .xlsx file, or was cut or damaged; copy the file again")
        sheets = None
        try:
            _check_sizes(self._file, self.name)
            with warnings.catch_warnings():  # of parts that are not read: styles, rules for input
                warnings.simplefilter("ignore")
                self._book = openpyxl.load_workbook(self._file, read_only=True, data_only=True)
                every = self._book.worksheets
                self._rows = {id(each): each.max_row for each in every}
                for each in every:  # what it says of its size is what a program wrote, and rows beyond it are rows
                    each.reset_dimensions()
                sheets = [each for each in every if next(_filled(each), None) is not None]
        except DataError:
            self.close()
            raise
        except Exception:  # noqa: BLE001, S110  of the archive, its parts and their values; such an error may hold one
            pass
        if sheets is None:
            self.close()
            raise self._failed
        if len(sheets) > 1:
            self.close()
            raise DataError(
                f"{self.name}: expected one sheet with rows, {len(sheets)} hold some: save the one with the texts as a "
                "file of its own"
            )
        self._sheet = sheets[0] if sheets else None
        try:
            self.header = self._header()
        except DataError:
            self.close()
            raise

    @property
    def position(self) -> int:
        """Bytes read so far, by the share of the rows where the file says how many there are."""
        most = self._rows.get(id(self._sheet))
        return min(self.size, self.size * self._read // most) if most else 0

    def close(self) -> None:
        """Close the file."""
        if self._book is not None:
            self._book.close()
        if self._file is not None:
            self._file.close()

    def rows(self) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """The number of each row in the sheet, and its values by the names of the columns; None where there is a value
        beyond these.

        Raises:
            DataError: the file is damaged.
        """
        found = iter(()) if self._sheet is None else _filled(self._sheet)
        width, first = len(self.header), True
        while True:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    number, values = next(found, (0, ()))
            except Exception:  # noqa: BLE001  as above
                number = -1
            if number < 0:
                raise self._failed
            if not number:
                return
            self._read = number
            if first:
                first = False
                continue
            if any(each is not None for each in values[width:]):
                yield number, None
                continue
            padded = (*values[:width], *(None for _ in range(width - len(values))))
            yield number, dict(zip(self.header, map(_plain, padded), strict=True))

    def _header(self) -> list[str]:
        if self._sheet is None:
            return []
        _, values = next(_filled(self._sheet))
        while values and values[-1] is None:
            values = values[:-1]
        if not all(isinstance(each, str) and each for each in values):
            raise DataError(
                f"{self.name}: expected the names of the columns in the first row, got something else there"
            )
        if len(set(values)) < len(values):
            raise DataError(f"{self.name}: two columns of the header have the same name; rename one")
        return list(values)


def _check_sizes(file: BinaryIO, name: str) -> None:
    """Raise a `DataError` if a row, or a text that cells share, is too large for the memory."""
    with ZipFile(file) as archive:
        for part in archive.infolist():
            if part.file_size <= _LARGEST_ROW or not _PARSED.search(part.filename):
                continue
            with archive.open(part) as stream:
                size, block = 0, b""
                while new := stream.read(1 << 20):
                    block = block[-16:] + new  # where the start of a row may be cut
                    starts = [match.start() for match in _ROW.finditer(block)]
                    size = len(block) - starts[-1] if starts else size + len(new)
                    if size > _LARGEST_ROW:
                        raise DataError(
                            f"{name}: a row must have at most {_LARGEST_ROW:,} bytes of XML, got more; save the sheet "
                            "as .csv"
                        )


def _filled(sheet: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The rows that hold a value, with their numbers."""
    for number, values in enumerate(sheet.iter_rows(values_only=True), 1):
        if number > _MOST_ROWS:  # a damaged one may name any row, and those before it would be counted up to there
            raise ValueError
        if any(each is not None for each in values):
            yield number, values


def _plain(value: Any) -> Any:
    """A date or a time as it is spelled; a day as that of a date alone."""
    if isinstance(value, datetime.datetime):
        return (value.date() if value.time() == datetime.time() else value).isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return str(value)
    return value
