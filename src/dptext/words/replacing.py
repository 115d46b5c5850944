"""Replacement of the words of texts through a word mechanism, and alignment of private with original texts."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits
from dptext.release.mechanism import show_marks
from dptext.release.release import Tally
from dptext.text.tokens import Kind, Vocabulary, kind_of, letters_between, pieces

if TYPE_CHECKING:
    from dptext.words.mechanism import WordMechanism

PLACEHOLDERS = {Kind.NUMBER: "<number>", Kind.URL: "<url>", Kind.EMAIL: "<email>", Kind.HANDLE: "<handle>"}

_NEVER_IN_WORDS = frozenset(',;!?()[]{}"-')  # punctuation at which every text is split, so that no word contains it
_logger = logging.getLogger(__name__)
_KEPT = -1  # code of an unchanged token
_CODES = {kind: -2 - place for place, kind in enumerate(PLACEHOLDERS)}
_REMEMBERED, _LONGEST = 1 << 19, 64  # number of token codes cached per process, and their characters


class WordReplacing:
    """Replacement of the words of texts through a mechanism (`dptext.release.mechanism.Replacing`)."""

    def __init__(self, mechanism: WordMechanism) -> None:
        self._mechanism = mechanism
        self._codes = _Codes(mechanism.vectors.vocabulary)
        self._words = np.array(mechanism.vectors.words, dtype=object)

    def __call__(self, texts: Sequence[str], bits: RandomBits) -> tuple[list[str], Tally]:
        """Return one private text per text, and the counts."""
        tokens: list[str] = []
        ends = []
        for text in texts:
            tokens += pieces(text)
            ends.append(len(tokens))
        codes = np.fromiter(map(self._codes.__getitem__, tokens), dtype=np.int64, count=len(tokens))
        starts = np.array([0, *ends], dtype=np.int64)
        tally = self._replace_words(tokens, codes, starts, bits)
        for kind, placeholder in PLACEHOLDERS.items():
            for position in np.flatnonzero(codes == _CODES[kind]):
                tokens[position] = placeholder
        replaced = codes != _KEPT
        touching = replaced[1:] & replaced[:-1]
        touching[starts[(starts > 0) & (starts < codes.size)] - 1] = False  # the first token of a document
        for position in np.flatnonzero(touching) + 1:
            tokens[position] = " " + tokens[position]
        _logger.info("%d documents, %d tokens rewritten", len(ends), len(tokens))
        return ["".join(tokens[start:end]) for start, end in pairwise(starts.tolist())], tally

    def _replace_words(
        self, tokens: list[str], codes: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], bits: RandomBits
    ) -> Tally:
        is_word = codes >= 0
        before = np.concatenate([[0], np.cumsum(is_word)])  # words before each token
        longest = int(np.diff(before[starts]).max(initial=0))
        places = np.flatnonzero(is_word)
        unknown_row = self._mechanism.vectors.vocabulary.unknown_row
        unknown_words = int(np.count_nonzero(codes[places] == unknown_row))
        words = places.size
        limit = self._mechanism.max_words
        if limit is not None:
            longest = min(longest, limit)
            first = np.repeat(before[starts[:-1]], np.diff(before[starts]))  # first word of its document, for each word
            beyond = np.arange(places.size) - first >= limit
            unknown = self._mechanism.vectors.words[unknown_row]
            for place in places[beyond]:
                tokens[place] = unknown
            places = places[~beyond]
        rows = codes[places]
        draws = self._mechanism.sample_rows(rows, bits)
        for place, word in zip(places.tolist(), self._words[draws].tolist(), strict=True):
            tokens[place] = word
        kept = places[(draws == rows) & (rows != unknown_row)]
        words_of = np.diff(before[starts])
        kept_of = np.diff(np.searchsorted(kept, starts))
        unchanged = int(np.count_nonzero((words_of > 0) & (kept_of == words_of)))
        return Tally(longest=longest, words=words, unknown=unknown_words, kept=int(kept.size), unchanged=unchanged)


def words_that_can_come_out(vocabulary: Vocabulary) -> frozenset[str]:
    """Return the possible runs of letters of a private text: parts of words and placeholders."""
    outputs = (*vocabulary.words, *PLACEHOLDERS.values())
    return frozenset(part for output in outputs for part in letters_between(output))


def count_foreign_words(text: str, known: frozenset[str]) -> int:
    """Count the runs of letters of a private text that no release can contain."""
    return sum(part not in known for part in letters_between(text))


class _Codes(dict[str, int]):
    """Cache of token codes; a shared cache with a function would be one more function that holds a private row."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._row = vocabulary.row

    def __missing__(self, piece: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        kind = kind_of(piece)
        code = self._row(piece) if kind is Kind.WORD else _CODES.get(kind, _KEPT)
        if len(piece) <= _LONGEST:
            self[piece] = code
        return code


class Aligner:
    """Alignment of original with private words, for the releases of one mechanism."""

    def __init__(self, mechanism: WordMechanism) -> None:
        vocabulary = mechanism.vectors.vocabulary
        self._row = vocabulary.row
        self._outputs = {word: row for row, word in enumerate(vocabulary.words)}
        self._longest = max(map(len, vocabulary.words))
        self._unknown = vocabulary.words[vocabulary.unknown_row]
        self._limit = mechanism.max_words

    def pairs(self, original: str, private: str) -> tuple[list[int], list[int]] | None:
        """Return (rows of the original words, rows of their replacements); None if the private text does not fit."""
        slots = list(self._slots(original))
        observed = self._fit(slots, show_marks(private))
        if observed is None:
            return None
        return [slot.row for slot in slots[1:]], observed

    def _slots(self, text: str) -> Iterator[_Slot]:
        """Yield each word with the fixed characters after it; the first slot has no word, only leading characters."""
        row, after, words, touching = -1, "", 0, False
        for piece in pieces(text):
            kind = kind_of(piece)
            if kind is Kind.WORD or kind in PLACEHOLDERS:
                after += " " if touching else ""
                touching = True
            else:
                touching = False
            if kind is not Kind.WORD:
                after += PLACEHOLDERS.get(kind, piece)
                continue
            words += 1
            if self._limit is not None and words > self._limit:
                after += self._unknown
                continue
            yield _Slot(row, show_marks(after))
            row, after = self._row(piece), ""
        yield _Slot(row, show_marks(after))

    def _fit(self, slots: list[_Slot], private: str) -> list[int] | None:
        """Return the word in each slot. A word may contain the characters that follow it, so a guess can be wrong."""
        if not private.startswith(slots[0].after):
            return None
        ends = [len(slots[0].after)]
        waiting = [self._ends(slots, 1, ends[0], private)]
        refuted: set[tuple[int, int]] = set()
        while waiting:
            if len(ends) == len(slots):
                if ends[-1] == len(private):
                    words = zip(pairwise(ends), slots[1:], strict=True)
                    return [self._outputs[private[start : end - len(after)]] for (start, end), (_, after) in words]
                end = None
            else:
                end = next((entry for entry in waiting[-1] if (len(ends), entry) not in refuted), None)
            if end is None:
                waiting.pop()
                refuted.add((len(ends) - 1, ends.pop()))
                continue
            ends.append(end)
            waiting.append(self._ends(slots, len(ends), end, private))
        return None

    def _ends(self, slots: list[_Slot], place: int, start: int, private: str) -> Iterator[int]:
        if place == len(slots):
            return
        after = slots[place].after
        last = min(len(private), start + self._longest)
        furthest = last + len(after)  # a search to the end of the text for each word takes quadratic time
        stop = private.find(after, start, furthest) if after else len(private)
        while start <= stop <= last:
            if private[start:stop] in self._outputs:
                yield stop + len(after)
            stop = private.find(after, stop + 1, furthest) if after else -1


class _Slot(NamedTuple):
    row: int
    after: str


def layout_of_release(text: str) -> str:
    """Return the layout that every release of a text shows: white space and some punctuation."""
    parts, touching = [], False
    for piece in pieces(text):
        kind = kind_of(piece)
        replaced = kind is Kind.WORD or kind in PLACEHOLDERS
        parts.append(" " * touching if replaced else piece)
        touching = replaced
    return layout_of_private(show_marks("".join(parts)))


def layout_of_private(text: str) -> str:
    """Return the layout that a private text shows."""
    return "".join(letter for letter in show_marks(text) if letter.isspace() or letter in _NEVER_IN_WORDS)
