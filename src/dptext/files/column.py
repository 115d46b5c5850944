"""The values of a column, as lists, arrays, tables and files have them: texts, missing ones, and keys; and its name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dptext.checks import listed
from dptext.errors import ParameterError
from dptext.privacy.guarantee import canonical_id

__all__ = ["columns_there", "is_missing", "may_be_values", "one_column", "spelled_label"]


def one_column(texts: Iterable[str | None]) -> Iterable[str | None]:
    """The texts, unless iterating would not go over them: a table yields its columns, a mapping its keys.

    Raises:
        ParameterError: one string, or something with columns.
    """
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise ParameterError(f"texts must be a list, an array or a Series of strings, got {type(texts).__name__}")
    shape = getattr(texts, "shape", (0,))
    if len(shape) != 1:
        raise ParameterError(
            f"texts must be one column, got something with {len(shape)} axes: select the column by its name alone "
            "(table['text'], not table[['text']])"
        )
    return texts


def is_missing(text: object) -> bool:
    """None, NaN, and the values that pandas has for the same (known by name: pandas need not be there)."""
    return text is None or (isinstance(text, float) and text != text) or type(text).__name__ in ("NAType", "NaTType")


def spelled_label(value: object) -> str | None:
    """The label as a string: as `canonical_id`, and other numbers and truth values, which files spell in several ways.

    >>> [spelled_label(value) for value in (1, 1.0, "1", " news ", 4.5, True, "True", "", None, float("nan"), [1])]
    ['1', '1', '1', 'news', '4.5', 'true', 'true', None, None, None, None]
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        return repr(value)
    spelled = canonical_id(value)
    return spelled.lower() if spelled in ("True", "False", "TRUE", "FALSE") else spelled


# -- names of columns, for who looks for another one -------------------------------------------------------------

_MOST_NAMES, _MOST_WORDS = 20, 4
_LIKE_A_NAME = re.compile(r"[^\W\d][\w .:/()#%-]{0,39}")
_NUMBERED = re.compile(r"_?(c|col|column|f|feature|field|v|var|x)_?[0-9]{1,4}", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")
_USUAL_WORDS = (
    "abstract address age answer article author authors body business category city class client comment comments "
    "content country created customer date day description document doc email gender group id index key kind label "
    "lang language length level line location mail message month name note notes number occupation patient person "
    "phone post price product question rating record reply response result review reviewer reviews row score sender "
    "sentence sentiment sex split stars state status subject summary tag tags target text texts ticket time timestamp "
    "title topic tweet txt type uid url user username utterance value verified visit vote votes year zip "
    "autor benutzer datum datei frage antwort geschlecht kommentar kunde nachricht nutzer ort sprache sterne titel "
    "auteur avis commentaire contenu date langue nom note sujet texte titre utilisateur "
    "autor comentario contenido estrellas fecha idioma mensaje nombre texto titulo usuario"
)


def columns_there(
    missing: object, names: Sequence[object], *, wanted: Sequence[object] = (), sure: bool = False
) -> str:
    """What an error says of the columns that there are, for who named one that is not there.

    The names are shown to who runs the command, and values never are. The first line of a file without a header holds
    values. So what may be such a line is shown only if every entry could be the name of a column (short, no sentence,
    no number, no address) and one of them is a usual name, or another one that was asked for.

    Args:
        missing: the column that is not there.
        names: those that are, in order.
        wanted: all columns that were asked for.
        sure: names of fields or of a schema, which cannot be values.

    >>> columns_there("text", ["stars", "review", "txt"])
    "none among its 3: 'txt', 'stars', 'review'"
    >>> columns_there("text", ["5", "Would come again, lovely people", "Ann"])
    'none among its 3 (not shown: they may be values; a file begins with a line of names)'
    """
    count = f"none among its {len(names)}"
    places = [each for each in names if isinstance(each, int) and not isinstance(each, bool)]
    if places and len(places) == len(names):  # of a table that was read without a header
        return f"{count}: {', '.join(map(str, places[:_MOST_NAMES]))}"
    alike = [each for each in names if isinstance(each, str) and _could_be_a_name(each)]
    if sure:
        return f"{count}: {listed(alike, near=missing, most=_MOST_NAMES)}" if alike else count
    if not names:
        return count
    if may_be_values(names, wanted=wanted):
        return f"{count} (not shown: they may be values; a file begins with a line of names)"
    return f"{count}: {listed(alike, near=missing, most=_MOST_NAMES)}"


def may_be_values(names: Sequence[object], *, wanted: Sequence[object] = ()) -> bool:
    """Whether the first line of a file may be a row, as `columns_there` says."""
    alike = [each for each in names if isinstance(each, str) and _could_be_a_name(each)]
    return len(alike) < len(names) or not any(each in wanted or _is_usual(each) for each in alike)


def _could_be_a_name(name: str) -> bool:
    return _LIKE_A_NAME.fullmatch(name) is not None and len(name.split()) <= _MOST_WORDS


def _is_usual(name: str) -> bool:
    """Whether all of its words are usual in names of columns: ``review_text``, ``userId``, ``col_3``."""
    if _NUMBERED.fullmatch(name):
        return True
    words = [each.casefold() for each in _WORD.findall(name)]
    return bool(words) and set(words) <= set(_USUAL_WORDS.split())
