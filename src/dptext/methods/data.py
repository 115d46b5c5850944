"""Columns and counts of private rows, for their owner only (no value of a row is kept), and the requirements."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path, PurePath
from statistics import median_low
from typing import Any, Literal, TypeAlias, get_args

from dptext.errors import DataError, ParameterError
from dptext.io.batches import describe_columns, is_pipe, may_be_values
from dptext.io.documents import canonical_label, find_files, read_documents
from dptext.io.formats import announced_by, file_format
from dptext.io.tables import is_table, table_kind
from dptext.privacy.guarantee import canonical_id
from dptext.release.run import FIRST_ROWS
from dptext.text.identifiers import ALL_DIFFERENT, AuthorColumn, Column, author_columns, columns_of, look_at, words_of
from dptext.text.tokens import count_words
from dptext.validation import check_choice, check_names, format_names

MOST_ROWS = 200_000
"""Maximum number of rows that are counted; later ones are ignored."""
_INSPECTED = 10_000  # rows from which columns are described
_WITH_A_HEADER = (".csv", ".tsv")  # formats whose first line may be a row instead of names
_MOST_LABELS = 50  # maximum number of values in a column of labels
_MOST_CANDIDATES = 4  # for the user
_NO_FILE = "FILE.jsonl"
_KNOWN = {
    "text": "text review body content comment message post note document sentence utterance query question answer "
    "tweet transcript feedback description comments notes selftext beschreibung kommentar nachricht texte texto",
    "label": "label class topic category intent stars rating sentiment target overall score emotion polarity genre "
    "kategorie categorie categoria etiqueta bewertung",
}
_NO_TEXT = ("number", "date")

Purpose: TypeAlias = Literal["read", "classify", "vectors", "devices", "statistics"]
Recipient: TypeAlias = Literal["public", "partner", "colleagues"]
Holder: TypeAlias = Literal["central", "local"]
PUBLIC, LABELS, LICENCE, NEW = "PUBLIC.jsonl", "LABEL1,LABEL2", "LICENCE", "NEW.jsonl"
"""Placeholders: a file of public texts, the public labels (never read from the private file), the licence of the
public texts, and texts to label."""
PLACEHOLDERS = (PUBLIC, LABELS, LICENCE, NEW)


@dataclass(frozen=True, kw_only=True)
class Requirements:
    """The answers about a release; None: not answered, which excludes no method."""

    purpose: Purpose | None = None
    recipient: Recipient | None = None
    trust: Holder | None = None

    def __post_init__(self) -> None:
        for name, kind in (("purpose", Purpose), ("recipient", Recipient), ("trust", Holder)):
            if getattr(self, name) is not None:
                check_choice(name, getattr(self, name), get_args(kind))

    @property
    def unanswered(self) -> list[str]:
        return [name for name, answer in vars(self).items() if answer is None]


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The columns of text, user and labels: named by the caller, or guessed; ``candidates`` for a guessed user."""

    text: str
    user: str | None
    labels: tuple[str, ...]
    guessed: tuple[str, ...] = ()
    candidates: tuple[AuthorColumn, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Data:
    """Columns and counts of the rows."""

    files: tuple[str, ...]
    columns: tuple[Column, ...]
    roles: Roles
    rows: int = 0
    is_all: bool = True
    unread: int = 0
    empty: int = 0  # without a text
    anonymous: int = 0  # without a user
    recased: int = 0  # user addresses that differ from another one only in upper and lower case
    people: int | None = None
    most_texts: int | None = None
    words: tuple[int, int] = (0, 0)  # of a text: median and largest number
    classes: int | None = None
    rarest: int | None = None
    known: Mapping[str, Any] = field(default_factory=dict)  # words that are in the public texts and word vectors

    @property
    def protected(self) -> int:
        """Number of users; without a user column, number of rows."""
        return self.rows if self.people is None else self.people

    @property
    def unit(self) -> Literal["user", "document"]:
        """The privacy unit of a method that collects all texts."""
        return "document" if self.roles.user is None else "user"

    @property
    def whom(self) -> str:
        """Plural noun for `protected`."""
        return "texts" if self.roles.user is None else "people"

    def out(self, suffix: str) -> str:
        """Return the name of an output in the working folder, after the name of the first file."""
        first = PurePath(self.files[0] if self.files else _NO_FILE).name
        return (first.partition(".")[0].replace("*", "").replace("?", "") or "texts") + suffix

    @property
    def few_values(self) -> list[str]:
        """Names of the columns that may hold labels, by the number of their values."""
        columns = [column for column in self.columns if 2 <= column.distinct <= _MOST_LABELS and not column.reasons]
        return [column.name for column in columns if column.name not in (self.roles.text, self.roles.user)]

    @property
    def inputs(self) -> str:
        return " ".join(map(quote, self.files)) or _NO_FILE


def quote(value: str) -> str:
    """Quote a value for a shell; a file name that begins with a dash becomes a path."""
    return shlex.quote(f"./{value}" if value.startswith("-") and "/" not in value and "." in value else value)


# -- the rows ------------------------------------------------------------------------------------------------------


Compare: TypeAlias = Callable[[list[str]], Mapping[str, Any]]  # of the first texts with public ones


def look(
    source: Any, *, text: str | None, user: str | None, labels: Sequence[str] | None, compare: Compare = lambda _: {}
) -> Data:
    """Describe rows: files, a table, or mappings in memory."""
    named = (text, user, None if labels is None else check_names("labels", labels))
    sources = _sources(source)
    if sources is None:
        return _look_in_memory(source, *named, compare)
    paths = files_of(source)
    if any(map(is_pipe, paths)):
        raise ParameterError("advice reads the rows twice, which a pipe does not allow: name a file")
    columns = tuple(columns_of(paths, limit=_INSPECTED))
    if not columns:
        raise DataError(
            f"no row of {', '.join(path.name for path in paths[:3])} could be read: check that there are rows, in UTF-8"
        )
    are_names = all(announced_by(path).kind not in _WITH_A_HEADER for path in paths)
    roles = _roles(columns, *named, are_names=are_names)
    has_columns = all(file_format(path).format.has_columns for path in paths)
    kept = tuple(filter(None, (roles.user, *roles.labels)))  # as the user, the reader would skip rows without one
    reading: dict[str, Any] = {"text": roles.text, "keep": kept} if has_columns else {}
    with closing(read_documents(paths, on_error="skip", **reading)) as reader:
        values = ((row.text, row.attributes or {}) for row in reader)
        rows = ((entry, row.get(roles.user or ""), tuple(map(row.get, roles.labels)) or None) for entry, row in values)
        data = _count(rows, Data(files=tuple(map(str, sources)), columns=columns, roles=roles), compare)
        return replace(data, unread=reader.skipped)


def files_of(source: Any) -> list[Path]:
    """Return the files of a source; none for rows in memory."""
    return find_files(_sources(source) or [])


def _sources(source: Any) -> list[Any] | None:
    if isinstance(source, str | os.PathLike):
        return [source]
    is_list = isinstance(source, list | tuple) and source and all(isinstance(path, os.PathLike) for path in source)
    return list(source) if is_list else None


def _look_in_memory(
    source: Any, text: str | None, user: str | None, labels: tuple[str, ...] | None, compare: Compare
) -> Data:
    if is_table(source) or not isinstance(source, Iterable):
        kind = table_kind(source)
        table = {str(name): list(kind.read(name)) for name in kind.names}
    else:
        entries = list(source)
        if not all(isinstance(entry, Mapping) for entry in entries):
            raise ParameterError("source must be a path, a table, or a list of mappings from columns to values")
        names = dict.fromkeys(str(name) for entry in entries for name in entry)
        table = {name: [entry.get(name) for entry in entries] for name in names}
    if not any(table.values()):
        raise DataError("there are no rows: at least one is needed")
    columns = tuple(look_at(name, islice(values, _INSPECTED)) for name, values in table.items())
    roles = _roles(columns, text, user, labels, are_names=True)
    nothing = [None] * len(table[roles.text])
    users = nothing if roles.user is None else table[roles.user]
    classes = zip(*(table[label] for label in roles.labels), strict=True) if roles.labels else nothing
    rows = zip(table[roles.text], users, classes, strict=True)
    return _count(rows, Data(files=(), columns=columns, roles=roles), compare)


def _count(rows: Iterable[tuple[Any, Any, Any]], data: Data, compare: Compare) -> Data:
    people: Counter[str] = Counter()
    classes: Counter[tuple[str | None, ...]] = Counter()
    lengths: list[int] = []
    first: list[str] = []
    count, remaining = 0, iter(rows)
    for text, user, labels in islice(remaining, MOST_ROWS):
        count += 1
        if isinstance(text, str) and text.strip():
            lengths.append(count_words(text))
            if len(first) < FIRST_ROWS:
                first.append(text)
        if (user_id := canonical_id(user)) is not None:
            people[user_id] += 1
        if labels is not None and None not in (names := tuple(map(canonical_label, labels))):
            classes[names] += 1
    if count == 0:
        raise DataError("there are no rows: at least one is needed")
    has_user, has_labels = data.roles.user is not None, bool(data.roles.labels)
    return replace(
        data,
        rows=count,
        is_all=next(remaining, None) is None,
        empty=count - len(lengths),
        anonymous=count - people.total() if has_user else 0,
        recased=len(people) - len({name.casefold() if "@" in name else name for name in people}),
        people=len(people) if has_user else None,
        most_texts=max(people.values(), default=None) if has_user else None,
        words=(median_low(lengths), max(lengths)) if lengths else (0, 0),
        classes=len(classes) if has_labels else None,
        rarest=min(classes.values(), default=None) if has_labels else None,
        known=compare(first),
    )


# -- which column is what ------------------------------------------------------------------------------------------


def _roles(
    columns: Sequence[Column], text: str | None, user: str | None, labels: tuple[str, ...] | None, *, are_names: bool
) -> Roles:
    known = [column.name for column in columns]
    named = [name for name in (text, user, *(labels or ())) if name is not None]
    if len(set(named)) < len(named):
        raise ParameterError("text, user and label must be different columns")
    for name in named:
        if name not in known:
            described = describe_columns(name, known, required=named, sure=are_names)
            raise ParameterError(f"there is no column {name!r}, but {described}")
    if not are_names and may_be_values(known, required=named):
        raise DataError(
            "the first line may be a row instead of column names: add a header; if it is a header, name the column of "
            "texts with --text COLUMN (text=)"
        )
    guessed = tuple(role for role, value in (("text", text), ("user", user), ("labels", labels)) if value is None)
    text = text or _guess_text([column for column in columns if column.name not in named])
    if text is None:
        raise ParameterError(
            f"no column of {format_names(known) or 'none'} looks like texts: name it with --text (text=)"
        )
    free = [column for column in columns if column.name not in (*named, text)]
    candidates: tuple[AuthorColumn, ...] = ()
    if user is None:
        possible = author_columns(free)
        candidates = tuple([column for column in possible if column.is_certain] or possible)[:_MOST_CANDIDATES]
        user = candidates[0].name if candidates and candidates[0].is_certain else None
    if labels is None:
        few = [column for column in free if 2 <= column.distinct <= _MOST_LABELS and column.name != user]
        label = _named("label", few)
        labels = () if label is None else (label,)
    return Roles(text=text, user=user, labels=labels, guessed=guessed, candidates=candidates)


def _guess_text(columns: Sequence[Column]) -> str | None:
    """Guess the text column: by its name, else the longest free text whose values mostly differ."""
    texts = [column for column in columns if column.kind == "text" or len(columns) == 1]
    named = _named("text", texts) or _named("text", [column for column in columns if column.kind not in _NO_TEXT])
    # short texts: nearly all differ, and nothing else is known about them
    texts = texts or [column for column in columns if column.reasons == (ALL_DIFFERENT,)]
    longest = max(texts, key=lambda column: (2 * column.distinct >= column.present, column.words), default=None)
    return named or (None if longest is None else longest.name)


def _named(role: str, columns: Sequence[Column]) -> str | None:
    """Return the first column whose name, or the last part of its name, is known."""
    names = [(column.name, words_of(column.name) or [""]) for column in reversed(columns)]
    alone = {words[0]: name for name, words in names if len(words) == 1}
    last = {words[-1]: name for name, words in names}
    return next((group[word] for group in (alone, last) for word in _KNOWN[role].split() if word in group), None)


@cache
def utterances(part: Literal["train", "test"]) -> list[tuple[str, str]]:
    """Return (text, intent) of bundled public utterances to a voice assistant (SNIPS, CC0)."""
    path = files("dptext") / "cli" / "sample" / f"snips-{part}.jsonl.gz"
    return [(str(row.text), str(row.label)) for row in read_documents(str(path), label="intent")]
