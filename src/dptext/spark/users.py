"""Whole numbers added up over the users whose rows lie in a DataFrame, on the nodes; the driver then adds the noise.

Derivation: docs/howto/spark.md#spark-users
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.spark.release import run_job
from dptext.spark.tasks import (
    SOFTWARE,
    batch_of,
    begin_task,
    bytes_column,
    checked_partitions,
    named,
    number_column,
    quoted,
)
from dptext.users.grouping import UserUnit, user_name

WHO, TEXT, ORDER = "dptext who", "dptext text", "dptext order"
_SLICE, _CELLS = "dptext slice", "dptext cells"
_ROWS_A_SLICE = 256
_ROWS_AT_ONCE = 1 << 10  # of texts that are cut into words together
_SEEN = -1  # the slice that says that there was a user, even one without words

Integers = npt.NDArray[np.int64]


class RowsOfUsers(Protocol):
    """What tasks do with rows. It travels with them: public, and without random state."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The columns that `cut` makes, with their types of Spark."""

    @property
    def within(self) -> tuple[str, ...]:
        """Those in the order of which the rows of a user come; rows that agree in them are one as good as the other."""

    def cut(self, batches: Iterable[Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Record batches of the given columns, and what is made of each."""

    def added(self, batches: Iterable[Any]) -> Integers | None: ...


def user_column(unit: UserUnit, user: str | None) -> str | None:
    """The column that says who is protected; None: every row is, by itself."""
    if unit == "document":
        return None
    if user is None:
        raise ParameterError("nobody knows who wrote these rows: name the column (user=...)")
    return user


def sum_over_users(
    spark: Any,
    df: Any,
    work: RowsOfUsers,
    given: Mapping[str, str],
    shape: tuple[int, int],
    *,
    partitions: int | None = None,
) -> Integers:
    """The sum over all users."""
    from pyspark.sql import functions

    count = checked_partitions(spark, partitions)
    rows = df.select(*(functions.col(quoted(column)).alias(name) for name, column in given.items()))
    types = dict(work.columns)
    if ORDER in given:
        types[ORDER] = rows.schema[ORDER].dataType.simpleString()
    if WHO in given:
        types[WHO] = "binary"
    cut = _CutTask(work, RandomBits().take(32), tuple(types))
    cut_rows = rows.mapInArrow(named(cut, "cut_rows"), _schema(types))
    if WHO in given:
        within = [each for each in (WHO, ORDER, *work.within) if each in types]
        cut_rows = cut_rows.repartition(count, quoted(WHO)).sortWithinPartitions(*map(quoted, within))
    slices = _schema({_SLICE: "int", _CELLS: "binary"})
    sums = cut_rows.mapInArrow(named(_SumTask(work), "sum_users"), slices)
    sums = sums.repartition(count, quoted(_SLICE)).mapInArrow(named(_add_slices, "add_slices"), slices)
    found = {int(row[0]): row[1] for row in run_job(spark, sums.collect)}
    if _SEEN not in found:
        raise DataError("there are no documents: expected at least one")
    total = np.zeros(shape, dtype=np.int64)
    for place, cells in found.items():
        if place != _SEEN:
            part = total[place * _ROWS_A_SLICE : (place + 1) * _ROWS_A_SLICE]
            part[:] = np.frombuffer(cells, dtype="<i8").reshape(part.shape)
    return total


def _schema(types: Mapping[str, str]) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in types.items())


@dataclass(frozen=True)
class _CutTask:
    """Rows of texts and names as rows of what is added up and digests."""

    work: RowsOfUsers
    key: bytes = field(repr=False)
    columns: tuple[str, ...]
    software: str = SOFTWARE

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        begin_task(self.software)
        for batch, found in self.work.cut(_few_rows(batches)):
            if ORDER in self.columns:
                found[ORDER] = batch.column(ORDER)
            if WHO in self.columns:
                found[WHO] = bytes_column([self._digest(each) for each in batch.column(WHO).to_pylist()])
            yield batch_of({name: found[name] for name in self.columns})

    def _digest(self, user: object) -> bytes:
        return hashlib.blake2b(user_name(user).encode("utf-8", "surrogatepass"), digest_size=16, key=self.key).digest()


def _few_rows(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows in smaller batches: Spark sends ten thousand at once, whose words are many objects."""
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            yield batch.slice(start, _ROWS_AT_ONCE)


@dataclass(frozen=True)
class _SumTask:
    """Rows, those of a user one after the other, as the sum of the users' matrices, in slices."""

    work: RowsOfUsers
    software: str = SOFTWARE

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        begin_task(self.software)
        total = self.work.added(batches)
        if total is None:
            return
        yield from _as_batches(_slices(total))


def _slices(total: Integers) -> Iterator[tuple[int, bytes]]:
    yield _SEEN, b""
    for start in range(0, len(total), _ROWS_A_SLICE):
        part = total[start : start + _ROWS_A_SLICE]
        if part.any():
            yield start // _ROWS_A_SLICE, part.astype("<i8").tobytes()


def _add_slices(batches: Iterable[Any]) -> Iterator[Any]:
    """Slices of sums of tasks, added up."""
    found: dict[int, Integers] = {}
    for batch in batches:
        for place, cells in zip(batch.column(_SLICE).to_pylist(), batch.column(_CELLS).to_pylist(), strict=True):
            part = np.frombuffer(cells, dtype="<i8")
            if place in found:
                found[place] += part
            else:
                found[place] = part.astype(np.int64)
    yield from _as_batches((place, cells.astype("<i8").tobytes()) for place, cells in found.items())


def _as_batches(slices: Iterable[tuple[int, bytes]]) -> Iterator[Any]:
    for place, cells in slices:  # one at a time: few and large
        yield batch_of({_SLICE: number_column(np.array([place], dtype=np.int32)), _CELLS: bytes_column([cells])})
