"""Parquet through pyarrow: read rows of any file; write texts or vectors with kept columns.

Code that runs on a device does not import this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dptext.errors import DataError
from dptext.io.batches import Columns, InputFile, check_header

_ROWS_AT_A_TIME = 1024
_ROW_GROUP = 1 << 16
_BUFFER = 1 << 20
_DAMAGE = (" is not a parquet file, or is truncated, damaged or not UTF-8", pa.ArrowException, ValueError)


# -- in -------------------------------------------------------------------------------------------------------


def parquet_rows(file: InputFile, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file with these columns, or with all columns if none is named."""
    return file.guarded(_rows(file, columns), *_DAMAGE)


def _rows(file: InputFile, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    source = _opened(file.file)
    names = source.schema_arrow.names
    check_header(names, columns, file.name, sure=True)
    # names with dots would select fields of structures
    selected = list(columns) if columns and not any("." in name for name in names) else None
    count = 0
    for batch in source.iter_batches(_ROWS_AT_A_TIME, columns=selected):
        count += batch.num_rows
        for values in zip(*map(_values, batch.columns), strict=True):
            yield dict(zip(batch.schema.names, values, strict=True))
    if count != source.metadata.num_rows:
        raise pa.ArrowInvalid


def _opened(file: Any) -> Any:
    # without read-ahead, memory does not grow with the size of a row group
    return pq.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER)


def _values(column: Any) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":  # Python times have a resolution of microseconds
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    values: list[Any] = column.to_pylist()
    return values


def vector_batches(path: Path, name: str) -> Iterator[npt.NDArray[np.float32]]:
    """Yield a column of vectors as (n, k) arrays, from a file or the parts of a folder."""
    parts = [path]
    if path.is_dir():
        parts = sorted(file for file in path.glob("*.parquet") if not file.name.startswith(("_", ".")))
    for part in parts:
        with closing(InputFile(part)) as file:
            yield from file.guarded(_vectors(file, name), *_DAMAGE)


def _vectors(file: InputFile, name: str) -> Iterator[npt.NDArray[np.float32]]:
    wrong = DataError(f"{file.name}: expected a column {name!r} of vectors of one length, as dptext writes it")
    source, width = _opened(file.file), None
    # fixed-size lists (written by dptext) or lists (written by Spark)
    kinds = [field.type for field in source.schema_arrow if field.name == name]
    is_list = len(kinds) == 1 and isinstance(kinds[0], pa.FixedSizeListType | pa.ListType)
    if not is_list or not pa.types.is_floating(kinds[0].value_type):
        raise wrong
    for batch in source.iter_batches(_ROWS_AT_A_TIME, columns=[name]):
        column = batch.column(0)
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        width = lengths[0] if width is None else width
        if column.null_count or (lengths != width).any():
            raise wrong
        numbers = np.asarray(column.flatten().to_numpy(zero_copy_only=False), dtype=np.float32)
        yield numbers.reshape(len(column), int(width))


# -- out ------------------------------------------------------------------------------------------------------


def segment(
    name: str, values: Sequence[str | None] | npt.NDArray[np.float32], columns: Columns, keep: Sequence[str], row: int
) -> bytes:
    """Return texts or (n, k) vectors and kept columns as bytes for `assemble`; ``row`` is the first, for errors."""
    with suppress(pa.ArrowException, OverflowError, UnicodeEncodeError):  # errors may quote a value
        if isinstance(values, np.ndarray):
            numbers = pa.array(np.ascontiguousarray(values, dtype=np.float32).ravel())
            array = pa.FixedSizeListArray.from_arrays(numbers, values.shape[1])
        else:
            array = pa.array(values, type=pa.string())
        table = pa.table([array, *(pa.array(columns[column]) for column in keep)], names=[name, *keep])
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        content: bytes = sink.getvalue().to_pybytes()
        return content
    kept = ", ".join(map(repr, keep))
    raise DataError(
        f"rows {row} to {row + len(values) - 1}: the kept columns {kept} cannot be written as parquet. "
        "Convert or drop them"
    )


def assemble(spool: Path, ends: Sequence[int], out: Any, *, rows: int = _ROW_GROUP) -> None:
    """Write one parquet file from the segments in ``spool`` that end at ``ends``, ``rows`` per row group."""

    def segments() -> Iterator[Any]:
        with spool.open("rb") as stream:
            for start, end in zip([0, *ends[:-1]], ends, strict=True):
                stream.seek(start)
                yield pq.ParquetFile(pa.BufferReader(stream.read(end - start)))

    with suppress(pa.ArrowException):
        schemas = [source.schema_arrow.remove_metadata() for source in segments()]
        schema = pa.unify_schemas(schemas, promote_options="permissive")
        with pq.ParquetWriter(out, schema, compression="zstd") as writer:
            waiting = schema.empty_table()
            for source in segments():
                waiting = pa.concat_tables([waiting, source.read().replace_schema_metadata(None).cast(schema)])
                while waiting.num_rows >= rows:
                    writer.write_table(waiting.slice(0, rows).combine_chunks())
                    waiting = waiting.slice(rows)
            if waiting.num_rows:
                writer.write_table(waiting.combine_chunks())
        return
    raise DataError("a kept column has values of several types, which parquet forbids: convert it, or do not keep it")
