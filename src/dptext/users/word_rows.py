"""Texts as rows of a vocabulary: cut, told apart from what is no word, looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dptext.text.tokens import Kind, kind_of, pieces
from dptext.text.vocabulary import Vocabulary
from dptext.users.sorted_runs import Lengths, Rows

__all__ = ["OUTSIDE", "RowsOfTexts"]

OUTSIDE = -1
"""The row of a word that the vocabulary does not hold."""
_NO_WORD = -2
_REMEMBERED = 1 << 18  # tokens whose row is remembered
_LONGEST_REMEMBERED = 64


class RowsOfTexts:
    """The rows of the words of texts, text after text. Its memory of tokens stays behind when it is pickled."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._known: dict[str, int] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return (RowsOfTexts, (self._vocabulary,))

    def __call__(self, texts: Sequence[str | None]) -> tuple[Rows, Lengths]:
        """(words,) int32 rows, `OUTSIDE` for words that the vocabulary does not hold; (texts,) words in each."""
        if self._known is None:
            self._known = _RowOfToken(self._vocabulary)
        tokens: list[str] = []
        ends = [0]
        for text in texts:
            if text:
                tokens += pieces(text)
            ends.append(len(tokens))
        found = np.fromiter(map(self._known.__getitem__, tokens), dtype=np.int32, count=len(tokens))
        is_word = found != _NO_WORD
        before = np.concatenate([[0], np.cumsum(is_word)])
        return found[is_word], np.diff(before[ends])


class _RowOfToken(dict[str, int]):
    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._row, self._unknown = vocabulary.row, vocabulary.unknown_row

    def __missing__(self, token: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        row = _NO_WORD
        if kind_of(token) is Kind.WORD:
            row = self._row(token)
            row = OUTSIDE if row == self._unknown else row
        if len(token) <= _LONGEST_REMEMBERED:
            self[token] = row
        return row
