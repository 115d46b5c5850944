"""Split a text into tokens and join them again, without loss, in any script.

Boundaries are those of Unicode Standard Annex 29 (word boundaries), with three additions: addresses (URL, e-mail,
handle) stay whole, English clitics (``don't`` -> ``do`` + ``n't``) and short elisions (``l'ami`` -> ``l'`` +
``ami``) part, because public vocabularies hold the parts.

`kind_of` is total: a token that is not known to be a number, an address, punctuation or space is a *word*, and
words are what a mechanism protects. Emoji, control characters and unassigned code points are words for that reason.
"""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import regex

__all__ = ["Kind", "Token", "fold", "is_single_word", "join", "kind_of", "pieces", "split"]


class Kind(StrEnum):
    """What a token is, and so how it is treated."""

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
_MAY_HOLD_ADDRESS = regex.compile(r"@|://|www\.", regex.IGNORECASE)
_WORD_BOUNDARY = regex.compile(r"\b", regex.V1 | regex.WORD)
# Letters and an apostrophe: clitics at the end, an elided word of one or two letters (or "qu") at the start.
_CLITIC = regex.compile(r"(.*\p{L}\p{M}*)(n['’]t|['’](?:s|re|ve|ll|d|m))", regex.V1 | regex.IGNORECASE)
_LONE_ELISION = regex.compile(r"\p{L}\p{M}*(?:\p{L}\p{M}*)?'", regex.V1)
_ELISION = regex.compile(r"(\p{L}\p{M}*(?:\p{L}\p{M}*)?['’])(\p{L}.+)", regex.V1)
_LONE_CLITICS = frozenset(("'s", "'re", "'ve", "'ll", "'d", "'m", "n't"))
_NUMBER = regex.compile(r"(?=.*\p{N})[^\p{L}]*", regex.V1 | regex.DOTALL)
_PUNCTUATION = regex.compile(r"[[\p{P}\p{Sm}\p{Sc}\p{Sk}]--[\p{Extended_Pictographic}\p{Emoji_Modifier}]]+", regex.V1)


def split(text: str) -> list[Token]:
    """The tokens of a text; ``join(split(text)) == text`` for every string.

    >>> [token.text for token in split("I don't know, mail me@x.org!")]
    ['I', ' ', 'do', "n't", ' ', 'know', ',', ' ', 'mail', ' ', 'me@x.org', '!']
    """
    return [Token(piece, kind_of(piece)) for piece in pieces(text)]


def join(tokens: list[Token]) -> str:
    """The text that was split."""
    return "".join(token.text for token in tokens)


def pieces(text: str) -> list[str]:
    """The token texts alone, for loops over whole corpora."""
    if _MAY_HOLD_ADDRESS.search(text) is None:
        found = _WORD_BOUNDARY.split(text)
    else:
        found = []
        # split with a group yields the addresses at the odd places
        for place, part in enumerate(_ADDRESS.split(text)):
            found += [part] if place % 2 else _WORD_BOUNDARY.split(part)
    if "'" in text or "’" in text:
        parted: list[str] = []
        for piece in found:
            if len(piece) > 2 and ("'" in piece or "’" in piece):
                parted += _split_apostrophe(piece)
            else:
                parted.append(piece)
        found = parted
    return [piece for piece in found if piece]


def _split_apostrophe(piece: str) -> tuple[str, ...]:
    if _ADDRESS.fullmatch(piece):
        return (piece,)
    match = _CLITIC.fullmatch(piece) or _ELISION.fullmatch(piece)
    return match.groups() if match else (piece,)


@lru_cache(maxsize=1 << 17)
def kind_of(piece: str) -> Kind:
    """The kind of one token, a function of its text alone; total over all strings.

    >>> [str(kind_of(piece)) for piece in ("doctor", "3.14", "@me", "me@x.org", "...", " ")]
    ['word', 'number', 'handle', 'email', 'punctuation', 'space']
    """
    if piece.isspace():
        return Kind.SPACE
    if piece.isalpha():
        return Kind.WORD
    if _PUNCTUATION.fullmatch(piece):
        return Kind.PUNCTUATION
    if _ADDRESS.fullmatch(piece):
        if piece.startswith("@"):
            return Kind.HANDLE
        return Kind.EMAIL if regex.fullmatch(_EMAIL, piece, flags=regex.V1) else Kind.URL
    if _NUMBER.fullmatch(piece):
        return Kind.NUMBER
    return Kind.WORD


def fold(word: str) -> str:
    """The form under which words are looked up: NFC, case folded, one apostrophe, no soft hyphens.

    >>> fold("Caf\\u0065\\u0301") == fold("CAF\\u00c9") == "caf\\u00e9"
    True
    """
    if word.isascii():
        return word.lower()
    plain = word.replace("\u00ad", "").replace("’", "'")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", plain).casefold())


def is_single_word(word: str) -> bool:
    """Whether a vocabulary entry is a word that `pieces` can yield: not a number, an address or punctuation."""
    if word in _LONE_CLITICS or _LONE_ELISION.fullmatch(word):
        return True
    return kind_of(word) is Kind.WORD and pieces(word) == [word]
