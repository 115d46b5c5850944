"""The rows of a release and the ledger: charged whole before the work starts, settled when the release appears."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dptext.errors import DataError, DptextError, ParameterError, RefusedError
from dptext.files.column import spelled_key
from dptext.files.documents import DocumentReader
from dptext.files.parquet import as_lists
from dptext.ledger.ledger import PENDING, RELEASED, TEXT, Ledger
from dptext.privacy.guarantee import Guarantee, MetricDP
from dptext.privacy.statement import PrivacyStatement

__all__ = ["Charges"]


class Charges:
    """What one release charges to a ledger; without a ledger, nothing.

    Args:
        ledger: the file of the ledger, or None.
        by: the column that says which row or person a row is; None: the text itself. Without a ledger nothing goes by
            it.
        missing: the text that a missing one (null) counts as; None: nothing is released of such a row, so that by its
            text it is charged nothing.
    """

    def __init__(self, ledger: str | Path | None, by: str | None, *, missing: str | None = None) -> None:
        if by == TEXT and ledger is not None:
            raise ParameterError(
                f"the column of users cannot be named {TEXT!r}, which stands for the text itself in a ledger: leave "
                "user out to go by the text, or rename the column"
            )
        self.column = by
        self._missing = missing
        self._ledger = None if ledger is None else Ledger(ledger)
        self._seen: bytes | None = None

    @property
    def kind(self) -> list[str] | None:
        """Which ledger, and how rows are told apart, if there is one; as JSON keeps it."""
        return None if self._ledger is None else [str(self._ledger.path.resolve()), self.column or TEXT]

    def reserve(
        self, release_id: str, promise: PrivacyStatement | Guarantee, reader: DocumentReader, **terms: Any
    ) -> None:
        """Charge every row, or none; a release that is charged already stays as it is.

        Args:
            release_id, promise, terms: as in `dptext.ledger.ledger.Ledger.reserve`.
            reader: the rows.

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
        if isinstance(promise, PrivacyStatement) and isinstance(promise.guarantee, MetricDP):
            # the farthest pair is known only when all rows are read
            promise = promise.replace(guarantee=replace(promise.guarantee, max_distance=None))
        self._ledger.reserve(release_id, promise, self._keys(reader), by=self.column or TEXT, **terms)

    def holds(self, release_id: str) -> bool:
        """Whether there is nothing left to charge: the release is reserved or settled, or there is no ledger."""
        return self._ledger is None or self._ledger.state(release_id) is not None

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
        """The release is out. Until then it is pending, and counts as well: so the order that holds for every release
        is to reserve, to work, to put the whole output in place, and then to settle. What stops a run in between
        leaves a release that counts, and that can be given back where nothing came out.

        Raises:
            StorageError, DataError: the ledger failed; what to do stands in a note.
        """
        if self._ledger is not None:
            try:
                self._ledger.settle(release_id)
            except DptextError as error:
                error.add_note(
                    "the output is in place, and the ledger counts it as pending: say that it is out with: "
                    f"dptext ledger settle {self._ledger.path} {release_id}"
                )
                raise

    def void(self, release_id: str) -> None:
        """The release never appears."""
        if self._ledger is not None and self._ledger.state(release_id) == PENDING:
            self._ledger.void(release_id)

    def void_after(self, error: BaseException, release_id: str) -> bool:
        """Void because of an error, which matters more than what the ledger may say now.

        Returns:
            Whether nothing is reserved any more. Otherwise the error has a note of what to do.
        """
        try:
            self.void(release_id)
        except DptextError as second:
            assert self._ledger is not None
            error.add_note(
                f"nothing was released, but the ledger still counts it ({second}): run the same command again, or give "
                f"the budget back with: dptext ledger void {self._ledger.path} {release_id}"
            )
            return False
        return True

    def give_up(self, release_id: str, options: Mapping[str, Any], is_out: bool) -> None:
        """What becomes of the release of an earlier run that is thrown away, in the ledger that it named.

        Args:
            release_id: of that run.
            options: of its job; ``ledger`` is its `kind`.
            is_out: whether its output may have appeared: then it stays spent.
        """
        match options.get("ledger"):
            case [str(path), str()] if Path(path).exists():
                ledger = Ledger(path)
                if ledger.state(release_id) == PENDING:
                    end: Callable[[str], None] = ledger.settle if is_out else ledger.void
                    end(release_id)

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
