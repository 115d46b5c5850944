"""A release that an engine carries out: a lazy DataFrame, what it promises, and both written side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Event
from typing import Any, TypeVar

from dptext.errors import ParameterError, RefusedError, StorageError
from dptext.io.batches import BATCH_ROWS, Batch, describe_columns
from dptext.io.documents import DocumentReader
from dptext.privacy.guarantee import Guarantee, canonical_id
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import MostTexts, Tally, user_digest
from dptext.release.run import Charges, charged
from dptext.spark.folder import OutputFolder
from dptext.spark.session import plain_errors
from dptext.spark.tasks import named, quoted

Result = TypeVar("Result")
Counts = Mapping[str, int]
_LONGEST_END = 30.0  # seconds that tasks which were stopped have to end
_BETWEEN = 0.05
_BETWEEN_STOPS = 0.3


class SparkRelease:
    """Private rows as a DataFrame, and the statement that goes with them.

    **One release, however often it is computed.** All who use ``df`` twice, cache it or lose a machine get the
    same rows again, with the same noise, as long as they go back to this object and the input is what it was:
    `dptext.spark.tasks` says why. Another call of `dptext.spark.frames.privatize` is another release, with another
    secret, and costs again. So does an input that has changed in between.

    A release of a plain scan (``once``) has no ``df``: it is written, once.

    Attributes:
        tally: counts over the texts, once they are written: private for the most part (`dptext.release.release.Tally`).
        most_texts: how many texts the person with the most has, once they are written and where a column said whose
            they are: private, for the owner of the texts alone.
    """

    def __init__(
        self,
        counted: Any,
        drop: tuple[str, ...],
        promise: PrivacyStatement,
        statement_of: Callable[[Counts], PrivacyStatement],
        source: Any,
        text: str,
        *,
        once: bool = False,
        missing: str | None = None,
        before: Callable[[], PrivacyStatement] | None = None,
        tally_of: Callable[[Counts], Tally] = lambda _: Tally(),
    ) -> None:
        self._counted, self._drop = counted, drop
        self._promise, self._statement_of = promise, statement_of
        self._before, self._tally_of = before, tally_of
        self.tally = Tally()
        self.most_texts: MostTexts | None = None
        self._source, self._text = source, text
        self._once, self._is_written, self._missing = once, False, missing

    @property
    def df(self) -> Any:
        """The private rows, lazy, in an order that says nothing about the texts. Write them with the engine's writer.

        Raises:
            RefusedError: the release is of a scan that may be used once.
        """
        self._check_use()
        return self._counted.drop(*self._drop)

    def _check_use(self) -> None:
        if self._once:
            raise RefusedError(
                "a release of a scan is written, once, and used in no other way: its noise depends on how this one "
                "action cuts the files; use privatize or encode for a DataFrame"
            )

    @property
    def promise(self) -> PrivacyStatement:
        """What is promised before any row is read: complete but for what only the rows tell (the longest document)."""
        return self._promise

    @cached_property
    def statement(self) -> PrivacyStatement:
        """What is promised for a document.

        Where it has to know the longest document, all rows are computed once more to find it (the same rows, the same
        noise: no second release); `write` finds it on the way.

        Raises:
            DataError, StorageError, MissingExtraError: what stopped Spark, and what to do.
        """
        if not self._drop:
            return self._statement_of({})
        self._check_use()
        with plain_errors():
            found = self._counted.agg(*_aggregates(self._drop)).collect()[0].asDict()
        return self._statement_of(_numbers(found))

    def write(
        self, out: str, *, force: bool = False, ledger: str | None = None, user: str | None = None
    ) -> PrivacyStatement:
        """Write parquet with the engine's own writer, and the statement beside it (``OUT.privacy.json``).

        The engine's commit protocol decides which attempt of a task counts. Statement and rows appear at the end,
        under their names, and only when all is there; what stops the run before leaves nothing, and what was there
        stays (`dptext.spark.folder`). The ledger is charged first, and settled when the output stands.

        Args:
            out: a folder that the whole cluster sees.
            force: replace what is there.
            ledger: the file of a ledger, where the driver runs: every row is charged before the work starts, or the
                release is refused. Its keys stream through the driver.
            user: the column that says who wrote a text (or what else a row is charged to): how many texts one of them
                has is counted, where the rows are (`most_texts`), and the ledger goes by it. None: nobody counts, and
                the ledger goes by the text itself.

        Raises:
            ParameterError: the output is there already, is the input, or is no folder of parquet.
            StorageError: nothing can be written there; another process is writing it.
            RefusedError: the ledger refuses; the input changed after it was charged; a scan was written before.
            DataError, StorageError, MissingExtraError: what stopped Spark, and what to do.
        """
        if self._once and self._is_written:
            self._check_use()
        if user is not None and user not in self._source.columns:
            raise ParameterError(
                f"expected a column {user!r}, the table has {describe_columns(user, list(self._source.columns))}"
            )
        charges = FrameCharges(ledger, user, self._source, self._text, missing=self._missing)
        spark, release_id = self._source.sparkSession, str(self._promise.release_id)
        with plain_errors(), OutputFolder(spark, out) as folder:
            folder.check_no_input(self._source)
            with charged(charges, release_id, note=partial(self._end, folder, charges)):
                folder.begin(force=force)
                if charges.kind is not None:
                    charges.reserve(release_id, self._promise if self._before is None else self._before())
                self._is_written = True
                found = run_job(spark, lambda: self._compute(folder.rows))
                self.tally = self._tally_of(found)
                if user is not None:
                    self.most_texts = run_job(spark, lambda: self._texts_of_one(user))
                made = self._statement_of(found).replace(data_sha256=folder.digest())
                charges.check(release_id)

                def publish() -> None:  # an interrupt waits for all three
                    folder.publish(made, force=force)
                    charges.settle(release_id)
                    folder.clear()

                completed(publish)
        self.__dict__["statement"] = made
        return made

    def _texts_of_one(self, user: str) -> MostTexts:
        """Return how many texts the user with the most has; users are told apart by `canonical_id`."""
        from pyspark.sql import functions

        rows = self._source
        if self._missing is None:
            rows = rows.where(functions.col(quoted(self._text)).isNotNull())
        task = named(_DigestTask(RandomBits().take(16)), "digest_users")
        counts = rows.select(quoted(user)).mapInArrow(task, "who binary").groupBy("who").count()
        most, unnamed = counts.agg(
            functions.max(functions.when(functions.col("who").isNotNull(), functions.col("count"))),
            functions.max(functions.when(functions.col("who").isNull(), functions.col("count"))),
        ).collect()[0]
        return MostTexts(int(most or 0), int(unnamed or 0))

    def _compute(self, path: str) -> Counts:
        """Write the rows into a folder that is there; what was counted on the way."""
        from pyspark.sql import Observation

        if not self._drop:
            self._counted.write.mode("append").parquet(path)
            return {}
        seen = Observation()
        self._counted.observe(seen, *_aggregates(self._drop)).drop(*self._drop).write.mode("append").parquet(path)
        return _numbers(seen.get)

    def _end(self, folder: OutputFolder, charges: FrameCharges, error: BaseException) -> None:
        """Delete the work of a release that failed, and say what is left of one that had appeared."""
        if folder.appeared is not None:
            with suppress(Exception):  # Java may be gone
                folder.clear()
        charges.note_pending(error, str(self._promise.release_id))
        if folder.appeared:
            error.add_note(f"{folder.path!r} and its statement are in place, and complete")
        elif folder.appeared is None:
            error.add_note(f"it is not known whether {folder.path!r} has appeared: look before you run again")


@dataclass(frozen=True)
class _DigestTask:
    """User ids as keyed digests; null where a row has none."""

    key: bytes = field(repr=False)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            ids = map(canonical_id, batch.column(0).to_pylist())
            digests = [None if user is None else user_digest(user, self.key) for user in ids]
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array(digests, pyarrow.binary())], ["who"])


def _aggregates(columns: tuple[str, ...]) -> list[Any]:
    from pyspark.sql import functions

    return [(functions.max if "longest" in each else functions.sum)(each).alias(each) for each in columns]


def _numbers(found: Mapping[str, Any]) -> Counts:
    return {name: int(value or 0) for name, value in found.items()}


# -- the ledger -----------------------------------------------------------------------------------------------


class FrameCharges(Charges):
    """What a release of a DataFrame charges to a ledger; without a ledger, nothing."""

    def __init__(
        self, ledger: str | None, by: str | None, frame: Any, text: str, *, missing: str | None = None
    ) -> None:
        super().__init__(ledger, by, missing=missing)
        self._frame, self._key = frame, quoted(text if by is None else by)
        self._stopped = Event()
        self.count = 0
        self._charged: tuple[int, int] | None = None

    def reserve(
        self,
        release_id: str,
        promise: PrivacyStatement | Guarantee,
        reader: DocumentReader | None = None,  # noqa: ARG002  the rows are those of the frame
        **terms: Any,
    ) -> None:
        if self.kind is not None:
            run_job(self._frame.sparkSession, lambda: self._reserve(release_id, promise, terms), stop=self._stopped.set)

    def _reserve(self, release_id: str, promise: PrivacyStatement | Guarantee, terms: dict[str, Any]) -> None:
        self.count = 0
        super().reserve(release_id, promise, self, **terms)  # type: ignore[arg-type]  # reads as a reader does
        self._charged = self._summed()
        if self._charged[0] != self.count:
            raise _changed()

    def check(self, release_id: str, identities: Iterable[bytes] | None = None) -> None:
        if self._charged is not None and run_job(self._frame.sparkSession, self._summed) != self._charged:
            raise _changed()
        super().check(release_id, identities)

    def batches(self) -> Iterator[Batch]:
        waiting: list[Any] = []
        for row in self._frame.select(self._key).toLocalIterator():
            waiting.append(row[0])
            if len(waiting) == BATCH_ROWS:
                yield self._block(waiting)
                waiting = []
        if waiting:
            yield self._block(waiting)

    def close(self) -> None:
        """Nothing is open."""

    def _block(self, keys: list[Any]) -> Batch:
        if self._stopped.is_set():
            raise StorageError("stopped while the ledger was being charged: nothing was released")
        self.count += len(keys)
        return Batch(keys, {}) if self.column is None else Batch([""] * len(keys), {self.column: keys})

    def _summed(self) -> tuple[int, int]:
        """How many rows there are, and a number that changes with their keys; computed where the rows are."""
        from pyspark.sql import functions

        hashed = functions.xxhash64(self._key).cast("decimal(38, 0)")
        count, total = self._frame.agg(functions.count("*"), functions.sum(hashed)).collect()[0]
        return int(count), int(total or 0)


def _changed() -> RefusedError:
    return RefusedError("the input changed while it was being read, so the ledger knows other rows: start over")


# -- jobs of the engine ---------------------------------------------------------------------------------------


def run_job(spark: Any, work: Callable[[], Result], *, stop: Callable[[], None] = lambda: None) -> Result:
    """The result of jobs of the engine; when they fail or are interrupted, all of their tasks have ended."""
    context = spark.sparkContext
    tag = f"dptext-{RandomBits().take(12).hex()}"

    def tagged() -> Result:
        context.addJobTag(tag)  # of this thread alone; groups are the caller's
        return work()

    def cancel() -> None:
        stop()
        context.cancelJobsWithTag(tag)

    try:
        return completed(tagged, stop=cancel)
    except BaseException:
        with suppress(Exception):  # Java may be gone, and its tasks with it
            _wait_for_tasks(context, tag)
        raise


def completed(work: Callable[[], Result], *, stop: Callable[[], None] = lambda: None) -> Result:
    """The result of something that an interrupt does not cut in two: it is waited for all the same."""
    from pyspark import InheritableThread

    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  raised where it is waited for
            future.set_exception(error)

    InheritableThread(target=run, daemon=True).start()
    try:
        return future.result()
    except KeyboardInterrupt:
        while not future.done():
            with suppress(Exception):  # Java may be gone
                stop()  # again and again: a job may begin after it
            wait([future], timeout=_BETWEEN_STOPS)
        raise


def _wait_for_tasks(context: Any, tag: str) -> None:
    tracker = context._jsc.sc().statusTracker()
    until = time.monotonic() + _LONGEST_END
    while time.monotonic() < until:
        if not any(_active(tracker, job) for job in tracker.getJobIdsForTag(tag)):
            return
        time.sleep(_BETWEEN)


def _active(tracker: Any, job: int) -> bool:
    found = tracker.getJobInfo(job)
    stages = found.get().stageIds() if found.isDefined() else ()
    infos = [tracker.getStageInfo(stage) for stage in stages]
    return any(each.isDefined() and each.get().numActiveTasks() for each in infos)
