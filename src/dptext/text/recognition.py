"""What in a text looks like an address, a number or the name of somebody, by patterns alone (`recognised`).

A pattern sees form, not meaning. Where the form has a checksum (cards, IBAN, several national numbers) it is computed;
a name is found only where a title or a self-introduction stands before it. Much that identifies somebody has no form
at all, so that nothing is promised about what is found, and less about what is not.

Every text takes linear time: a pattern starts at the start of a run only, takes runs whole, and bounds what it repeats.
"""

from __future__ import annotations

import ipaddress
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import cache
from typing import Any, NamedTuple

import regex

from dptext.checks import choice
from dptext.errors import ParameterError
from dptext.text.tokens import ADDRESSES, Kind

__all__ = ["KINDS", "VERSION", "Found", "checked_kinds", "matches", "recognised"]

VERSION = 1
"""Of the patterns: with another one something else is found."""

KINDS: tuple[str, ...] = (
    "email",
    "url",
    "iban",
    "card",
    "ip",
    "date",
    "id",
    "phone",
    "address",
    "postcode",
    "name",
    "handle",
)
"""What is looked for; of two pieces of equal length the kind that stands first here is meant."""


class Found(NamedTuple):
    """A piece of a text, and what it looks like."""

    start: int
    end: int
    kind: str


def recognised(text: str, kinds: Iterable[str] = KINDS) -> list[Found]:
    """What patterns find in a text: in order, without overlap. Of pieces that overlap the longest is taken.

    Digits of all scripts, full-width letters, and the many dashes and spaces count as their plain forms.

    Args:
        text: any string.
        kinds: what to look for, some of `KINDS`.

    Raises:
        ParameterError: another kind; one string instead of several.

    >>> text = "Dr. Ann Lee, 12 Elm Street: call +44 20 7946 0958 or write to ann@x.org by 3 May 2021"
    >>> [(text[start:end], kind) for start, end, kind in recognised(text)]  # doctest: +NORMALIZE_WHITESPACE
    [('Ann Lee', 'name'), ('12 Elm Street', 'address'), ('+44 20 7946 0958', 'phone'), ('ann@x.org', 'email'),
     ('3 May 2021', 'date')]
    """
    return without_overlap(matches(text, checked_kinds(kinds)), len(text))


def matches(text: str, kinds: Iterable[str] = KINDS) -> list[Found]:
    """All that the patterns of some kinds match, in no order; pieces may overlap."""
    plain = text if text.isascii() else text.translate(_PLAIN)
    has_digit = _DIGIT.search(plain) is not None
    return [
        Found(start, end, kind)
        for kind in kinds
        if has_digit or kind not in _WITH_DIGITS
        for find in _FINDERS[kind]
        for start, end in find(plain)
    ]


def checked_kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    """Kinds to look for, each once, in the order of `KINDS`.

    Raises:
        ParameterError: another one; one string; none.
    """
    if isinstance(kinds, str):
        raise ParameterError("kinds must be a list of kinds, got one string: put it into a list")
    asked = {choice("an entry of kinds", each, KINDS) for each in kinds}
    return tuple(each for each in KINDS if each in asked)


def without_overlap(candidates: Iterable[Found], length: int) -> list[Found]:
    """Of pieces that overlap the longest; of equally long ones the first given; in order.

    Args:
        candidates: pieces of one text.
        length: of the text.
    """
    taken = bytearray(length)
    kept = []
    for each in sorted(candidates, key=lambda found: found.start - found.end):
        if taken.find(1, each.start, each.end) < 0:
            taken[each.start : each.end] = b"\1" * (each.end - each.start)
            kept.append(each)
    return sorted(kept)


# -- one form for what looks alike --------------------------------------------------------------------------------


class _Plain(dict[int, int]):
    """One plain character for each, so that places stay what they are."""

    def __missing__(self, code: int) -> int:
        letter = chr(code)
        category = unicodedata.category(letter)
        if category == "Nd":
            plain = str(unicodedata.decimal(letter))
        elif category == "Pd" or code == 0x2212:
            plain = "-"
        elif category == "Zs":
            plain = " "
        elif letter in "’‘ʼ":
            plain = "'"
        else:
            plain = unicodedata.normalize("NFKC", letter)
        if len(plain) == 1:
            code = ord(plain)
        self[ord(letter)] = code
        return code


_PLAIN = _Plain()
_DIGIT = regex.compile(r"[0-9]")
_WITH_DIGITS = frozenset(("iban", "card", "ip", "date", "phone", "id", "address", "postcode"))


# -- how a kind is found ------------------------------------------------------------------------------------------

_Finder = Callable[[str], Iterator[tuple[int, int]]]
_Holds = Callable[["regex.Match[str]"], bool]


def _by(pattern: str, holds: _Holds | None = None, *, needs: str = "", backwards: bool = False) -> _Finder:
    """All matches of a pattern, or of its group ``it``, for which a check holds.

    Args:
        pattern: what is found. Ignoring case costs much where a match starts; so only parts of it do.
        holds: what a match has to fulfil.
        needs: a pattern that is fast to search, without a match of which there is none of the other.
        backwards: search from the end, which is faster where a match ends in a digit and starts in any word.
    """
    group = "it" if "(?P<it>" in pattern else 0

    @cache
    def compiled() -> Any:  # not before it is needed: all of them take a while
        return regex.compile(pattern, regex.V1 | (regex.REVERSE if backwards else 0))

    @cache
    def needed() -> Any:
        return regex.compile(needs, regex.V1)

    def find(text: str) -> Iterator[tuple[int, int]]:
        if needs and needed().search(text) is None:
            return
        for match in compiled().finditer(text):
            if holds is None or holds(match):
                yield match.span(group)

    return find


def _digits(text: str) -> list[int]:
    return [int(each) for each in text if "0" <= each <= "9"]


def _has_luhn(digits: list[int]) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812-1, annex B)."""
    doubled = (sum(divmod(2 * each, 10)) for each in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _addresses(kind: Kind, needs: str) -> _Finder:
    pattern: Any = ADDRESSES[kind]
    needed: Any = regex.compile(needs, regex.V1)

    def find(text: str) -> Iterator[tuple[int, int]]:
        return (match.span() for match in pattern.finditer(text)) if needed.search(text) else iter(())

    return find


# -- IBAN, cards --------------------------------------------------------------------------------------------------

# ISO 13616: length by country
_IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FO GL NL",
        19: "MK SI",
        20: "AT BA EE KZ LT LU XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "PT",
        26: "IS TR",
        27: "FR GR IT MC SM",
        28: "AL AZ CY DO GT HU LB PL",
        29: "BR PS QA UA",
        30: "JO KW MU",
        31: "MT SC",
    }.items()
    for country in countries.split()
}
_IBAN: Any = regex.compile(
    r"(?<![\p{L}\p{N}])(?=(?P<it>[A-Za-z]{2}[0-9]{2}(?: ?[A-Za-z0-9]){11,27}+))[A-Za-z]{2}[0-9]{2}", regex.V1
)


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    for match in _IBAN.finditer(text):
        start, end = match.span("it")
        length = _IBAN_LENGTHS.get(text[start : start + 2].upper())
        if length is None:
            continue
        place, count = start, 0
        while place < end and count < length:
            count += text[place] != " "
            place += 1
        number = text[start:place]
        is_cut = place < len(text) and text[place].isalnum()
        if count < length or is_cut or (" " in number and number != number.upper()):
            continue
        bare = number.replace(" ", "").upper()
        if int("".join(str(int(each, 36)) for each in bare[4:] + bare[:4])) % 97 == 1:
            yield start, place


def _is_card(match: regex.Match[str]) -> bool:
    number = "".join(filter(str.isdigit, match[0]))
    return _CARD_NUMBER.fullmatch(number) is not None and _has_luhn(_digits(number))


# which numbers are of cards: Visa, Mastercard, American Express, Diners, Discover, JCB, UnionPay, Maestro
_CARD_NUMBER: Any = regex.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|5[1-5][0-9]{14}|2[2-7][0-9]{14}|3[47][0-9]{13}|3[068][0-9]{12}|35[0-9]{14}"
    r"|6[0-9]{15,18}|5[06-9][0-9]{14}"
)
_CARD = _by(
    r"(?<![0-9\p{L}])(?<![0-9][ .,\-])(?:[0-9]{13,19}"
    r"|[0-9]{4}(?P<one>[ .\-])[0-9]{4}(?P=one)[0-9]{4}(?P=one)[0-9]{4}(?:(?P=one)[0-9]{3})?"
    r"|3[0-9]{3}(?P<two>[ .\-])[0-9]{6}(?P=two)[0-9]{4,5})(?![0-9\p{L}])",
    _is_card,
)


# -- machines -----------------------------------------------------------------------------------------------------


def _is_ip_v6(match: regex.Match[str]) -> bool:
    try:
        found = ipaddress.IPv6Address(match[0])
    except ValueError:
        return False
    # a::b is also how programs name things
    return len([each for each in match[0].split(":") if each]) >= 3 or (found.is_link_local or found.is_private)


_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IP = (
    _by(rf"(?<![\p{{L}}0-9.])(?:{_OCTET}\.){{3}}{_OCTET}(?![\p{{L}}0-9]|\.[0-9])"),
    _by(r"(?<![\p{L}0-9:.])[0-9a-fA-F]{0,4}+(?::[0-9a-fA-F]{0,4}+){2,8}+(?![\p{L}0-9:])", _is_ip_v6),
    _by(
        r"(?<![\p{L}0-9:\-])[0-9a-fA-F]{2}(?P<by>[:\-])(?:[0-9a-fA-F]{2}(?P=by)){4}[0-9a-fA-F]{2}(?![\p{L}0-9:\-])",
    ),
)


# -- dates --------------------------------------------------------------------------------------------------------

_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|januar|jänner|februar|märz|mai|juni|juli|oktober|dezember"
    "|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre"
    "|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|setiembre|octubre|noviembre|diciembre"
    "|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre"
    "|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro"
    "|januari|februari|maart|mei|augustus"
)
_SHORT = r"(?i:jan|feb|mar|apr|jun|jul|aug|sept?|oct|okt|nov|dec|dez)\b\.?"
_YEAR = r"(?:1[89]|20)[0-9]{2}(?![0-9])"
_DAY = r"(?:3[01]|[12][0-9]|0?[1-9])"
_DAYS = rf"{_DAY}(?i:st|nd|rd|th|er|\.|º|ª)?(?![0-9])"
_DAY_AFTER = rf"{_DAY}(?i:st|nd|rd|th)?(?![0-9])"
_OF = r"(?:,? (?i:of |de |del |di )?)"
_SOME_LONG = _MONTHS.replace("|may|", "|")


def _is_day(match: regex.Match[str]) -> bool:
    """Whether a numeric date is one of the calendar, the day before the month or after."""
    year, one, two = int(match["year"]), int(match["one"]), int(match["two"])
    year = year if year > 99 else 2000 + year
    orders = ((one, two),) if match.start("year") < match.start("one") else ((one, two), (two, one))
    for month, day in orders:
        try:
            date(year, month, day)
        except ValueError:
            continue
        return True
    return False


_NO_DIGIT = r"(?<![\p{L}0-9]|[0-9][.,:/\-])"
_AFTER_DATE = r"(?![\p{L}0-9]|[/\-.][0-9])"
_DATE = (
    _by(
        rf"{_NO_DIGIT}(?P<year>(?:1[89]|20)[0-9]{{2}})(?P<by>[\-/.])(?P<one>[0-9]{{1,2}})(?P=by)(?P<two>[0-9]{{1,2}})"
        rf"(?:T[0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]{{1,9}})?)?(?:Z|[+\-][0-9]{{2}}:?[0-9]{{2}})?)?{_AFTER_DATE}",
        _is_day,
    ),
    _by(
        rf"{_NO_DIGIT}(?P<one>[0-9]{{1,2}})(?P<by>[\-/.])(?P<two>[0-9]{{1,2}})(?P=by)(?P<year>(?:1[89]|20)[0-9]{{2}})"
        rf"{_AFTER_DATE}",
        _is_day,
    ),
    _by(rf"{_NO_DIGIT}(?P<one>[0-9]{{1,2}})/(?P<two>[0-9]{{1,2}})/(?P<year>[0-9]{{2}}){_AFTER_DATE}", _is_day),
    _by(
        rf"{_NO_DIGIT}(?P<one>[0-9]{{2}})(?P<by>[\-.])(?P<two>[0-9]{{2}})(?P=by)(?P<year>[0-9]{{2}}){_AFTER_DATE}",
        _is_day,
    ),
    _by(rf"{_NO_DIGIT}(?P<year>(?:19|20)[0-9]{{2}})(?P<one>[0-9]{{2}})(?P<two>[0-9]{{2}}){_AFTER_DATE}", _is_day),
    # the day first; with the year any month may be short
    _by(rf"{_NO_DIGIT}{_DAYS}{_OF}(?:(?i:{_MONTHS})|{_SHORT}){_OF}{_YEAR}"),
    _by(rf"{_NO_DIGIT}{_DAY}(?P<by>[\-/])(?:(?i:{_MONTHS})|{_SHORT})(?P=by)(?:{_YEAR}|[0-9]{{2}}(?![0-9]))"),
    _by(rf"{_NO_DIGIT}{_DAYS}(?: of| de)? (?i:{_SOME_LONG})(?![\p{{L}}\p{{M}}])"),
    _by(rf"{_NO_DIGIT}{_DAYS}(?: of)? May(?![\p{{L}}\p{{M}}])"),
    # the month first
    _by(rf"(?<![\p{{L}}0-9])(?:(?i:{_MONTHS})|{_SHORT}) {_DAY_AFTER} ?,? {_YEAR}", backwards=True),
    _by(
        rf"(?<![\p{{L}}0-9])(?i:{_SOME_LONG}|may(?= [0-9]{{1,2}}(?:st|nd|rd|th))) {_DAY_AFTER}"
        r"(?![\p{L}0-9%$]|[.,:][0-9])",
        needs=" 0?[1-9]",
        backwards=True,
    ),
    _by(r"(?<![0-9])(?:1[89]|20)[0-9]{2} ?年 ?[0-9]{1,2} ?月 ?[0-9]{1,2} ?日"),
    _by(r"(?<![0-9])(?:1[89]|20)[0-9]{2}년 ?[0-9]{1,2}월 ?[0-9]{1,2}일"),
)


# -- telephone numbers --------------------------------------------------------------------------------------------


def _has_digits(least: int, most: int) -> _Holds:
    return lambda match: least <= len(_digits(match["it"])) <= most


_AFTER_NUMBER = r"(?![\p{L}0-9]|[.,:/\-][0-9])"
_EXTENSION = r"(?: ?(?:x|ext\.?|#) ?[0-9]{1,6})?"
_MORE = r"(?:(?: ?\([0-9]{1,5}\) ?|[ .\-/]{0,1})[0-9]++)"
_PHONE = (
    _by(
        rf"(?<![\p{{L}}0-9+])(?P<it>(?:\(?\+|(?<![0-9][.,:/ \-])00(?=[1-9]))[1-9][0-9]{{0,2}}\)?{_MORE}{{0,7}}+)",
        _has_digits(8, 17),
    ),
    # North America
    _by(
        r"(?<![\p{L}0-9]|[0-9][.,:/ \-])(?P<it>(?:1[ .\-])?(?:\([2-9][0-9]{2}\)[ .\-]?|[2-9][0-9]{2}(?P<by>[ .\-]))"
        rf"[2-9][0-9]{{2}}[ .\-][0-9]{{4}}{_EXTENSION}){_AFTER_NUMBER}"
    ),
    # with the trunk prefix 0, as most other countries write them
    _by(
        rf"(?<![\p{{L}}0-9]|[0-9][.,:/ \-])(?P<it>(?:\(0[1-9][0-9]{{0,4}}\) ?|0[1-9][0-9]{{0,4}}[ .\-/])"
        rf"[0-9]{{2,8}}(?:[ .\-][0-9]{{2,8}}){{0,4}}){_AFTER_NUMBER}",
        _has_digits(9, 12),
    ),
    _by(rf"(?<![\p{{L}}0-9.,\-])(?P<it>0[1-9][0-9]{{8,9}}){_AFTER_NUMBER}"),
    # after a word that says so
    _by(
        r"(?<!\p{L})(?i:(?:tele)?(?:phone|fono|fon|foon)|tel|tél|mobile|cell|fax|whatsapp|call|sms|handy)\p{L}{0,4}+"
        r"[ .:,#=]{0,4}+(?i:(?:number|no|nr|is|me|us|at|on|under)[ .:=]{1,3}+){0,3}+"
        rf"(?P<it>\+?\(?[0-9]++{_MORE}{{0,7}}+)",
        _has_digits(7, 17),
        needs=r"[0-9](?:[ .()\-/]{0,2}+[0-9]){6}",
    ),
)


# -- numbers of people and of things that are theirs --------------------------------------------------------------


def _bare(match: regex.Match[str]) -> str:
    return "".join(filter(str.isalnum, match["it"])).upper()


def _is_luhn(match: regex.Match[str]) -> bool:
    return _has_luhn(_digits(match["it"]))


def _is_nir(match: regex.Match[str]) -> bool:
    """France: 97 minus the number modulo 97; 2A and 2B of Corsica count as 19 and 18."""
    number = _bare(match)
    return 97 - int(number[:13].replace("2A", "19").replace("2B", "18")) % 97 == int(number[13:])


def _is_dni(match: regex.Match[str]) -> bool:
    number = _bare(match)
    value = int(number[:-1].translate({ord("X"): "0", ord("Y"): "1", ord("Z"): "2"}))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[value % 23] == number[-1]


def _is_cpf(match: regex.Match[str]) -> bool:
    digits = _digits(match["it"])
    for length in (9, 10):
        weighed = sum(digit * (length + 1 - place) for place, digit in enumerate(digits[:length]))
        if weighed * 10 % 11 % 10 != digits[length]:
            return False
    return len(set(digits)) > 1


def _is_codice_fiscale(match: regex.Match[str]) -> bool:
    number = _bare(match)
    odd = dict(zip("0123456789", (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True))
    odd |= dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", _CODICE_FISCALE, strict=True))
    even = {each: int(each, 36) if each.isdigit() else ord(each) - ord("A") for each in odd}
    total = sum((even if place % 2 else odd)[each] for place, each in enumerate(number[:15]))
    return chr(ord("A") + total % 26) == number[15]


_CODICE_FISCALE = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def _is_resident_of_china(match: regex.Match[str]) -> bool:
    """ISO 7064, MOD 11-2."""
    number = _bare(match)
    total = sum(int(digit) * pow(2, 17 - place, 11) for place, digit in enumerate(number[:17]))
    return "10X98765432"[total % 11] == number[17]


def _is_aadhaar(match: regex.Match[str]) -> bool:
    """The check digit of Verhoeff, in the dihedral group of order 10."""
    check = 0
    for place, digit in enumerate(reversed(_digits(match["it"]))):
        for _ in range(place % 8):
            digit = _VERHOEFF[digit]
        turned, other = check < 5, digit < 5
        check = (check + digit if turned else check - digit) % 5 + (0 if turned == other else 5)
    return check == 0


_VERHOEFF = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)
_ALONE = r"(?<![\p{L}0-9]|[0-9][.,/\-])"
_ENDS = r"(?![\p{L}0-9]|[/\-.,][0-9])"
_ID = (
    # United States: social security and taxpayer numbers
    _by(rf"{_ALONE}(?P<it>(?!000|666)[0-9]{{3}}(?P<by>[\- ])(?!00)[0-9]{{2}}(?P=by)(?!0000)[0-9]{{4}}){_ENDS}"),
    # Canada
    _by(rf"{_ALONE}(?P<it>[1-79][0-9]{{2}}(?P<by>[\- ])[0-9]{{3}}(?P=by)[0-9]{{3}}){_ENDS}", _is_luhn),
    # United Kingdom: national insurance
    _by(
        rf"{_ALONE}(?P<it>(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{{2}} ?[0-9]{{2}} "
        rf"?[0-9]{{2}} ?[A-D]){_ENDS}"
    ),
    # France
    _by(
        rf"{_ALONE}(?P<it>[12] ?[0-9]{{2}} ?(?:0[1-9]|1[0-2]|[2-9][0-9]) ?(?:2[AB]|[0-9]{{2}}) ?[0-9]{{3}} ?[0-9]{{3}} "
        rf"?[0-9]{{2}}){_ENDS}",
        _is_nir,
    ),
    # Spain
    _by(rf"{_ALONE}(?P<it>[XYZ0-9][\- ]?[0-9]{{7}}[\- ]?[A-HJ-NP-TV-Z]){_ENDS}", _is_dni),
    # Italy
    _by(
        rf"{_ALONE}(?P<it>[A-Za-z]{{6}}(?i:[0-9LMNP-V]{{2}}[A-EHLMPR-T][0-9LMNP-V]{{2}}[A-Z][0-9LMNP-V]{{3}}[A-Z])){_ENDS}",
        _is_codice_fiscale,
        needs="(?i:[A-EHLMPR-T][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z])",
    ),
    # Brazil
    _by(rf"{_ALONE}(?P<it>[0-9]{{3}}\.[0-9]{{3}}\.[0-9]{{3}}-[0-9]{{2}}){_ENDS}", _is_cpf),
    # Sweden; Finland
    _by(
        rf"{_ALONE}(?P<it>[0-9]{{2}}(?:0[1-9]|1[0-2])(?:[06][1-9]|[1278][0-9]|[39][01])[\-+][0-9]{{4}}){_ENDS}",
        _is_luhn,
    ),
    _by(
        rf"{_ALONE}(?P<it>(?:0[1-9]|[12][0-9]|3[01])(?:0[1-9]|1[0-2])[0-9]{{2}}[\-+A-FU-Y][0-9]{{3}}[0-9A-FHJ-NPR-Y]){_ENDS}"
    ),
    # India
    _by(rf"{_ALONE}(?P<it>[A-Z]{{3}}[ABCFGHJLPT][A-Z][0-9]{{4}}[A-Z]){_ENDS}"),
    _by(rf"{_ALONE}(?P<it>[2-9][0-9]{{3}}(?P<by>[\- ])[0-9]{{4}}(?P=by)[0-9]{{4}}){_ENDS}", _is_aadhaar),
    # China
    _by(rf"{_ALONE}(?P<it>[1-9][0-9]{{16}}[0-9Xx]){_ENDS}", _is_resident_of_china),
    # what many countries print on passports and cards
    _by(rf"{_ALONE}(?P<it>[A-Z]{{1,3}}[0-9]{{6,10}}){_ENDS}"),
    _by(rf"{_ALONE}(?P<it>[0-9a-fA-F]{{8}}-(?:[0-9a-fA-F]{{4}}-){{3}}[0-9a-fA-F]{{12}}){_ENDS}"),
    # so long that it counts nothing, and no telephone number
    _by(rf"{_ALONE}(?P<it>(?!0[1-9][0-9]{{8,9}}(?![0-9]))[0-9]{{8,}}){_ENDS}"),
    # after a word that says so
    _by(
        r"(?<!\p{L})(?i:passport|account|acct|policy|patient|customer|member|order|invoice|case|ticket|licen[cs]e|reference"
        r"|ref|ssn|mrn|id)(?i: ?(?:number|no|nr|num|id))?[ .:#=]{1,4}+(?:is )?"
        r"(?P<it>(?<![\p{L}0-9])[A-Za-z0-9](?:[A-Za-z\-]{0,4}[0-9]){4,20}[A-Za-z]{0,3})(?![\p{L}0-9])",
        needs=r"[0-9](?:[A-Za-z\-]{0,4}[0-9]){3}",
    ),
)


# -- places -------------------------------------------------------------------------------------------------------

_CAPITALISED = r"\p{Lu}[\p{L}\p{M}'\-]{0,24}+\.?"
_FLAT = r"(?:,? ?(?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|#)\.? ?#?[0-9]{0,5}[A-Za-z]?(?![\p{L}0-9]))?"
_ADDRESS = (
    # 12 Elm Street
    _by(
        r"(?<![\p{L}0-9]|[0-9][.,:/$\-]|[$£€])[0-9]{1,5}[A-Za-z]?(?:-[0-9]{1,5})? "
        rf"(?:(?:[NSEW]|NE|NW|SE|SW|North|South|East|West)\.? )?"
        rf"(?:(?:{_CAPITALISED}|[0-9]{{1,3}}(?:st|nd|rd|th)) ){{1,3}}?"
        r"(?:(?i:street|avenue|road|boulevard|lane|highway|parkway)"
        r"|(?:Drive|Court|Terrace|Crescent|Square|Place|Way|Close|Alley|Walk|Row|Mews|Circle|Plaza"
        r"|St|Ave?|Rd|Blvd|Ln|Dr|Ct|Ter|Hwy|Pkwy|Cres|Sq|Pl|Cir|ST|AVE?|RD|BLVD|LN|DR|CT|HWY|PKWY))"
        rf"(?![\p{{L}}\p{{M}}0-9'])(?:\.(?=,| [A-Z0-9#]))?{_FLAT}"
    ),
    # Goethestraße 12
    _by(
        r"(?<![\p{L}\p{M}\-])\p{Lu}(?:[\p{L}\p{M}\-]{1,30}?(?:straße|strasse|str\.|weg|platz|allee|gasse|ufer|damm"
        r"|straat|laan|plein|gracht|gatan|vägen|vej|gade)|[\p{L}\-]{0,24}+ (?:Straße|Strasse|Str\.|Platz|Allee|Weg))"
        r" [0-9]{1,4}(?: ?[a-zA-Z])?(?![\p{L}0-9])"
    ),
    # 12, rue de la Paix
    _by(
        r"(?<![\p{L}0-9]|[0-9][.,:/\-])[0-9]{1,4}(?: ?(?:bis|ter))?,? (?i:rue|avenue|av\.|boulevard|bd\.?|place|chemin"
        r"|impasse|allée|route|quai|cours|passage|square)(?: (?:de|du|des|la|le|les|et|à)| ?[ld]'){0,3}"
        rf"(?: ?{_CAPITALISED}){{1,4}}"
    ),
    # Calle de Alcalá, 12
    _by(
        r"(?<![\p{L}\p{M}])(?:(?i:calle|avenida|avda\.?|plaza|paseo|carrer|viale|piazza|corso|largo|rua|travessa|praça"
        r"|ulica|ul\.)|C/|Via)(?: (?:de|del|della|dei|di|da|do|dos|das|la|los|las)){0,2}(?<![\p{L}](?=\p{L}))"
        rf"(?: ?{_CAPITALISED}){{1,4}}(?: (?:de|del|di|da|y|e) {_CAPITALISED}){{0,2}}"
        r",? (?:n[.ºo°]{0,2} ?)?[0-9]{1,4}(?![\p{L}0-9])"
    ),
    _by(
        r"(?<!\p{L})(?i:p\.? ?o\.? ?box|postfach|postbus|apartado|boîte postale|casella postale) [0-9]{1,7}",
        backwards=True,
    ),
    # a point on the map, to ten metres
    _by(r"(?<![\p{L}0-9.])[+\-]?[0-9]{1,2}\.[0-9]{4,}+°?,? ?[+\-]?[0-9]{1,3}\.[0-9]{4,}+°?(?![\p{L}0-9])"),
)
_STATES = (
    "A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|P[AR]|RI|S[CD]|T[NX]|UT|V[AT]"
    "|W[AIVY]"
)
_POSTCODE = (
    # United Kingdom
    _by(r"(?<![\p{L}0-9])(?:[A-Z]{1,2}[0-9][A-Z0-9]?|GIR) [0-9][ABD-HJLNP-UW-Z]{2}(?![\p{L}0-9])"),
    # Canada
    _by(r"(?<![\p{L}0-9])[ABCEGHJ-NPRSTVXY][0-9][A-Z][ \-]?[0-9][A-Z][0-9](?![\p{L}0-9])"),
    # United States
    _by(rf"(?<![\p{{L}}0-9])(?:{_STATES}),? [0-9]{{5}}(?:-[0-9]{{4}})?(?![\p{{L}}0-9]|[.,][0-9])"),
    _by(r"(?<![\p{L}0-9]|[0-9][.,:/\-])[0-9]{5}-[0-9]{4}(?![\p{L}0-9]|[/\-.,][0-9])"),
    # with a country before it
    _by(
        r"(?<![\p{L}0-9\-])(?:AT?|B|CH|CZ|DE?|DK|F|FI|FR|I|L|LV|LT|NL|NO?|PL|SE?|SK)-(?:[0-9]{4,5}|[0-9]{2}-[0-9]{3})(?![\p{L}0-9])"
    ),
)


# -- names --------------------------------------------------------------------------------------------------------

_TITLE = (
    "Mrs?|MRS?|M[sx]|Miss|MISS|D[Rr]|Doctor|Prof|Professor|Sir|Rev|Reverend|Sgt|Sergeant|Lt|Lieutenant|Capt|Captain|Cpl"
    "|Corporal|Col|Colonel|Judge|Justice|Sen|Senator|Officer|Detective|Herrn?|Frau|Fräulein|Monsieur|Madame"
    "|Mademoiselle|Mme|Mlle|Señor(?:a|ita)?|Sra?|Srta|Signor[ae]?|Signorina|Sig|Dott|Senhora?|Meneer|Mevrouw|Dhr|Mevr"
)
_SURNAME = r"(?:[DOLdl]'|al-|el-)?\p{Lu}[\p{L}\p{M}]{1,24}+(?:['\-]\p{L}[\p{L}\p{M}]{1,24}+){0,3}+"
_PARTICLE = "van|von|vom|der|den|de|del|della|di|da|du|dos|das|la|le|bin|ibn|al|el|ten|ter|zu|y"
_NAME_END = r"(?![\p{L}\p{M}])"
_NOT_NAMED = (
    r"(?!(?:The|This|That|You|It|And|Or|In|On|At|Is|Was|Who|What|We|He|She|They|My|Your|But"
    r"|General|Marshal|Commander|Governor|Secretary|Minister|Department|Dept|Ministry|League)(?![\p{L}\p{M}]))"
)
_INITIALS = r"(?:\p{Lu}\. ?|\p{Lu} (?=\p{Lu}[\p{L}])){1,3}"
_NEXT = rf"(?: (?:(?:{_PARTICLE}) ){{0,2}}{_NOT_NAMED}{_SURNAME}{_NAME_END}| \p{{Lu}}\.(?= ?\p{{Lu}}))"
_FULL = (
    rf"(?P<it>{_NOT_NAMED}(?:{_INITIALS})?(?:(?:{_PARTICLE}) ){{0,2}}{_SURNAME}{_NAME_END}{_NEXT}{{0,3}}"
    rf"|(?![AI](?![\p{{L}}])){_INITIALS}{_SURNAME}{_NAME_END}|[B-HJ-Z](?=\.?(?: |$)))"
)
_INTRODUCED = (
    "my name(?: is|'s)|my full name is|i am called|my friends call me|mein name ist|ich hei(?:ß|ss)e"
    "|je m'appelle|mon nom est|me llamo|mi nombre es|mi chiamo|il mio nome è|meu nome é|me chamo|chamo-me"
    "|mijn naam is|ik heet|jag heter|jeg heder|jeg heter|nazywam się|меня зовут|моё имя|benim adım"
)
_LABEL = (
    "(?:full |first |last |middle |family |given |patient |customer |sur)?name|vorname|nachname|nombre|apellidos?"
    "|prénom"
)
_NO_NAME = (
    "a|an|the|on|in|at|of|to|is|not|no|my|your|his|her|their|our|what|that|this|it|and|or|but|for|from|with|by|as|so"
    "|also|now|never|always|too|very|really|spelled|spelt|misspelled|only|just|all|already|still|wrong|listed|called"
    "|written|printed|mentioned|mud|unknown|private|irrelevant|being|there|here|known|one|common|long|short|hard|who"
)
_NAME = (
    _by(rf"(?<![\p{{L}}\p{{M}}])(?:(?:{_TITLE})(?:\. ?| )){{1,3}}+{_FULL}"),
    _by(rf"(?<![\p{{L}}\p{{M}}])(?i:{_INTRODUCED}):? (?:(?:{_TITLE})\.? )?{_FULL}", needs=f"(?i:{_INTRODUCED})"),
    _by(
        r"(?<![\p{L}\p{M}])(?i:my name(?: is|'s)|ich heiße|je m'appelle|me llamo|mi chiamo) "
        rf"(?!(?i:{_NO_NAME})(?!\p{{L}}))"
        r"(?P<it>\p{L}[\p{L}\p{M}]{1,24}+)(?!['\p{L}])",
        needs=r"(?i:my name|ich heiße|je m'appelle|me llamo|mi chiamo)",
    ),
    _by(rf"(?<![\p{{L}}\p{{M}}])(?i:{_LABEL}) ?: ?{_FULL}", needs=":"),
    _by(r"(?:我叫|我的名字[是叫]|姓名[::] ?)(?P<it>\p{Han}{2,3})"),
    _by(r"(?:私の名前は|名前は)(?P<it>[\p{Han}\p{Katakana}ー]{2,8})(?=です|と)"),
)
_FINDERS: dict[str, tuple[_Finder, ...]] = {
    "email": (
        _addresses(Kind.EMAIL, "@"),
        _by(
            r"(?<![\p{L}\p{N}._%+\-])[\p{L}\p{N}._%+\-]{1,64}+ ?[\[({] ?(?:[aA][tT]|@) ?[\])}] ?[\p{L}\p{N}\-]{1,64}+"
            r"(?: ?(?:[\[({] ?(?:[dD][oO][tT]|\.) ?[\])}]|\.) ?[\p{L}\p{N}\-]{1,64}+){1,4}",
            needs=r"[\[({] ?(?:[aA][tT]|@) ?[\])}]",
        ),
    ),
    "url": (
        _addresses(Kind.URL, r"://|[wW]{3}\."),
        _by(
            r"(?<![\p{L}\p{N}@._\-])(?:[A-Za-z0-9][A-Za-z0-9\-]{0,62}+\.){1,4}(?i:com|org|net|edu|gov|info|io)"
            r"(?![\p{L}\p{N}\-]|\.[\p{L}\p{N}])(?:/[^\s<>\"]*[^\s<>\"\p{P}]/?)?",
            needs=r"\.(?i:com|org|net|edu|gov|info|io)",
        ),
    ),
    "iban": (_ibans,),
    "card": (_CARD,),
    "ip": _IP,
    "date": _DATE,
    "phone": _PHONE,
    "id": _ID,
    "address": _ADDRESS,
    "postcode": _POSTCODE,
    "name": _NAME,
    "handle": (_addresses(Kind.HANDLE, "@"),),
}
