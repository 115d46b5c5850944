"""Spark tasks: stable groups of rows, and blocks of rows through a mechanism or an encoder.

Derivation: docs/howto/spark.md#spark-tasks
Derivation: docs/howto/spark.md#spark-rows
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.checks import names, whole
from dptext.errors import DataError, ParameterError
from dptext.io.batches import BATCH_CHARACTERS, BATCH_ROWS, Batch, describe_columns, unknown_type
from dptext.io.documents import check_kept_columns
from dptext.privacy.randomness import NoiseKey
from dptext.processes import load_shared, save_shared
from dptext.release.mechanism import Rewriter
from dptext.release.release import Tally
from dptext.threads import use_cores


def to_nodes(spark: Any, thing: object) -> str:
    """Give every node a public object, and return the name that tasks know it by."""
    from pyspark import SparkFiles

    place = Path(SparkFiles.getRootDirectory())
    written = save_shared(thing, place.parent)
    if not (place / written.name).exists():
        spark.sparkContext.addFile(str(written))
    return written.name


@lru_cache(maxsize=2)
def from_node(name: str) -> Any:
    """What `to_nodes` gave, in a task: opened once in a process, which Spark uses for many tasks."""
    from pyspark import SparkFiles

    return load_shared(Path(SparkFiles.get(name)))


COUNTS = tuple(f"dptext {name}" for name in Tally.__slots__)
"""Columns of the counts of a block, in its first row; 0 in its other rows."""
GROUP = "dptext group"
"""The column of the group, where rows come grouped."""
SOFTWARE = version("dptext")
"""Of this process; a task also carries that of its driver."""
_AT_ONCE = 1 << 14  # texts encoded at once
_ROWS_A_BATCH = 1 << 12  # handed back at once, or more: a group of few rows is not worth a message
_BLOCKS_A_GROUP = 1 << 32


@dataclass(frozen=True)
class Rows:
    """Which columns a task finds, and which rows have which place."""

    text: str
    keep: tuple[str, ...]
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class RewriteTask:
    """Texts through a mechanism that replaces them, and what `Rewriter` counts."""

    tables: str
    secret: bytes = field(repr=False)
    seeded: bool
    rows: Rows
    software: str = SOFTWARE

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """From record batches to record batches: private texts, kept columns, counts."""
        return _joined(self._work(batches))

    def _work(self, batches: Iterable[Any]) -> Iterator[Any]:
        partition = begin_task(self.software)
        rewriter = Rewriter(from_node(self.tables), key=NoiseKey.restored(self.secret, seeded=self.seeded))
        rows = self.rows
        for placed in placed_blocks(batches, rows.text, ids=rows.ids, partition=partition):
            private, tally = rewriter.rewrite_block(placed.place, placed.block)
            texts = text_column(private, placed.rows[0].schema.field(rows.text).type)
            columns = {rows.text: texts, **placed.columns(rows.keep)}
            for name, count in zip(COUNTS, tally.as_dict().values(), strict=True):
                counts = np.zeros(len(private), dtype=np.int64)
                counts[0] = count
                columns[name] = number_column(counts)
            yield batch_of(columns)


@dataclass(frozen=True)
class EncodeTask:
    """Texts through an encoder; a missing text counts as the empty one."""

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
        partition = begin_task(self.software)
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
            yield batch_of({self.vector: vector_column(vectors), **placed.columns(rows.keep)})


def named(task: Callable[[Iterable[Any]], Iterator[Any]], name: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """A task as a function of this name, which is what a plan of Spark shows of it."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        return task(batches)

    work.__name__ = name
    return work


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


def begin_task(software: str) -> int:
    """The number of the partition; this process uses the cores of its task and no more."""
    if software != SOFTWARE:
        raise ParameterError(f"a node has dptext {SOFTWARE}, the driver {software}: install one version on all of them")
    context = task_context()
    use_cores(context.cpus())
    return int(context.partitionId())


def task_context() -> Any:
    """Spark's own context of the running task."""
    from pyspark import TaskContext

    return TaskContext.get()


# -- blocks and their places ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """A block, its place, and the rows as they came."""

    place: int
    block: Batch
    rows: list[Any]

    def columns(self, names: Iterable[str]) -> dict[str, Any]:
        """Columns of the rows, each as one pyarrow array."""
        import pyarrow

        return {name: pyarrow.concat_arrays([each.column(name) for each in self.rows]) for name in names}


def placed_blocks(batches: Iterable[Any], text: str, *, ids: tuple[str, ...] = (), partition: int) -> Iterator[Placed]:
    """The blocks of a partition of record batches, in order."""
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
        return len(self._texts) >= BATCH_ROWS or self._characters >= BATCH_CHARACTERS

    def take(self, batch: Any) -> int:
        """Take rows from the front of a batch, up to the one that fills the block; how many these are."""
        room = batch.slice(0, BATCH_ROWS - len(self._texts))
        texts = room.column(self._text).to_pylist()
        lengths = np.fromiter((len(text or "") for text in texts), dtype=np.int64, count=len(texts))
        ends = self._characters + np.cumsum(lengths)
        count: int = min(len(texts), int(np.searchsorted(ends, BATCH_CHARACTERS)) + 1)
        self.rows.append(room.slice(0, count))
        self._texts += texts[:count]
        self._characters = int(ends[count - 1])
        return count

    def block(self, place: int) -> Placed:
        """What was taken; another one begins."""
        made = Placed(place, Batch(self._texts, {}), self.rows)
        self._begin()
        return made


def _runs(batch: Any, before: int) -> Iterator[tuple[int, Any]]:
    """The rows of one group after the other; groups come in ascending order."""
    groups = batch.column(GROUP).to_numpy()
    steps = np.diff(groups, prepend=before)
    if (steps < 0).any():
        raise DataError("Spark handed over rows that are not sorted by their group: nothing was released of them")
    edges = [0, *np.flatnonzero(steps[1:] > 0).tolist(), len(groups)] if len(groups) else []
    edges[1:-1] = [each + 1 for each in edges[1:-1]]
    for start, stop in pairwise(edges):
        yield int(groups[start]), batch.slice(start, stop - start)


def _check_ids(last: Any, batch: Any, ids: tuple[str, ...]) -> None:
    """Whether sorted rows have ids that are all there and all different."""
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


# -- columns of Arrow -----------------------------------------------------------------------------------------


def text_column(texts: Sequence[str | None], kind: Any) -> Any:
    """A column of strings, ``kind`` being ``pyarrow.string()`` or ``pyarrow.large_string()``."""
    import pyarrow

    encoded = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    binary = pyarrow.large_binary() if pyarrow.types.is_large_string(kind) else pyarrow.binary()
    return pyarrow.array(encoded, binary).view(kind)  # pyarrow makes no string of half a surrogate pair


def bytes_column(values: Sequence[bytes]) -> Any:
    import pyarrow

    return pyarrow.array(values, pyarrow.binary())


def number_column(values: npt.NDArray[Any]) -> Any:
    import pyarrow

    return pyarrow.array(values)


def vector_column(vectors: npt.NDArray[np.float32]) -> Any:
    """A column of lists out of the rows of a matrix."""
    import pyarrow

    ends = np.arange(0, vectors.size + 1, vectors.shape[1], dtype=np.int32)
    return pyarrow.ListArray.from_arrays(number_column(ends), number_column(vectors.ravel()))


def batch_of(columns: Mapping[str, Any]) -> Any:
    """A record batch."""
    import pyarrow

    return pyarrow.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


GROUPS = 1 << 8
"""So many tasks can work at once. A group is a block of noise at least, and a block has a price of its own (20 ms of a
core for a vocabulary of 50,000 words), so more groups would make small releases slow."""
LABEL = "dptext label"
_TWIN = "dptext twin"
_SALT = 0x6470746578740001  # groups by id are no other partitioning that somebody makes of the same ids
_ID_TYPES = ("string", "bigint", "int", "smallint", "tinyint", "binary", "date", "timestamp")
_OURS = "dptext "


def quoted(name: str) -> str:
    """The name of a column for Spark, which takes a dot for a field of a struct otherwise."""
    return "`" + name.replace("`", "``") + "`"


def checked_columns(frame: Any, text: str, keep: Sequence[str], ids: Sequence[str]) -> None:
    """Whether a DataFrame has these columns, and they fit."""
    types = dict(frame.dtypes)
    names("keep", keep)
    for name in (text, *keep, *ids):
        if not isinstance(name, str) or list(frame.columns).count(name) != 1:
            count = list(frame.columns).count(name)
            what = f"{count} of that name" if count else describe_columns(name, frame.columns)
            raise ParameterError(f"expected one column {name!r}, the DataFrame has {what}")
        if name.startswith(_OURS):
            raise ParameterError(f"columns whose names begin with {_OURS!r} are made on the way: rename {name!r}")
    if types[text] != "string":
        raise ParameterError(
            f"the column {text!r} must hold strings, it is of type {types[text]}: convert it "
            f'(df.withColumn({text!r}, df[{text!r}].cast("string"))) or name another one'
        )
    check_kept_columns(text, keep)
    if text in ids:
        raise ParameterError("id must say nothing about the text, so it cannot be the text: leave id out instead")
    for name in ids:
        if types[name] not in _ID_TYPES:
            raise ParameterError(
                f"the column {name!r} cannot tell rows apart, its type is {types[name]}: expected text or whole numbers"
            )


def bare_field(field: Any) -> Any:
    """A field of a schema without metadata: Spark writes it into parquet, and pyspark.ml lists all values there."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType, UserDefinedType

    def bare(kind: Any) -> Any:
        if isinstance(kind, ArrayType):
            return ArrayType(bare(kind.elementType), kind.containsNull)
        if isinstance(kind, MapType):
            return MapType(bare(kind.keyType), bare(kind.valueType), kind.valueContainsNull)
        if isinstance(kind, StructType):
            return StructType([StructField(each.name, bare(each.dataType), each.nullable) for each in kind.fields])
        if isinstance(kind, UserDefinedType):
            raise unknown_type(field.name, type(kind).__name__)
        return kind

    return StructField(field.name, bare(field.dataType), field.nullable)


def checked_partitions(spark: Any, partitions: int | None) -> int:
    if partitions is None:
        return min(GROUPS, max(8, 4 * int(spark.sparkContext.defaultParallelism)))
    return whole("partitions", partitions, least=1)


def by_id(frame: Any, text: str, keep: Sequence[str], ids: Sequence[str], partitions: int) -> Any:
    """The rows in groups by their id, sorted within their partitions."""
    from pyspark.sql import functions

    columns = [functions.col(quoted(each)) for each in dict.fromkeys((text, *keep, *ids))]
    keys = [functions.col(quoted(each)) for each in ids]
    group = functions.pmod(functions.xxhash64(functions.lit(_SALT), *keys), functions.lit(GROUPS)).cast("int")
    grouped = frame.select(*columns, group.alias(GROUP))
    return _together(grouped, ids, partitions)


def by_label(frame: Any, text: str, keep: Sequence[str], key: NoiseKey, partitions: int) -> Any:
    """The rows in groups by a label made from text and secret, sorted within their partitions."""
    from pyspark.sql import Window, functions
    from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

    unordered = [name for name, kind in frame.dtypes if name in keep and ("map<" in kind or kind == "variant")]
    if unordered:
        raise ParameterError(f"the column {unordered[0]!r} has values without an order: give id, or do not keep it")
    columns = [functions.col(quoted(each)) for each in (text, *keep)]
    twins = Window.partitionBy(columns[0]).orderBy(*(columns[1:] or [functions.lit(0)]))
    twin = functions.row_number().over(twins)
    counted = frame.select(*columns).repartition(partitions, columns[0]).withColumn(_TWIN, twin)
    task = LabelTask(hmac.digest(key.secret(), b"dptext labels", hashlib.sha256), text, (text, *keep), GROUPS)

    fields = [each for each in counted.schema.fields if each.name != _TWIN]
    schema = StructType([*fields, StructField(LABEL, BinaryType()), StructField(GROUP, IntegerType())])
    return _together(counted.mapInArrow(named(task, "label_rows"), schema), [LABEL], partitions)


def _together(grouped: Any, ids: Sequence[str], partitions: int) -> Any:
    # by an explicit number: Spark then neither joins nor splits the partitions on its own account
    if hasattr(grouped, "repartitionById"):  # from 4.1 on: as many groups in each, where a hash would pile some up
        together = grouped.repartitionById(partitions, quoted(GROUP))
    else:
        together = grouped.repartition(partitions, quoted(GROUP))
    return together.sortWithinPartitions(quoted(GROUP), *map(quoted, ids))


@dataclass(frozen=True)
class LabelTask:
    """A label and a group for every row that was counted among the rows of its text; ``columns`` are carried along."""

    secret: bytes = field(repr=False)
    text: str
    columns: tuple[str, ...]
    groups: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            twins = batch.column(_TWIN).to_pylist()
            texts = batch.column(self.text).to_pylist()
            labels = [self._label(text, twin) for text, twin in zip(texts, twins, strict=True)]
            groups = np.frombuffer(b"".join(labels), dtype=">u2")[::8].astype(np.int32) % self.groups
            columns = {name: batch.column(name) for name in self.columns}
            columns[LABEL] = bytes_column(labels)
            columns[GROUP] = number_column(groups)
            yield batch_of(columns)

    def _label(self, text: str | None, twin: int) -> bytes:
        missing = b"\1" if text is None else b"\0"
        content = missing + twin.to_bytes(8, "big") + (text or "").encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16, key=self.secret).digest()
