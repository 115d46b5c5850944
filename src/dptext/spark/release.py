"""A release that an engine carries out: a lazy DataFrame, what it promises, and both written side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from dptext.errors import RefusedError
from dptext.privacy.statement import PrivacyStatement
from dptext.spark.charges import FrameCharges
from dptext.spark.folder import Appeared, OutputFolder
from dptext.spark.jobs import completed, run_job
from dptext.spark.session import told_in_one_line

__all__ = ["SparkRelease"]

Counts = Mapping[str, int]


class SparkRelease:
    """Private rows as a DataFrame, and the statement that goes with them.

    **One release, however often it is computed.** All who use ``df`` twice, cache it or lose a machine get the
    same rows again, with the same noise, as long as they go back to this object and the input is what it was:
    `dptext.spark.rows` says why. Another call of `dptext.spark.frames.privatize` is another release, with another
    secret, and costs again. So does an input that has changed in between.

    A release of a plain scan (``once``) has no ``df``: it is written, once.
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
    ) -> None:
        self._counted, self._drop = counted, drop
        self._promise, self._statement_of = promise, statement_of
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
        with told_in_one_line():
            found = self._counted.agg(*_aggregates(self._drop)).collect()[0].asDict()
        return self._statement_of(_numbers(found))

    def write(
        self,
        out: str,
        *,
        force: bool = False,
        ledger: str | None = None,
        ledger_key: str | None = None,
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
            ledger_key: the column that says which row or person a row is, for the ledger; None: the text itself.

        Raises:
            ParameterError: the output is there already, is the input, or is no folder of parquet.
            StorageError: nothing can be written there; another process is writing it.
            RefusedError: the ledger refuses; the input changed after it was charged; a scan was written before.
            DataError, StorageError, MissingExtraError: what stopped Spark, and what to do.
        """
        if self._once and self._is_written:
            self._check_use()
        charges = FrameCharges(ledger, ledger_key, self._source, self._text, missing=self._missing)
        spark, release_id = self._source.sparkSession, str(self._promise.release_id)
        with told_in_one_line(), OutputFolder(spark, out) as folder:
            folder.check_no_input(self._source)
            for run, appeared in folder.left_by_others():
                charges.give_up(str(run["release_id"]), run, is_out=appeared is not Appeared.NO)
            try:
                folder.begin({"release_id": release_id, "ledger": charges.kind}, force=force)
                run_job(spark, lambda: charges.reserve(self._promise), stop=charges.stop)
                self._is_written = True
                found = run_job(spark, lambda: self._compute(folder.rows))
                run_job(spark, charges.check_same)
                made = self._statement_of(found).replace(data_sha256=folder.digest())

                def appear() -> None:
                    folder.publish(made, force=force)
                    charges.settle(made)
                    folder.clear()

                completed(appear)
            except BaseException as error:
                self._end(folder, charges, error)
                raise
        self.__dict__["statement"] = made
        return made

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
        """Leave nothing of a release that failed, and say what is left of one that had appeared."""
        with suppress(Exception):  # Java may be gone; the next run clears up
            folder.undo(str(self._promise.release_id))
        if folder.appeared is Appeared.NO:
            charges.void_after(error, self._promise)
        elif folder.appeared is Appeared.YES:
            error.add_note(f"{folder.path!r} and its statement are in place, and complete")
        else:
            error.add_note(f"it is not known whether {folder.path!r} has appeared: look, or run again")


def _aggregates(columns: tuple[str, ...]) -> list[Any]:
    from pyspark.sql import functions

    return [(functions.max if "longest" in each else functions.sum)(each).alias(each) for each in columns]


def _numbers(found: Mapping[str, Any]) -> Counts:
    return {name: int(value or 0) for name, value in found.items()}
