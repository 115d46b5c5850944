"""Split a text into tokens and join them again, without loss, in any script; sentences; public vocabularies.

Derivation: docs/mechanisms/sentences.md#text-sentences
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import regex

from dptext.errors import DataError


class Kind(StrEnum):
    """The kind of a token, which decides how it is treated."""

    WORD = "word"
    NUMBER = "number"
    URL = "url"
    EMAIL = "email"
    HANDLE = "handle"
    PUNCTUATION = "punctuation"
    SPACE = "space"


class Token(NamedTuple):
    """A piece of text and its kind."""

    text: str
    kind: Kind


# An address ends before closing punctuation: "see https://a.b/c." keeps its full stop. The look-behinds let a
# match start at the start of a run only; without them a long run is scanned once for each of its characters.
_URL = r"(?<![a-z0-9+.\-])(?:[a-z][a-z0-9+.\-]{1,15}+://|www\.)[^\s<>\"]*[^\s<>\"\p{P}]/?"
_EMAIL = r"(?<![\p{L}\p{N}._%+\-])[\p{L}\p{N}._%+\-]++@[\p{L}\p{N}\-]+(?:\.[\p{L}\p{N}\-]+)+"
_HANDLE = r"(?<![\p{L}\p{N}_@])@[\p{L}\p{N}_]+"
_ADDRESS = regex.compile(rf"({_EMAIL}|{_URL}|{_HANDLE})", regex.V1 | regex.IGNORECASE)
ADDRESSES = {
    kind: regex.compile(pattern, regex.V1 | regex.IGNORECASE)
    for kind, pattern in ((Kind.EMAIL, _EMAIL), (Kind.URL, _URL), (Kind.HANDLE, _HANDLE))
}
"""What addresses look like, by kind; each takes linear time for all it finds in a text."""
_EMAIL_AS_IT_IS = regex.compile(_EMAIL, regex.V1)  # U+0345 counts as a letter only where case is ignored
_WORD_BOUNDARY = regex.compile(r"\b", regex.V1 | regex.WORD)
# The same boundaries (WB6 to WB13b) for ASCII, in three fifths of the time: letters and digits run together, a full
# stop, a colon or an apostrophe joins letters, a full stop, a comma, a semicolon or an apostrophe joins digits.
_RUN = r"[A-Za-z0-9_]+(?:(?:[.:'](?<=[A-Za-z].)(?=[A-Za-z])|[.,;'](?<=[0-9].)(?=[0-9]))[A-Za-z0-9_]+)*"
_ASCII_PIECE = re.compile(rf"{_RUN}| +|\r\n|[\s\S]")
# Letters and an apostrophe: clitics at the end, an elided word of one or two letters (or "qu") at the start.
# A clitic is looked for from the end (reversed): from the start each letter before an apostrophe would be one to try.
_CLITIC = regex.compile(r"\p{L}\p{M}*(n['’]t|['’](?:s|re|ve|ll|d|m))\Z", regex.V1 | regex.IGNORECASE | regex.REVERSE)
_LONE_ELISION = regex.compile(r"\p{L}\p{M}*(?:\p{L}\p{M}*)?'", regex.V1)
_ELISION = regex.compile(r"(\p{L}\p{M}*(?:\p{L}\p{M}*)?['’])(\p{L}.+)", regex.V1)
_LONE_CLITICS = frozenset(("'s", "'re", "'ve", "'ll", "'d", "'m", "n't"))
_NUMBER = regex.compile(r"(?=.*\p{N})[^\p{L}]*", regex.V1 | regex.DOTALL)
_LONGEST_WORD = 256
_FLAGS = regex.compile(r"(\p{Regional_Indicator}{64,})", regex.V1)
_SYMBOL = r"[[\p{P}\p{Sm}\p{Sc}\p{Sk}]--[\p{Extended_Pictographic}\p{Emoji_Modifier}]]"  # never replaced
_PUNCTUATION = regex.compile(rf"{_SYMBOL}+", regex.V1)
_KEPT = regex.compile(rf"(?:{_SYMBOL}|[\s\x1c-\x1f])+", regex.V1)


def split(text: str) -> list[Token]:
    """Return the tokens of a text; ``join(split(text)) == text`` for every string."""
    return [Token(piece, kind_of(piece)) for piece in pieces(text)]


def join(tokens: list[Token]) -> str:
    """Return the text of the tokens."""
    return "".join(token.text for token in tokens)


def pieces(text: str) -> list[str]:
    """Return the token texts alone, for loops over whole corpora."""
    if not ("@" in text or "://" in text or "www." in text.lower()):
        result = _ASCII_PIECE.findall(text) if text.isascii() else _words_of(text)
    else:
        result = []
        # split with a group yields the addresses at the odd places
        for place, part in enumerate(_ADDRESS.split(text)):
            result += [part] if place % 2 else _words_of(part)
    if "'" in text:
        result = _parted(result, "'")
    if "’" in text:
        result = _parted(result, "’")
    return result


def _parted(pieces: list[str], apostrophe: str) -> list[str]:
    """Split the pieces that contain an apostrophe further."""
    parted: list[str] = []
    done = 0
    for place in [place for place, piece in enumerate(pieces) if apostrophe in piece and len(piece) > 1]:
        parted += pieces[done:place]
        parted += _split_apostrophe(pieces[place])
        done = place + 1
    return parted + pieces[done:]


def _words_of(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_PIECE.findall(text)
    if _FLAGS.search(text) is None:
        return [piece for piece in _WORD_BOUNDARY.split(text) if piece]
    # pairing the letters of a long run of flags takes quadratic time: such a run is one token
    parts = _FLAGS.split(text)
    return [
        piece
        for place, part in enumerate(parts)
        for piece in ([part] if place % 2 else _WORD_BOUNDARY.split(part))
        if piece
    ]


def _is_address(piece: str) -> bool:
    """Return True if an address pattern matches the whole piece."""
    if not ("@" in piece or "://" in piece or piece[:4].lower() == "www."):
        return False
    return any(
        (match := address.match(piece)) is not None and match.end() == len(piece) for address in ADDRESSES.values()
    )


def _split_apostrophe(piece: str) -> tuple[str, ...]:
    if _is_address(piece):
        return (piece,)
    if piece[0] in "'’" and piece.lower().replace("’", "'") not in _LONE_CLITICS:
        return (piece[0], *_split_apostrophe(piece[1:]))  # an opening quote before a vowel
    clitic = _CLITIC.match(piece)
    if clitic is not None:
        return (piece[: clitic.start(1)], clitic[1])
    elision = _ELISION.fullmatch(piece)
    return elision.groups() if elision else (piece,)


def kind_of(piece: str) -> Kind:
    """Return the kind of a token, which depends on its text alone; defined for every string."""
    if piece.isspace():
        return Kind.SPACE
    if piece.isalpha():
        return Kind.WORD
    if _PUNCTUATION.fullmatch(piece):
        return Kind.PUNCTUATION
    if _is_address(piece):
        if piece.startswith("@"):
            return Kind.HANDLE
        return Kind.EMAIL if _EMAIL_AS_IT_IS.fullmatch(piece) else Kind.URL
    if _NUMBER.fullmatch(piece):
        return Kind.NUMBER
    return Kind.WORD


def fold(word: str) -> str:
    """Return the form under which words are looked up: NFC, case folded, one apostrophe, no soft hyphens."""
    if word.isascii():
        return word.lower()
    if len(word) > _LONGEST_WORD:
        return word  # no vocabulary holds it, and normalising takes quadratic time on hostile marks
    plain = word.replace("\u00ad", "").replace("’", "'")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", plain).casefold())


def letters_between(text: str) -> list[str]:
    """Return the runs of a text between characters that are never replaced (punctuation, symbols, white space)."""
    return [part for part in _KEPT.split(text) if part]


def is_single_word(word: str) -> bool:
    """Return True if a vocabulary entry is a word that `pieces` can yield: no number, address or punctuation."""
    if word in _LONE_CLITICS or _LONE_ELISION.fullmatch(word):
        return True
    return kind_of(word) is Kind.WORD and pieces(word) == [word]


# -- sentences, by a public rule that depends on the text alone, on every machine ------------------------------

_CLOSING = r"['\"”’»)\]}」』）]*+"
_PARAGRAPH = regex.compile(r"\n[^\S\n]*+\n", regex.V1)
_STOP = regex.compile(rf"(?<![.!?…])([.!?…]++){_CLOSING}\s++|(?<![。！？])[。！？]++{_CLOSING}", regex.V1)
_SHORT = regex.compile(r"\p{L}(?:\.\p{L})*+", regex.V1)
_ABBREVIATED = (
    "mr mrs ms dr prof st sr jr vs etc cf no vol fig inc ltd corp dept gen col capt lt sgt rev hon gov sen jan feb mar "
    "apr jun jul aug sep sept oct nov dec approx est"
)
_ABBREVIATIONS = frozenset(_ABBREVIATED.split())
_LONGEST_ABBREVIATION = 16  # characters in which an abbreviation is looked for
_OPENING = "'\"“‘«([{"


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, stripped; runs of white space within a sentence become one space."""
    result: list[list[str]] = []  # in parts, because concatenating strings would take quadratic time
    for paragraph in _PARAGRAPH.split(text):
        start = 0
        for stop in _STOP.finditer(paragraph):
            if _ends_sentence(paragraph, stop):
                _add_sentence(result, paragraph[start : stop.end()])
                start = stop.end()
        _add_sentence(result, paragraph[start:])
    return [" ".join(entry) for entry in result]


def _ends_sentence(text: str, stop: regex.Match[str]) -> bool:
    """Return True if a sentence ends at a punctuation mark."""
    mark = stop[1]
    if mark == ".":
        before = text[max(0, stop.start() - _LONGEST_ABBREVIATION) : stop.start()].split()
        word = before[-1].lstrip(_OPENING) if before else ""
        return _SHORT.fullmatch(word) is None and word.lower() not in _ABBREVIATIONS
    return mark is None or mark.strip(".…") != "" or not text[stop.end() : stop.end() + 1].islower()


def _add_sentence(groups: list[list[str]], part: str) -> None:
    sentence = " ".join(part.split())
    if groups and sentence and not any(map(str.isalnum, sentence)):
        groups[-1].append(sentence)
    elif sentence:
        groups.append([sentence])


# -- vocabularies ---------------------------------------------------------------------------------------------

UNKNOWN = "<unk>"
"""An element of every vocabulary: it stands for every word outside the vocabulary."""


class Vocabulary:
    """Words and their rows, frozen."""

    __slots__ = ("_rows", "_unknown_row", "_words")

    def __init__(self, words: Iterable[str]) -> None:
        self._words = tuple(words)
        self._rows: dict[str, int] = {}
        for row, word in enumerate(self._words):
            first = self._rows.setdefault(fold(word), row)
            if first != row:
                raise DataError(f"words must be distinct (case folded): remove one of rows {first} and {row}")
        if UNKNOWN not in self._rows:
            raise DataError(f"a vocabulary must contain {UNKNOWN!r}, the word for all others. load_vectors adds it")
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
