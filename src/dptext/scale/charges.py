"""The rows of a DataFrame and the ledger: charged before the work starts, as the rows of a file are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dptext.errors import RefusedError
from dptext.privacy.statement import PrivacyStatement
from dptext.scale.rows import quoted
from dptext.text.blocks import BLOCK_ROWS, Block
from dptext.text.charges import Charges

__all__ = ["FrameCharges"]


class FrameCharges:
    """What a release of a DataFrame charges to a ledger; without a ledger, nothing.

    The keys of all rows stream through the driver, which holds a block of them at a time.

    Args:
        ledger: the file of the ledger, where the driver runs; or None.
        by: the column that says which row or person a row is; None: the text itself.
        frame: the rows.
        text: the column of the text.
    """

    def __init__(self, ledger: str | None, by: str | None, frame: Any, text: str) -> None:
        self._charges = Charges(ledger, by)
        self._frame, self._text, self._by = frame, text, by
        self._has_ledger = ledger is not None
        self._count: int | None = None

    def reserve(self, promise: PrivacyStatement) -> None:
        """Charge every row, or none.

        Raises:
            RefusedError: a row would be overspent; nothing was charged.
            DataError: a row without a key.
        """
        if self._has_ledger:
            keys = _Keys(self._frame, self._text, self._by)
            self._charges.reserve(str(promise.release_id), promise, keys)  # type: ignore[arg-type]  # reads as a reader does
            self._count = keys.count

    def check_same(self) -> None:
        """Whether as many rows are there as were charged.

        Raises:
            RefusedError: they are not: the input changed in between.
        """
        if self._count is not None and self._frame.count() != self._count:
            raise RefusedError("the input changed while it was being read, so the ledger knows other rows: start over")

    def settle(self, made: PrivacyStatement) -> None:
        """The release is out: the folder and its statement stand."""
        self._charges.settle(str(made.release_id))

    def void_after(self, error: BaseException, promise: PrivacyStatement) -> None:
        """The release never appears, because of an error."""
        self._charges.void_after(error, str(promise.release_id))


class _Keys:
    """The rows as `dptext.text.charges.Charges` reads them."""

    def __init__(self, frame: Any, text: str, by: str | None) -> None:
        self._frame, self._text, self._by = frame, text, by
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
        self.count += len(values)
        return Block(values, {}) if self._by is None else Block([""] * len(values), {self._by: values})

    def close(self) -> None:
        """Nothing is open."""
