"""A column of vectors in parquet: lists of a fixed size, which other programs read as such, and back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, StorageError
from dptext.files.blocks import Columns
from dptext.files.formats import shown
from dptext.files.parquet import kept_beside, pyarrow

__all__ = ["as_vectors", "vector_blocks"]

_ROWS = 1024


def as_vectors(
    name: str, vectors: npt.NDArray[np.float32], columns: Columns, keep: Sequence[str], row: int, *, instead: str
) -> Any:
    """A pyarrow table of vectors, as lists of a fixed size, and kept columns.

    Args:
        name: of the column of vectors.
        vectors: (n, k).
        columns, keep, row: as in `as_table`.
        instead: what to do about a kept column that cannot be written, for errors.

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
            for batch in file.iter_batches(_ROWS, columns=[name]):
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
