"""Parquet through pyarrow: texts in batches, kept columns of any type rebuilt from their values, and back.

Nothing that runs on a device imports this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dptext.errors import DataError, DptextError, StorageError
from dptext.io.batches import (
    Batch,
    Columns,
    as_lists,
    batch_limits,
    describe_columns,
    display_name,
    has_lone_surrogate,
    open_stored,
    unknown_type,
)

Result = TypeVar("Result")
_ROWS_AT_A_TIME = 1024
_ROW_GROUP = 1 << 16
_BUFFER = 1 << 20
_REMEDY = "convert the column, or do not keep it"
_MIXED = f"holds values of several types, which parquet cannot: {_REMEDY}"


# -- in -------------------------------------------------------------------------------------------------------


class ParquetSource:
    """A parquet file in batches."""

    def __init__(self, path: Path, text: str, columns: tuple[str, ...]) -> None:
        self._text, self._columns = text, columns
        self.name = display_name(path)
        self._file = _open(path)
        self.size = path.stat().st_size
        self._rows, self._done = self._file.metadata.num_rows, 0
        names = self._file.schema_arrow.names
        for column in (text, *columns):
            if names.count(column) != 1:
                problem = "several" if column in names else describe_columns(column, names, sure=True)
                raise DataError(
                    f"{self.name}: expected a column {column!r}, the file has {problem}. Name another column"
                )
        kind = self._file.schema_arrow.field(text).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
        if not any(test(plain) for test in tests):
            raise DataError(
                f"{self.name}: the column {text!r} must contain strings, its type is {kind}. Name another column"
            )

    @property
    def position(self) -> int:
        return self.size if self._done >= self._rows else self.size * self._done // self._rows

    def close(self) -> None:
        self._file.close()

    def batches(self) -> Iterator[Batch]:
        max_rows, max_characters = batch_limits()
        texts: list[str | None] = []
        tables: list[Any] = []
        characters = 0
        for part, table in self._parts():
            texts += part
            tables.append(table)
            characters += sum(len(text) for text in part if text is not None)
            if characters >= max_characters or len(texts) >= max_rows:
                yield Batch(texts, pa.concat_tables(tables))
                texts, tables, characters = [], [], 0
        if texts:
            yield Batch(texts, pa.concat_tables(tables))

    def _parts(self) -> Iterator[tuple[list[str | None], Any]]:
        """Texts and kept columns of consecutive rows."""
        columns = _top_level(self._file, [self._text, *self._columns])
        for group in range(self._file.num_row_groups):
            last = self._done + self._file.metadata.row_group(group).num_rows
            batches = self._file.iter_batches(_ROWS_AT_A_TIME, row_groups=[group], columns=columns)
            damage = f"{self.name}, rows {self._done + 1} to {last}: the row group is damaged; copy the file again"
            while self._done < last:
                batch = _guarded(partial(next, batches, None), self.name, damage)
                if batch is None:
                    raise DataError(damage)
                batch = batch.slice(0, last - self._done)
                texts = self._strings(batch.column(batch.schema.get_field_index(self._text)))
                self._done += len(texts)
                yield texts, pa.Table.from_batches([batch]).select(list(self._columns)).replace_schema_metadata(None)

    def _strings(self, column: Any) -> list[str | None]:
        with suppress(UnicodeDecodeError):  # parquet does not check; such an error holds the text
            texts: list[str | None] = column.to_pylist()
            return texts
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        values = enumerate(plain.cast(pa.large_binary()).to_pylist(), self._done + 1)
        row = next(row for row, value in values if value and value.decode("utf-8", "ignore").encode() != value)
        raise DataError(f"{self.name}, row {row}: {self._text!r} is not valid UTF-8. Convert the column")


def _guarded(read: Callable[[], Result], name: str, damage: str) -> Result:
    """Read through pyarrow, whose errors may quote values; an OSError without a number is damage of the file."""
    try:
        return read()
    except DptextError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        number = getattr(error, "errno", None)
    if number is not None:
        raise StorageError(f"cannot read {name!r}: {os.strerror(number)}")
    raise DataError(damage)


def _open(path: Path) -> Any:
    open_stored(path).close()

    def opened() -> Any:
        # no buffers ahead of the reader, so that memory does not grow with a row group
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER)
        _ = file.schema_arrow.names
        groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        if min(groups, default=0) < 0 or sum(groups) != file.metadata.num_rows:
            raise pa.ArrowInvalid
        return file

    name = display_name(path)
    return _guarded(opened, name, f"{name} is not a parquet file, or was cut or damaged; copy the file again")


def _top_level(file: Any, columns: list[str]) -> list[str] | None:
    """The columns to read; None, all, where a name with a dot would select inside a structure."""
    return None if any("." in name for name in file.schema_arrow.names) else columns


def parquet_rows(path: Path, only: Collection[str] | None) -> Iterator[dict[str, Any]]:
    """Rows with all columns, or the columns in ``only``; values that Python has no type for are left out."""
    with closing(_open(path)) as file:
        names = file.schema_arrow.names
        present = [name for name in (names if only is None else only) if names.count(name) == 1]
        with suppress(pa.ArrowException, OSError, UnicodeDecodeError):
            for batch in file.iter_batches(_ROWS_AT_A_TIME, columns=_top_level(file, present)):
                table = pa.Table.from_batches([batch])
                lists: dict[str, Sequence[Any]] = {}
                for name in present:
                    with suppress(DataError):
                        lists |= as_lists(table.select([name]))
                for row in range(table.num_rows):
                    yield {name: values[row] for name, values in lists.items()}


def vector_batches(path: Path, name: str) -> Iterator[npt.NDArray[np.float32]]:
    """Yield a column of vectors as (n, k) arrays, from a file or from the parts of a folder."""
    if path.is_dir():
        for part in sorted(file for file in path.glob("*.parquet") if not file.name.startswith(("_", "."))):
            yield from vector_batches(part, name)
        return
    visible, width = display_name(path), None
    problem = f"{visible}: expected a column {name!r} of vectors of one length; is it one that dptext encode wrote?"
    damage = f"{visible} was cut or damaged, or a vector is missing; copy the file again"
    with closing(_open(path)) as file:
        # lists of a fixed size, as dptext writes them, or not, as Spark does
        kinds = [field.type for field in file.schema_arrow if field.name == name]
        is_list = len(kinds) == 1 and isinstance(kinds[0], pa.FixedSizeListType | pa.ListType)
        if not is_list or not pa.types.is_floating(kinds[0].value_type):
            raise DataError(problem)
        batches = file.iter_batches(_ROWS_AT_A_TIME, columns=[name])
        while (batch := _guarded(partial(next, batches, None), visible, damage)) is not None:
            column = batch.column(0)
            if column.null_count:
                raise DataError(damage)
            numbers = np.asarray(column.flatten().to_numpy(zero_copy_only=False), dtype=np.float32)
            if pa.types.is_fixed_size_list(column.type):
                lengths = np.full(len(column), column.type.list_size)
            else:
                lengths = np.diff(column.offsets.to_numpy())
            width = int(lengths[0]) if width is None else width
            if (lengths != width).any():
                raise DataError(problem)
            yield numbers.reshape(len(column), width)


# -- kept columns ---------------------------------------------------------------------------------------------


def rebuilt_column(column: Any, name: str, *, ordered: bool = True) -> Any:
    """A column made anew from its values: no metadata, unused dictionary entries, hidden values or shared buffers."""
    with suppress(pa.ArrowException, ValueError, TypeError, OverflowError):  # their words may quote a value
        whole = pa.table([column], names=[""]).combine_chunks().column(0)
        kind = _values_type(whole.type, ordered)
        return pa.chunked_array([_rebuilt(chunk, kind) for chunk in whole.chunks], type=kind)
    raise unknown_type(name, str(column.type).partition("<")[0].partition("[")[0])


def _values_type(kind: Any, ordered: bool = True, *, decoded: bool = False) -> Any:
    """The type without metadata and extension types; ``decoded``: with plain values in place of dictionaries."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _values_type(kind.storage_type, ordered, decoded=decoded)

    def inner(name: str, field: Any) -> Any:
        return pa.field(name, _values_type(field.type, ordered, decoded=decoded))

    if types.is_dictionary(kind):
        if types.is_nested(kind.value_type) or types.is_dictionary(kind.value_type):
            raise TypeError
        return kind.value_type if decoded else pa.dictionary(kind.index_type, kind.value_type, kind.ordered and ordered)
    if types.is_struct(kind):
        return pa.struct([inner(field.name, field) for field in kind])
    if types.is_map(kind):
        key = inner("key", kind.key_field).type
        return pa.map_(key, inner("value", kind.item_field), keys_sorted=kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(inner("item", kind.value_field), kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        make = pa.large_list if types.is_large_list(kind) else pa.list_
        return make(inner("item", kind.value_field))
    if types.is_nested(kind) or types.is_run_end_encoded(kind):
        raise TypeError
    return kind


def _rebuilt(array: Any, kind: Any) -> Any:
    """An array of this type (see `_values_type`) from the values of another."""
    while isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    types = pa.types
    if types.is_dictionary(kind):
        values = _copied(array.dictionary_decode())
        entries = values.unique().drop_null()
        if kind.ordered:
            codes = array.indices.unique().drop_null().sort()
            entries = _copied(array.dictionary.take(codes)).unique().drop_null()
        codes = pc.index_in(values, value_set=entries).cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(codes, entries, ordered=kind.ordered)
    if types.is_nested(kind):
        # not in one step: beneath a null struct, pyarrow makes codes without an entry
        return pa.array(array.to_pylist(), type=_values_type(kind, decoded=True)).cast(kind)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        plain = pa.large_string() if types.is_string_view(kind) else pa.large_binary()
        return _copied(array.cast(plain)).cast(kind)
    return _copied(array)


def _copied(array: Any) -> Any:
    """A flat array in buffers of its own, without what lies beneath its nulls."""
    if array.null_count == len(array):
        return pa.nulls(len(array), array.type)
    valid = np.asarray(array.is_valid())
    places = pa.array(np.cumsum(valid) - 1, mask=~valid)
    return array.drop_null().take(places)


# -- out ------------------------------------------------------------------------------------------------------


def as_table(name: str, texts: Sequence[str | None], columns: Columns, keep: Sequence[str], row: int) -> Any:
    """A pyarrow table of texts and the kept columns; errors count rows from ``row``."""
    for number, text in enumerate(texts, row):
        if text is not None and has_lone_surrogate(text):
            raise DataError(f"row {number} contains a lone surrogate, which UTF-8 cannot encode")
    small = sum(0 if text is None else 4 * len(text) for text in texts) < 1 << 31
    return _add_kept(name, pa.array(texts, type=pa.string() if small else pa.large_string()), columns, keep, row)


def as_vectors(name: str, vectors: npt.NDArray[np.float32], columns: Columns, keep: Sequence[str], row: int) -> Any:
    """A pyarrow table of vectors (n, k), as lists of a fixed size, and the kept columns; see `as_table`."""
    numbers = pa.array(np.ascontiguousarray(vectors, dtype=np.float32).ravel())
    return _add_kept(name, pa.FixedSizeListArray.from_arrays(numbers, vectors.shape[1]), columns, keep, row)


def _add_kept(name: str, array: Any, columns: Columns, keep: Sequence[str], row: int) -> Any:
    values = [array]
    names = columns if isinstance(columns, Mapping) else columns.column_names
    for column in keep:
        if column not in names:
            raise DataError(f"the documents have no column {column!r} to keep")
        if not isinstance(columns, Mapping):
            values.append(rebuilt_column(columns.column(column), column, ordered=False))
            continue
        problem = _MIXED
        try:
            values.append(pa.array(columns[column]))
            continue
        except (pa.ArrowException, OverflowError):
            pass
        except UnicodeEncodeError:
            problem = "holds half a surrogate pair, which is no text"
        raise DataError(f"rows {row} to {row + len(array) - 1}: the kept {column!r} {problem}")
    return pa.table(values, names=[name, *keep])


def segment(table: Any, row: int) -> bytes:
    """A table as bytes, for `assemble`; ``row`` is its first, for errors."""
    content = _as_bytes(table)
    if content is not None:
        return content
    wrong = next((name for name in table.column_names if _as_bytes(table.select([name])) is None), None)
    rows = f"rows {row} to {row + table.num_rows - 1}"
    raise DataError(f"{rows}: parquet has no type for the values of the kept {wrong!r}: {_REMEDY}")


def _as_bytes(table: Any) -> bytes | None:
    sink = pa.BufferOutputStream()
    with suppress(pa.ArrowException):
        pq.write_table(table, sink, compression="zstd", store_schema=True)
        content: bytes = sink.getvalue().to_pybytes()
        return content
    return None


def assemble(spool: Path, ends: Sequence[int], out: Any, *, rows: int = _ROW_GROUP) -> None:
    """Write one parquet file from the segments in ``spool`` that end at ``ends``, ``rows`` per row group."""

    def segments() -> Iterator[Any]:
        with spool.open("rb") as stream:
            for start, end in zip([0, *ends[:-1]], ends, strict=True):
                stream.seek(start)
                yield pa.BufferReader(stream.read(end - start))

    with suppress(pa.ArrowException):
        schemas = [pq.read_schema(source).remove_metadata() for source in segments()]
        schema = pa.unify_schemas(schemas, promote_options="permissive")
        with pq.ParquetWriter(out, schema, compression="zstd") as writer:
            waiting = schema.empty_table()
            for source in segments():
                # read_table would import pyarrow.dataset, and pandas with it
                table = pq.ParquetFile(source).read().replace_schema_metadata(None)
                waiting = pa.concat_tables([waiting, table if table.schema.equals(schema) else table.cast(schema)])
                while waiting.num_rows >= rows:
                    writer.write_table(waiting.slice(0, rows).combine_chunks())
                    waiting = waiting.slice(rows)
            if waiting.num_rows:
                writer.write_table(waiting.combine_chunks())
        return
    raise DataError(f"a kept column {_MIXED}")
