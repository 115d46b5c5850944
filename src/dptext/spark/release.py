"""A release of a DataFrame (`SparkRelease`): charged, computed by Spark and published as on one machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from dptext.errors import ParameterError, RefusedError, StorageError
from dptext.io.artifacts import digest_of_parts
from dptext.io.atomic import sibling
from dptext.io.batches import BATCH_ROWS, Batch, describe_columns
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import MostTexts, Tally
from dptext.release.run import Charges, charged
from dptext.spark.session import plain_errors, run_job
from dptext.spark.tasks import COUNTS, USER, CountTask, named


def quoted(name: str) -> str:
    """Quote a column name for Spark, which would otherwise read a dot as a field of a struct."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(kw_only=True, eq=False, repr=False)
class SparkRelease:
    """Private rows as a DataFrame, with their privacy statement.

    **One release, however often it is computed.** Using ``df`` twice, caching it or losing a machine gives the same
    rows with the same noise (docs/howto/spark.md), as long as the input stays the same. Another call of
    `dptext.spark.frames.privatize` is another release with a privacy loss of its own.

    A release of a plain scan (``once``) has no ``df``; it can be written once.

    Attributes:
        statement_before: the statement before any row is read, which a ledger charges.
        tally: counts over the texts, set by `write`. Mostly private (`dptext.release.release.Tally`).
        most_texts: number of texts of the user with the most, set by `write` with a user column. Private.
    """

    source: Any
    text: str
    rows: Any
    statement_of: Callable[[Tally], PrivacyStatement]
    statement_before: Callable[[], PrivacyStatement]
    release_id: str
    counts: tuple[str, ...] = COUNTS
    once: bool = False
    missing: str | None = None
    tally: Tally = field(default=Tally(), init=False)
    most_texts: MostTexts | None = field(default=None, init=False)
    _is_used: bool = field(default=False, init=False)

    @property
    def df(self) -> Any:
        """The private rows, computed on demand, in an order independent of the texts. Write them with Spark's writer.

        Raises:
            RefusedError: the release of a scan can only be written.
        """
        self._check_use()
        return self.rows.drop(*self.counts)

    def _check_use(self) -> None:
        if self.once:
            raise RefusedError("the release of a scan can only be written, once: omit scan")

    @cached_property
    def statement(self) -> PrivacyStatement:
        """The statement for a document; computes all rows to find the longest one, unless `write` did.

        Raises:
            DataError, StorageError, MissingExtraError: Spark failed; the message says why, and what to do.
        """
        if not self.counts:
            return self.statement_of(Tally())
        self._check_use()
        with plain_errors():
            return self.statement_of(_tally(self.rows.agg(*self._aggregates()).collect()[0].asDict()))

    def write(
        self, out: str, *, force: bool = False, ledger: str | None = None, user: str | None = None
    ) -> PrivacyStatement:
        """Write parquet with Spark's own writer, and the statement (``OUT.privacy.json``).

        Both appear at the end; an earlier error leaves an existing output unchanged. The ledger is charged before the
        work starts, and settled when the output is published.

        Args:
            out: a folder that the whole cluster sees.
            force: replace an existing output.
            ledger: the file of a ledger on the driver, to which all its keys are sent.
            user: the column of users (or of other keys): the ledger charges them, and `most_texts` counts their texts.
                None: the ledger charges the texts themselves.

        Raises:
            ParameterError: the output exists, is the input, or is not a folder of parquet.
            StorageError: nothing can be written there.
            RefusedError: the ledger refuses; the input changed after it was charged; a scan was written before.
            DataError, StorageError, MissingExtraError: Spark failed; the message says why, and what to do.
        """
        if self._is_used:
            self._check_use()
        if user is not None and user not in self.source.columns:
            columns = describe_columns(user, list(self.source.columns))
            raise ParameterError(f"expected a column {user!r}, the table has {columns}")
        charges = Charges(ledger, user, missing=self.missing)
        reader = FrameReader(self.source, self.text, user)
        with plain_errors(), OutputFolder(self.source.sparkSession, out, force=force) as folder:

            def release() -> PrivacyStatement:
                with charged(charges, self.release_id):
                    folder.begin(self.source)
                    if charges.kind is not None:
                        charges.reserve(self.release_id, self.statement_before(), reader)  # type: ignore[arg-type]
                    self._is_used = True
                    self.tally = self._compute(folder.rows)
                    if user is not None:
                        self.most_texts = self._most_texts(user)
                    statement = self.statement_of(self.tally).replace(data_sha256=folder.digest())
                    reader.check()
                    charges.check(self.release_id)
                    folder.publish(statement)
                return statement

            self.statement = run_job(self.source.sparkSession, release)
        return self.statement

    def _compute(self, path: str) -> Tally:
        from pyspark.sql import Observation

        if not self.counts:
            self.rows.write.mode("append").parquet(path)
            return Tally()
        seen = Observation()
        self.rows.observe(seen, *self._aggregates()).drop(*self.counts).write.mode("append").parquet(path)
        return _tally(seen.get)

    def _aggregates(self) -> list[Any]:
        from pyspark.sql import functions

        return [(functions.max if "longest" in name else functions.sum)(name).alias(name) for name in self.counts]

    def _most_texts(self, user: str) -> MostTexts:
        from pyspark.sql import functions

        rows = self.source
        if self.missing is None:
            rows = rows.where(functions.col(quoted(self.text)).isNotNull())
        task = named(CountTask(RandomBits().take(16)), "digest_users")
        counts = rows.select(quoted(user)).mapInArrow(task, f"`{USER}` string").groupBy(USER).count()
        is_named = functions.col(USER).isNotNull()
        numbers = [functions.max(functions.when(test, functions.col("count"))) for test in (is_named, ~is_named)]
        return MostTexts(*(int(number or 0) for number in counts.agg(*numbers).collect()[0]))


def _tally(counts: Mapping[str, Any]) -> Tally:
    return Tally(*(int(counts[name] or 0) for name in COUNTS))


class FrameReader:
    """The keys that a ledger charges: the users of a DataFrame, or its texts."""

    def __init__(self, frame: Any, text: str, user: str | None) -> None:
        self._keys, self._user = frame.select(quoted(text if user is None else user)), user
        self._checksum: list[Any] | None = None
        self.count = 0

    def batches(self) -> Iterator[Batch]:
        self._checksum = self._sum()
        rows = self._keys.toLocalIterator()
        while keys := [row[0] for row in islice(rows, BATCH_ROWS)]:
            self.count += len(keys)
            yield Batch(keys, {}) if self._user is None else Batch([""] * len(keys), {self._user: keys})

    def close(self) -> None:
        """Do nothing: no file is open."""

    def check(self) -> None:
        """Raise if the rows are no longer those that were charged."""
        if self._checksum is not None and (self._sum() != self._checksum or self.count != self._checksum[0]):
            raise RefusedError("the input changed while it was being read, so the ledger charged other rows: run again")

    def _sum(self) -> list[Any]:
        """Return the number of rows and a checksum of their keys, computed by tasks."""
        from pyspark.sql import functions

        hashed = functions.xxhash64(*self._keys.columns).cast("decimal(38, 0)")
        return list(self._keys.agg(functions.count("*"), functions.sum(hashed)).collect()[0])


class OutputFolder:
    """A parquet folder that the whole cluster sees; unpublished rows are in a hidden folder next to it."""

    def __init__(self, spark: Any, path: str, *, force: bool = False) -> None:
        self.path, self._force, self._is_published = path.rstrip("/"), force, False
        self._java = spark._jvm
        hadoop = self._java.org.apache.hadoop.fs
        self._path = hadoop.Path
        self._out, self._statement = self._path(self.path), self._path(f"{self.path}.privacy.json")
        if self._out.getParent() is None:
            raise ParameterError(f"the output must be a folder with a name, got {path!r}")
        hidden = sibling(Path(self._out.getName()), f"spark.{RandomBits().take(6).hex()}.part").name
        self._work = self._path(self._out.getParent(), hidden)
        self.rows = str(self._in_work("rows").toString())
        # a new file system object, so that its settings do not affect Spark's writer
        self._system = hadoop.FileSystem.newInstance(self._out.toUri(), spark._jsc.hadoopConfiguration())
        self._system.setWriteChecksum(False)  # no .crc file for a statement

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None and self._is_published:
            error.add_note(f"{self.path!r} and its statement are in place, and complete")
        with suppress(Exception):  # Java may be gone
            self._system.delete(self._work, True)
            self._system.close()

    def begin(self, source: Any) -> None:
        """Make the hidden folder, which only its owner may enter."""
        out = _normalised(str(self._system.makeQualified(self._out).toUri()))
        if any(f"{_normalised(file)}/".startswith(f"{out}/") for file in source.inputFiles()):
            raise ParameterError("OUT is the same folder as IN, or IN is in it: choose another name for OUT")
        self._check_free()
        owner_only = self._java.org.apache.hadoop.fs.permission.FsPermission("700")
        if not (self._system.mkdirs(self._work, owner_only) and self._system.mkdirs(self._path(self.rows))):
            raise StorageError(f"cannot write {self.path!r}: name a folder to which you, and every node, may write")

    def _check_free(self) -> None:
        is_there, has_statement = self._system.exists(self._out), self._system.exists(self._statement)
        if not self._force and (is_there or has_statement):
            raise ParameterError(f"{self.path!r} or its statement already exists: choose another name, or add --force")
        if is_there and not self._system.getFileStatus(self._out).isDirectory():
            raise ParameterError(f"{self.path!r} is a file, and Spark writes a folder: choose another name")
        if is_there and not has_statement:
            names = [str(status.getPath().getName()) for status in self._system.listStatus(self._out)]
            if not all(name.endswith(".parquet") or name.startswith(("_", ".")) for name in names):
                raise ParameterError(f"{self.path!r} contains files other than parquet: choose another name")

    def digest(self) -> str:
        """Return the digest of all parts (`dptext.io.artifacts.digest_of_parts`), which Java reads as a stream."""
        parts = {}
        for status in self._system.listStatus(self._path(self.rows)):
            name = str(status.getPath().getName())
            if status.isFile() and not name.startswith(("_", ".")):
                java = self._java.java
                algorithm = java.security.MessageDigest.getInstance("SHA-256")
                sink = java.security.DigestOutputStream(java.io.OutputStream.nullOutputStream(), algorithm)
                stream = self._system.open(status.getPath())
                self._java.org.apache.hadoop.io.IOUtils.copyBytes(stream, sink, 1 << 20, True)
                parts[name] = bytes(byte & 0xFF for byte in algorithm.digest()).hex()
        return digest_of_parts(parts)

    def publish(self, statement: PrivacyStatement) -> None:
        """Publish the statement and then the rows; if a step fails, restore the files that they replace."""
        output = self._in_work("privacy.json")
        stream = self._system.create(output, True)
        try:
            stream.write(bytearray(f"{statement.to_json()}\n".encode()))
        finally:
            stream.close()
        self._check_free()
        replaced = [(self._out, self._in_work("before")), (self._statement, self._in_work("before.privacy.json"))]
        steps = [step for step in replaced if self._system.exists(step[0])]
        steps += [(output, self._statement), (self._path(self.rows), self._out)]
        done: list[tuple[Any, Any]] = []
        try:
            for path, target in steps:
                if self._system.exists(target) or not self._system.rename(path, target):
                    raise StorageError(f"cannot write {self.path!r}: its file system does not rename finished outputs")
                done.append((path, target))
        except BaseException:
            for path, target in reversed(done):
                self._system.rename(target, path)
            raise
        self._is_published = True

    def _in_work(self, name: str) -> Any:
        return self._path(self._work, name)


def _normalised(uri: str) -> str:
    """Return the normal form of a path: ``file:/a``, ``file:///a`` and a link to it are the same."""
    parts = urlsplit(uri)
    path = unquote(parts.path).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{os.path.realpath(path) if parts.scheme == 'file' else path}"
