"""Public words, and the unknown word that stands for all others."""

from __future__ import annotations

from collections.abc import Iterable

from dptext.errors import DataError
from dptext.text.tokens import fold

__all__ = ["UNKNOWN", "Vocabulary"]

UNKNOWN = "<unk>"
"""An element of every vocabulary: any word outside counts as this one, and any word may become it."""


class Vocabulary:
    """Words and their rows, frozen. Look-ups fold case and normalise (`dptext.text.tokens.fold`).

    Args:
        words: distinct under folding, `UNKNOWN` among them.

    Raises:
        DataError: a word stands twice, or `UNKNOWN` is missing.
    """

    __slots__ = ("_rows", "_unknown_row", "_words")

    def __init__(self, words: Iterable[str]) -> None:
        self._words = tuple(words)
        self._rows: dict[str, int] = {}
        for row, word in enumerate(self._words):
            first = self._rows.setdefault(fold(word), row)
            if first != row:
                raise DataError(
                    f"words must be distinct (case folded); rows {first} and {row} hold the same word: remove one"
                )
        if UNKNOWN not in self._rows:
            raise DataError(f"a vocabulary must hold {UNKNOWN!r}, the word for all others; load_vectors adds it")
        self._unknown_row = self._rows[UNKNOWN]

    @property
    def words(self) -> tuple[str, ...]:
        """The words, row by row."""
        return self._words

    @property
    def unknown_row(self) -> int:
        """The row of `UNKNOWN`."""
        return self._unknown_row

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, word: str) -> bool:
        return fold(word) in self._rows

    def row(self, word: str) -> int:
        """The row of a word, the row of `UNKNOWN` for every string outside."""
        return self._rows.get(fold(word), self._unknown_row)
