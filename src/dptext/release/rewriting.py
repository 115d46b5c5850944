"""Texts through a mechanism, block by block."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cached_property

from dptext.errors import DataError, ParameterError
from dptext.io.batches import Batch, text_batches
from dptext.io.documents import Document
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.processes import in_order
from dptext.release.mechanism import Replacing, TextMechanism
from dptext.release.release import Tally, without_text

__all__ = ["Rewriter", "check_mechanism", "checked_texts", "rewrite_blocks"]


def check_mechanism(mechanism: object) -> None:
    """Raise `ParameterError` if ``mechanism`` does not replace texts."""
    if not isinstance(mechanism, TextMechanism):
        raise ParameterError(
            "mechanism must be one that replaces texts (a word mechanism such as TEM, or a BankRewriter), got "
            f"{type(mechanism).__name__}"
        )


class Rewriter:
    """What replaces texts: constant memory, texts out in the order of texts in."""

    def __init__(
        self,
        mechanism: TextMechanism,
        *,
        seed: int | None = None,
        key: NoiseKey | None = None,
        release_id: str | None = None,
    ) -> None:
        check_mechanism(mechanism)
        self.mechanism = mechanism
        self.tally = Tally()
        self.key = NoiseKey(seed) if key is None else key
        self.release_id = release_id or new_release_id()
        self._parameters = hashlib.sha256(_all_settings(mechanism).encode()).digest()
        self._place = 0

    @cached_property
    def _replacing(self) -> Replacing:
        return self.mechanism.replacing()

    def statement(self) -> PrivacyStatement:
        """The statement for everything rewritten so far."""
        statement = self.mechanism.document_statement(self.tally.longest, seeded=self.key.seeded)
        exposed = (*statement.exposed, *without_text(self.tally.missing > 0))
        return statement.replace(release_id=self.release_id, exposed=exposed)

    def statement_before(self) -> PrivacyStatement:
        """See `TextMechanism.statement_before`."""
        return self.mechanism.statement_before(seeded=self.key.seeded).replace(release_id=self.release_id)

    def warning(self) -> str | None:
        """What the owner of the texts should know of everything rewritten so far; it enters no statement."""
        return self.mechanism.warning(self.tally)

    def rewrite(self, texts: Iterable[str | Document | None]) -> Iterator[str | None]:
        """Yield one private text for each text."""
        if isinstance(texts, str):
            raise ParameterError("texts must be a list of strings, got one string: put it into a list")
        for block in text_batches(checked_texts(texts)):
            private, tally = self.rewrite_block(self._place, block)
            self._place += 1
            self.tally += tally
            yield from private

    def rewrite_block(self, place: int, block: Batch) -> tuple[list[str | None], Tally]:
        """The private texts of one block, and its counts: the same ones whenever and wherever it is done."""
        bits = self.key.stream(self._parameters, place, block.digest())
        there = [text for text in block.texts if text is not None]
        replaced, tally = self._replacing(there, bits)
        missing = len(block.texts) - len(there)
        if not missing:
            return [*replaced], tally
        left = iter(replaced)
        private = [None if text is None else next(left) for text in block.texts]
        return private, tally + Tally(missing=missing)


def _all_settings(mechanism: TextMechanism) -> str:
    """What names the noise of a mechanism under one secret: others draw other noise."""
    owned = mechanism.settings_of_owner()
    return mechanism.statement.to_json() + (json.dumps(owned, sort_keys=True) if owned else "")


def checked_texts(texts: Iterable[str | Document | None]) -> Iterator[str | None]:
    """The strings of the texts; a `DataError` names the place of what is none."""
    for place, entry in enumerate(texts, 1):
        text = entry.text if isinstance(entry, Document) else entry
        if text is not None and not isinstance(text, str):
            raise DataError(f"texts must be strings, entry {place} is {type(text).__name__}")
        yield text


# -- several processes ----------------------------------------------------------------------------------------


def rewrite_blocks(
    rewriter: Rewriter, blocks: Iterable[tuple[int, Batch]], *, processes: int = 1
) -> Iterator[tuple[int, Batch, tuple[list[str | None], Tally]]]:
    """Every block, given with its place, and what `Rewriter.rewrite_block` makes of it, in order."""
    key = rewriter.key
    pieces = (((place, block), (key.secret(), key.seeded, place, Batch(block.texts, {}))) for place, block in blocks)
    for (place, block), done in in_order(_Work(rewriter.mechanism), pieces, processes=processes):
        yield place, block, done


class _Work:
    """`Rewriter.rewrite_block` in any process. It holds no secret: it goes there through a file."""

    def __init__(self, mechanism: TextMechanism) -> None:
        self._mechanism = mechanism
        self._rewriter: Rewriter | None = None

    def __call__(self, sent: tuple[bytes, bool, int, Batch]) -> tuple[list[str | None], Tally]:
        secret, seeded, place, block = sent
        if self._rewriter is None:
            self._rewriter = Rewriter(self._mechanism, key=NoiseKey.restored(secret, seeded=seeded))
        return self._rewriter.rewrite_block(place, block)
