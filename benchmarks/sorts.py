"""Other sorts in the place of `SortedRuns`, for ``benchmarks/by_user.py --sorts``: SQLite's and pyarrow's.

Each is written as a reader would who wants the least code: no more than `Users` needs. What they lack beside ours is in
benchmarks/README.md.
"""

from __future__ import annotations

import itertools
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from dptext.users.sorting import Batch, SortedRuns

ARRIVED = "CREATE TABLE arrived (user BLOB, level INTEGER, rows BLOB)"
WALKED = 1 << 18  # bytes of texts that leave SQLite at once
BUCKET_BITS, BATCH_DOCUMENTS = 6, 1 << 15


class Nothing:
    """Forgets what comes: what reading and cutting take without any sort."""

    def __init__(self, folder: str | Path | None = None) -> None:
        del folder

    def add(self, users: Any, levels: Any, lengths: Any, rows: Any) -> None:
        pass

    def close_input(self) -> None:
        pass

    def batches(self) -> Iterator[Batch]:
        return iter(())

    def close(self) -> None:
        pass


class SqliteSort:
    """A row a document in a database without a name, read with ORDER BY."""

    cache_kib, threads = 16_384, 0

    def __init__(self, folder: str | Path | None = None) -> None:
        del folder  # where its files lie, the environment said when the library was loaded
        self._connection = sqlite3.connect("", isolation_level=None)
        for setting in (
            "journal_mode = OFF",
            "synchronous = OFF",
            "temp_store = FILE",
            f"cache_size = -{self.cache_kib}",
            f"threads = {self.threads}",
        ):
            self._connection.execute(f"PRAGMA {setting}")
        self._connection.execute(ARRIVED)
        self._connection.execute("BEGIN")

    def add(self, users: Any, levels: Any, lengths: Any, rows: Any) -> None:
        names, content = users.astype(">u8").tobytes(), rows.tobytes()
        ends = (rows.itemsize * np.cumsum(lengths)).tolist()
        named = [names[place : place + 16] for place in range(0, len(names), 16)]
        texts = [content[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        self._connection.executemany("INSERT INTO arrived VALUES (?, ?, ?)", zip(named, levels.tolist(), texts))  # noqa: B905

    def close_input(self) -> None:
        self._connection.execute("COMMIT")

    def batches(self) -> Iterator[Batch]:
        found = self._connection.execute("SELECT user, level, rows FROM arrived ORDER BY user, rowid")
        gathered: list[list[tuple[bytes, int, bytes]]] = []
        size = 0
        for _, documents in itertools.groupby(found, lambda row: row[0]):
            gathered.append(list(documents))
            size += sum(len(row[2]) for row in gathered[-1])
            if size >= WALKED:
                yield batch_of(gathered)
                gathered, size = [], 0
        if gathered:
            yield batch_of(gathered)

    def close(self) -> None:
        self._connection.close()


class SqliteLargeCache(SqliteSort):
    cache_kib = 65_536


class SqliteThreads(SqliteLargeCache):
    threads = 2


def batch_of(people: list[list[tuple[bytes, int, bytes]]]) -> Batch:
    texts = [row[2] for documents in people for row in documents]
    documents = np.array([len(each) for each in people], dtype=np.int64)
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) // 4
    return Batch(
        rows=np.frombuffer(b"".join(texts), dtype=np.int32),
        lengths=lengths,
        words=np.add.reduceat(lengths, np.cumsum(documents) - documents),
        documents=documents,
        levels=[tuple(dict.fromkeys(row[1] for row in each)) for each in people],
    )


class ArrowBuckets:
    """Digests are random, so their first bits spread the documents evenly over streams of Arrow, each of which is then
    sorted in memory. pyarrow merges no sorted runs, so this is what bounds its memory; but not that of one user."""

    def __init__(self, folder: str | Path | None = None) -> None:
        import pyarrow.compute
        import pyarrow.ipc

        self._arrow: Any = pyarrow
        self._files = [tempfile.TemporaryFile(dir=folder) for _ in range(1 << BUCKET_BITS)]  # noqa: SIM115
        self._writers: list[Any] = []
        self._waiting: list[Any] = []
        self._documents = 0

    def add(self, users: Any, levels: Any, lengths: Any, rows: Any) -> None:
        self._waiting.append(arrow_of(self._arrow, users, levels, lengths, rows))
        self._documents += lengths.size
        if self._documents >= BATCH_DOCUMENTS:
            self._write()

    def close_input(self) -> None:
        if self._waiting:
            self._write()
        for writer in self._writers:
            writer.close()

    def _write(self) -> None:
        table = self._arrow.Table.from_batches(self._waiting).combine_chunks()
        self._waiting, self._documents = [], 0
        if not self._writers:
            self._writers = [self._arrow.ipc.new_stream(file, table.schema) for file in self._files]
        bucket = (table["high"].to_numpy() >> np.uint64(64 - BUCKET_BITS)).astype(np.int64)
        table = table.take(np.argsort(bucket, kind="stable"))
        counts = np.bincount(bucket, minlength=len(self._files))
        for writer, start, count in zip(self._writers, np.cumsum(counts) - counts, counts, strict=True):
            writer.write_table(table.slice(start, count).combine_chunks())

    def batches(self) -> Iterator[Batch]:
        for file in self._files:
            file.seek(0)
            table = self._arrow.ipc.open_stream(file).read_all()
            order = self._arrow.compute.sort_indices(
                table, sort_keys=[("high", "ascending"), ("low", "ascending")]
            )  # stable
            yield from batch_of_arrow(table.take(order))

    def close(self) -> None:
        for file in self._files:
            file.close()


class ArrowOrderBy:
    """One file of Arrow, scanned and sorted by its engine (acero): the whole of it in memory, and not stable."""

    def __init__(self, folder: str | Path | None = None) -> None:
        import pyarrow.acero
        import pyarrow.dataset

        self._arrow: Any = pyarrow
        self._folder = tempfile.TemporaryDirectory(dir=folder)  # it has to have a name
        self._path = f"{self._folder.name}/documents.arrow"
        self._writer: Any = None

    def add(self, users: Any, levels: Any, lengths: Any, rows: Any) -> None:
        batch = arrow_of(self._arrow, users, levels, lengths, rows)
        if self._writer is None:
            self._writer = self._arrow.ipc.new_file(self._path, batch.schema)
        self._writer.write(batch)

    def close_input(self) -> None:
        self._writer.close()

    def batches(self) -> Iterator[Batch]:
        acero, dataset = self._arrow.acero, self._arrow.dataset
        scan = acero.ScanNodeOptions(
            dataset.dataset(self._path, format="ipc"), implicit_ordering=True, require_sequenced_output=True
        )
        order = acero.OrderByNodeOptions([("high", "ascending"), ("low", "ascending")])
        plan = acero.Declaration.from_sequence([acero.Declaration("scan", scan), acero.Declaration("order_by", order)])
        yield from batch_of_arrow(plan.to_table())

    def close(self) -> None:
        self._folder.cleanup()


def arrow_of(arrow: Any, users: Any, levels: Any, lengths: Any, rows: Any) -> Any:
    offsets = np.zeros(lengths.size + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    high, low = (np.ascontiguousarray(users[:, half]) for half in (0, 1))
    texts = arrow.ListArray.from_arrays(offsets, rows)
    return arrow.record_batch({"high": high, "low": low, "level": levels, "rows": texts})


def batch_of_arrow(table: Any) -> Iterator[Batch]:
    if not table.num_rows:
        return
    table = table.combine_chunks()
    high, low, levels = (table[name].to_numpy() for name in ("high", "low", "level"))
    changes = np.append(True, (high[1:] != high[:-1]) | (low[1:] != low[:-1]))
    firsts = np.flatnonzero(changes)
    texts = table["rows"].chunk(0)
    lengths = np.diff(texts.offsets.to_numpy()).astype(np.int64)
    yield Batch(
        rows=texts.values.to_numpy(),
        lengths=lengths,
        words=np.add.reduceat(lengths, firsts),
        documents=np.diff(np.append(firsts, lengths.size)),
        levels=[tuple(dict.fromkeys(each.tolist())) for each in np.split(levels, firsts[1:])],
    )


SORTS: dict[str, Any] = {
    "no sort": Nothing,
    "ours": SortedRuns,
    "SQLite, 16 MiB cache": SqliteSort,
    "SQLite, 64 MiB cache": SqliteLargeCache,
    "SQLite, 64 MiB cache, 2 threads": SqliteThreads,
    "pyarrow, 64 buckets on disk": ArrowBuckets,
    "pyarrow, acero order_by": ArrowOrderBy,
}
FROM_FILE = ("no sort", "ours", "SQLite, 16 MiB cache", "pyarrow, 64 buckets on disk")
"""Those of one another's memory: compared once more with all that `users_of` does."""
