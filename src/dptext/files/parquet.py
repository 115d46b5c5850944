"""Parquet through pyarrow: a column of texts out of it, kept columns of any type beside, and back.

Kept columns never become Python objects on the way from parquet to parquet, so they keep their types. Metadata of the
source's schema is dropped: it may name, or hold, what was not kept.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, DptextError, StorageError, extra
from dptext.files.blocks import (
    BLOCK_REJECTS,
    Block,
    Columns,
    Reject,
    add_reject,
    block_limits,
    is_no_text,
)
from dptext.files.column import columns_there
from dptext.files.kept_columns import rebuilt_column
from dptext.files.streams import shown

__all__ = [
    "ParquetSource",
    "as_lists",
    "as_table",
    "as_vectors",
    "assemble",
    "kept_beside",
    "parquet_rows",
    "pyarrow",
    "segment",
    "vector_blocks",
]

_ROWS_AT_A_TIME = 1024
_ROW_GROUP = 1 << 16
_BUFFER = 1 << 20
_INSTEAD = "write .jsonl, or keep another column"


def pyarrow() -> Any:
    """pyarrow, its parquet loaded.

    Raises:
        MissingExtraError: it is not installed.
    """
    extra("pyarrow.parquet", "files", "parquet")
    return extra("pyarrow", "files", "parquet")


class ParquetSource:
    """A parquet file as blocks (`dptext.files.documents.read_documents` makes it).

    Raises:
        StorageError: the file cannot be opened.
        DataError: it is not parquet, lacks a column, or its text column does not hold strings.
    """

    def __init__(self, path: Path, *, text: str, columns: tuple[str, ...], skip: bool) -> None:
        self._arrow = pyarrow()
        self._text, self._columns, self._skip = text, columns, skip
        self.name = shown(path)
        try:
            with path.open("rb") as file:
                self.size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise StorageError.of("open", path, error) from None
        self._file = _opened(path)
        self._rows = self._file.metadata.num_rows
        self._done = 0
        self._check_columns()

    @property
    def position(self) -> int:
        """Bytes read so far, by the share of the rows."""
        return self.size if self._done >= self._rows else self.size * self._done // self._rows

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _check_columns(self) -> None:
        names = self._file.schema_arrow.names
        for column in (self._text, *self._columns):
            if names.count(column) != 1:
                what = "several" if column in names else columns_there(column, names, sure=True)
                raise DataError(
                    f"{self.name}: expected a column {column!r}, the file has {what}; name the right column"
                )
        types = self._arrow.types
        of_texts = self._file.schema_arrow.field(self._text).type
        plain = of_texts.value_type if types.is_dictionary(of_texts) else of_texts
        views = getattr(types, "is_string_view", lambda _: False)
        if not (types.is_string(plain) or types.is_large_string(plain) or types.is_null(plain) or views(plain)):
            raise DataError(
                f"{self.name}: expected strings in the column {self._text!r}, its type is {of_texts}; name the right "
                "column"
            )

    def blocks(self, by_rows: int | None) -> Iterator[Block]:
        """The rows in blocks, in order."""
        most_rows, most_characters = block_limits(by_rows)
        tables: list[Any] = []
        texts: list[str | None] = []
        rejects: list[Reject] = []
        characters = 0
        for part, table, bad in self._parts():
            texts += part
            tables.append(table)
            for each in bad:
                add_reject(rejects, each)
            if len(rejects) >= BLOCK_REJECTS:
                yield Block([], table.slice(0, 0), tuple(rejects))
                rejects = []
            characters += sum(len(text) for text in part if text is not None)
            if len(tables) > 1 and not part:
                tables.pop()  # rows without texts, all left out
            if characters >= most_characters or len(texts) >= most_rows:
                yield Block(texts, self._arrow.concat_tables(tables), tuple(rejects))
                tables, texts, rejects, characters = [], [], [], 0
        if texts or rejects:
            yield Block(texts, self._arrow.concat_tables(tables), tuple(rejects))

    def _parts(self) -> Iterator[tuple[list[str | None], Any, list[Reject]]]:
        schema = self._arrow.schema([self._file.schema_arrow.field(name) for name in self._columns])
        empty = schema.remove_metadata().empty_table()
        # a name with a dot would select inside a structure of that name: such a file is read whole
        wanted = [self._text, *self._columns]
        columns = None if any("." in name for name in self._file.schema_arrow.names) else wanted
        for group in range(self._file.num_row_groups):
            last = self._done + self._file.metadata.row_group(group).num_rows
            damaged = False
            batches = self._file.iter_batches(_ROWS_AT_A_TIME, row_groups=[group], columns=columns)
            while not damaged:
                part = None
                try:
                    batch = next(batches, None)
                    part = None if batch is None else self._checked(batch.slice(0, last - self._done))
                except (self._arrow.ArrowException, OSError, UnicodeDecodeError) as error:
                    if isinstance(error, DptextError):
                        raise
                    unreadable = _unreadable(self.name, error)
                    if unreadable is not None:
                        raise unreadable from None
                    damaged = True
                if part is None:
                    break
                self._done += len(part[0]) + len(part[2])
                yield part
            if self._done < last:  # a damaged group may also end early without an error
                yield [], empty, [self._left_out(self._done + 1, last, "the row group is damaged; copy the file again")]
                self._done = last

    def _left_out(self, first: int, last: int, reason: str) -> Reject:
        if not self._skip:
            rows = f"row {first}" if first == last else f"rows {first} to {last}"
            raise DataError(f"{self.name}, {rows}: {reason}")
        return Reject(self.name, first, last, reason)

    def _checked(self, batch: Any) -> tuple[list[str | None], Any, list[Reject]]:
        first = self._done + 1
        kept = self._arrow.Table.from_batches([batch]).select(list(self._columns)).replace_schema_metadata(None)
        column = batch.column(batch.schema.get_field_index(self._text))
        with suppress(UnicodeDecodeError):  # parquet does not look at what it stores; such an error holds the text
            return column.to_pylist(), kept, []
        if self._arrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        texts: list[str | None] = []
        rejects: list[Reject] = []
        good: list[int] = []
        for place, value in enumerate(column.cast(self._arrow.large_binary()).to_pylist()):
            with suppress(UnicodeDecodeError):
                texts.append(None if value is None else value.decode("utf-8"))
                good.append(place)
                continue
            reason = f"expected UTF-8 in {self._text!r}, it is not; convert the column"
            rejects.append(self._left_out(first + place, first + place, reason))
        return texts, kept.take(self._arrow.array(good, type=self._arrow.int64())), rejects


def _opened(path: Path) -> Any:
    arrow, name = pyarrow(), shown(path)
    try:
        # no buffers ahead of the reader, so that memory does not grow with a row group
        file = arrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER)
        _ = file.schema_arrow.names
        groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        if min(groups, default=0) >= 0 and sum(groups) == file.metadata.num_rows:
            return file
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:  # such an error may hold a name
        unreadable = _unreadable(name, error)
        if unreadable is not None:
            raise unreadable from None
    raise DataError(f"{name} is not a parquet file, or was cut or damaged; copy the file again")


def _unreadable(name: str, error: BaseException) -> StorageError | None:
    """The error where the system cannot read; for a damaged file pyarrow raises an OSError without a number."""
    number = getattr(error, "errno", None)
    return None if number is None else StorageError(f"cannot read {name!r}: {os.strerror(number)}")


def parquet_rows(path: Path, only: Collection[str] | None) -> Iterator[dict[str, Any]]:
    """See `dptext.files.formats.Format.rows`; values that Python has no type for are left out."""
    arrow, file = pyarrow(), _opened(path)
    with closing(file):
        names = file.schema_arrow.names
        there = names if only is None else list(only)
        wanted = [name for name in there if names.count(name) == 1]
        # a name with a dot would select inside a structure of that name: such a file is read whole
        columns = None if any("." in name for name in names) else wanted
        with suppress(arrow.ArrowException, OSError, UnicodeDecodeError):  # what is damaged ends the look
            for batch in file.iter_batches(_ROWS_AT_A_TIME, columns=columns):
                table = arrow.Table.from_batches([batch])
                lists: dict[str, Sequence[Any]] = {}
                for name in wanted:
                    with suppress(DataError):
                        lists |= as_lists(table.select([name]))
                for at in range(table.num_rows):
                    yield {name: values[at] for name, values in lists.items()}


def as_lists(columns: Columns) -> Mapping[str, Sequence[Any]]:
    """Columns, as their reader has them, as Python lists by name.

    Raises:
        DataError: values that Python has no type for; the column is named.
    """
    if isinstance(columns, Mapping):
        return columns
    arrow = pyarrow()
    lists: dict[str, list[Any]] = {}
    for name in columns.column_names:
        column = columns.column(name)
        if arrow.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = column.cast(arrow.string())  # Python's own times end at microseconds
        values = None
        with suppress(UnicodeDecodeError, ValueError, OverflowError, arrow.ArrowException):
            values = column.to_pylist()
        if values is None:
            raise DataError(
                f"the kept {name!r} holds values that cannot be read (text that is not UTF-8, or times out of range): "
                "convert the column, or do not keep it"
            )
        lists[name] = values
    return lists


def as_table(name: str, texts: Sequence[str | None], columns: Columns, keep: Sequence[str], row: int) -> Any:
    """A pyarrow table of texts, under a name, and of those ``columns`` that are kept; errors count rows from ``row``.

    Raises:
        DataError: a text that is none, a kept column that is missing or whose values have no common type.
    """
    arrow = pyarrow()
    for number, text in enumerate(texts, row):
        if text is not None and not text.isascii() and is_no_text(text):
            raise DataError(f"row {number} holds half a surrogate pair, which is no text")
    small = sum(0 if text is None else 4 * len(text) for text in texts) < 1 << 31
    array = arrow.array(texts, type=arrow.string() if small else arrow.large_string())
    return kept_beside(name, array, columns, keep, row, instead=_INSTEAD)


def kept_beside(name: str, array: Any, columns: Columns, keep: Sequence[str], row: int, *, instead: str) -> Any:
    """As `as_table`, of any array; ``instead`` says what to do about a kept column that cannot be written.

    Raises:
        DataError: a kept column that is missing or whose values have no common type.
    """
    arrow = pyarrow()
    where = f"rows {row} to {row + len(array) - 1}"
    values = [array]
    names = columns if isinstance(columns, Mapping) else columns.column_names
    for column in keep:
        if column not in names:
            raise DataError(f"expected a column {column!r}, which is to be kept; the documents have none")
        if not isinstance(columns, Mapping):
            # block by block: the entries of a dictionary have no order over all of them
            values.append(rebuilt_column(columns.column(column), column, ordered=False))
            continue
        value = None
        what = f"holds values of several types, which parquet cannot: {instead}"
        try:
            value = arrow.array(columns[column])
        except (arrow.ArrowException, OverflowError):
            pass
        except UnicodeEncodeError:
            what = "holds half a surrogate pair, which is no text"
        if value is None:
            raise DataError(f"{where}: the kept {column!r} {what}")
        values.append(value)
    return arrow.table(values, names=[name, *keep])


def segment(table: Any, row: int, *, instead: str = _INSTEAD) -> bytes:
    """A table as bytes that stand for themselves, to be assembled later; ``row`` is its first, for errors.

    Raises:
        DataError: parquet has no type for the values of a column.
    """
    content = _as_bytes(table)
    if content is not None:
        return content
    wrong = next((name for name in table.column_names if _as_bytes(table.select([name])) is None), None)
    raise DataError(
        f"rows {row} to {row + table.num_rows - 1}: parquet has no type for the values of the kept {wrong!r}: {instead}"
    )


def _as_bytes(table: Any) -> bytes | None:
    arrow = pyarrow()
    sink = arrow.BufferOutputStream()
    with suppress(arrow.ArrowException):
        arrow.parquet.write_table(table, sink, compression="zstd", store_schema=True)
        content: bytes = sink.getvalue().to_pybytes()
        return content
    return None


def assemble(spool: Path, ends: Sequence[int], out: Any, *, rows: int | None = None, instead: str = _INSTEAD) -> None:
    """One parquet file out of the segments that lie one after the other in ``spool``, in constant memory.

    ``ends`` says where each of them ends, ``rows`` how many a row group has (fewer where rows are wide).

    Raises:
        DataError: the types of a kept column differ between segments and have no common type.
    """
    arrow = pyarrow()
    size = rows or _ROW_GROUP
    starts = [0, *ends[:-1]]

    def tables() -> Iterator[Any]:
        with spool.open("rb") as stream:
            for start, end in zip(starts, ends, strict=True):
                stream.seek(start)
                yield arrow.BufferReader(stream.read(end - start))

    done = False
    with suppress(arrow.ArrowException):
        schemas = [arrow.parquet.read_schema(source).remove_metadata() for source in tables()]
        schema = arrow.unify_schemas(schemas, promote_options="permissive")
        with arrow.parquet.ParquetWriter(out, schema, compression="zstd") as writer:
            waiting = schema.empty_table()
            for source in tables():
                table = arrow.parquet.read_table(source).replace_schema_metadata(None)
                table = table if table.schema.equals(schema) else table.cast(schema)
                waiting = arrow.concat_tables([waiting, table])
                while waiting.num_rows >= size:  # of a fixed size: where a block ended is nobody's business
                    writer.write_table(waiting.slice(0, size).combine_chunks())
                    waiting = waiting.slice(size)
            if waiting.num_rows:
                writer.write_table(waiting.combine_chunks())
        done = True
    if not done:
        raise DataError(f"a kept column holds values of several types, which parquet cannot: {instead}")


def as_vectors(
    name: str, vectors: npt.NDArray[np.float32], columns: Columns, keep: Sequence[str], row: int, *, instead: str
) -> Any:
    """As `kept_beside`, of vectors (n, k) as lists of a fixed size.

    Raises:
        DataError: a kept column that is missing or whose values have no common type.
    """
    arrow = pyarrow()
    numbers = arrow.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
    array = arrow.FixedSizeListArray.from_arrays(numbers, vectors.shape[1])
    return kept_beside(name, array, columns, keep, row, instead=instead)


def vector_blocks(path: Path, name: str) -> Iterator[npt.NDArray[np.float32]]:
    """A column of lists of one length as (n, k) arrays, block by block; of a folder, that of its parts.

    Raises:
        StorageError: the file cannot be opened.
        DataError: it is not parquet, was damaged, or holds no such column.
    """
    arrow = pyarrow()
    if path.is_dir():
        for part in sorted(each for each in path.glob("*.parquet") if not each.name.startswith(("_", "."))):
            yield from vector_blocks(part, name)
        return
    try:
        with path.open("rb") as opened:
            os.fstat(opened.fileno())
    except OSError as error:
        raise StorageError.of("open", path, error) from None
    problem = f"{shown(path)}: expected a column {name!r} of vectors of one length; is it one that dptext encode wrote?"
    with suppress(arrow.ArrowException, OSError), arrow.parquet.ParquetFile(path) as file:
        if _holds_vectors(arrow, file.schema_arrow, name):
            several, problem = problem, f"{shown(path)} was cut or damaged, or a vector is missing; copy the file again"
            width = None
            for batch in file.iter_batches(_ROWS_AT_A_TIME, columns=[name]):
                column = batch.column(0)
                if column.null_count:
                    break
                vectors = _as_matrix(arrow, column)
                if vectors is None or vectors.shape[1] != (width or vectors.shape[1]):
                    problem = several
                    break
                width = vectors.shape[1]
                yield vectors
            else:
                return
    raise DataError(problem)


def _holds_vectors(arrow: Any, schema: Any, name: str) -> bool:
    """Whether there is one such column, of lists of a fixed size (as dptext writes) or not (as Spark does)."""
    if schema.names.count(name) != 1:
        return False
    kind = schema.field(name).type
    is_list = arrow.types.is_fixed_size_list(kind) or arrow.types.is_list(kind)
    return is_list and bool(arrow.types.is_floating(kind.value_type))


def _as_matrix(arrow: Any, column: Any) -> npt.NDArray[np.float32] | None:
    """The vectors of a batch; None where one has another length than the first."""
    numbers = np.asarray(column.flatten().to_numpy(zero_copy_only=False), dtype=np.float32)
    if arrow.types.is_fixed_size_list(column.type):
        return numbers.reshape(len(column), column.type.list_size)
    lengths = np.diff(column.offsets.to_numpy())
    return None if (lengths != lengths[:1]).any() else numbers.reshape(len(column), int(lengths[0]))
