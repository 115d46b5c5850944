"""Private texts to bytes, a block at a time, in the format that a file name announces.

The bytes of the blocks one after the other *are* the file for plain formats of lines. A .parquet, .gz or .zst file is
made from them at the end (`DocumentWriter.finish`): where a block ends hangs on the length of the private texts, so
nothing in a file may show it (a member of .gz, a row group of parquet).
"""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dptext.errors import DataError, ParameterError, extra
from dptext.files.blocks import Columns, is_no_text
from dptext.files.documents import check_kept_columns
from dptext.files.formats import file_format
from dptext.files.parquet import as_lists, as_table, assemble, segment
from dptext.files.streams import compress
from dptext.own_files import HashedFile

__all__ = ["DocumentWriter"]

_TIMES = (datetime.date, datetime.time)  # a datetime is a date


class DocumentWriter:
    """Blocks of documents as bytes.

    Args:
        path: decides the format (``Path("-.jsonl")`` or the like for standard output).
        text: the column to write the text to (all but .txt).
        keep: the columns to write beside it.

    A text that is None becomes null in .jsonl and .parquet, and an empty text in formats that have no null.

    Raises:
        ParameterError: an unknown suffix; kept columns for .txt.
        MissingExtraError: the package that writes .parquet or .zst is not installed.
    """

    def __init__(self, path: Path, *, text: str = "text", keep: Sequence[str] = ()) -> None:
        self.format = file_format(path)
        check_kept_columns(text, keep)
        if self.format.kind == ".txt" and keep:
            raise ParameterError("a .txt file cannot hold kept columns: write .jsonl or .csv, or keep nothing")
        if self.format.kind == ".parquet":
            extra("pyarrow", "files", path.name)
        if self.format.compression == ".zst":
            extra("zstandard", "files", path.name)
        self._text, self._keep = text, tuple(keep)
        self._has_header = self.format.kind in (".csv", ".tsv")

    @property
    def is_assembled(self) -> bool:
        """Whether the file is made by `finish`, not by the bytes of the blocks alone."""
        return self.format.kind == ".parquet" or self.format.compression != ""

    def encode(self, texts: Sequence[str | None], columns: Columns, *, row: int, first: bool) -> bytes:
        """The bytes of one block.

        Args:
            texts: the private texts.
            columns: the kept columns, and maybe others.
            row: the number of the first of these rows in the output, from 1.
            first: whether this is the first block of the file.

        Raises:
            DataError: a row cannot be written in this format; it is named.
        """
        if self.format.kind == ".parquet":
            return segment(as_table(self._text, texts, columns, self._keep, row), row)
        lists = as_lists(columns)
        rows: Iterable[tuple[Any, ...]] = zip(texts, *(self._kept(lists, name) for name in self._keep), strict=True)
        line = {".txt": self._txt, ".jsonl": self._jsonl, ".csv": self._csv, ".tsv": self._tsv}[self.format.kind]
        lines = [line(values, number) for number, values in enumerate(rows, row)]
        if first and self._has_header:
            lines.insert(0, line((self._text, *self._keep), 0))
        starts_file = first if self._has_header else row == 1
        if starts_file and lines and lines[0].startswith("\ufeff"):
            lines[0] = "\ufeff" + lines[0]  # readers drop the first one of a file
        return self._utf8(lines, row - (first and self._has_header))

    def finish(self, blocks: Path, ends: Sequence[int], out: HashedFile) -> None:
        """Make the file from the bytes of all blocks.

        Args:
            blocks: a file with the bytes that `encode` gave, one after the other.
            ends: where each block ends in it.
            out: where the file goes.
        """
        if self.format.kind == ".parquet":
            assemble(blocks, ends, out)
            return
        with blocks.open("rb") as stream:
            compress(stream, out, self.format.compression)

    @staticmethod
    def _kept(lists: Mapping[str, Sequence[Any]], name: str) -> Sequence[Any]:
        if name not in lists:
            raise DataError(f"expected a column {name!r}, which is to be kept; the documents have none")
        return lists[name]

    def _utf8(self, lines: list[str], row: int) -> bytes:
        with suppress(UnicodeEncodeError):  # such an error holds the text: none must be chained
            return "".join(lines).encode("utf-8")
        for number, line in enumerate(lines, row):
            if is_no_text(line):
                raise DataError(f"row {number} holds half a surrogate pair, which is no text")
        raise AssertionError("one of the lines is not UTF-8")

    def _txt(self, values: tuple[Any, ...], number: int) -> str:
        text = values[0] or ""
        if "\n" in text or text.endswith("\r"):
            raise DataError(f"row {number} holds a line break, which a .txt file cannot: write .jsonl or .csv instead")
        return f"{text}\n"

    def _jsonl(self, values: tuple[Any, ...], number: int) -> str:
        fields = dict(zip((self._text, *self._keep), values, strict=True))
        try:
            try:
                return _JSON.encode(fields) + "\n"
            except ValueError:  # JSON has no NaN; null is what others write
                return _JSON.encode({name: None if value != value else value for name, value in fields.items()}) + "\n"
        except (TypeError, ValueError, RecursionError):
            kept = ", ".join(map(repr, self._keep))
            raise DataError(f"row {number}: the kept {kept} cannot all be written as JSON") from None

    def _tsv(self, values: tuple[Any, ...], number: int) -> str:
        fields = ["" if value is None else str(value) for value in values]
        for name, value in zip((self._text, *self._keep), fields, strict=True):
            if "\t" in value or "\n" in value or "\r" in value:
                raise DataError(
                    f"row {number}: {name!r} holds a tab or a line break, which .tsv cannot: write .jsonl or .csv "
                    "instead"
                )
        return "\t".join(fields) + "\n"

    @staticmethod
    def _csv(values: tuple[Any, ...], _number: int) -> str:
        line = io.StringIO()
        csv.writer(line, lineterminator="\r\n").writerow(values)  # with \r among the line ends, it is quoted
        return line.getvalue().removesuffix("\r\n") + "\n"


def _spelled(value: object) -> str:
    """What JSON has no type for and everybody spells alike."""
    if isinstance(value, _TIMES):
        return value.isoformat()
    raise TypeError


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_spelled)
