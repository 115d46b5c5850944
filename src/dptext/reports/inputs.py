"""Rows of the files that a report or an attack reads: texts or vectors, with the columns that are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, StorageError
from dptext.io.batches import describe_columns
from dptext.io.documents import read_documents
from dptext.io.formats import file_format
from dptext.privacy.randomness import RandomBits
from dptext.representations.files import VECTOR

Chosen = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one file."""

    chosen: Chosen
    texts: list[str | None] = field(repr=False)
    vectors: npt.NDArray[np.float32] | None = field(default=None, repr=False)
    columns: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    people: list[str] | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.chosen)

    @property
    def features(self) -> Any:
        """What a model sees: vectors, or texts."""
        return self.texts if self.vectors is None else self.vectors


def _holds_vectors(path: Path, vector: str | None) -> bool:
    return vector is not None and file_format(path).kind == ".parquet" and vector in _schema(path)


def columns_of(path: Path, *, text: str, wanted: Sequence[str]) -> list[str]:
    """Those of the wanted columns that the file has in its first row."""
    announced = file_format(path)
    if announced.kind == ".parquet":
        names = _schema(path)
        return [each for each in wanted if each in names]
    found = []
    for each in wanted if announced.format.has_columns else ():
        with closing(read_documents(path, text=text, keep=() if each == text else (each,))) as reader:
            try:
                next(reader, None)
            except DataError:
                continue  # it lacks the column; what else is wrong with the row shows when it is read
            found.append(each)
    return found


def count_rows(path: Path, *, text: str) -> int:
    """How many rows a file has."""
    if _holds_vectors(path, VECTOR):
        from dptext.io.parquet import vector_batches

        return sum(len(block) for block in vector_batches(path, VECTOR))
    with closing(read_documents(path, text=text)) as reader:
        return sum(len(block.texts) for block in reader.batches())


def chosen_rows(count: int, most: int, bits: RandomBits) -> Chosen:
    """(n,) all rows, or as many as asked for at random, ascending."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.argsort(bits.integers(count), kind="stable")[:most])


def read_rows(
    path: Path,
    chosen: Chosen | None = None,
    *,
    text: str,
    columns: Sequence[str] = (),
    user: str | None = None,
    vector: str | None = VECTOR,
) -> Rows:
    """The chosen rows of a file, or all of it."""
    wanted = list(dict.fromkeys((*columns, *([] if user is None else [user]))))
    read = _read_vectors if _holds_vectors(path, vector) else _read_texts
    rows = read(path, chosen, str(vector) if read is _read_vectors else text, wanted)
    for name, column in rows.columns.items():
        for row, value in zip(rows.chosen, column, strict=True):
            if value is None or value != value or isinstance(value, list | dict):
                raise DataError(
                    f"{path.name}, row {row + 1}: expected a value in the column {name!r}, the row has none: leave "
                    "such rows out before the release, or do not name the column"
                )
    return rows if user is None else replace(rows, people=[str(each) for each in rows.columns[user]])


def _read_texts(path: Path, chosen: Chosen | None, text: str, columns: Sequence[str]) -> Rows:
    wanted = None if chosen is None else set(chosen.tolist())
    last = None if chosen is None else int(chosen.max(initial=-1))
    numbers: list[int] = []
    texts: list[str | None] = []
    values: dict[str, list[Any]] = {name: [] for name in columns}
    with closing(read_documents(path, text=text, keep=tuple(columns))) as reader:
        for row, document in enumerate(reader):
            if last is not None and row > last:
                break
            if wanted is None or row in wanted:
                numbers.append(row)
                texts.append(document.text)
                for name in columns:
                    values[name].append((document.attributes or {})[name])
    return Rows(np.asarray(numbers, dtype=np.int64), texts, None, values)


def _read_vectors(path: Path, chosen: Chosen | None, vector: str, columns: Sequence[str]) -> Rows:
    from pyarrow.parquet import ParquetFile

    from dptext.io.parquet import vector_batches

    blocks, start = [], 0
    for block in vector_batches(path, vector):
        here = slice(None) if chosen is None else chosen[(chosen >= start) & (chosen < start + len(block))] - start
        blocks.append(block[here])
        start += len(block)
    kept = np.arange(start) if chosen is None else chosen
    names = _schema(path) if columns else []
    for name in columns:
        if name not in names:
            there = describe_columns(name, names, sure=True)
            raise DataError(f"{path.name}: expected a column {name!r}, the file has {there}; name the right column")
    table = ParquetFile(path).read(columns=list(columns)) if columns else None
    values = {name: [] if table is None else table.column(name).take(kept).to_pylist() for name in columns}
    return Rows(kept, [], np.concatenate(blocks) if blocks else np.empty((0, 0), dtype=np.float32), values)


def _schema(path: Path) -> list[str]:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    damaged = DataError(f"{path.name} is not a parquet file, or was cut or damaged; copy the file again")
    try:
        with path.open("rb"):
            pass
        names: list[str] = read_schema(path).names
        return names
    except ArrowException:  # some are an OSError as well
        raise damaged from None
    except OSError as error:
        raise StorageError.of("open", path, error) from None
