"""The rows of a release in the ledger: reserved before the work starts, settled when the output is in place."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from dptext.errors import DataError, DptextError, ParameterError, RefusedError
from dptext.io.batches import as_lists
from dptext.io.documents import DocumentReader
from dptext.ledger.ledger import PENDING, RELEASED, TEXT, Ledger
from dptext.privacy.guarantee import Guarantee, MetricDP, canonical_id
from dptext.privacy.statement import PrivacyStatement

__all__ = ["Charges"]

_logger = logging.getLogger(__name__)


class Charges:
    """Charges one release to a ledger; does nothing without a ledger."""

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
        """The path of the ledger and the column that rows are charged by, as JSON holds them; None without a ledger."""
        return None if self._ledger is None else [str(self._ledger.path.resolve()), self.column or TEXT]

    def reserve(
        self, release_id: str, promise: PrivacyStatement | Guarantee, reader: DocumentReader, **terms: Any
    ) -> None:
        """Charge every row, or none."""
        if self._ledger is None:
            return
        if self._ledger.state(release_id) == RELEASED:
            raise RefusedError("the ledger has settled this release already: start over, which is a new release")
        if isinstance(promise, PrivacyStatement) and isinstance(promise.guarantee, MetricDP):
            # the farthest pair is known only when all rows are read
            promise = promise.replace(guarantee=replace(promise.guarantee, max_distance=None))
        others = self._ledger.pending(besides=release_id)
        self._ledger.reserve(release_id, promise, self._keys(reader), by=self.column or TEXT, **terms)
        if others:
            _logger.warning("%s", self._ledger.pending_advice(others))

    def is_settled_or_reserved(self, release_id: str) -> bool:
        """Return whether nothing is left to charge; always True without a ledger."""
        return self._ledger is None or self._ledger.state(release_id) is not None

    def check_same(self, identities: Iterable[bytes]) -> None:
        """Raise if the rows that were released are not the rows that were charged."""
        if self._seen is not None and hashlib.sha256(b"".join(identities)).digest() != self._seen:
            raise RefusedError(
                "the input changed while it was being read, so the ledger has charged other rows: start over with "
                "--force"
            )

    def check_reserved(self, release_id: str) -> None:
        """Raise if the ledger no longer counts the release."""
        if not self.is_settled_or_reserved(release_id):
            raise RefusedError(
                f"the release {release_id} was voided in the ledger while this run was at work: nothing was released. "
                "Run the command again, which charges it again"
            )

    def settle(self, release_id: str) -> None:
        """Mark the release as released."""
        if self._ledger is not None:
            try:
                self._ledger.settle(release_id)
            except DptextError as error:
                self.note_pending(error, release_id)
                raise

    def note_pending(self, error: BaseException, release_id: str) -> bool:
        """Return whether the release stays charged after an error (or may stay so); then tell the owner in a note."""
        if self._ledger is None:
            return False
        try:
            if self._ledger.state(release_id) != PENDING:
                return False
        except DptextError as second:
            error.add_note(f"it is not known whether the ledger counts this release ({second})")
            return True
        error.add_note(self._ledger.pending_advice([release_id]))
        return True

    def _keys(self, reader: DocumentReader) -> Iterator[str]:
        digest = hashlib.sha256()
        with contextlib.closing(reader):
            for block in reader.batches():
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
    key = canonical_id(value)
    if key is None:
        raise DataError(
            f"row {row} has no {column!r} that could be a key: the ledger needs a text or a whole number for every "
            "row; complete the column, or key by the text"
        )
    return key
