"""Some rows of a release, in order, chosen by lot where there are many, with the columns that a report asks for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, StorageError
from dptext.files.documents import read_documents
from dptext.files.formats import extra, file_format
from dptext.files.parquet import pyarrow
from dptext.files.parquet_vectors import vector_blocks
from dptext.privacy.randomness import RandomBits
from dptext.representations.files import VECTOR

__all__ = ["Rows", "chosen_rows", "columns_of", "count_rows", "holds_vectors", "read_rows"]

Chosen = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one file.

    Attributes:
        chosen: (n,) which rows of the file, from 0, ascending.
        texts: (n,) their texts; None where the file holds vectors.
        vectors: (n, k) their vectors; None where it holds texts.
        columns: by name, (n,) what stands in them.
    """

    chosen: Chosen
    texts: list[str | None] | None = field(repr=False)
    vectors: npt.NDArray[np.float32] | None = field(repr=False)
    columns: dict[str, list[Any]] = field(repr=False)

    @property
    def features(self) -> Any:
        """What a model sees: vectors, or texts."""
        return self.texts if self.vectors is None else self.vectors


def holds_vectors(path: Path) -> bool:
    """Whether a file is a parquet file with a column of vectors.

    Raises:
        StorageError, DataError: it cannot be opened, or is no parquet file.
    """
    return file_format(path).kind == ".parquet" and VECTOR in _schema(path)


def columns_of(path: Path, *, text: str, wanted: Sequence[str]) -> list[str]:
    """Those of the wanted columns that the file has in its first row."""
    kind = file_format(path).kind
    if kind == ".parquet":
        names = _schema(path)
        return [each for each in wanted if each in names]
    found = []
    for each in wanted if kind != ".txt" else ():
        with closing(read_documents(path, text=text, keep=() if each == text else (each,))) as reader:
            try:
                next(reader, None)
            except DataError:
                continue  # it lacks the column; what else is wrong with the row shows when it is read
            found.append(each)
    return found


def count_rows(path: Path, *, text: str) -> int:
    """How many rows a file has.

    Raises:
        StorageError, DataError: it cannot be read.
    """
    if holds_vectors(path):
        return sum(len(block) for block in vector_blocks(path, VECTOR))
    with closing(read_documents(path, text=text)) as reader:
        return sum(len(block.texts) for block in reader.blocks())


def chosen_rows(count: int, most: int, bits: RandomBits) -> Chosen:
    """(n,) all rows, or as many as asked for by lot, ascending."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.argsort(bits.integers(count), kind="stable")[:most])


def read_rows(path: Path, chosen: Chosen, *, text: str, columns: Sequence[str]) -> Rows:
    """The chosen rows of a file.

    Raises:
        StorageError: it cannot be read.
        DataError: a row is broken, or has no value in one of the columns; it is named.
    """
    if holds_vectors(path):
        return _read_vectors(path, chosen, columns)
    texts: list[str | None] = []
    values: dict[str, list[Any]] = {name: [] for name in columns}
    wanted = np.zeros(int(chosen[-1]) + 1 if len(chosen) else 0, dtype=bool)
    wanted[chosen] = True
    with closing(read_documents(path, text=text, keep=tuple(columns))) as reader:
        for row, document in enumerate(reader):
            if row >= len(wanted):
                break
            if wanted[row]:
                texts.append(document.text)
                for name in columns:
                    values[name].append((document.attributes or {})[name])
    _check_values(path, chosen, values)
    return Rows(chosen, texts, None, values)


def _read_vectors(path: Path, chosen: Chosen, columns: Sequence[str]) -> Rows:
    blocks, start = [], 0
    for block in vector_blocks(path, VECTOR):
        here = chosen[(chosen >= start) & (chosen < start + len(block))] - start
        blocks.append(block[here])
        start += len(block)
    parquet = extra("pyarrow.parquet", "files", path.name)
    table = parquet.read_table(path, columns=list(columns)).take(chosen) if columns else None
    values = {name: [] if table is None else table.column(name).to_pylist() for name in columns}
    _check_values(path, chosen, values)
    return Rows(chosen, None, np.concatenate(blocks) if blocks else np.empty((0, 0), dtype=np.float32), values)


def _check_values(path: Path, chosen: Chosen, values: dict[str, list[Any]]) -> None:
    for name, column in values.items():
        for row, value in zip(chosen, column, strict=True):
            if value is None or value != value or isinstance(value, list | dict):
                raise DataError(
                    f"{path.name}, row {row + 1}: expected one value in the column {name!r}, the row has none: leave "
                    "such rows out before the release, or leave the column out of the report"
                )


def _schema(path: Path) -> list[str]:
    arrow = pyarrow()
    try:
        with path.open("rb"):
            pass
        names: list[str] = arrow.parquet.read_schema(path).names
        return names
    except OSError as error:
        if not isinstance(error, arrow.ArrowException):
            raise StorageError.of("open", path, error) from None
        raise DataError(f"{path.name} is not a parquet file, or was cut or damaged; copy the file again") from None
    except arrow.ArrowException:
        raise DataError(f"{path.name} is not a parquet file, or was cut or damaged; copy the file again") from None
