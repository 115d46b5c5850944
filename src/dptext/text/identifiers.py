"""Find columns that may identify people, by their names, the format of their values and the number of distinct values.

Derivation: docs/howto/redact.md#text-identifiers
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import regex

from dptext.io.documents import first_rows
from dptext.text.patterns import Span, find
from dptext.validation import is_missing

LOOKED_AT = 10_000
"""Default number of rows to read."""
NAMES_SOMEBODY = "its name suggests that it identifies a person"
ALL_DIFFERENT = "nearly every row has a different value, which links rows to other tables"

_EMAILS, _URLS = "some of its values contain e-mail addresses", "some of its values contain web addresses"
_LIKE_NAMES = "most of its values look like names of people"

_MAX_COLUMNS = 10_000  # JSON rows may have different keys
_MAX_LETTERS, _MAX_SEARCHED, _MAX_LEAVES = 500, 1000, 50  # per value; values per column; items per nested value
_MOST, _SOME, _NEARLY_ALL = 0.6, 0.1, 0.9  # fractions of the values
_MIN_ROWS, _MIN_CODES, _MIN_NAMES, _MIN_DATES = 50, 20, 10, 5  # distinct values
_TEXT_WORDS, _TEXT_LETTERS = 8, 40
_MOST_WORDS, _NAME_AND_ADDRESS = 5, 1.5  # mean number of words of a value that names an author
_MIN_AUTHORS, _MOST_CLASSES, _MIN_REPEATS = 50, 10, 20  # distinct values; rows per class


@dataclass(frozen=True)
class Column:
    """The kind of a column, and the reasons why it may identify people, from a sample of its rows."""

    name: str
    rows: int
    present: int
    distinct: int
    kind: str
    reasons: tuple[str, ...]
    words: float = 0  # mean number per value

    @property
    def identifies(self) -> bool:
        """Whether there is a reason to think that the column identifies people."""
        return bool(self.reasons)


def columns_of(
    paths: Sequence[Path], *, limit: int = LOOKED_AT, only: Collection[str] | None = None, **layout: str | None
) -> list[Column]:
    """Describe the columns of files by their first rows; ``layout`` takes suffix, encoding and separator."""
    samples = {} if only is None else {name: _Sample(name) for name in only}
    for row in islice(first_rows(paths, only=only, **layout), limit):
        for name, value in row.items():
            if only is None and name not in samples and len(samples) < _MAX_COLUMNS:
                samples[name] = _Sample(name)
            if name in samples:
                samples[name].add(value)
    return [sample.column() for sample in samples.values()]


def look_at(name: str, values: Iterable[object]) -> Column:
    sample = _Sample(name)
    for value in values:
        sample.add(value)
    return sample.column()


# lower-case parts of names without accents: English, and frequent German, French, Spanish and Italian words
_PERSON, _CONTACT, _BIRTH, _NAME, _KEY, _OTHER = (
    frozenset(words.split())
    for words in (
        "absender account annotator auteur author authors autor benutzer blogger buyer caller client cliente"
        " commenter consumer contact contributor creator customer device employee expediteur guest interviewee kunde"
        " kunden learner login member mitarbeiter nickname nutzer owner panelist participant patient patienten"
        " person poster profile pupil remitente reporter requester resident respondent reviewer sender session"
        " speaker student submitter subscriber teilnehmer user username usuario utente utilisateur verfasser"
        " visitor voter worker writer",
        "address addresses addr adresse anschrift correo courriel direccion email emails fax gps iban imei indirizzo ip"
        " ipaddress konto lat latitude lng lon longitude mail mobile passport phone phonenumber plz postal postcode"
        " ssn strasse street tel telefon telefono telephone twitter zip zipcode",
        "birth birthdate birthday dob geburtsdatum naissance nacimiento nascita",
        "firstname fullname lastname nachname vorname name names nom nombre nome prenom surname",
        "guid id ids identifier key uid userid uuid",
        "age app attribute book brand category class color column count counts country course dataset event"
        " feature field film gender genre group item label lang language level locale model movie product rank"
        " rating ratings role score segment sex shop song species split stars status store tag task team topic"
        " total type unit verified version year",
    )
)
_COUNTED = frozenset(("is", "has", "num", "n", "count", "total", "avg", "mean", "number", "share"))
# words of names that say who wrote a text, and of names of other things
_WROTE, _NUMBERS, _REACHED, _LOGINS, _FILLERS, _NO_AUTHORS, _ACCOUNTS, _VAGUE, _THINGS = (
    frozenset(words.split())
    for words in (
        "added asked authored created entered filed opened posted recorded reported sent submitted uploaded written",
        "cod code codigo guid hash id ids identifier key no nr num number nummer numero ref uid uuid",
        "correo courriel email emails mail mobile phone phonenumber telefon telefono telephone",
        "alias displayname handle login loginname nick nickname pseudo pseudonym screenname username",
        "address adresse anon by comment display e electronico from hashed message post review screen str tweet twitter"
        " who x",
        "annotator device profile session",
        "user benutzer usuario utilisateur",
        "by from who",
        "agent approved asin assigned assignee business city company conversation date day document followers hotel"
        " isbn link listing location month order parent recipient reply school session state subject subreddit thread"
        " ticket time timestamp title to updated url",
    )
)
_AUTHORS = {
    "id": "an id",
    "address": "an address",
    "login": "a login name",
    "person": "named like an author",
    "name": "names, so namesakes are merged",
    None: "its values repeat like the ids of authors",
}
_NAMES_AND_EMAILS = "names with addresses, so each spelling counts as a person"
_JOINED = regex.compile(r"(\p{L}+?)(by|email|id|key|mail|name|nr|number|nummer)")
_PARTS = regex.compile(r"\p{Lu}++(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]++|\p{Lu}", regex.V1)


def words_of(name: str) -> list[str]:
    """Return the parts of a column name in lower case, without accents."""
    return [_plain(part) for part in _PARTS.findall(name)]


@dataclass(frozen=True)
class AuthorColumn:
    """A column that may name the author of a text; ``is_certain``: its name says so, and its values agree."""

    name: str
    reason: str
    values: int
    rows: int
    is_certain: bool


def author_columns(columns: Iterable[Column]) -> list[AuthorColumn]:
    """Find the columns that may name the author of a text, by their names and values; the best one first."""
    ranked = []
    for column in columns:
        name, words = column.name, {*words_of(column.name)}
        key, has_emails = _author_key(name), _EMAILS in column.reasons
        differ = column.present >= _MIN_ROWS and column.distinct >= _NEARLY_ALL * column.present
        has_names = _LIKE_NAMES in column.reasons or (has_emails and column.words >= _NAME_AND_ADDRESS)
        is_category = column.distinct <= _MOST_CLASSES and column.present >= _MIN_REPEATS * column.distinct
        is_thing = words & (_OTHER | _THINGS) or _URLS in column.reasons
        is_other = words & _CONTACT or (column.kind == "number" and not words & _NUMBERS)
        repeats = column.distinct > _MIN_AUTHORS and not differ and not is_other
        has_form = not is_thing and (has_emails or repeats)
        if column.kind in ("empty", "date", "nested") or column.words > _MOST_WORDS or not (key or has_form):
            continue
        is_certain = bool(key) and not is_category and (has_form or has_names or name.lower() not in _VAGUE)
        key = "name" if has_names and key != "id" else "address" if has_emails else key
        reason = _NAMES_AND_EMAILS if has_names and has_emails else _AUTHORS[key]
        reason += "; nearly all values differ, as if it numbered the rows" if differ else ""
        reason += ", but its values repeat like categories" if is_category else ""
        # a person under two values counts as two people, so ids come first, and columns like row numbers last
        order = (not is_certain, differ, 2 * column.present < column.rows, [*_AUTHORS].index(key))
        ranked.append((order, AuthorColumn(name, reason, column.distinct, column.rows, is_certain)))
    return [column for _, column in sorted(ranked, key=lambda entry: entry[0])]


def _author_key(name: str) -> str | None:
    """Return how a column names the author of a text (a key of `_AUTHORS`), if each part of its name says so."""
    parts = [part for word in words_of(name) for part in _split(word)]
    words, joined = set(parts), "".join(parts)
    others = words - _PERSON - _NUMBERS - _REACHED - _WROTE - _NAME - _LOGINS - _FILLERS
    keys = (
        ("login", joined in _LOGINS),
        ("name", joined == "fullname"),
        ("id", joined in ("uid", "subjectid", "fromid")),
        (None, others or words & _NO_AUTHORS),
        ("address", words & _REACHED or joined == "fromaddress"),
        ("person", joined in _VAGUE),
        (None, not words & (_PERSON | _LOGINS) and not ("by" in words and words & _WROTE)),
        ("id", words & _NUMBERS),
        ("login", words & _LOGINS or (words & _NAME and words & _ACCOUNTS)),
        ("name", words & _NAME),
    )
    return next((key for key, holds in keys if holds), "person")


def _split(word: str) -> list[str]:
    match = _JOINED.fullmatch(word)
    return [*match.groups()] if match and match[1] in _PERSON | _WROTE else [word]


def _reason_of_name(name: str) -> str | None:
    parts = words_of(name)
    words = {*parts, "".join(parts)}
    is_measured = bool(parts) and (parts[-1] in _OTHER or parts[0] in _COUNTED)
    if words & _BIRTH:
        return "its name suggests that it contains a date of birth"
    if words & _CONTACT and not is_measured:
        return "its name suggests that it contains an address or number of a person"
    if (words & _PERSON and not is_measured) or (words & _NAME and not words & _OTHER) or _author_key(name):
        return NAMES_SOMEBODY
    if words & _KEY and not words & _OTHER:
        return "its name suggests that it is a key, which links rows to other tables"
    return None


def _plain(part: str) -> str:
    decomposed = unicodedata.normalize("NFKD", part.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


_NUMBER = regex.compile(r"[+-]?(?:[0-9]{1,15}(?:[.,][0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_SHORT_NUMBER = regex.compile(r"[+-]?(?:[0-9]{1,6}(?:[.,][0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_CODE = regex.compile(r"(?=.*[0-9].*[0-9])[\p{L}0-9_.:/#\-]{6,64}", regex.V1)
_PERSON_NAME = regex.compile(
    r"(?:\p{Lu}[\p{L}\p{M}'’\-]{1,30}|\p{Lu}\.)"
    r"(?:,? (?:(?:van|von|de|der|den|del|della|di|da|dos|la|le|bin|al) ){0,2}"
    r"(?:\p{Lu}[\p{L}\p{M}'’\-]{1,30}|\p{Lu}\.)){1,2}",
    regex.V1,
)
_TIME = regex.compile(r"[\sT,]{0,2}(?:[0-9]{1,2}:[0-9]{2}\S{0,24}(?: ?\S{1,6})?)?")
_FORMS = {
    "email": "e-mail addresses",
    "phone": "telephone numbers",
    "card": "card numbers",
    "ip": "IP addresses",
    "url": "web addresses",
    "number": "identification numbers or keys",
}


class _Sample:
    """Statistics of the values of a column; only digests of the values are stored."""

    def __init__(self, name: str) -> None:
        self._name, self._rows = name, 0
        self._digests: set[bytes] = set()
        self._counts: Counter[str] = Counter()

    def add(self, value: object) -> None:
        self._rows += 1
        if isinstance(value, np.generic):
            value = value.item()
        if is_missing(value):
            return
        is_nested = isinstance(value, Mapping | list | tuple | set | frozenset | np.ndarray)
        text = "" if is_nested else _to_text(value)
        if is_nested:
            items: Any = value.values() if isinstance(value, Mapping) else value
            text = " ".join(
                _to_text(item)[:_MAX_LETTERS] for item in islice(items, _MAX_LEAVES) if not is_missing(item)
            )
        if not text or text.isspace():
            return
        self._digests.add(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
        counts, start = self._counts, text[:_MAX_LETTERS].strip()
        counts["present"] += 1
        counts["letters"] += len(text)
        counts["words"] += text[:_MAX_LETTERS].count(" ") + 1
        counts["nested"] += is_nested
        counts["booleans"] += isinstance(value, bool) or text in ("true", "false", "True", "False")
        counts["numbers"] += _NUMBER.fullmatch(start) is not None
        is_short = _SHORT_NUMBER.fullmatch(start) is not None
        counts["codes"] += not is_short and _CODE.fullmatch(start) is not None
        counts["names"] += _PERSON_NAME.fullmatch(start) is not None
        if counts["searched"] < _MAX_SEARCHED:
            counts["searched"] += 1
            counts.update(set() if is_short else _forms_in(start))

    def column(self) -> Column:
        counts, distinct, present = self._counts, len(self._digests), self._counts["present"]
        is_text = (
            present > 0
            and counts["words"] >= _TEXT_WORDS * present
            and counts["letters"] >= _TEXT_LETTERS * present
            and 2 * distinct >= present
        )
        is_date = counts["searched"] > 0 and counts["date"] >= _MOST * counts["searched"]
        reasons = self._reasons_of_values(is_text=is_text, is_date=is_date)
        kinds = (
            ("empty", not present),
            ("nested", self._is_most("nested")),
            ("text", is_text),
            ("date", is_date),
            ("identifier", bool(reasons)),
            ("category", self._is_most("booleans")),
            ("number", self._is_most("numbers")),
            ("text", counts["words"] >= _TEXT_WORDS * present or 2 * distinct > max(40, present)),
        )
        kind = next((kind for kind, holds in kinds if holds), "category")
        by_name = _reason_of_name(self._name)
        all_reasons = (*([by_name] if by_name else []), *reasons)
        words = round(counts["words"] / max(present, 1), 1)
        return Column(self._name, self._rows, present, distinct, kind, all_reasons, words)

    def _is_most(self, form: str) -> bool:
        return self._counts[form] > 0 and self._counts[form] >= _MOST * self._counts["present"]

    def _reasons_of_values(self, *, is_text: bool, is_date: bool) -> tuple[str, ...]:
        counts, distinct, present = self._counts, len(self._digests), self._counts["present"]
        per_row = present >= _MIN_ROWS and distinct >= _NEARLY_ALL * present and not is_text and not is_date
        is_code = not is_date and self._is_most("codes") and distinct >= _MIN_CODES
        named = [
            f"some of its values contain {label}"
            for kind, label in _FORMS.items()
            if counts[kind] and counts[kind] >= _SOME * counts["searched"]
        ]
        rules = {
            "most of its values are codes or long numbers, which link rows to other tables": is_code,
            _LIKE_NAMES: self._is_most("names") and distinct >= _MIN_NAMES,
            "it contains exact dates, which distinguish people": is_date and distinct >= min(_MIN_DATES, present / 2),
            "it contains free text, which no guarantee covers": is_text,
            ALL_DIFFERENT: per_row,
        }
        return (*named, *(reason for reason, holds in rules.items() if holds))


def _forms_in(text: str) -> set[str]:
    spans: list[Span] = []
    for span in sorted(find(text), key=lambda span: span.start - span.end):  # the longest of overlapping spans counts
        if all(span.end <= other.start or other.end <= span.start for other in spans):
            spans.append(span)
    if any(span.kind == "date" and span.start == 0 and _TIME.fullmatch(text[span.end :]) for span in spans):
        return {"date"}
    return {span.kind for span in spans} - {"date"}


def _to_text(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)[:_MAX_LETTERS].hex()
    try:
        return str(value)
    except (ValueError, RecursionError):  # for numbers with thousands of digits and deeply nested lists
        return "a value too long to print"
