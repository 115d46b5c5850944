"""Work of Spark tasks: blocks of rows with stable noise, and sums over users. Tasks have no random state.

Derivation: docs/howto/spark.md#spark-tasks
Derivation: docs/howto/spark.md#spark-rows
Derivation: docs/howto/spark.md#spark-users
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib.metadata import version
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext.errors import ParameterError
from dptext.io.batches import Batch, text_batches
from dptext.io.documents import Document
from dptext.privacy.guarantee import canonical_id
from dptext.privacy.randomness import NoiseKey
from dptext.processes import load_shared, save_shared
from dptext.release.mechanism import Rewriter, TextMechanism
from dptext.release.release import Tally
from dptext.representations.device import VECTOR, DeviceEncoder, encode_block
from dptext.synthesis.moments import Labels
from dptext.synthesis.servers import ShareSum
from dptext.threads import use_cores
from dptext.users.grouping import user_name

SOFTWARE = version("dptext")
"""The version of this process; a task also carries the version of its driver."""
COUNTS = tuple(f"dptext {name}" for name in Tally.__slots__)
"""Columns of the counts of a block, in its first row; 0 in its other rows."""
GROUP, LABEL, COPY = "dptext group", "dptext label", "dptext copy"
TEXT, USER, KEY = "dptext text", "dptext user", "dptext key"
SLICE, CELLS = "dptext slice", "dptext cells"
_BLOCKS_A_GROUP = 1 << 32
_ROWS_A_SLICE = 256

Integers = npt.NDArray[np.int64]
Task = Callable[[Iterable[Any]], Iterator[Any]]
"""A function from record batches to record batches."""


def to_nodes(spark: Any, thing: object) -> str:
    """Copy a public object to every node, and return the name by which tasks load it."""
    from pyspark import SparkFiles

    place = Path(SparkFiles.getRootDirectory())
    written = save_shared(thing, place.parent)
    if not (place / written.name).exists():
        spark.sparkContext.addFile(str(written))
    return written.name


@lru_cache(maxsize=2)
def from_node(name: str) -> Any:
    """Load an object that `to_nodes` copied, once per process."""
    from pyspark import SparkFiles

    return load_shared(Path(SparkFiles.get(name)))


def named(task: Task, name: str) -> Task:
    """Return a task as a function with this name, which the query plan of Spark shows."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        return task(batches)

    work.__name__ = name
    return work


def begin_task(software: str) -> int:
    """Check the version, use only the cores of this task, and return the number of its partition."""
    if software != SOFTWARE:
        raise ParameterError(f"a node has dptext {SOFTWARE}, the driver {software}: install one version on all of them")
    context = task_context()
    use_cores(context.cpus())
    return int(context.partitionId())


def task_context() -> Any:
    from pyspark import TaskContext

    return TaskContext.get()


# -- blocks of rows and their noise ---------------------------------------------------------------------------


Columns = Callable[[int, Batch, Any], dict[str, Any]]
"""A function from the number of a block, the block and the Arrow type of its texts to columns."""


def privatize_rows(mechanism: TextMechanism, key: NoiseKey, text: str) -> Columns:
    """Return the function from a block to its private texts and counts, as of `Rewriter`."""
    rewriter = Rewriter(mechanism, key=key)

    def columns(place: int, block: Batch, kind: Any) -> dict[str, Any]:
        private, tally = rewriter.rewrite_block(place, block)
        rest = [0] * (len(private) - 1)
        counts = zip(COUNTS, asdict(tally).values(), strict=True)
        return {text: pa.array(private, kind)} | {name: pa.array([count, *rest], pa.int64()) for name, count in counts}

    return columns


def encode_rows(encoder: DeviceEncoder, key: NoiseKey, text: str) -> Columns:  # noqa: ARG001  not in the output
    """Return the function from a block to its private vectors; a missing text counts as the empty text."""
    encode = encode_block(encoder, key)

    def columns(place: int, block: Batch, kind: Any) -> dict[str, Any]:  # noqa: ARG001
        private = encode(place, block)
        ends = np.arange(0, private.size + 1, private.shape[1], dtype=np.int32)
        return {VECTOR: pa.ListArray.from_arrays(pa.array(ends), pa.array(private.ravel()))}

    return columns


@dataclass(frozen=True)
class BlockTask:
    """Apply a mechanism (`privatize_rows`) or an encoder (`encode_rows`) to blocks of rows; copy kept columns."""

    work: Callable[[Any, NoiseKey, str], Columns]
    tables: str
    secret: bytes = field(repr=False)
    text: str
    keep: tuple[str, ...]
    is_grouped: bool
    software: str = SOFTWARE

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        partition = begin_task(self.software)
        columns = self.work(from_node(self.tables), NoiseKey.restored(self.secret, seeded=False), self.text)
        for place, block, parts in placed_blocks(batches, self.text, None if self.is_grouped else partition):
            kept = {name: pa.concat_arrays([part.column(name) for part in parts]) for name in self.keep}
            yield pa.RecordBatch.from_pydict(columns(place, block, parts[0].schema.field(self.text).type) | kept)


def placed_blocks(batches: Iterable[Any], text: str, partition: int | None) -> Iterator[tuple[int, Batch, list[Any]]]:
    """Yield the number, the texts and the rows of each block, in order; without a partition, rows have groups."""
    parts = _groups(batches) if partition is None else ((partition, batch) for batch in batches)
    for group, rows in groupby(parts, key=itemgetter(0)):
        waiting: deque[Any] = deque()
        texts = _texts((part for _, part in rows), text, waiting)
        for number, block in enumerate(text_batches(texts)):
            yield group * _BLOCKS_A_GROUP + number, block, _first_rows(waiting, len(block.texts))


def _texts(parts: Iterable[Any], text: str, waiting: deque[Any]) -> Iterator[str | None]:
    for part in parts:
        waiting.append(part)
        yield from part.column(text).to_pylist()


def _first_rows(waiting: deque[Any], count: int) -> list[Any]:
    """Remove this many rows from the front."""
    rows: list[Any] = []
    while count:
        part = waiting.popleft()
        rows.append(part.slice(0, count))
        if part.num_rows > count:
            waiting.appendleft(part.slice(count))
        count -= rows[-1].num_rows
    return rows


def _groups(batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield rows that are sorted by group, in parts of one group."""
    for batch in batches:
        groups = batch.column(GROUP).to_numpy()
        for start, stop in pairwise([0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]):
            if stop > start:
                yield int(groups[start]), batch.slice(start, stop - start)


@dataclass(frozen=True)
class LabelTask:
    """Add a label and a group to every row, from its text and its number among the rows with this text."""

    secret: bytes = field(repr=False)
    text: str
    columns: tuple[str, ...]
    groups: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            rows = zip(batch.column(self.text).to_pylist(), batch.column(COPY).to_pylist(), strict=True)
            labels = [self._label(text, copy) for text, copy in rows]
            groups = np.frombuffer(b"".join(labels), dtype=">u2")[::8].astype(np.int32) % self.groups
            columns = {name: batch.column(name) for name in self.columns}
            yield pa.RecordBatch.from_pydict({**columns, LABEL: pa.array(labels, pa.binary()), GROUP: pa.array(groups)})

    def _label(self, text: str | None, copy: int) -> bytes:
        missing = b"\1" if text is None else b"\0"
        content = missing + copy.to_bytes(8, "big") + (text or "").encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16, key=self.secret).digest()


# -- sums over users ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UserSums:
    """A sum of whole numbers over users, as one machine computes it; a user's equal texts are sorted by their label."""

    columns: tuple[str, ...]  # attributes of the documents
    shape: tuple[int, int]
    total: Callable[[Iterable[Document]], Integers]
    labels: Labels


def value_names(count: int) -> list[str]:
    return [f"dptext value {number}" for number in range(count)]


def _values(batch: Any, count: int) -> Iterable[tuple[Any, ...]]:
    columns = [batch.column(name).to_pylist() for name in value_names(count)]
    return zip(*columns, strict=True) if columns else [()] * batch.num_rows


@dataclass(frozen=True)
class UserTask:
    """Replace user ids by keyed digests; add a column to sort the rows of a user by: digest of the text, class."""

    key: bytes = field(repr=False)
    tables: str
    software: str = SOFTWARE

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        begin_task(self.software)
        sums: UserSums = from_node(self.tables)
        for batch in batches:
            texts = [(text or "").encode("utf-8", "surrogatepass") for text in batch.column(TEXT).to_pylist()]
            codes = map(sums.labels.code, _values(batch, len(sums.columns)))
            keys = [
                hashlib.sha256(text).digest() + (code + 1).to_bytes(4, "big")
                for text, code in zip(texts, codes, strict=True)
            ]
            users = [_digest(user_name(user), self.key) for user in batch.column(USER).to_pylist()]
            columns = {name: batch.column(name) for name in batch.schema.names}
            columns |= {USER: pa.array(users, pa.string()), KEY: pa.array(keys, pa.binary())}
            yield pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class CountTask:
    """Replace user ids by keyed digests, to count their rows; null for a row without one."""

    key: bytes = field(repr=False)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            users = map(canonical_id, batch.column(0).to_pylist())
            digests = [None if user is None else _digest(user, self.key) for user in users]
            yield pa.RecordBatch.from_pydict({USER: pa.array(digests, pa.string())})


def _digest(user: str, key: bytes) -> str:
    return hashlib.blake2b(user.encode("utf-8", "surrogatepass"), digest_size=16, key=key).hexdigest()


@dataclass(frozen=True)
class SumTask:
    """Turn all rows of some users into the sum over these users, in slices."""

    tables: str
    software: str = SOFTWARE

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        begin_task(self.software)
        sums: UserSums = from_node(self.tables)
        documents = _documents(batches, sums.columns)
        first = next(documents, None)
        if first is not None:
            total = sums.total(chain([first], documents))
            for start in range(0, len(total), _ROWS_A_SLICE):
                cells = total[start : start + _ROWS_A_SLICE]
                if start == 0 or cells.any():  # the first slice shows that there were users
                    yield _slice(start // _ROWS_A_SLICE, cells)


@dataclass(frozen=True)
class ShareTask:
    """Add up messages (`dptext.synthesis.servers`): one row with their ids, their sum and their server."""

    total: ShareSum
    software: str = SOFTWARE

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        begin_task(self.software)
        for batch in batches:
            for message in batch.column(TEXT).to_pylist():
                self.total.add(message or b"", "a row")
        if self.total.ids:
            yield pa.RecordBatch.from_pylist([self.total.part()])


def _documents(batches: Iterable[Any], columns: Sequence[str]) -> Iterator[Document]:
    for batch in batches:
        users = batch.column(USER).to_pylist() if USER in batch.schema.names else [None] * batch.num_rows
        rows = zip(batch.column(TEXT).to_pylist(), users, _values(batch, len(columns)), strict=True)
        for text, user, values in rows:
            yield Document(text, user=user, attributes=dict(zip(columns, values, strict=True)))


def add_slices(batches: Iterable[Any]) -> Iterator[Any]:
    """Add up the sums of all tasks, slice by slice."""
    sums: dict[int, Integers] = {}
    for batch in batches:
        for number, cells in zip(batch.column(SLICE).to_pylist(), batch.column(CELLS).to_pylist(), strict=True):
            sums[number] = sums.get(number, np.int64(0)) + np.frombuffer(cells, dtype="<i8")
    for number, total in sums.items():  # one at a time: few and large
        yield _slice(number, total)


def _slice(number: int, cells: Integers) -> Any:
    content = pa.array([cells.astype("<i8").tobytes()])
    return pa.RecordBatch.from_pydict({SLICE: pa.array([number], pa.int32()), CELLS: content})


def whole_sum(slices: Iterable[tuple[int, bytes]], shape: tuple[int, int]) -> Integers:
    total = np.zeros(shape, dtype=np.int64)
    for number, cells in slices:
        part = total[number * _ROWS_A_SLICE : (number + 1) * _ROWS_A_SLICE]
        part[:] = np.frombuffer(cells, dtype="<i8").reshape(part.shape)
    return total
