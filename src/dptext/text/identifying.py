"""Columns that may say who a row is from: by their names, by their values, by how many different values they have.

Rules of thumb, from public knowledge and the rows at hand alone; they promise nothing. A column that none of them
notices may tell who somebody is all the same, beside other columns above all.

**The rules**, each of which gives one reason. Values that are missing or blank count nowhere.

- *Name.* A whole part of the column's name (``author`` of ``author_id`` and ``bookAuthor``, not of ``authority``) is a
  word for a person, for an address or number of somebody, for their birth, or for a key, in several languages. A name
  that ends in what is measured (``user_rating``) is none, and ``country_name`` is the name of a thing.
- *A value per row.* Of 50 values or more at least 90% are different, whatever they are. Fewer than 50 say nothing here:
  among few rows, labels and years are often all different.
- *Form.* A tenth of the values holds an e-mail address, a telephone number or another such thing
  (`dptext.text.recognition`); most values are codes of six characters or more with digits in them, and there are 20
  different ones; most are two or three capitalised words, and there are 10 different ones.
- *Free text.* Eight words and 40 characters on average, and at least half of the values are different.
- *Exact dates.* Most values are dates with a day; at least five, or half of the values, are different.

Memory is bounded by the number of rows that are looked at; all that is kept of a value is a digest.
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

from dptext.files.column import is_missing
from dptext.files.documents import first_rows
from dptext.text.recognition import recognised

__all__ = ["ALL_DIFFERENT", "LOOKED_AT", "NAMES_SOMEBODY", "Column", "columns_of", "look_at"]

LOOKED_AT = 10_000
"""Rows that are looked at, unless another number is asked for."""
NAMES_SOMEBODY = "its name says that it tells who somebody is"
ALL_DIFFERENT = "nearly every row has a value of its own, which links rows to other tables"
"""Two of the reasons, for those who look for a column of people, or of short texts."""

_MOST_COLUMNS = 10_000  # keys of JSON may be other ones in each row
_A_VALUE_PER_ROW, _LEAST_ROWS = 0.9, 50
_MOST = 0.6
_SOME = 0.1
_LEAST_CODES, _LEAST_NAMES, _LEAST_DATES = 20, 10, 5
_WORDS_OF_A_TEXT, _LETTERS_OF_A_TEXT = 8, 40
_LETTERS_READ = 500  # of a value; of longer ones the beginning says enough
_FORMS_READ = 1000  # values of a column in which forms are looked for


@dataclass(frozen=True)
class Column:
    """What a column holds, as far as some rows show.

    Attributes:
        name: of the column.
        rows, present, distinct: how many rows were looked at, how many of these have a value, how many different ones.
        kind: what most values are: ``"text"``, ``"number"``, ``"date"``, ``"category"`` (few different values),
            ``"identifier"``, ``"nested"`` (lists, structures), or ``"empty"``.
        reasons: why it may say who a row is from, in words that hold no value and no count; empty where no rule of this
            module sees one.
    """

    name: str
    rows: int
    present: int
    distinct: int
    kind: str
    reasons: tuple[str, ...]

    @property
    def identifies(self) -> bool:
        """Whether there is a reason to think that it says who a row is from."""
        return bool(self.reasons)


def columns_of(
    paths: Sequence[Path], *, suffix: str | None = None, most: int = LOOKED_AT, only: Collection[str] | None = None
) -> list[Column]:
    """The columns of files, from their first rows; in the order in which they appear, ten thousand at most.

    Args:
        paths: files of any format that is read; a pipe, which can be read once only, is left out.
        suffix: says the format where a name does not (``".jsonl"``).
        most: how many rows are looked at, of all files together.
        only: look at these columns alone, whether or not there are rows that have them: of those that no row has, the
            name is all that is looked at.

    Raises:
        StorageError, DataError, ParameterError, MissingExtraError: a file cannot be opened or is not what it is called.
            Single rows that cannot be read are passed over.
    """
    looks = {} if only is None else {name: _Look(name) for name in only}
    for row in islice(first_rows(paths, suffix=suffix, only=only), most):
        for name, value in row.items():
            if only is None and name not in looks and len(looks) < _MOST_COLUMNS:
                looks[name] = _Look(name)
            if name in looks:
                looks[name].add(value)
    return [each.column() for each in looks.values()]


def look_at(name: str, values: Iterable[object]) -> Column:
    """A column by its name and some of its values (all of which are looked at).

    >>> look_at("rating", [5, 4, 5, 1, 3]).identifies
    False
    >>> look_at("reviewer_name", []).reasons
    ('its name says that it tells who somebody is',)
    >>> look_at("code", [f"AC-{number:06}" for number in range(60)]).kind
    'identifier'
    """
    look = _Look(name)
    for value in values:
        look.add(value)
    return look.column()


# -- what a name says -----------------------------------------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# as whole parts of names, in small letters without accents: English, German, French, Spanish, Italian, Portuguese,
# Dutch, the languages of the north, Polish, Russian; Chinese and Japanese, which do not part words, as pieces
_PERSON = _words(
    """
    account annotator author autor auteur autore benutzer benutzername client cliente cookie customer device employee
    forfatter forfattare gebruiker interviewee klant kunde kundin login mac member mitarbeiter nickname nick nutzer
    nutzername participant patient patientin person persona personne poster profile rater respondent reviewer
    schreiber screenname sender session speaker student user username usuario utente utilisateur verfasser worker
    writer avtor polzovatel автор пользователь клиент пациент
    """
)
_OF_SOMEBODY = _words(
    """
    address addresses addr adres adresse adresses anschrift ausweis ausweisnummer bsn calle celular coordinates
    correo courriel cpf curp direccion dni domicile domicilio email emails endereco fax gps handynummer hausnummer iban
    imei indirizzo ip ipaddress ipv4 ipv6 konto kontonummer lat latitude lng lon longitude mail mailadresse mobile
    mobilfunknummer movil mrn nhs nif passport personnummer pesel phone phonenumber plz postal postcode postalcode
    postleitzahl residence rue ssn steuernummer straat strasse street taxid tel telefon telefone telefonnummer telefono
    telefoon telephone twitter versichertennummer zip zipcode адрес телефон почта
    """
)
_BIRTH = _words(
    """
    birth birthdate birthday birthyear dob geboortedatum geburt geburtsdatum geburtsjahr geburtstag naissance nascimento
    nascita nacimiento fodelsedatum дата_рождения рождения
    """
)
_NAME = _words(
    """
    achternaam apellido apellidos cognome efternamn familienname firstname forename fornamn fullname imie lastname
    middlename naam nachname name names namn navn nazwisko nom nombre nome prenom realname sobrenome surname voornaam
    vorname имя фамилия
    """
)
_KEY = _words(
    """
    guid id identifiant identificador identificatore identifier ids key kennung kundennummer pk uid userid uuid
    patientennummer mitgliedsnummer
    """
)
_PIECES = {
    "姓名": "person", "氏名": "person", "名前": "person", "作者": "person", "用户": "person", "患者": "person",
    "電話": "somebody", "电话": "somebody", "手机": "somebody", "邮箱": "somebody", "地址": "somebody",
    "住所": "somebody", "身份证": "somebody", "生日": "birth", "生年月日": "birth",
}  # fmt: skip
# of whom, or of what, says the rest of a name
_THINGS = _words(
    """
    app attribute book brand category class color column country course dataset dish event feature field film game genre
    item label language lang model movie product shop song species split store tag task team theme topic type unit
    version
    """
)
_MEASURED = _words(
    """
    age category class count counts country feedback gender group label lang language level locale rank rating
    ratings role satisfaction score segment sentiment sex stars status tier topic total type verified year
    """
)
_COUNTED = frozenset(("is", "has", "num", "n", "count", "total", "avg", "mean", "number", "share"))
_SAID_BY_NAME = {
    "person": NAMES_SOMEBODY,
    "somebody": "its name says that it holds an address or a number of somebody",
    "birth": "its name says that it tells when somebody was born",
    "key": "its name says that it is a key, which links rows to other tables",
}
_PARTS = regex.compile(r"\p{Lu}++(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]++|\p{Lu}", regex.V1)


def _said_by_name(name: str) -> str | None:
    """What the name of a column says of it; None: nothing that tells who somebody is."""
    parts = [_plain(each) for each in _PARTS.findall(name)]
    together = "".join(parts)
    found = set(parts) | {together}
    piece = next((what for piece, what in _PIECES.items() if piece in name), None)
    of_thing = bool(found & (_THINGS | _MEASURED))
    is_measured = bool(parts) and (parts[-1] in _MEASURED or parts[0] in _COUNTED)
    if found & _BIRTH or piece == "birth":
        return _SAID_BY_NAME["birth"]
    if piece == "somebody" or (found & _OF_SOMEBODY and not is_measured):
        return _SAID_BY_NAME["somebody"]
    if piece == "person" or (found & _PERSON and not is_measured) or (found & _NAME and not of_thing):
        return _SAID_BY_NAME["person"]
    return _SAID_BY_NAME["key"] if found & _KEY and not of_thing else None


def _plain(part: str) -> str:
    """Small letters without accents."""
    decomposed = unicodedata.normalize("NFKD", part.casefold())
    return "".join(each for each in decomposed if not unicodedata.combining(each))


# -- what values say ------------------------------------------------------------------------------------------------

_NUMBER = regex.compile(r"[+-]?(?:[0-9]{1,15}(?:[.,][0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_SHORT_NUMBER = regex.compile(r"[+-]?(?:[0-9]{1,7}(?:[.,][0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_CODE = regex.compile(r"(?=.*[0-9].*[0-9])[\p{L}0-9_.:/#\-]{6,64}", regex.V1)
_A_NAME = regex.compile(
    r"(?:\p{Lu}[\p{L}\p{M}'’\-]{1,30}|\p{Lu}\.)"
    r"(?:,? (?:(?:van|von|de|der|den|del|della|di|da|dos|la|le|bin|al) ){0,2}"
    r"(?:\p{Lu}[\p{L}\p{M}'’\-]{1,30}|\p{Lu}\.)){1,2}",
    regex.V1,
)
_FORMS = {
    "email": "e-mail addresses",
    "phone": "telephone numbers",
    "card": "card numbers",
    "iban": "numbers of bank accounts",
    "ip": "addresses of machines",
    "url": "web addresses",
    "handle": "names of accounts",
    "id": "numbers or keys of people or things",
    "address": "postal addresses",
    "postcode": "postcodes",
    "name": "names of people",
}
_LOOKED_FOR = ("date", *_FORMS)


class _Look:
    """A column while its values come in."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rows = self._present = 0
        self._digests: set[bytes] = set()
        self._words = self._letters = 0
        self._numbers = self._codes = self._names = self._nested = self._booleans = 0
        self._read = 0
        self._forms: Counter[str] = Counter()

    def add(self, value: object) -> None:
        """Look at the next value."""
        self._rows += 1
        if isinstance(value, np.generic):
            value = value.item()
        if is_missing(value):
            return
        is_nested = isinstance(value, Mapping | list | tuple | set | frozenset | np.ndarray)
        spelled = _leaves(value) if is_nested else _spelled(value)
        if not spelled or spelled.isspace():
            return
        self._present += 1
        self._digests.add(blake2b(spelled.encode("utf-8", "surrogatepass"), digest_size=8).digest())
        self._nested += is_nested
        self._booleans += isinstance(value, bool) or spelled in ("true", "false", "True", "False")
        self._letters += len(spelled)
        self._words += spelled[:_LETTERS_READ].count(" ") + 1
        spelled = spelled[:_LETTERS_READ].strip()
        is_number = _NUMBER.fullmatch(spelled) is not None
        self._numbers += is_number
        self._codes += _SHORT_NUMBER.fullmatch(spelled) is None and _CODE.fullmatch(spelled) is not None
        self._names += _A_NAME.fullmatch(spelled) is not None
        if self._read < _FORMS_READ:
            self._read += 1
            if _SHORT_NUMBER.fullmatch(spelled) is None:
                self._forms.update(self._seen_in(spelled))

    @staticmethod
    def _seen_in(spelled: str) -> set[str]:
        found = recognised(spelled, _LOOKED_FOR)
        kinds = {each.kind for each in found} - {"date"}
        # a date stands alone, a time after it: those of a sentence are its own matter
        return kinds | (
            {"only a date"} if found and found[0].kind == "date" and _is_all(found[0].end, spelled) else set()
        )

    def column(self) -> Column:
        """What was seen."""
        distinct = len(self._digests)
        is_text = self._is_text(distinct)
        is_date = self._is_most(self._forms["only a date"], of=self._read)
        by_values = self._by_values(distinct, is_text=is_text, is_date=is_date)
        said = _said_by_name(self._name)
        return Column(
            self._name,
            self._rows,
            self._present,
            distinct,
            self._kind(distinct, is_text=is_text, is_date=is_date, identifies=bool(by_values)),
            (*(() if said is None else (said,)), *by_values),
        )

    def _is_most(self, count: int, *, of: int | None = None) -> bool:
        return count > 0 and count >= _MOST * (self._present if of is None else of)

    def _is_text(self, distinct: int) -> bool:
        return (
            self._present > 0
            and self._words >= _WORDS_OF_A_TEXT * self._present
            and self._letters >= _LETTERS_OF_A_TEXT * self._present
            and 2 * distinct >= self._present
        )

    def _by_values(self, distinct: int, *, is_text: bool, is_date: bool) -> tuple[str, ...]:
        reasons = [
            f"some of its values hold {what}"
            for kind, what in _FORMS.items()
            if self._forms[kind] and self._forms[kind] >= _SOME * self._read
        ]
        if not is_date and self._is_most(self._codes) and distinct >= _LEAST_CODES:
            reasons.append("most of its values are codes or long numbers, which link rows to other tables")
        if self._is_most(self._names) and distinct >= _LEAST_NAMES:
            reasons.append("most of its values look like names of people")
        if is_date and distinct >= min(_LEAST_DATES, self._present / 2):
            reasons.append("it holds exact dates, which tell people apart")
        if is_text:
            reasons.append("it holds free text, to which nothing is promised")
        per_row = self._present >= _LEAST_ROWS and distinct >= _A_VALUE_PER_ROW * self._present
        if per_row and not is_text and not is_date:
            reasons.append(ALL_DIFFERENT)
        return tuple(reasons)

    def _kind(self, distinct: int, *, is_text: bool, is_date: bool, identifies: bool) -> str:
        if not self._present:
            return "empty"
        kinds = (
            ("nested", self._is_most(self._nested)),
            ("text", is_text),
            ("date", is_date),
            ("identifier", identifies),
            ("category", self._is_most(self._booleans)),
            ("number", self._is_most(self._numbers)),
            ("text", self._words >= _WORDS_OF_A_TEXT * self._present or 2 * distinct > max(2 * 20, self._present)),
        )
        return next((kind for kind, holds in kinds if holds), "category")


def _is_all(end: int, spelled: str) -> bool:
    """Whether nothing but a time of day follows."""
    return regex.fullmatch(r"[\sT,]{0,2}(?:[0-9]{1,2}:[0-9]{2}\S{0,24}(?: ?\S{1,6})?)?", spelled[end:]) is not None


def _spelled(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)[:_LETTERS_READ].hex()
    try:
        return str(value)
    except ValueError:  # Python spells no number of more than some thousand digits
        return "a number of very many digits"


_LEAVES = 50


def _leaves(value: Any) -> str:
    """The first values within a list or a structure, one after the other."""
    found: list[str] = []
    waiting: list[Any] = [value]
    while waiting and len(found) < _LEAVES:
        each = waiting.pop()
        if isinstance(each, Mapping):
            waiting += [*islice(each.values(), _LEAVES)][::-1]
        elif isinstance(each, list | tuple | set | frozenset | np.ndarray):
            waiting += [*islice(np.ravel(each) if isinstance(each, np.ndarray) else each, _LEAVES)][::-1]
        elif not is_missing(each):
            found.append(_spelled(each)[:_LETTERS_READ])
    return " ".join(found)
