"""Which private word stands where an original word stood: what whoever sees both texts can read off.

The layout of a text is public, so its private form is known but for the words: kept characters stay, placeholders are
fixed, a space parts what touched. Between these stand the outputs, each a word of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dptext.text.tokens import Kind, kind_of, pieces
from dptext.words.mechanism import WordMechanism
from dptext.words.rewriter import PLACEHOLDERS

__all__ = ["Aligner", "layout_of_private", "layout_of_release"]

_NEVER_IN_WORDS = frozenset(',;!?()[]{}"-')  # punctuation at which every text is cut, so that no word holds it


class Aligner:
    """Pairs of original and private words, for the releases of one mechanism."""

    def __init__(self, mechanism: WordMechanism) -> None:
        vocabulary = mechanism.vectors.vocabulary
        self._row = vocabulary.row
        self._outputs = {word: row for row, word in enumerate(vocabulary.words)}
        self._longest = max(map(len, vocabulary.words))
        self._unknown = vocabulary.words[vocabulary.unknown_row]
        self._limit, self._drop = mechanism.max_words, mechanism.beyond == "drop"

    def pairs(self, original: str, private: str) -> tuple[list[int], list[int]] | None:
        """(rows of the original words, rows of what became of them); None: the private text is not one of this text.

        Words after a mechanism's ``max_words`` are in neither, for nobody drew anything for them.
        """
        slots = list(self._slots(original))
        observed = self._fit(slots, private)
        if observed is None:
            return None
        return [slot.row for slot in slots[1:]], observed

    def _slots(self, text: str) -> Iterator[_Slot]:
        """The words, each with the fixed characters that follow; the first is none: what stands before all words."""
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
            yield _Slot(row, after)
            row, after = self._row(piece), ""
            if self._drop and words == self._limit:
                break
        yield _Slot(row, after)

    def _fit(self, slots: list[_Slot], private: str) -> list[int] | None:
        """What stands in each slot. A word may hold the characters that follow it, so that a guess can be wrong."""
        if not private.startswith(slots[0].after):
            return None
        ends = [len(slots[0].after)]
        waiting = [self._ends(slots, 1, ends[0], private)]
        refuted: set[tuple[int, int]] = set()
        while waiting:
            if len(ends) == len(slots):
                if ends[-1] == len(private):
                    return self._rows(slots, ends, private)
                end = None
            else:
                end = next((each for each in waiting[-1] if (len(ends), each) not in refuted), None)
            if end is None:
                waiting.pop()
                refuted.add((len(ends) - 1, ends.pop()))
                continue
            ends.append(end)
            waiting.append(self._ends(slots, len(ends), end, private))
        return None

    def _ends(self, slots: list[_Slot], place: int, start: int, private: str) -> Iterator[int]:
        """Where a slot and the characters after it can end."""
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

    def _rows(self, slots: list[_Slot], ends: list[int], private: str) -> list[int]:
        starts = ends[:-1]
        stops = [end - len(slot.after) for end, slot in zip(ends[1:], slots[1:], strict=True)]
        return [self._outputs[private[start:stop]] for start, stop in zip(starts, stops, strict=True)]


@dataclass(frozen=True, slots=True)
class _Slot:
    row: int
    after: str


def layout_of_release(text: str) -> str:
    """What any release of a text shows of its layout, whatever the words become: white space and some punctuation.

    >>> layout_of_release("Well, I don't know!") == layout_of_private("cat, dog cat <unk> dog!")
    True
    """
    shown, touching = [], False
    for piece in pieces(text):
        kind = kind_of(piece)
        replaced = kind is Kind.WORD or kind in PLACEHOLDERS
        if replaced and touching:
            shown.append(" ")
        elif not replaced:
            shown.append(layout_of_private(piece))
        touching = replaced
    return "".join(shown)


def layout_of_private(text: str) -> str:
    """The same, of a private text."""
    return "".join(letter for letter in text if letter.isspace() or letter in _NEVER_IN_WORDS)
