"""Columns and counts of private rows, for their owner only; no value of a row is kept."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, Literal

from dptext.errors import DataError, ParameterError
from dptext.io.batches import describe_columns, is_pipe, may_be_values
from dptext.io.documents import Document, canonical_label, find_files, is_missing, read_documents
from dptext.io.formats import announced_by, file_format
from dptext.io.tables import is_table, table_kind
from dptext.privacy.guarantee import canonical_id
from dptext.text.identifiers import ALL_DIFFERENT, NAMES_SOMEBODY, Column, columns_of, look_at
from dptext.validation import check_names, format_names

MOST_ROWS = 200_000
"""Maximum number of rows that are counted; later ones are ignored."""
_INSPECTED = 10_000  # rows from which columns are described
_WITH_A_HEADER = (".csv", ".tsv")  # formats whose first line may be a row instead of names
_MOST_LABELS = 50  # values that a column of labels has at most
_ROWS_A_LABEL = 4  # at least, on average: fewer, and it is no class
_LABELS_GUESSED = 1
_NO_FILE = "FILE.jsonl"
_KNOWN = {
    "text": "text review body content comment message post note document sentence utterance query question answer "
    "tweet transcript feedback description",
    "user": "user author person user_id userid author_id writer patient customer client speaker",
    "label": "label class topic category intent stars rating sentiment target",
}
_PEOPLE_OF = ("identifier", "category", "number", "text")  # kinds of a column that can name who wrote


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The columns of text, user and labels: named by the caller, or guessed."""

    text: str
    user: str | None
    labels: tuple[str, ...]
    guessed: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Data:
    """Columns and counts of the rows."""

    files: tuple[str, ...]
    columns: tuple[Column, ...]
    roles: Roles
    rows: int
    is_all: bool = True
    unread: int = 0
    empty: int = 0
    people: int | None = None
    most_texts: int | None = None
    words: tuple[int, int] = (0, 0)
    classes: int | None = None
    rarest: int | None = None

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

    @property
    def inputs(self) -> str:
        return " ".join(map(quote, self.files)) or _NO_FILE

    def out(self, suffix: str, *, quoted: bool = True) -> str:
        """The output's name: in the working folder, after the first file."""
        first = PurePath(self.files[0] if self.files else _NO_FILE).name
        stem = first.partition(".")[0].replace("*", "").replace("?", "") or "texts"
        return quote(f"{stem}{suffix}") if quoted else f"{stem}{suffix}"

    def as_dict(self) -> dict[str, Any]:
        columns = [
            {
                "name": column.name,
                "kind": column.kind,
                "present": column.present,
                "distinct": column.distinct,
                "may_identify": list(column.reasons),
            }
            for column in self.columns
        ]
        counted = ("rows", "is_all", "unread", "empty", "people", "most_texts", "classes", "rarest")
        return {
            "for_the_owner_only": True,
            "files": list(self.files),
            "columns": columns,
            "text": self.roles.text,
            "user": self.roles.user,
            "labels": list(self.roles.labels),
            "guessed": sorted(self.roles.guessed),
            "words": {"median": self.words[0], "most": self.words[1]},
            **{name: getattr(self, name) for name in counted},
        }


def quote(value: str) -> str:
    """Quote a value for a shell; a file name that begins with a dash becomes a path."""
    return shlex.quote(f"./{value}" if value.startswith("-") and "/" not in value and "." in value else value)


def look(
    source: Any, *, text: str | None, user: str | None, labels: Sequence[str] | None, suffix: str | None = None
) -> Data:
    """Describe rows: files, a table, or rows in memory."""
    names = None if labels is None else check_names("labels", labels)
    paths = _paths(source)
    if paths is not None:
        result = files_of(source, suffix=suffix)
        if any(map(is_pipe, result)):
            raise ParameterError("advice reads the rows twice, which a pipe does not allow: name a file")
        columns = tuple(columns_of(result, suffix=suffix, limit=_INSPECTED))
        if not columns:
            raise DataError(
                f"no row of {', '.join(entry.name for entry in result[:3])} could be read: expected at least one"
            )
        are_names = (
            not any(announced_by(entry).kind in _WITH_A_HEADER for entry in result) and suffix not in _WITH_A_HEADER
        )
        roles = _roles(columns, text, user, names, are_names=are_names)
        return _counted_files(result, columns, roles, files=tuple(map(str, paths)), suffix=suffix)
    table = _columns_in_memory(source)
    if not table or not any(len(values) for values in table.values()):
        raise DataError("there are no rows: expected at least one")
    columns = tuple(look_at(name, islice(values, _INSPECTED)) for name, values in table.items())
    roles = _roles(columns, text, user, names, are_names=True)
    nothing = [None] * len(table[roles.text])
    rows = zip(
        table[roles.text],
        nothing if roles.user is None else table[roles.user],
        zip(*(table[label] for label in roles.labels), strict=True) if roles.labels else nothing,
        strict=True,
    )
    return _counted(rows, Data(files=(), columns=columns, roles=roles, rows=0))


def files_of(source: Any, *, suffix: str | None = None) -> list[Path]:
    """Return the files of a source; none for rows in memory."""
    paths = _paths(source)
    return [] if paths is None else [path for path, _ in find_files(paths, any_format=suffix is not None)]


def _paths(source: Any) -> list[Any] | None:
    if isinstance(source, str | os.PathLike):
        return [source]
    if isinstance(source, list | tuple) and source and all(isinstance(entry, os.PathLike) for entry in source):
        return list(source)
    return None


def _columns_in_memory(source: Any) -> dict[str, list[Any]]:
    if isinstance(source, Iterable) and not is_table(source):
        rows = list(source)
        if all(isinstance(entry, Document) for entry in rows):
            rows = [_as_row(entry) for entry in rows]
        if rows and all(isinstance(entry, Mapping) for entry in rows):
            result = dict.fromkeys(str(name) for row in rows for name in row)
            return {name: [row.get(name) for row in rows] for name in result}
        if all(entry is None or isinstance(entry, str) for entry in rows):
            return {"text": rows} if rows else {}
        raise ParameterError("expected rows: mappings from columns to values, texts, or documents, all of one kind")
    kind = table_kind(source)
    for name in kind.names:
        kind.check_column(name)
    return {str(name): list(kind.read(name)) for name in kind.names}


def _as_row(document: Document) -> dict[str, Any]:
    known = {"text": document.text, "user": document.user, "label": document.label}
    return {
        **{name: entry for name, entry in known.items() if name == "text" or entry is not None},
        **(document.attributes or {}),
    }


# -- which column is what ------------------------------------------------------------------------------------------


def _roles(
    columns: Sequence[Column],
    text: str | None,
    user: str | None,
    labels: tuple[str, ...] | None,
    *,
    are_names: bool,
) -> Roles:
    known = [column.name for column in columns]
    names = [name for name in (text, user, *(labels or ())) if name is not None]
    for option, name in (("text", text), ("user", user), *(("label", label) for label in labels or ())):
        if name is not None and name not in known:
            described = describe_columns(name, known, required=names, sure=are_names)
            raise ParameterError(f"expected a column {name!r} for {option}, there is {described}")
    if not are_names and may_be_values(known, required=names):
        raise DataError(
            "the first line may be a row instead of column names: add a header; if it is a header, name the column of "
            "texts with --text COLUMN (text=)"
        )
    if len({text, user, *(labels or ())} - {None}) < sum(character is not None for character in (text, user)) + len(
        labels or ()
    ):
        raise ParameterError("text, user and label must be different columns")
    message = {text, user, *(labels or ())}
    free = [column for column in columns if column.name not in message]
    result = text or _guessed_text(free)
    if result is None:
        raise ParameterError(
            f"found no column of texts among {format_names(known) or 'none'}: name it with --text (text=)"
        )
    free = [entry for entry in free if entry.name != result]
    person = user or _guessed_user(free)
    free = [entry for entry in free if entry.name != person]
    classes = _guessed_labels(free) if labels is None else labels
    fields = {"text": text is not None, "user": user is not None, "labels": labels is not None}
    return Roles(
        text=result,
        user=person,
        labels=classes,
        guessed=frozenset(name for name, is_given in fields.items() if not is_given),
    )


def _guessed_text(columns: Sequence[Column]) -> str | None:
    """Guess the text column: by its name, else free text with the most distinct values."""
    texts = [column for column in columns if column.kind == "text"]
    if len(columns) == 1:
        texts = list(columns)
    named = _named("text", texts) or _named(
        "text", [column for column in columns if column.kind not in ("number", "date")]
    )
    if named is not None:
        return named
    if not texts:  # short ones: nearly all differ, and nothing else is known of them
        texts = [column for column in columns if column.reasons == (ALL_DIFFERENT,)]
    return max(texts, key=lambda column: column.distinct).name if texts else None


def _guessed_user(columns: Sequence[Column]) -> str | None:
    """Guess the column of users: by its name, else one whose repeated values look like identifiers."""
    able = [column for column in columns if column.kind in _PEOPLE_OF and column.distinct > 1]
    shared = [entry for entry in able if 2 * entry.distinct <= entry.present]
    by_name = [entry.name for entry in (*shared, *able) if NAMES_SOMEBODY in entry.reasons]
    by_values = [entry.name for entry in shared if entry.kind == "identifier"]
    return next(iter([name for name in (_named("user", able),) if name is not None] + by_name + by_values), None)


def _guessed_labels(columns: Sequence[Column]) -> tuple[str, ...]:
    """Guess label columns: by their names, else columns with few values that identify no one."""
    few = [
        column
        for column in columns
        if column.kind in ("category", "number", "text")
        and 2 <= column.distinct <= _MOST_LABELS
        and _ROWS_A_LABEL * column.distinct <= column.present
    ]
    named = _named("label", few)
    plain = [entry.name for entry in few if entry.kind == "category" and not entry.reasons]
    result = [*([] if named is None else [named]), *plain]
    return tuple(dict.fromkeys(result))[:_LABELS_GUESSED]


def _named(role: str, columns: Sequence[Column]) -> str | None:
    for known in _KNOWN[role].split():
        for column in columns:
            if column.name.casefold().replace("-", "_").replace(" ", "_") == known:
                return column.name
    return None


# -- how many there are --------------------------------------------------------------------------------------------


def _counted_files(
    paths: Sequence[Path], columns: tuple[Column, ...], roles: Roles, *, files: tuple[str, ...], suffix: str | None
) -> Data:
    has_columns = all(file_format(Path(f"x{suffix}") if suffix else path).format.has_columns for path in paths)
    named: dict[str, Any] = {"text": roles.text, "user": roles.user, "keep": roles.labels} if has_columns else {}
    with closing(read_documents(list(paths), on_error="skip", suffix=suffix, **named)) as reader:
        rows = ((entry.text, entry.user, tuple((entry.attributes or {}).values()) or None) for entry in reader)
        result = _counted(rows, Data(files=files, columns=columns, roles=roles, rows=0))
        return replace(result, unread=reader.skipped)


def _counted(rows: Iterable[tuple[Any, Any, Any]], data: Data) -> Data:
    people: Counter[str] = Counter()
    classes: Counter[tuple[str | None, ...]] = Counter()
    lengths: Counter[int] = Counter()
    count = empty = 0
    following: Iterator[tuple[Any, Any, Any]] = iter(rows)
    for text, user, labels in islice(following, MOST_ROWS):
        count += 1
        if not isinstance(text, str) or is_missing(text) or not text.strip():
            empty += 1
        else:
            lengths[len(text.split())] += 1
        if (who := canonical_id(user)) is not None:
            people[who] += 1
        if labels is not None and None not in (names := tuple(map(canonical_label, labels))):
            classes[names] += 1
    if count == 0:
        raise DataError("there are no rows: expected at least one")
    is_all = next(following, None) is None
    return replace(
        data,
        rows=count,
        is_all=is_all,
        empty=empty,
        people=None if data.roles.user is None else len(people),
        most_texts=None if data.roles.user is None or not people else max(people.values()),
        words=(_median(lengths), max(lengths, default=0)),
        classes=len(classes) if data.roles.labels else None,
        rarest=min(classes.values(), default=None) if data.roles.labels else None,
    )


def _median(counts: Counter[int]) -> int:
    half, seen = sum(counts.values()) / 2, 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= half:
            return value
    return 0
