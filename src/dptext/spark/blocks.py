"""Rows of a Spark partition in blocks, each with a place of its own: the name of its noise, but for its content.

Two ways to name a place, for two kinds of partition:

- *Grouped*: the partition holds whole groups of rows, sorted by group and, within it, by row id
  (`dptext.spark.rows`). A block never reaches over the end of a group, and the rows alone decide where it ends. So a
  block is a function of the set of rows, whatever partition, task, attempt or action it is made in.
- *As it lies*: the partition is one of a scan of files and is read once, by one action. The place is the number of the
  partition, and of the block in it: an attempt that is made again reads the same rows in the same order.

Spark hands over batches of whatever size it likes; where these end has no influence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dptext.errors import DataError
from dptext.files.blocks import BLOCK_CHARACTERS, BLOCK_ROWS, Block
from dptext.spark.arrow import numbers_in

__all__ = ["GROUP", "Placed", "placed_blocks"]

GROUP = "dptext group"
"""The column of the group, where rows come grouped."""
_BLOCKS_A_GROUP = 1 << 32


@dataclass(frozen=True)
class Placed:
    """A block, its place, and the rows as they came.

    Attributes:
        place: no two blocks of an evaluation have the same.
        block: the texts.
        rows: the slices of record batches that they were in, with all their columns.
    """

    place: int
    block: Block
    rows: list[Any]

    def column(self, name: str) -> Any:
        """A column of the rows, as one pyarrow array."""
        import pyarrow

        return pyarrow.concat_arrays([each.column(name) for each in self.rows])


def placed_blocks(batches: Iterable[Any], text: str, *, ids: tuple[str, ...] = (), partition: int) -> Iterator[Placed]:
    """The blocks of a partition.

    Args:
        batches: pyarrow record batches, in order.
        text: the column that holds the text.
        ids: the columns of the row id, where rows come grouped (`GROUP`) and sorted by it; none: as they lie.
        partition: the number of the partition, for rows as they lie.

    Raises:
        DataError: two rows of one id.
    """
    made = _Making(text)
    group, number = (-1 if ids else partition), 0  # groups count from 0
    last: Any = None
    for batch in batches:
        if ids:
            _check_ids(last, batch, ids)
            last = batch.slice(batch.num_rows - 1) if batch.num_rows else last
        for found, part in _runs(batch, group) if ids else [(partition, batch)]:
            if found != group:
                if made.rows:
                    yield made.block(group * _BLOCKS_A_GROUP + number)
                group, number = found, 0
            start = 0
            while start < part.num_rows:
                start += made.take(part.slice(start))
                if made.is_full:
                    yield made.block(group * _BLOCKS_A_GROUP + number)
                    number += 1
    if made.rows:
        yield made.block(group * _BLOCKS_A_GROUP + number)


class _Making:
    """A block in the making."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._begin()

    def _begin(self) -> None:
        self.rows: list[Any] = []
        self._texts: list[str | None] = []
        self._characters = 0

    @property
    def is_full(self) -> bool:
        return len(self._texts) >= BLOCK_ROWS or self._characters >= BLOCK_CHARACTERS

    def take(self, batch: Any) -> int:
        """Take rows from the front of a batch, up to the one that fills the block; how many these are."""
        room = batch.slice(0, BLOCK_ROWS - len(self._texts))
        texts = room.column(self._text).to_pylist()
        lengths = np.fromiter((len(text or "") for text in texts), dtype=np.int64, count=len(texts))
        ends = self._characters + np.cumsum(lengths)
        count: int = min(len(texts), int(np.searchsorted(ends, BLOCK_CHARACTERS)) + 1)
        self.rows.append(room.slice(0, count))
        self._texts += texts[:count]
        self._characters = int(ends[count - 1])
        return count

    def block(self, place: int) -> Placed:
        """What was taken; another one begins."""
        made = Placed(place, Block(self._texts, {}), self.rows)
        self._begin()
        return made


def _runs(batch: Any, before: int) -> Iterator[tuple[int, Any]]:
    """The rows of one group after the other; groups come in ascending order."""
    groups = numbers_in(batch.column(GROUP), np.int32)
    steps = np.diff(groups, prepend=before)
    if (steps < 0).any():
        raise DataError("Spark handed over rows that are not sorted by their group: nothing was released of them")
    edges = [0, *np.flatnonzero(steps[1:] > 0).tolist(), len(groups)] if len(groups) else []
    edges[1:-1] = [each + 1 for each in edges[1:-1]]
    for start, stop in pairwise(edges):
        yield int(groups[start]), batch.slice(start, stop - start)


def _check_ids(last: Any, batch: Any, ids: tuple[str, ...]) -> None:
    """Whether sorted rows have ids that are all there and all different.

    Raises:
        DataError: they do not.
    """
    import pyarrow
    import pyarrow.compute

    repeated = None
    for name in ids:
        column = batch.column(name)
        if column.null_count:
            raise DataError(f"the column {name!r} was to tell rows apart, and a row has none (null): complete it")
        if last is not None:
            column = pyarrow.concat_arrays([last.column(name), column])
        same = pyarrow.compute.equal(column.slice(1), column.slice(0, max(0, len(column) - 1)))
        repeated = same if repeated is None else pyarrow.compute.and_(repeated, same)
    if repeated is not None and pyarrow.compute.any(repeated).as_py():
        raise DataError(
            f"two rows have the same {', '.join(map(repr, ids))}: noise is named by it, and equal rows would get equal "
            "noise; name columns that tell all rows apart, or leave id out"
        )
