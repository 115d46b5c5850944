"""What runs in a task: blocks of rows through a word mechanism or an encoder, a function of their places and content.

**Why nothing is released twice.** The noise of a block is the stream PRF(secret of the release, all parameters and the
code version, place, content) of `dptext.privacy.randomness`. Where a block begins and ends, its place and the order of
its rows follow from the rows alone (`dptext.spark.blocks`), never from the attempt, the worker, the clock or another
partition. So a task that is retried, runs twice at once (speculation), or is run again by a later action writes the
very same bytes, and whichever attempt the engine commits, there is one release. And no two blocks of an evaluation
share a place, so no two share noise, whatever they hold.

**What the secret may touch.** It travels in the task, as the rows do: in the memory of driver and executors and on the
wire between them, encrypted where ``spark.network.crypto.enabled`` (or TLS) encrypts the rows. Whoever can read it
there can read the rows themselves. It is in no plan, no event log, no file that is kept, no statement and no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from dptext.errors import ParameterError
from dptext.privacy.randomness import NoiseKey
from dptext.release.release import Tally
from dptext.spark.arrow import batch_of, number_column, text_column, vector_column
from dptext.spark.blocks import Placed, placed_blocks
from dptext.spark.nodes import from_node
from dptext.threads import use_cores
from dptext.words.rewriter import Rewriter

__all__ = ["COUNTS", "EncodeTask", "RewriteTask", "Rows"]

COUNTS = tuple(f"dptext {name}" for name in Tally.__slots__)
"""Columns of the counts of a block, in its first row; 0 in its other rows."""
SOFTWARE = version("dptext")
_AT_ONCE = 1 << 14  # texts encoded at once
_ROWS_A_BATCH = 1 << 12  # handed back at once, or more: a group of few rows is not worth a message


@dataclass(frozen=True)
class Rows:
    """Which columns a task finds, and which rows have which place.

    Attributes:
        text: the column of the text.
        keep: columns that are carried along.
        ids: columns of the row id, where rows come grouped; none: as they lie.
    """

    text: str
    keep: tuple[str, ...]
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class RewriteTask:
    """Texts through a word mechanism, and what `Rewriter` counts.

    Args:
        tables: name of the file of the mechanism (`dptext.spark.nodes`).
        secret: of the release.
        seeded: whether it is of a seed.
        rows: what to find.
        software: the version of the driver, which the nodes must have too.
    """

    tables: str
    secret: bytes = field(repr=False)
    seeded: bool
    rows: Rows
    software: str = SOFTWARE

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """From record batches to record batches: private texts, kept columns, counts."""
        return _joined(self._work(batches))

    def _work(self, batches: Iterable[Any]) -> Iterator[Any]:
        partition = _begin_task(self.software)
        rewriter = Rewriter(from_node(self.tables), key=NoiseKey.restored(self.secret, seeded=self.seeded))
        rows = self.rows
        for placed in placed_blocks(batches, rows.text, ids=rows.ids, partition=partition):
            private, tally = rewriter.rewrite_block(placed.place, placed.block)
            texts = text_column(private, placed.rows[0].schema.field(rows.text).type)
            columns = {rows.text: texts, **_kept(placed, rows.keep)}
            for name, count in zip(COUNTS, tally.as_dict().values(), strict=True):
                counts = np.zeros(len(private), dtype=np.int64)
                counts[0] = count
                columns[name] = number_column(counts)
            yield batch_of(columns)


@dataclass(frozen=True)
class EncodeTask:
    """Texts through an encoder; a missing text counts as the empty one.

    Args:
        tables: name of the file of the encoder (`dptext.spark.nodes`).
        secret: of the release.
        parameters: digest of all that decides about the output besides the content.
        rows: what to find.
        vector: the column of the private vectors.
        software: the version of the driver, which the nodes must have too.
    """

    tables: str
    secret: bytes = field(repr=False)
    parameters: bytes
    rows: Rows
    vector: str
    software: str = SOFTWARE

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """From record batches to record batches: private vectors and kept columns."""
        return _joined(self._work(batches))

    def _work(self, batches: Iterable[Any]) -> Iterator[Any]:
        partition = _begin_task(self.software)
        encoder = from_node(self.tables)
        key = NoiseKey.restored(self.secret, seeded=False)
        rows = self.rows
        for placed in placed_blocks(batches, rows.text, ids=rows.ids, partition=partition):
            bits = key.stream(self.parameters, placed.place, placed.block.digest())
            texts: Sequence[str] = [each or "" for each in placed.block.texts]
            parts = [
                encoder.encode_with(texts[start : start + _AT_ONCE], bits) for start in range(0, len(texts), _AT_ONCE)
            ]
            vectors = np.concatenate(parts)
            yield batch_of({self.vector: vector_column(vectors), **_kept(placed, rows.keep)})


def _joined(batches: Iterable[Any]) -> Iterator[Any]:
    """Small batches put together."""
    import pyarrow

    waiting: list[Any] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS_A_BATCH:
            yield from pyarrow.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, rows = [], 0
    if waiting:
        yield from pyarrow.Table.from_batches(waiting).combine_chunks().to_batches()


def _kept(placed: Placed, keep: tuple[str, ...]) -> dict[str, Any]:
    return {name: placed.column(name) for name in keep}


def _begin_task(software: str) -> int:
    """The number of the partition; this process uses the cores of its task and no more.

    Raises:
        ParameterError: the node has another version than the driver: a task that is tried again on another node would
            draw other noise.
    """
    if software != SOFTWARE:
        raise ParameterError(f"a node has dptext {SOFTWARE}, the driver {software}: install one version on all of them")
    context = task_context()
    use_cores(context.cpus())
    return int(context.partitionId())


def task_context() -> Any:
    """Spark's own context of the running task."""
    from pyspark import TaskContext

    return TaskContext.get()
