"""Texts as rows of a table of words, for a recurrent network: folded words in their order, cut at a length."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dptext.errors import ParameterError
from dptext.representations.ngrams import Buckets, NGrams
from dptext.text.tokens import fold

__all__ = ["END", "UNKNOWN_ROW", "WordTable"]

UNKNOWN_ROW, END = 0, 1
_RESERVED = ("<unk>", "<end>")
_FEWEST_TEXTS = 2
_CUT = NGrams(most=1)


@dataclass(frozen=True, eq=False)
class WordTable:
    """Words by row. Row 0 stands for all other words, row 1 for the end of a text.

    Attributes:
        words: from row 2 on, the most frequent first; distinct, folded, none with white space in it.
        longest: words of a text that count; the others are left out.

    Raises:
        ParameterError: words that are none, stand twice or are not folded; a length below 1.

    >>> table = WordTable(("the", "cat"), longest=3)
    >>> rows = table.rows(["The dog, the cat", ""])
    >>> rows.values.tolist(), rows.lengths.tolist(), table.text([2, 3, 1, 2])
    ([2, 0, 2], [3, 0], 'the cat')
    """

    words: tuple[str, ...]
    longest: int = 60

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(self.words))
        if isinstance(self.longest, bool) or not isinstance(self.longest, int | np.integer) or self.longest < 1:
            raise ParameterError(f"longest must be a number of words of at least 1, got {self.longest!r}")
        if any(not isinstance(word, str) or not _can_stand(word) for word in self.words):
            raise ParameterError(
                f"the words of a table must be text without white space, and none of {' and '.join(_RESERVED)}, which "
                "have rows of their own"
            )
        distinct = {*self.words}
        if len(distinct) != len(self.words) or any(fold(word) != word for word in self.words):
            raise ParameterError("the words of a table must be distinct, and folded (lower case)")
        if not self.words:
            raise ParameterError("a table needs words, got none")

    @classmethod
    def of_texts(cls, texts: Iterable[str], *, most: int, longest: int) -> WordTable:
        """The most frequent words of texts, of those that two texts or more have. *Not private*: the words are shown.

        Raises:
            ParameterError: no word stands in two texts.
        """
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update({*_CUT.words_of(text)})
        common = [word for word, count in counts.items() if count >= _FEWEST_TEXTS and _can_stand(word)]
        common = sorted(common, key=lambda word: (-counts[word], word))[:most]
        if not common:
            raise ParameterError("no word stands in two of the texts: give more texts, or words=[...]")
        return cls(tuple(common), longest)

    @classmethod
    def of_words(cls, words: Sequence[str], *, longest: int) -> WordTable:
        """Words that are public, in the order given; those that come out alike when folded count once."""
        folded = dict.fromkeys(fold(word) for word in words)
        return cls(tuple(word for word in folded if _can_stand(word)), longest)

    @property
    def size(self) -> int:
        """Rows, those that are reserved among them."""
        return len(self.words) + len(_RESERVED)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words, len(_RESERVED))}

    def rows(self, texts: Iterable[str]) -> Buckets:
        """The rows of the words of each text."""
        places, longest = self._places, self.longest
        found = [
            np.array([places.get(word, UNKNOWN_ROW) for word in _CUT.words_of(text)[:longest]], dtype=np.int64)
            for text in texts
        ]
        lengths = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
        return Buckets(np.concatenate([np.empty(0, np.int64), *found]), np.concatenate([[0], np.cumsum(lengths)]))

    def text(self, rows: Iterable[int]) -> str:
        """Words with a space in between, up to the end."""
        words = []
        for row in rows:
            if row == END:
                break
            words.append(_RESERVED[0] if row == UNKNOWN_ROW else self.words[row - len(_RESERVED)])
        return " ".join(words)

    @cached_property
    def sha256(self) -> str:
        """Digest of words and length."""
        told = "\n".join([str(self.longest), *self.words])
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return WordTable, (self.words, self.longest)


def _can_stand(word: str) -> bool:
    """Whether a word can be written beside others, and into a file."""
    return word.split() == [word] and word not in _RESERVED and not any("\ud800" <= each <= "\udfff" for each in word)


def padded(rows: Buckets) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]]]:
    """(n, longest) rows with `END` after each text's own, and (n,) lengths."""
    lengths = rows.lengths
    filled = np.full((len(rows), max(int(lengths.max(initial=0)), 1)), END, dtype=np.int64)
    inside = np.arange(filled.shape[1]) < lengths[:, None]
    filled[inside] = rows.values
    return filled, lengths
