"""Words and phrases of up to three words that many users write, found in rounds of weighted set union."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.noise.gaussian_sums import Floats, Integers
from dptext.noise.set_union import SetUnion, sum_cells
from dptext.privacy.randomness import RandomBits
from dptext.text.tokens import Kind, fold, kind_of
from dptext.users.grouping import NO_WORD, TokenRows, temporary_file
from dptext.users.private_vocabulary import is_printable_word

_BREAK = -1  # end of a text, or a token that is no word: no phrase contains it
_MOST_WORDS = 1 << 20  # listed words, so that the number of a triple has 60 bits
_END, _WORD_BYTES = np.int32(_BREAK).tobytes(), 4
_TOKENS_AT_ONCE = 1 << 20
_ENTRIES = 1 << 22  # sums of a round that wait to be merged

Rows: TypeAlias = npt.NDArray[np.int32]
KeysOf: TypeAlias = Callable[[Rows], Integers]  # the number of the candidate that ends at each word, or -1


class Found(NamedTuple):
    """A released phrase of one to three words, with its noisy sum of weights in the round that released it."""

    words: tuple[str, ...]
    weight: float


class UserPhrases:
    """Words of all users as numbers in an unnamed temporary file: find phrases of many users, and count their users.

    A phrase lies within a text and contains no punctuation, number or address, so it crosses no end of a sentence. Its
    words are folded and printable, as in `dptext.private_vocabulary`; it begins and ends with no word of ``known``,
    public words of no interest. Memory grows with the distinct words (100 bytes each) and candidates of a round (32
    bytes each); the words of one user must fit as well. The file has 4 bytes per word.
    """

    def __init__(self, known: Collection[str] = ()) -> None:
        numbers = {word: number for number, word in enumerate(dict.fromkeys(map(fold, known)))}

        def row_of(token: str) -> int:
            kind, word = kind_of(token), fold(token)
            if kind is Kind.WORD and is_printable_word(word):
                return numbers.setdefault(word, len(numbers))
            return NO_WORD if kind is Kind.SPACE else _BREAK

        self._numbers, self._known, self._rows_of = numbers, len(numbers), TokenRows(row_of)
        self._file, self._buffer, self._ends, self._written = temporary_file(), bytearray(), array("q", [0]), 0

    def close(self) -> None:
        """Close the file, which deletes it."""
        self._file.close()

    def add(self, texts: Sequence[str]) -> None:
        """Add all texts of one user."""
        for text in texts:
            self._buffer += self._rows_of.of(text) + _END
        self._ends.append((self._written + len(self._buffer)) // _WORD_BYTES)
        if len(self._buffer) >= _TOKENS_AT_ONCE * _WORD_BYTES:
            self._flush()

    def find(self, unions: Sequence[SetUnion], bits: RandomBits) -> list[Found]:
        """Return the phrases of many users, by the noise and threshold of each round.

        The last two are for pairs of released words and for triples of released pairs; all others are for words.

        **Guarantee** (unit user, add/remove, central): the composed unions (docs/mechanisms/cooccurrence.md, (3)). In a
        round, a user adds weights of norm 1 to their ``keys`` most frequent candidates, which earlier rounds determine.
        """
        names, known, left = np.array([*self._numbers], dtype=object), self._known, np.arange(len(self._numbers) + 1)
        left[:known] = left[_BREAK] = -1
        numbers, sums = np.empty(0, dtype=np.int64), np.empty(0)
        *of_words, of_pairs, of_triples = unions
        for union in of_words:
            kept, noisy = self._release(union, left.__getitem__, len(names), bits)
            numbers, sums = np.r_[numbers, kept], np.r_[sums, noisy]
            left[kept] = -1
        best = np.lexsort((names[numbers], -sums))[: _MOST_WORDS - known]  # not in the order of the texts
        listed, sums = np.r_[np.arange(known), numbers[best]], sums[best]
        words, base, places = np.arange(known, len(listed)), max(1, len(listed)), np.full(len(names) + 1, -1)
        places[listed] = np.arange(len(listed))

        def phrases_of(rows: Rows, length: int) -> Integers:
            """Number the phrases that begin and end with a released word."""
            is_released = places[rows] >= known
            return np.where(is_released & np.roll(is_released, length - 1), _number(places[rows], length, base), -1)

        def triples_of(rows: Rows) -> Integers:
            """Number the triples of two released pairs, or of two released words around a known word."""
            is_known = (rows >= 0) & (rows < known)
            joined = is_known | np.roll(is_known, 1) | (_lookup(pairs, phrases_of(rows, 2)) >= 0)
            return np.where(joined & np.roll(joined, 1), phrases_of(rows, 3), -1)

        pairs, sums_of_pairs = self._release(of_pairs, lambda rows: phrases_of(rows, 2), base**2, bits)
        triples, sums_of_triples = self._release(of_triples, triples_of, base**3, bits)
        result: list[Found] = []
        for length, keys, weights in ((1, words, sums), (2, pairs, sums_of_pairs), (3, triples, sums_of_triples)):
            rows = names[listed[keys[:, None] // base ** np.arange(length)[::-1] % base]]
            result += map(Found, map(tuple, rows.tolist()), weights.tolist())
        return result

    def count(self, phrases: Sequence[tuple[str, ...]]) -> tuple[Integers, int]:
        """Return the number of users who wrote each phrase, and the number of all users. **Not private.**"""
        digits = {word: digit for digit, word in enumerate({word for phrase in phrases for word in phrase}, 1)}
        base, places = len(digits) + 1, np.array([*(digits.get(word, -1) for word in self._numbers), -1])
        numbers = [reduce(lambda number, word: number * base + digits[word], phrase, 0) for phrase in phrases]
        keys, inverse = np.unique(np.array(numbers, dtype=np.int64), return_inverse=True)
        users = np.zeros(len(keys), dtype=np.int64)

        def indices_of(rows: Rows) -> Integers:
            return np.concatenate([_lookup(keys, _number(places[rows], length, base)) for length in (1, 2, 3)])

        for _, indices, _ in self._contributions(indices_of, len(keys)):
            users += np.bincount(indices, minlength=len(keys))
        return users[inverse], len(self._ends) - 1

    def _release(self, union: SetUnion, keys_of: KeysOf, width: int, bits: RandomBits) -> tuple[Integers, Floats]:
        """Return the keys that the union releases, sorted, and their noisy sums of weights."""
        parts = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))]
        for users, keys, counts in self._contributions(keys_of, width):
            parts.append((keys, union.contributions(users, counts, bits)))
            if sum(len(keys) for keys, _ in parts[1:]) > max(_ENTRIES, len(parts[0][0])):
                parts = [sum_cells(parts)]
        return union.release(*sum_cells(parts), bits)

    def _contributions(self, keys_of: KeysOf, width: int) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield sorted pairs of a user, numbered in a batch of users, and a key below ``width``, and their counts."""
        self._flush()
        ends, start = np.array(self._ends), 0
        rows = np.memmap(self._file, np.int32, mode="r", shape=(int(ends[-1]),)) if ends[-1] else np.empty(0, np.int32)
        while start < len(ends) - 1:
            stop = int(np.searchsorted(ends, ends[start] + _TOKENS_AT_ONCE, "right")) - 1
            stop = max(start + 1, min(stop, start + 2**62 // max(1, width)))
            keys = keys_of(np.array(rows[ends[start] : ends[stop]]))
            users = np.repeat(np.arange(stop - start), np.diff(ends[start : stop + 1]))
            users = np.resize(users, len(keys))  # `count` repeats the words for each length
            pairs = np.sort(users[keys >= 0] * width + keys[keys >= 0])
            first = np.flatnonzero(np.diff(pairs, prepend=-1))
            yield *np.divmod(pairs[first], max(1, width)), np.diff(first, append=len(pairs))
            start = stop

    def _flush(self) -> None:
        self._file.write(self._buffer)
        self._file.flush()
        self._written, self._buffer = self._written + len(self._buffer), bytearray()


def _number(places: Integers, length: int, base: int) -> Integers:
    """Number the phrase that ends at each place; a batch ends with a `_BREAK`, so no phrase wraps round."""
    result = places
    for _ in range(length - 1):
        before = np.roll(result, 1)
        result = np.where((before >= 0) & (places >= 0), before * base + places, -1)
    return result


def _lookup(keys: Integers, values: Integers) -> Integers:
    """Return the index of each value in sorted keys, or -1."""
    result = np.full(len(values), -1)
    candidates = np.flatnonzero(values >= 0) if len(keys) else np.empty(0, dtype=np.int64)
    index = np.minimum(np.searchsorted(keys, values[candidates]), len(keys) - 1)
    result[candidates] = np.where(keys[index] == values[candidates], index, -1)
    return result
