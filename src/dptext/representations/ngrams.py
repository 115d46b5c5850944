"""A text as the buckets of its words and of its pairs of neighbouring words: no vocabulary, so nothing is unknown."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.text.tokens import Kind, fold, kind_of, pieces

__all__ = ["Buckets", "NGrams", "Rows"]

_REMEMBERED = 1 << 18
_LONGEST_REMEMBERED = 64
_NO_WORDS = (Kind.SPACE, Kind.PUNCTUATION)

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Buckets:
    """The buckets of several texts, end to end.

    Attributes:
        values: (total,) buckets.
        starts: (n + 1,) where each text starts, and where the last one ends.
    """

    values: Rows
    starts: Rows

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def lengths(self) -> Rows:
        """(n,) how many each text has."""
        lengths: Rows = np.diff(self.starts)
        return lengths

    def take(self, texts: npt.NDArray[np.intp]) -> Buckets:
        """Some of the texts, in the order asked for."""
        lengths = self.lengths[texts]
        ends = np.cumsum(lengths)
        # place of each value in its text, moved to where the text starts here
        places = np.arange(lengths.sum()) + np.repeat(self.starts[:-1][texts] - (ends - lengths), lengths)
        return Buckets(self.values[places], np.concatenate([[0], ends]))


@dataclass(frozen=True, kw_only=True)
class NGrams:
    """How a text is cut and hashed.

    Words, numbers and addresses count, folded; white space and punctuation do not. An n-gram is n of them in a row; its
    bucket is CRC-32 of their UTF-8, modulo the number of buckets. The function is public and fixed: n-grams that share
    a bucket are not told apart, and none is unknown.

    Attributes:
        most: words in an n-gram: 2 takes single words and pairs.
        buckets: how many.

    Raises:
        ParameterError: out of range.

    >>> NGrams(buckets=1000).of(["Cat, dog!", ""]).lengths.tolist()
    [3, 0]
    """

    most: int = 2
    buckets: int = 1 << 18

    def __post_init__(self) -> None:
        for name, value, largest in (("most", self.most, 5), ("buckets", self.buckets, 1 << 26)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= largest:
                raise ParameterError(f"{name} must be an integer from 1 to {largest:,}, got {value!r}")

    def words_of(self, text: str) -> list[str]:
        """What counts as a word of a text, in its order, folded."""
        return [word for piece in pieces(text) if (word := _WORDS[piece])]

    def of(self, texts: Iterable[str]) -> Buckets:
        """The buckets of each text, however long it is: a text without words has none."""
        return self.of_words(map(self.words_of, texts))

    def of_words(self, texts: Iterable[Sequence[str | None]]) -> Buckets:
        """The same for texts that are cut already. None masks a word: no n-gram that it stands in has a bucket.

        >>> NGrams().of_words([["one", None, "two", "three"]]).lengths.tolist()
        [4]
        """
        found = [self._row(words) for words in texts]
        lengths = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
        values = np.concatenate([np.empty(0, np.int64), *found])
        return Buckets(values, np.concatenate([[0], np.cumsum(lengths)]))

    def _row(self, words: Sequence[str | None]) -> Rows:
        buckets = self.buckets
        encoded = [None if word is None else word.encode("utf-8", "surrogatepass") for word in words]
        hashes = [zlib.crc32(word) % buckets for word in encoded if word is not None]
        for count in range(2, self.most + 1):
            runs = zip(*(encoded[start:] for start in range(count)), strict=False)
            hashes += [zlib.crc32(b" ".join(run)) % buckets for run in runs if None not in run]
        return np.array(hashes, dtype=np.int64)


class _Words(dict[str, str]):
    """The folded form of every piece of text met; the empty one for what does not count."""

    def __missing__(self, piece: str) -> str:
        if len(self) >= _REMEMBERED:
            self.clear()
        word = "" if kind_of(piece) in _NO_WORDS else fold(piece)
        if len(piece) <= _LONGEST_REMEMBERED:
            self[piece] = word
        return word


_WORDS = _Words()
