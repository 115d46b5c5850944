"""A release that an engine carries out: a lazy DataFrame, what it promises, and both written side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from dptext.errors import ParameterError, RefusedError
from dptext.privacy.statement import PrivacyStatement
from dptext.scale.charges import FrameCharges
from dptext.scale.folder import OutputFolder
from dptext.scale.session import told_in_one_line

__all__ = ["SparkRelease"]

Counts = Mapping[str, int]


class SparkRelease:
    """Private rows as a DataFrame, and the statement that goes with them.

    **One release, however often it is computed.** Whoever uses ``df`` twice, caches it or loses a machine gets the
    same rows again, with the same noise, as long as this object is what he goes back to and the input is what it was:
    `dptext.scale.rows` says why. Another call of `dptext.scale.spark.privatize` is another release, with another
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
    ) -> None:
        self._counted, self._drop = counted, drop
        self._promise, self._statement_of = promise, statement_of
        self._source, self._text = source, text
        self._once, self._is_written = once, False

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
                "a release of a scan is written, once, and used in no other way: its noise hangs on how this one "
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

        The engine's commit protocol decides which attempt of a task counts, and whether the folder is whole (the file
        ``_SUCCESS``). The statement follows at once; if that fails, the folder goes.

        Args:
            out: a folder that the whole cluster sees.
            force: replace what is there.
            ledger: the file of a ledger, where the driver runs: every row is charged before the work starts, or the
                release is refused. Its keys stream through the driver.
            ledger_key: the column that says which row or person a row is, for the ledger; None: the text itself.

        Raises:
            ParameterError: the output is there already.
            RefusedError: the ledger refuses; the input changed after it was charged; a scan was written before.
            DataError, StorageError, MissingExtraError: what stopped Spark, and what to do.
        """
        from pyspark.sql import Observation

        if self._once and self._is_written:
            self._check_use()
        charges = FrameCharges(ledger, ledger_key, self._source, self._text)
        with told_in_one_line():
            folder = OutputFolder(self._source.sparkSession, out)
            if folder.exists and not force:
                raise ParameterError(f"{out!r}, or its statement, is there already: choose another name, or add force")
            charges.reserve(self._promise)
            self._is_written = True
            before = folder.set_aside() if force else None
            try:
                found: Counts = {}
                if self._drop:
                    seen = Observation()
                    self._counted.observe(seen, *_aggregates(self._drop)).drop(*self._drop).write.parquet(out)
                    found = _numbers(seen.get)
                else:
                    self._counted.write.parquet(out)
                charges.check_same()
                made = self._statement_of(found).replace(data_sha256=folder.digest())
                folder.write_statement(made)
            except BaseException as error:
                folder.remove()  # where this fails, the release may be out, and stays spent
                if before is not None:
                    folder.take_back(before)
                charges.void_after(error, self._promise)
                raise
            try:
                charges.settle(made)
            finally:
                if before is not None:
                    folder.remove(before)
        self.__dict__["statement"] = made
        return made


def _aggregates(columns: tuple[str, ...]) -> list[Any]:
    from pyspark.sql import functions

    return [(functions.max if "longest" in each else functions.sum)(each).alias(each) for each in columns]


def _numbers(found: Mapping[str, Any]) -> Counts:
    return {name: int(value or 0) for name, value in found.items()}
