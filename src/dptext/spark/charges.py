"""The rows of a DataFrame and the ledger: charged before the work starts, as the rows of a file are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Event
from typing import Any

from dptext.errors import RefusedError, StorageError
from dptext.files.blocks import BLOCK_ROWS, Block
from dptext.privacy.statement import PrivacyStatement
from dptext.release.charges import Charges
from dptext.spark.rows import quoted

__all__ = ["FrameCharges"]


class FrameCharges:
    """What a release of a DataFrame charges to a ledger; without a ledger, nothing.

    The keys of all rows stream through the driver, which holds a block of them at a time.

    Args:
        ledger: the file of the ledger, where the driver runs; or None.
        by: the column that says which row or person a row is; None: the text itself.
        frame: the rows.
        text: the column of the text.
        missing: as in `dptext.release.charges.Charges`.
    """

    def __init__(
        self, ledger: str | None, by: str | None, frame: Any, text: str, *, missing: str | None = None
    ) -> None:
        self._charges = Charges(ledger, by, missing=missing)
        self._frame, self._text, self._by = frame, text, by
        self._stopped = Event()
        self._charged: tuple[int, int] | None = None

    def reserve(self, promise: PrivacyStatement) -> None:
        """Charge every row, or none.

        Raises:
            RefusedError: a row would be overspent; nothing was charged.
            DataError: a row without a key.
        """
        if self.kind is not None:
            keys = _Keys(self._frame, self._text, self._by, self._stopped)
            self._charges.reserve(str(promise.release_id), promise, keys)  # type: ignore[arg-type]  # reads as a reader does
            self._charged = self._summed()
            if self._charged[0] != keys.count:
                raise _changed()

    def stop(self) -> None:
        """Let a reservation that another thread is making fail: nothing is charged."""
        self._stopped.set()

    def check_same(self) -> None:
        """Whether the rows are those that were charged.

        Raises:
            RefusedError: they are not: the input changed in between.
        """
        if self._charged is not None and self._summed() != self._charged:
            raise _changed()

    def _summed(self) -> tuple[int, int]:
        """How many rows there are, and a number that changes with their keys; computed where the rows are."""
        from pyspark.sql import functions

        hashed = functions.xxhash64(quoted(self._text if self._by is None else self._by)).cast("decimal(38, 0)")
        count, total = self._frame.agg(functions.count("*"), functions.sum(hashed)).collect()[0]
        return int(count), int(total or 0)

    def settle(self, made: PrivacyStatement) -> None:
        """The release is out: the folder and its statement stand."""
        self._charges.settle(str(made.release_id))

    def void_after(self, error: BaseException, promise: PrivacyStatement) -> None:
        """The release never appears, because of an error."""
        self._charges.void_after(error, str(promise.release_id))

    @property
    def kind(self) -> list[str] | None:
        """Which ledger, and how rows are told apart: as in `dptext.release.charges.Charges`."""
        return self._charges.kind

    def give_up(self, release_id: str, run: Mapping[str, Any], *, is_out: bool) -> None:
        """What becomes of the release of a run that was killed, in the ledger that it named."""
        self._charges.give_up(release_id, run, is_out)


def _changed() -> RefusedError:
    return RefusedError("the input changed while it was being read, so the ledger knows other rows: start over")


class _Keys:
    """The rows as `dptext.release.charges.Charges` reads them."""

    def __init__(self, frame: Any, text: str, by: str | None, stopped: Event) -> None:
        self._frame, self._text, self._by, self._stopped = frame, text, by, stopped
        self.count = 0

    def blocks(self) -> Iterator[Block]:
        names = [self._text] if self._by is None else [self._by]
        waiting: list[Any] = []
        for row in self._frame.select(*map(quoted, names)).toLocalIterator():
            waiting.append(row[0])
            if len(waiting) == BLOCK_ROWS:
                yield self._block(waiting)
                waiting = []
        if waiting:
            yield self._block(waiting)

    def _block(self, values: list[Any]) -> Block:
        if self._stopped.is_set():
            raise StorageError("stopped while the ledger was being charged: nothing was released")
        self.count += len(values)
        return Block(values, {}) if self._by is None else Block([""] * len(values), {self._by: values})

    def close(self) -> None:
        """Nothing is open."""
