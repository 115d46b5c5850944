"""Patterns for identifying text with a fixed format: addresses, numbers and dates. They do not find names.

A search takes linear time: matches start only at the start of a run, and all repetition is bounded or possessive.
"""

from __future__ import annotations

import ipaddress
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import date
from itertools import chain
from typing import Any, NamedTuple

import regex

from dptext.errors import ParameterError
from dptext.text.tokens import ADDRESSES, Kind
from dptext.validation import check_choice

VERSION = 2
KINDS = ("email", "url", "ip", "card", "date", "phone", "number")


class Span(NamedTuple):
    """A recognised part of a text and its kind."""

    start: int
    end: int
    kind: str


def find(text: str, kinds: Iterable[str] = KINDS) -> list[Span]:
    """Return all spans of a text that match a pattern; they may overlap."""
    plain = text if text.isascii() else text.translate(_PLAIN)
    has_digit = any(map(str.isdigit, plain))
    return [
        Span(match.start(), match.end(), kind)
        for kind in kinds
        if has_digit or kind in ("email", "url")
        for match in _FINDERS[kind](plain)
    ]


def check_kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct kinds in the order of `KINDS`; raise `ParameterError` for an unknown kind."""
    if isinstance(kinds, str):
        raise ParameterError("kinds must be a list of kinds, got a single string. Put it into a list")
    known = {check_choice("an entry of kinds", kind, KINDS) for kind in kinds}
    return tuple(kind for kind in KINDS if kind in known)


class _Plain(dict[int, int]):
    def __missing__(self, code: int) -> int:  # maps single characters, so that positions stay the same
        letter = chr(code)
        by_category = {"Pd": "-", "Zs": " ", "Nd": str(unicodedata.decimal(letter, ""))}
        plain = by_category.get(unicodedata.category(letter)) or unicodedata.normalize("NFKC", letter)
        self[code] = ord(plain) if len(plain) == 1 else code
        return self[code]


_PLAIN = _Plain()
_Match = Any
_Finder = Callable[[str], Iterator[Any]]


# prevent matches inside a longer token
_BEFORE, _AFTER = r"(?<![\p{L}\p{N}_+]|\p{N}[.,:/\-])", r"(?![\p{L}\p{N}_]|[/\-:]\p{N})"


def _by(*patterns: str, accept: Callable[[_Match], bool] | None = None) -> _Finder:
    compiled = [regex.compile(f"{_BEFORE}(?:{pattern}){_AFTER}", regex.V1) for pattern in patterns]
    return lambda text: (
        match for entry in compiled for match in entry.finditer(text) if accept is None or accept(match)
    )


def _has_luhn(match: _Match) -> bool:
    digits = [int(digit) for digit in match[0] if digit.isdigit()]  # ISO/IEC 7812-1, annex B
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return 12 <= len(digits) <= 19 and (sum(digits[-1::-2]) + doubled) % 10 == 0


def _is_ip(match: _Match) -> bool:
    try:
        ipaddress.ip_address(match[0])
    except ValueError:
        return False
    return "." in match[0] or match[0].count(":") > 2  # "a::b" is also a name in programs


def _is_day(match: _Match) -> bool:
    if not match.groupdict():
        return True  # the month is written out
    year, *others = (int(match[name]) for name in ("year", "one", "two"))
    for month, day in (others, others[::-1]):
        with suppress(ValueError):
            date(year + 2000 * (year < 100), month, day)
            return True
    return False


_MONTH = (
    r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY, _YEAR = r"(?:3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?", r"(?:1[89]|20)[0-9]{2}"
_EXTENSION = r"(?: ?(?:x|ext\.?) ?[0-9]{1,6})?"
_domain = _by(
    r"(?<![@.\-])(?:[A-Za-z0-9][A-Za-z0-9\-]{0,62}+\.){1,4}(?i:com|org|net|edu|gov|info|io|biz)(?:/[^\s<>\"]*[^\s<>\"\p{P}]/?)?"
)
_FINDERS: dict[str, _Finder] = {
    "email": lambda text: ADDRESSES[Kind.EMAIL].finditer(text) if "@" in text else iter(()),
    "url": lambda text: chain(ADDRESSES[Kind.URL].finditer(text), _domain(text)),
    "ip": _by(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}", r"[0-9a-fA-F]{0,4}+(?::[0-9a-fA-F]{0,4}+){2,8}+", accept=_is_ip),
    "card": _by(r"[0-9]{12,19}", r"[0-9]{4}(?:[ \-][0-9]{2,6}){2,4}", accept=_has_luhn),
    "date": _by(
        rf"(?P<year>{_YEAR})(?P<by>[\-/.])(?P<one>[0-9]{{1,2}})(?P=by)(?P<two>[0-9]{{1,2}})"
        r"(?:[T ][0-9]{2}:[0-9:.+\-Z]{2,27})?",
        rf"(?P<one>[0-9]{{1,2}})(?P<by>[\-/.])(?P<two>[0-9]{{1,2}})(?P=by)(?P<year>{_YEAR}|[0-9]{{2}})",
        rf"{_DAY}(?: of)?[ \-]{_MONTH}(?:,?[ \-]{_YEAR})?",
        rf"{_MONTH} {_DAY}(?:,? {_YEAR})?",
        rf"{_MONTH},? {_YEAR}",
        accept=_is_day,
    ),
    "phone": _by(
        rf"\(?\+[0-9]{{1,3}}\)?(?:[ .\-]?\(?[0-9]++\)?){{1,7}}+{_EXTENSION}",
        rf"(?:1[ .\-])?(?:\([2-9][0-9]{{2}}\) ?|[2-9][0-9]{{2}}[ .\-])[2-9][0-9]{{2}}[ .\-][0-9]{{4}}{_EXTENSION}",
        r"\(?00?[1-9][0-9]{0,4}\)?(?:[ .\-/]{1,2}[0-9]{2,8}){1,5}",
        r"\([0-9]{2,5}\) ?[0-9]{3,8}(?:[ \-][0-9]{2,6}){0,3}|[0-9]{2,4}(?: [0-9]{2,4}){2,5}",
        accept=lambda match: 8 <= sum(map(str.isdigit, match[0])) <= 21,
    ),
    "number": _by(
        r"[0-9]{3}[\- ][0-9]{2}[\- ][0-9]{4}",
        r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?",
        r"[A-Za-z]{0,3}[0-9]{7,}+[A-Za-z]?",
        r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    ),
}
