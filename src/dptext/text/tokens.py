"""Lossless tokens of texts in any script, sentences, and public vocabularies.

Derivation: docs/mechanisms/sentences.md#text-sentences
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

import regex

from dptext.errors import DataError


class Kind(StrEnum):
    """Kind of a token, which determines how it is processed."""

    WORD = "word"
    NUMBER = "number"
    URL = "url"
    EMAIL = "email"
    HANDLE = "handle"
    PUNCTUATION = "punctuation"
    SPACE = "space"


class Token(NamedTuple):
    """A part of a text and its kind."""

    text: str
    kind: Kind


# An address ends before closing punctuation: "see https://a.b/c." keeps its full stop. With the
# look-behinds, matches start only at the start of a run; without them, a long run is scanned once per character.
_URL = r"(?<![a-z0-9+.\-])(?:[a-z][a-z0-9+.\-]{1,15}+://|www\.)[^\s<>\"]*[^\s<>\"\p{P}]/?"
_EMAIL = r"(?<![\p{L}\p{N}._%+\-])[\p{L}\p{N}._%+\-]++@[\p{L}\p{N}\-]+(?:\.[\p{L}\p{N}\-]+)+"
_HANDLE = r"(?<![\p{L}\p{N}_@])@[\p{L}\p{N}_]+"
_ADDRESS = regex.compile(rf"({_EMAIL}|{_URL}|{_HANDLE})", regex.V1 | regex.IGNORECASE)
ADDRESSES = {
    kind: regex.compile(pattern, regex.V1 | regex.IGNORECASE)
    for kind, pattern in ((Kind.EMAIL, _EMAIL), (Kind.URL, _URL), (Kind.HANDLE, _HANDLE))
}
"""Patterns of addresses by kind; finding all matches in a text takes linear time."""
_EMAIL_AS_IT_IS = regex.compile(_EMAIL, regex.V1)  # U+0345 is a letter only if case is ignored
_WORD_BOUNDARY = regex.compile(r"\b", regex.V1 | regex.WORD)
# The same boundaries (WB6 to WB13b) for ASCII, in three fifths of the time: letters and digits form one run; full
# stops, colons and apostrophes join letters; full stops, commas, semicolons and apostrophes join digits.
_RUN = r"[A-Za-z0-9_]+(?:(?:[.:'](?<=[A-Za-z].)(?=[A-Za-z])|[.,;'](?<=[0-9].)(?=[0-9]))[A-Za-z0-9_]+)*"
_ASCII_PIECE = re.compile(rf"{_RUN}| +|\r\n|[\s\S]")
# Letters and an apostrophe: clitics at the end, an elided word of one or two letters (or "qu") at the start.
# Clitics are searched in reverse; otherwise, each letter before an apostrophe would be a candidate.
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
    return "".join(token.text for token in tokens)


def pieces(text: str) -> list[str]:
    """Return only the texts of the tokens, for loops over whole corpora."""
    if not ("@" in text or "://" in text or "www." in text.lower()):
        result = _ASCII_PIECE.findall(text) if text.isascii() else _words_of(text)
    else:
        result = []
        # a split with a group puts the addresses at odd positions
        for place, part in enumerate(_ADDRESS.split(text)):
            result += [part] if place % 2 else _words_of(part)
    if "'" in text:
        result = _parted(result, "'")
    if "’" in text:
        result = _parted(result, "’")
    return result


def _parted(pieces: list[str], apostrophe: str) -> list[str]:
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
    # a long run of flags is one token, because pairing its letters takes quadratic time
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
    """Return the kind of a token, which depends on its text only; defined for every string."""
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
    """Return the lookup form of a word: NFC, case folded, straight apostrophes, no soft hyphens."""
    if word.isascii():
        return word.lower()
    if len(word) > _LONGEST_WORD:
        return word  # no vocabulary contains it, and normalising adversarial marks takes quadratic time
    plain = word.replace("\u00ad", "").replace("’", "'")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", plain).casefold())


def letters_between(text: str) -> list[str]:
    """Split a text at the characters that are never replaced (punctuation, symbols, white space)."""
    return [part for part in _KEPT.split(text) if part]


def is_single_word(word: str) -> bool:
    """Return True if `pieces` can yield a vocabulary entry as a word (not a number, address or punctuation)."""
    if word in _LONE_CLITICS or _LONE_ELISION.fullmatch(word):
        return True
    return kind_of(word) is Kind.WORD and pieces(word) == [word]


# -- sentences and paragraphs, by public rules that depend on the text only -----------------------------------

_CLOSING = r"['\"”’»)\]}」』）]*+"
_PARAGRAPH = regex.compile(r"\n[^\S\n]*+\n", regex.V1)
_STOP = regex.compile(rf"(?<![.!?…])([.!?…]++){_CLOSING}\s++|(?<![。！？])[。！？]++{_CLOSING}", regex.V1)
_SHORT = regex.compile(r"\p{L}(?:\.\p{L})*+", regex.V1)
_ABBREVIATED = (
    "mr mrs ms dr prof st sr jr vs etc cf no vol fig inc ltd corp dept gen col capt lt sgt rev hon gov sen jan feb mar "
    "apr jun jul aug sep sept oct nov dec approx est"
)
_ABBREVIATIONS = frozenset(_ABBREVIATED.split())
_LONGEST_ABBREVIATION = 16  # characters to search for an abbreviation
_OPENING = "'\"“‘«([{"


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, stripped; runs of white space within a sentence become one space."""
    result: list[list[str]] = []  # lists of parts, because concatenating strings takes quadratic time
    for paragraph in _PARAGRAPH.split(text):
        start = 0
        for stop in _STOP.finditer(paragraph):
            if _ends_sentence(paragraph, stop):
                _add_sentence(result, paragraph[start : stop.end()])
                start = stop.end()
        _add_sentence(result, paragraph[start:])
    return [" ".join(entry) for entry in result]


def _ends_sentence(text: str, stop: regex.Match[str]) -> bool:
    """Return True if a punctuation mark ends a sentence."""
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


TextUnit: TypeAlias = Literal["sentence", "paragraph", "document"]
PARAGRAPH_WORDS = 100  # maximum; a longer sentence stays whole
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"  # scripts without spaces
_COUNTED = regex.compile(rf"{_UNSPACED}|[\S--{_UNSPACED}]+", regex.V1)


def count_words(text: str) -> int:
    """Return the number of words between spaces; in scripts without spaces, every character is a word."""
    return len(text.split()) if text.isascii() else len(_COUNTED.findall(text))


def paragraphs(text: str) -> list[str]:
    """Return the parts between blank lines; one of more than `PARAGRAPH_WORDS` words is cut between sentences."""
    result: list[str] = []
    for part in _PARAGRAPH.split(text):
        if count_words(part) <= PARAGRAPH_WORDS:
            result.append(part.strip())
            continue
        words = PARAGRAPH_WORDS
        for sentence in sentences(part):
            words += count_words(sentence)
            if words > PARAGRAPH_WORDS:
                result.append(sentence)
                words = count_words(sentence)
            else:
                result[-1] += f" {sentence}"
    return [paragraph for paragraph in result if paragraph]


def units_of(text: str, unit: TextUnit) -> list[str]:
    """Return the sentences or paragraphs of a text, or the text itself."""
    return [text] if unit == "document" else sentences(text) if unit == "sentence" else paragraphs(text)


# -- vocabularies ---------------------------------------------------------------------------------------------

UNKNOWN = "<unk>"
"""Entry of every vocabulary that represents all unknown words."""


class Vocabulary:
    """Immutable mapping from words to rows."""

    __slots__ = ("_rows", "_unknown_row", "_words")

    def __init__(self, words: Iterable[str]) -> None:
        self._words = tuple(words)
        self._rows: dict[str, int] = {}
        for row, word in enumerate(self._words):
            first = self._rows.setdefault(fold(word), row)
            if first != row:
                raise DataError(f"words must be distinct (case folded): remove one of rows {first} and {row}")
        if UNKNOWN not in self._rows:
            raise DataError(f"a vocabulary must contain {UNKNOWN!r} for unknown words. load_vectors adds it")
        self._unknown_row = self._rows[UNKNOWN]

    @property
    def words(self) -> tuple[str, ...]:
        """Words in row order."""
        return self._words

    @property
    def unknown_row(self) -> int:
        """Row of `UNKNOWN`."""
        return self._unknown_row

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, word: str) -> bool:
        return fold(word) in self._rows

    def row(self, word: str) -> int:
        """Return the row of a word, or the row of `UNKNOWN` for every other string."""
        return self._rows.get(fold(word), self._unknown_row)
