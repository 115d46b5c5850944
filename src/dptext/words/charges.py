"""The rows of a release and the ledger: charged whole before the work starts, settled when the release appears."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.privacy.ledger import PENDING, RELEASED, TEXT, Ledger
from dptext.privacy.statement import PrivacyStatement
from dptext.text.documents import DocumentReader
from dptext.text.parquet import as_lists

__all__ = ["Charges"]


class Charges:
    """What one release charges to a ledger; without a ledger, nothing.

    Args:
        ledger: the file of the ledger, or None.
        by: the column that says which row or person a row is; None: the text itself.
    """

    def __init__(self, ledger: str | Path | None, by: str | None) -> None:
        if by is not None and ledger is None:
            raise ParameterError("a key column is for a ledger: name the ledger too (--ledger FILE)")
        self.column = by
        self._ledger = None if ledger is None else Ledger(ledger)
        self._seen: bytes | None = None

    @property
    def kind(self) -> str | None:
        """How rows are told apart, if there is a ledger."""
        return None if self._ledger is None else self.column or TEXT

    def reserve(self, release_id: str, promise: PrivacyStatement, reader: DocumentReader) -> None:
        """Charge every row, or none; a release that is charged already stays as it is.

        Raises:
            RefusedError: a row would be overspent; nothing was charged.
            DataError: a row without a key.
        """
        if self._ledger is None or self._ledger.state(release_id) == RELEASED:
            return
        self._ledger.reserve(release_id, promise, self._keys(reader), by=self.column or TEXT)

    def check_same(self, digests: Iterable[bytes]) -> None:
        """Whether the rows that were released are the rows that were charged.

        Raises:
            RefusedError: they are not: the input changed in between.
        """
        if self._seen is not None and hashlib.sha256(b"".join(digests)).digest() != self._seen:
            raise RefusedError("the input changed while it was being read, so the ledger knows other rows; start over")

    def settle(self, release_id: str) -> None:
        """The release appears now."""
        if self._ledger is not None:
            self._ledger.settle(release_id)

    def void(self, release_id: str | None) -> None:
        """The release never appears."""
        if self._ledger is not None and release_id is not None and self._ledger.state(release_id) == PENDING:
            self._ledger.void(release_id)

    def _keys(self, reader: DocumentReader) -> Iterator[str]:
        digest = hashlib.sha256()
        with contextlib.closing(reader):
            for block in reader.blocks():
                digest.update(block.digest())
                if self.column is None:
                    yield from (text for text in block.texts if text is not None)
                    continue
                first = reader.count - len(block.texts) + 1
                for number, value in enumerate(as_lists(block.columns)[self.column], first):
                    if value is None:
                        raise DataError(
                            f"row {number} has no {self.column!r}: the ledger needs one for every row; complete the "
                            "column, or key by the text"
                        )
                    yield str(value)
        self._seen = digest.digest()
