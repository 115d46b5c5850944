"""What attacks on a release read: both sides of a release, the mechanism again, labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.calibration.deniability import distributions_of
from dptext.errors import DataError, StorageError
from dptext.files.documents import read_documents
from dptext.files.formats import extra, file_format
from dptext.release.statements import data_and_statement, read_statement
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import mechanism_from_statement
from dptext.words.rewriter import Aligner

__all__ = ["Side", "aligned", "channel_of", "read_attribute", "read_side", "rebuilt"]


@dataclass(frozen=True)
class Side:
    """One file: its texts, and who wrote each row where a column says so."""

    texts: list[str | None]
    people: list[str] | None
    numbers: list[int] | None = None
    """Which rows of the file these are, from 1; None: all."""

    @property
    def size(self) -> int:
        """Rows."""
        return len(self.texts)


def read_side(path: Path, *, text: str, group: str | None = None) -> Side:
    """The texts of a file.

    Raises:
        DataError: a row cannot be read, or names nobody in the column of groups.
    """
    documents = list(read_documents(path, text=text, user=group))
    people = None
    if group is not None:
        people = [_someone(document.user, path, group, row) for row, document in enumerate(documents, 1)]
    return Side([document.text for document in documents], people)


def _someone(name: Any, path: Path, column: str, row: int) -> Any:
    if name is None:
        raise DataError(f"{path.name}, row {row}: expected a value in the column {column!r}, the row has none")
    return name


def rebuilt(private: Path, vectors: str | None) -> WordMechanism:
    """The mechanism of which the statement beside a private file speaks."""
    return mechanism_from_statement(read_statement(data_and_statement(private)[1]), vectors=vectors)


def channel_of(mechanism: WordMechanism) -> Callable[[npt.NDArray[np.int64]], Any] | None:
    """Rows of the vocabulary -> the distributions they are replaced from; None where these have no formula."""
    distributions = distributions_of(mechanism)
    if distributions is None:
        return None
    words = mechanism.vectors.words
    return lambda rows: distributions([words[row] for row in rows.tolist()])


def aligned(
    before: Side, after: Side, mechanism: WordMechanism, private: Path, *, by_row: bool = False
) -> tuple[list[int], list[int], list[Any]]:
    """(original words, private words, whose each is) of all rows, words as rows of the vocabulary.

    Args:
        before, after: both sides.
        mechanism: what was between them.
        private: the name of the private file, for errors.
        by_row: whether a word is its row's, whoever wrote it.

    Raises:
        DataError: a private row cannot have been made from the original row.
    """
    aligner = Aligner(mechanism)
    true: list[int] = []
    observed: list[int] = []
    whose: list[Any] = []
    for row, (original, out) in enumerate(zip(before.texts, after.texts, strict=True)):
        found = None if (original is None) != (out is None) else aligner.pairs(original or "", out or "")
        if found is None:
            number = row + 1 if after.numbers is None else after.numbers[row]
            raise DataError(
                f"{private.name}, row {number}: the private text does not have the layout of the original one, so it "
                f"was not made from it by {mechanism.name}: name the file it was made from, in its order"
            )
        true += found[0]
        observed += found[1]
        whose += [row if before.people is None or by_row else before.people[row]] * len(found[0])
    if not true:
        raise DataError(f"{private.name}: expected at least one private word, got none")
    return true, observed, whose


def read_attribute(
    path: Path, *, text: str, vector: str, label: str, group: str | None
) -> tuple[Any, list[Any], list[Any] | None, str]:
    """(features, labels, people or None, "texts" or "vectors") of a private file.

    Raises:
        DataError: a column is missing, rows without label, vectors of different lengths.
    """
    if file_format(path).kind == ".parquet":
        table = _parquet(path)
        if vector in table.column_names:
            return _read_vectors(path, table, vector=vector, label=label, group=group)
    documents = list(read_documents(path, text=text, user=group, label=label))
    people = None
    if group is not None:
        people = [_someone(document.user, path, group, row) for row, document in enumerate(documents, 1)]
    labels = [_someone(document.label, path, label, row) for row, document in enumerate(documents, 1)]
    return [each.text for each in documents], labels, people, "texts"


def _read_vectors(
    path: Path, table: Any, *, vector: str, label: str, group: str | None
) -> tuple[Any, list[Any], list[Any] | None, str]:
    for column in (label, *([] if group is None else [group])):
        if column not in table.column_names:
            raise DataError(f"{path.name}: expected a column {column!r}, the file has none; name the right column")
    rows = table.column(vector).to_pylist()
    try:
        features = np.array(rows, dtype=np.float64)
    except (ValueError, TypeError):
        features = np.empty(0)
    if features.ndim != 2:
        raise DataError(f"{path.name}: expected lists of numbers of one length in {vector!r}, got something else")
    labels, people = (
        None
        if column is None
        else [_someone(value, path, column, row) for row, value in enumerate(table.column(column).to_pylist(), 1)]
        for column in (label, group)
    )
    return features, labels or [], people, "vectors"


def _parquet(path: Path) -> Any:
    arrow, parquet = (extra(name, "files", path.name) for name in ("pyarrow", "pyarrow.parquet"))
    try:
        return parquet.read_table(path)
    except OSError as error:
        if isinstance(error, arrow.ArrowException):
            raise DataError(f"{path.name} is not a parquet file, or was cut or damaged; copy the file again") from None
        raise StorageError.of("open", path, error) from None
    except arrow.ArrowException:
        raise DataError(f"{path.name} is not a parquet file, or was cut or damaged; copy the file again") from None
