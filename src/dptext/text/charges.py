"""The rows of a release and the ledger: charged whole before the work starts, settled when the release appears."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.privacy.guarantee import MetricDP
from dptext.privacy.ledger import PENDING, RELEASED, TEXT, Ledger
from dptext.privacy.statement import PrivacyStatement
from dptext.text.documents import DocumentReader
from dptext.text.keys import spelled_key
from dptext.text.parquet import as_lists

__all__ = ["Charges"]


class Charges:
    """What one release charges to a ledger; without a ledger, nothing.

    Args:
        ledger: the file of the ledger, or None.
        by: the column that says which row or person a row is; None: the text itself.
        missing: the text that a missing one (null) counts as; None: nothing is released of such a row, so that by its
            text it is charged nothing.
    """

    def __init__(self, ledger: str | Path | None, by: str | None, *, missing: str | None = None) -> None:
        if by is not None and ledger is None:
            raise ParameterError("a key column is for a ledger: name the ledger too (--ledger FILE)")
        if by == TEXT:
            raise ParameterError(
                f"the key column cannot be named {TEXT!r}, which stands for the text itself in a ledger: leave the key "
                "out to go by the text, or rename the column"
            )
        self.column = by
        self._missing = missing
        self._ledger = None if ledger is None else Ledger(ledger)
        self._seen: bytes | None = None

    @property
    def kind(self) -> str | None:
        """Which ledger, and how rows are told apart, if there is one."""
        return None if self._ledger is None else f"{self._ledger.path.resolve()} by {self.column or TEXT}"

    def reserve(self, release_id: str, promise: PrivacyStatement, reader: DocumentReader) -> None:
        """Charge every row, or none; a release that is charged already stays as it is.

        Raises:
            RefusedError: a row would be overspent; nothing was charged.
            DataError: a row without a key.
        """
        if self._ledger is None:
            return
        if self._ledger.state(release_id) == RELEASED:
            raise RefusedError(
                "the ledger knows this release as one that has appeared already: it is not to be made again; start over"
            )
        if isinstance(promise.guarantee, MetricDP):  # the farthest pair is known only when all rows are read
            promise = promise.replace(guarantee=replace(promise.guarantee, max_distance=None))
        self._ledger.reserve(release_id, promise, self._keys(reader), by=self.column or TEXT)

    def check_same(self, identities: Iterable[bytes]) -> None:
        """Whether the rows that were released are the rows that were charged.

        Raises:
            RefusedError: they are not: the input changed in between.
        """
        if self._seen is not None and hashlib.sha256(b"".join(identities)).digest() != self._seen:
            raise RefusedError(
                "the input changed while it was being read, so the ledger knows other rows: start over with --force"
            )

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
                digest.update(block.identity())
                if self.column is None:
                    texts = (self._missing if text is None else text for text in block.texts)
                    yield from (text for text in texts if text is not None)
                    continue
                first = reader.count - len(block.texts) + 1
                for number, value in enumerate(as_lists(block.columns)[self.column], first):
                    yield _key(value, number, self.column)
        self._seen = digest.digest()


def _key(value: object, row: int, column: str) -> str:
    key = spelled_key(value)
    if key is None:
        raise DataError(
            f"row {row} has no {column!r} that could be a key: the ledger needs a text or a whole number for every "
            "row; complete the column, or key by the text"
        )
    return key
