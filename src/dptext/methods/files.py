"""Files and folders of reports, audits and attacks: their kinds and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError, StorageError
from dptext.io.artifacts import announced_format
from dptext.io.batches import describe_columns
from dptext.io.documents import find_files, first_rows, read_documents
from dptext.io.formats import file_format
from dptext.privacy.randomness import RandomBits
from dptext.release.release import statement_path
from dptext.representations.device import VECTOR

Chosen = npt.NDArray[np.int64]
STATEMENT = "privacy.json"
"""The statement of a folder, in it."""


# -- rows ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one file: texts, or vectors."""

    chosen: Chosen
    texts: list[str | None] = field(repr=False)
    vectors: npt.NDArray[np.float32] | None = field(default=None, repr=False)
    columns: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    people: list[str] | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        return len(self.chosen)

    @property
    def features(self) -> Any:
        """What a model sees: vectors, or texts."""
        return self.texts if self.vectors is None else self.vectors

    def column(self, name: str | None) -> list[str] | None:
        return None if name is None else [str(entry) for entry in self.columns[name]]

    def at(self, places: list[int]) -> Rows:
        columns = {name: [values[place] for place in places] for name, values in self.columns.items()}
        if self.vectors is not None:
            return Rows(self.chosen[places], [], self.vectors[places], columns)
        return Rows(self.chosen[places], [self.texts[place] for place in places], None, columns)


def columns_of(path: Path) -> list[str]:
    """Return the columns of the first row of a file, or of the first file of a folder."""
    if not path.is_dir() and file_format(path).kind == ".parquet":
        return _schema(path)
    return list(next(first_rows([file for file, _ in find_files([path])]), {}))


def count_rows(path: Path, *, text: str) -> int:
    if _holds_vectors(path, VECTOR):
        from dptext.io.parquet import vector_batches

        return sum(map(len, vector_batches(path, VECTOR)))
    with closing(read_documents(path, text=text)) as reader:
        return sum(len(batch.texts) for batch in reader.batches())


def chosen_rows(count: int, maximum: int, bits: RandomBits) -> Chosen:
    """Return all row numbers, or a random sample of this size, in ascending order."""
    if count <= maximum:
        return np.arange(count)
    return np.sort(np.argsort(bits.integers(count), kind="stable")[:maximum])


def read_rows(
    path: Path,
    chosen: Chosen | None = None,
    *,
    text: str,
    columns: Sequence[str] = (),
    user: str | None = None,
    vector: str | None = VECTOR,
) -> Rows:
    """Return all rows of a file, or the chosen ones; a column without a value in one of them is an error."""
    names = list(dict.fromkeys([*columns, *([] if user is None else [user])]))
    if _holds_vectors(path, vector):
        rows = _read_vectors(path, chosen, str(vector), names)
    else:
        rows = _read_texts(path, chosen, text, names)
    for name, column in rows.columns.items():
        for row, value in zip(rows.chosen, column, strict=True):
            if value is None or value != value or isinstance(value, list | dict):
                raise DataError(
                    f"{path.name}, row {row + 1}: the column {name!r} has no value. Drop such rows before the release, "
                    "or do not name the column"
                )
    return replace(rows, people=rows.column(user))


def _read_texts(path: Path, chosen: Chosen | None, text: str, columns: Sequence[str]) -> Rows:
    numbers, texts = [], []
    values: dict[str, list[Any]] = {name: [] for name in columns}
    selected = None if chosen is None else set(chosen.tolist())
    with closing(read_documents(path, text=text, keep=tuple(columns))) as reader:
        for row, document in enumerate(islice(reader, None if chosen is None else int(chosen.max(initial=-1)) + 1)):
            if selected is None or row in selected:
                numbers.append(row)
                texts.append(document.text)
                for name in columns:
                    values[name].append((document.attributes or {})[name])
    return Rows(np.asarray(numbers, dtype=np.int64), texts, None, values)


def _read_vectors(path: Path, chosen: Chosen | None, vector: str, columns: Sequence[str]) -> Rows:
    from pyarrow.parquet import read_table

    from dptext.io.parquet import vector_batches

    blocks, start = [], 0
    for block in vector_batches(path, vector):
        part = slice(None) if chosen is None else chosen[(chosen >= start) & (chosen < start + len(block))] - start
        blocks.append(block[part])
        start += len(block)
    numbers, names = np.arange(start) if chosen is None else chosen, _schema(path)
    for name in columns:
        if name not in names:
            known = describe_columns(name, names, sure=True)
            raise DataError(f"{path.name}: expected a column {name!r}, the file has {known}; name the right column")
    table = read_table(path, columns=list(columns)).take(numbers) if columns else None
    values = {} if table is None else table.to_pydict()
    return Rows(numbers, [], np.concatenate(blocks) if blocks else np.empty((0, 0), dtype=np.float32), values)


def _holds_vectors(path: Path, vector: str | None) -> bool:
    return vector is not None and file_format(path).kind == ".parquet" and vector in _schema(path)


def _schema(path: Path) -> list[str]:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    try:
        names: list[str] = read_schema(path).names
        return names
    except ArrowException:  # some are an OSError as well
        raise DataError(f"{path.name} is not a parquet file, or is truncated or damaged. Copy the file again") from None
    except OSError as error:
        raise StorageError.of("open", path, error) from None


# -- folders -------------------------------------------------------------------------------------------------------

VECTORS, DESCRIPTION, BANK, DEVICE = (
    "dptext-vectors",
    "dptext-text-distribution",
    "dptext-text-bank",
    "dptext-device-encoder",
)
"""Formats that the configurations of folders announce."""

_NO_REPORT = {
    DESCRIPTION: "is a description: make a report about a corpus sampled from it, or run `dptext audit`",
    VECTORS: "holds word vectors, which have no report: run `dptext audit` and `dptext attack membership`",
    BANK: "is a bank of public texts, which has no guarantee: name a release made with it, and pass the bank as --bank",
    DEVICE: "is an encoder for devices: make a report about the vectors that it made, or run `dptext audit`",
}


def private_files(folder: Path) -> list[Path]:
    """Return the files of a folder that have a statement, sorted by name."""
    try:
        return sorted(path for path in folder.iterdir() if statement_path(path).is_file())
    except OSError as error:
        raise StorageError.of("read", folder, error) from None


def refuse_folder(folder: Path) -> None:
    """Raise unless a folder holds the parts of one private file, whose statement lies next to it."""
    if folder.name and statement_path(folder).exists():
        return
    announced = None
    with suppress(StorageError):
        announced = announced_format(folder)
    reason = _NO_REPORT.get(announced or "")
    if reason is None and private_files(folder):
        reason = "holds several private files, and a report is about one: name one of them"
    elif reason is None:
        reason = "holds no release: name a private file with its statement (….privacy.json), or a folder of dptext"
    raise ParameterError(f"{folder.name or folder} {reason}")
