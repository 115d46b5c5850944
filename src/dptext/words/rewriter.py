"""Texts through a word mechanism: what becomes of each token, and back: which word stands where which one stood.

Words go through the mechanism; a number, URL, e-mail address or handle becomes one fixed placeholder; punctuation and
space stay. Where two tokens touched (``do`` + ``n't``, Han characters), a space is put between their replacements.

Texts go through in blocks, and each block has a stream of random bits of its own, named by its place and its content
(`dptext.privacy.randomness`). So a seed gives the same texts for every number of processes, and a block that is done
again repeats its noise.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError, ParameterError
from dptext.files.blocks import Block, in_blocks
from dptext.files.documents import Document
from dptext.privacy.randomness import NoiseKey, RandomBits
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.processes import in_order
from dptext.release.release import Tally
from dptext.text.tokens import Kind, kind_of, letters_between, pieces
from dptext.text.vocabulary import Vocabulary
from dptext.words.mechanism import WordMechanism

__all__ = [
    "PLACEHOLDERS",
    "Aligner",
    "Codes",
    "Rewriter",
    "checked_texts",
    "count_foreign_words",
    "layout_of_private",
    "layout_of_release",
    "rewrite_blocks",
    "words_that_can_come_out",
]

PLACEHOLDERS = {Kind.NUMBER: "<number>", Kind.URL: "<url>", Kind.EMAIL: "<email>", Kind.HANDLE: "<handle>"}

_NEVER_IN_WORDS = frozenset(',;!?()[]{}"-')  # punctuation at which every text is cut, so that no word holds it
_logger = logging.getLogger(__name__)
_KEPT = -1  # code of a token that stays as it is
_CODES = {kind: -2 - place for place, kind in enumerate(PLACEHOLDERS)}
_REMEMBERED = 1 << 19  # tokens whose code is remembered, while the rewriter lives
_LONGEST_REMEMBERED = 64


class Rewriter:
    """What replaces the words of texts: constant memory, texts out in the order of texts in.

    Args:
        mechanism: a word mechanism.
        seed: None for cryptographic randomness; an integer for tests and papers only (the statement says so).
        key: the secret of the job, where it is not to be made from the seed or afresh.
        release_id: of the job, where it has one.

    Attributes:
        tally: counts over everything rewritten so far.
    """

    def __init__(
        self,
        mechanism: WordMechanism,
        *,
        seed: int | None = None,
        key: NoiseKey | None = None,
        release_id: str | None = None,
    ) -> None:
        if not isinstance(mechanism, WordMechanism):
            raise ParameterError(f"mechanism must be a word mechanism such as TEM, got {type(mechanism).__name__}")
        self.mechanism = mechanism
        self.tally = Tally()
        self.key = NoiseKey(seed) if key is None else key
        self.release_id = release_id or new_release_id()
        self._parameters = hashlib.sha256(mechanism.statement.to_json().encode()).digest()
        self._place = 0
        self._codes = Codes(mechanism)
        self._words = np.array(mechanism.vectors.words, dtype=object)

    def statement(self) -> PrivacyStatement:
        """The statement for everything rewritten so far."""
        statement = self.mechanism.document_statement(self.tally.longest, seeded=self.key.seeded)
        missing = ("which rows had no text (null)",) if self.tally.missing else ()
        return statement.replace(release_id=self.release_id, exposed=(*statement.exposed, *missing))

    def rewrite(self, texts: Iterable[str | Document | None]) -> Iterator[str | None]:
        """Yield one private text for each text.

        Raises:
            DataError: an entry is neither a string nor a `Document`; its place is named.
        """
        if isinstance(texts, str):
            raise ParameterError("texts must be a list of strings, got one string: put it into a list")
        for block in in_blocks(checked_texts(texts)):
            private, tally = self.rewrite_block(self._place, block)
            self._place += 1
            self.tally += tally
            yield from private

    def rewrite_block(self, place: int, block: Block) -> tuple[list[str | None], Tally]:
        """The private texts of one block, and its counts: the same ones whenever and wherever it is done.

        Args:
            place: which block of the job it is, from 0; no two blocks of a job may have the same.
            block: its texts.
        """
        bits = self.key.stream(self._parameters, place, block.digest())
        tokens: list[str] = []
        ends = []
        for text in block.texts:
            if text is not None:
                tokens += self._cut(pieces(text))
            ends.append(len(tokens))
        codes = np.fromiter(map(self._codes.__getitem__, tokens), dtype=np.int64, count=len(tokens))
        starts = np.array([0, *ends], dtype=np.int64)
        tally = self._replace_words(tokens, codes, starts, bits)
        for kind, placeholder in PLACEHOLDERS.items():
            for at in np.flatnonzero(codes == _CODES[kind]):
                tokens[at] = placeholder
        for at in _touching(codes, starts):
            tokens[at] = " " + tokens[at]
        private: list[str | None] = ["".join(tokens[start:end]) for start, end in pairwise(starts.tolist())]
        missing = [row for row, text in enumerate(block.texts) if text is None]
        for row in missing:
            private[row] = None
        _logger.info("%d documents, %d tokens rewritten", len(ends), len(tokens))
        return private, tally + Tally(missing=len(missing))

    def _cut(self, tokens: list[str]) -> list[str]:
        """The tokens up to the last word that the mechanism takes, where it drops all that follows."""
        limit = self.mechanism.max_words
        if limit is None or self.mechanism.beyond != "drop":
            return tokens
        words = [place for place, token in enumerate(tokens) if self._codes[token] >= 0]
        return tokens if len(words) <= limit else tokens[: words[limit - 1] + 1]

    def _replace_words(
        self, tokens: list[str], codes: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], bits: RandomBits
    ) -> Tally:
        is_word = codes >= 0
        before = np.concatenate([[0], np.cumsum(is_word)])  # words before each token
        longest = int(np.diff(before[starts]).max(initial=0))
        places = np.flatnonzero(is_word)
        unknown_row = self.mechanism.vectors.vocabulary.unknown_row
        unknown_words = int(np.count_nonzero(codes[places] == unknown_row))
        words = places.size
        limit = self.mechanism.max_words
        if limit is not None:
            longest = min(longest, limit)
            first = np.repeat(before[starts[:-1]], np.diff(before[starts]))  # of the document, for each word
            beyond = np.arange(places.size) - first >= limit
            unknown = self.mechanism.vectors.words[unknown_row]
            for place in places[beyond]:
                tokens[place] = unknown
            places = places[~beyond]
        drawn = self.mechanism.sample_rows(codes[places], bits)
        for place, word in zip(places.tolist(), self._words[drawn].tolist(), strict=True):
            tokens[place] = word
        return Tally(longest=longest, words=words, unknown=unknown_words)


def checked_texts(texts: Iterable[str | Document | None]) -> Iterator[str | None]:
    """The strings of the texts; a `DataError` names the place of what is none."""
    for place, entry in enumerate(texts, 1):
        text = entry.text if isinstance(entry, Document) else entry
        if text is not None and not isinstance(text, str):
            raise DataError(f"texts must be strings, entry {place} is {type(text).__name__}")
        yield text


def words_that_can_come_out(vocabulary: Vocabulary) -> frozenset[str]:
    """What can stand between kept characters in a private text: words and placeholders, cut where those cut."""
    outputs = (*vocabulary.words, *PLACEHOLDERS.values())
    return frozenset(part for output in outputs for part in letters_between(output))


def count_foreign_words(text: str, known: frozenset[str]) -> int:
    """How many runs of letters of a private text the rewriter cannot have written.

    Args:
        text: a private text.
        known: `words_that_can_come_out` of the mechanism's vocabulary.
    """
    return sum(part not in known for part in letters_between(text))


class Codes(dict[str, int]):
    """The code of every token met: the row of a word, a negative code for what is not a word."""

    def __init__(self, mechanism: WordMechanism) -> None:
        super().__init__()
        self._row = mechanism.vectors.vocabulary.row

    def __missing__(self, piece: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        kind = kind_of(piece)
        code = self._row(piece) if kind is Kind.WORD else _CODES.get(kind, _KEPT)
        if len(piece) <= _LONGEST_REMEMBERED:
            self[piece] = code
        return code


def _touching(codes: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Places of tokens that were replaced and follow a replaced token of their document without a space."""
    replaced = codes != _KEPT
    touching = replaced[1:] & replaced[:-1]
    inner = starts[(starts > 0) & (starts < codes.size)]
    touching[inner - 1] = False
    return np.flatnonzero(touching) + 1


# -- several processes ----------------------------------------------------------------------------------------


def rewrite_blocks(
    rewriter: Rewriter, blocks: Iterable[tuple[int, Block]], *, processes: int = 1
) -> Iterator[tuple[int, Block, tuple[list[str | None], Tally]]]:
    """Every block, given with its place, and what `Rewriter.rewrite_block` makes of it, in order.

    Raises:
        StorageError: a process died (out of memory, most likely).
    """
    key = rewriter.key
    pieces = (((place, block), (key.secret(), key.seeded, place, Block(block.texts, {}))) for place, block in blocks)
    for (place, block), done in in_order(_Work(rewriter.mechanism), pieces, processes=processes):
        yield place, block, done


class _Work:
    """`Rewriter.rewrite_block` in any process. It holds no secret: it goes there through a file."""

    def __init__(self, mechanism: WordMechanism) -> None:
        self._mechanism = mechanism
        self._rewriter: Rewriter | None = None

    def __call__(self, sent: tuple[bytes, bool, int, Block]) -> tuple[list[str | None], Tally]:
        secret, seeded, place, block = sent
        if self._rewriter is None:
            self._rewriter = Rewriter(self._mechanism, key=NoiseKey.restored(secret, seeded=seeded))
        return self._rewriter.rewrite_block(place, block)


# -- what a reader of a text and its private form sees --------------------------------------------------------


class Aligner:
    """Pairs of original and private words, for the releases of one mechanism.

    The layout of a text is public, so its private form is known but for the words: kept characters stay, placeholders
    are fixed, a space parts what touched. Between these stand the outputs, each a word of the vocabulary.
    """

    def __init__(self, mechanism: WordMechanism) -> None:
        vocabulary = mechanism.vectors.vocabulary
        self._row = vocabulary.row
        self._outputs = {word: row for row, word in enumerate(vocabulary.words)}
        self._longest = max(map(len, vocabulary.words))
        self._unknown = vocabulary.words[vocabulary.unknown_row]
        self._limit, self._drop = mechanism.max_words, mechanism.beyond == "drop"

    def pairs(self, original: str, private: str) -> tuple[list[int], list[int]] | None:
        """(rows of the original words, rows of what became of them); None: the private text is not one of this text.

        Words after a mechanism's ``max_words`` are in neither, because nothing was drawn for them.
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
    """What any release of a text shows of its layout, whichever words come out: white space and some punctuation.

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
