"""The result of a release, the files next to its data (statement, rejects), and the number of texts per user."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dptext.display import Fields, ReprMixin
from dptext.errors import DataError, DptextError, StorageError, storage_errors
from dptext.io.artifacts import file_digest, folder_digest, read_stored
from dptext.io.atomic import check_released, hashed_file
from dptext.io.batches import Batch, Reject
from dptext.privacy.guarantee import canonical_id
from dptext.privacy.randomness import RandomBits
from dptext.privacy.restating import statement_for_user
from dptext.privacy.statement import HasStatement, PrivacyStatement
from dptext.privacy.wording import UNBOUNDED, Strength, facts_of, strength_sentence


class MostTexts(NamedTuple):
    """The largest number of texts of one user, and the number of rows without a user."""

    texts: int
    unnamed: int = 0


class TextsOfPeople:
    """Counts of texts per user, in 8 bytes per text."""

    def __init__(self, column: str, *, missing: str | None = None) -> None:
        self.column = column
        self._missing = missing
        self._key = RandomBits().take(16)
        self._users = bytearray()  # a keyed digest of the user of each text
        self._unnamed = 0

    def counting(self, blocks: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the blocks, after counting their rows."""
        for block in blocks:
            if len(block.texts):
                self.add(block.columns[self.column], block.texts)
            yield block

    def add(self, people: Iterable[object], texts: Sequence[str | None]) -> None:
        """Count texts by user. A row without a text is skipped, unless ``missing`` replaces its text."""
        for user, text in zip(people, texts, strict=True):
            if text is None and self._missing is None:
                continue
            name = canonical_id(user)
            if name is None:
                self._unnamed += 1
            else:
                content = name.encode("utf-8", "surrogatepass")
                self._users += hashlib.blake2b(content, digest_size=8, key=self._key).digest()

    @property
    def most(self) -> MostTexts:
        users = np.frombuffer(bytes(self._users), dtype=np.uint64)
        return MostTexts(int(np.unique(users, return_counts=True)[1].max(initial=0)), self._unnamed)


def statement_for_largest_user(maximum: MostTexts, statement: PrivacyStatement) -> PrivacyStatement | None:
    """Return the statement for all texts of the user with the most; None if there is none. **Private.**"""
    if not maximum.texts:
        return None
    try:
        return statement_for_user(statement, maximum.texts)
    except DptextError:
        return None


STATEMENT = "privacy.json"
"""Name of the statement in a released folder."""
_SUFFIX = ".privacy.json"
_CARD = ".md"
_MAX_STATEMENT = 1 << 20  # bytes
_IN_CARDS = (re.compile("SHA-256 of the data ([0-9a-f]{64})"), re.compile("[Rr]elease ([0-9a-f]{32})"))


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over texts."""

    longest: int = 0
    missing: int = 0
    words: int = 0
    unknown: int = 0
    kept: int = 0
    unchanged: int = 0

    def __add__(self, other: Tally) -> Tally:
        summed = {field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        return Tally(**{**summed, "longest": max(self.longest, other.longest)})


@dataclass(frozen=True, kw_only=True, repr=False)
class Release(HasStatement, ReprMixin):
    """The result of every function that releases texts or vectors: its output and its privacy statement.

    Attributes:
        statement: the privacy statement; a released file has it in ``OUT.privacy.json``.
        documents: number of released rows.
        skipped: number of rows that could not be read and were left out; for a file, ``OUT.rejects.jsonl`` lists them.
        resumed: number of rows that an interrupted run had already done.
        tally: counts over the texts, most of them private; zeros if nothing was counted.
        people: number of texts per user, if a user column was given: private. None if there was no such column, or if
            the run only published the finished output of an interrupted one.
        doubts: warnings, in sentences, that noise hides parts of the result; they are computed from the release alone.
        outputs: the output by name: `texts` (and the `columns` of their labels), a `table`, or the path `out`.
    """

    statement: PrivacyStatement
    documents: int
    skipped: int = 0
    resumed: int = 0
    tally: Tally = Tally()
    people: TextsOfPeople | None = field(default=None, repr=False)
    doubts: tuple[str, ...] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def most_texts(self) -> MostTexts | None:
        """The number of texts of the user with the most. **Private: for the owner of the texts alone.**"""
        return None if self.people is None else self.people.most

    @property
    def for_user(self) -> PrivacyStatement | None:
        """The statement for all texts of the user with the most; None if texts were not counted, or no guarantee holds.

        **Private: for the owner of the texts alone**, as the number of texts is. For a statement to publish, fix a
        bound on that number beforehand and use `dptext.statement_for_user`.
        """
        most_texts = self.most_texts
        return None if most_texts is None else statement_for_largest_user(most_texts, self.statement)

    @property
    def texts(self) -> list[str | Any]:
        """One private text per input text, in order; None for a missing text (its type is Any: few inputs have one)."""
        texts: list[str | Any] = self._output("texts")
        return texts

    @property
    def labels(self) -> list[Any]:
        """The label of each text of a synthetic corpus; with several label columns, one tuple per text."""
        columns = list(self.columns.values())
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    @property
    def columns(self) -> Mapping[str, list[str]]:
        """The label columns of a synthetic corpus."""
        columns: Mapping[str, list[str]] = self._output("columns")
        return columns

    @property
    def table(self) -> Any:
        """A table of the same kind as the input: the private texts and the kept columns, row by row."""
        return self._output("table")

    @property
    def out(self) -> Path:
        """The private file."""
        out: Path = self._output("out")
        return out

    def _output(self, name: str) -> Any:
        if name not in self.outputs:
            raise AttributeError(f"this release has no {name!r}, it has {', '.join(self.outputs)}")
        return self.outputs[name]

    def _repr_fields(self) -> Fields:
        yield "documents", self.documents
        yield "outputs", ", ".join(self.outputs)
        yield "mechanism", self.statement.mechanism
        if strength_sentence(self.statement) in (Strength.TOO_LARGE.value, UNBOUNDED):
            yield "protects", False  # by its bound; the HTML form shows the sentence
        yield "guarantee", str(self.statement.guarantee)

    def _html_fields(self) -> Fields:
        yield from facts_of(self.statement)
        yield from (("doubt", doubt) for doubt in self.doubts)


def statement_path(data: Path) -> Path:
    return data.with_name(data.name + _SUFFIX)


def rejects_path(data: Path) -> Path:
    """Return the path of the list of rows that could not be read. The list is for the owner of the data."""
    return data.with_name(f"{data.name}.rejects.jsonl")


def data_and_statement(file: Path) -> tuple[Path, Path]:
    """Return the paths of the data and its statement (found by name, digest or card), given either or a card."""
    if not file.name:  # "." or ".."
        file = file.resolve()
    statement = statement_path(file)
    if file.is_dir() and not statement.exists():
        statement = file / STATEMENT
    elif file.is_file() and not statement.exists() and file.name != STATEMENT:
        statement = _matching_statement(file) or statement
    if file.suffix == _CARD and statement.exists():
        file = statement
    if file.name == STATEMENT:
        return file.parent, file
    if file.name.endswith(_SUFFIX):
        return file.with_name(file.name.removesuffix(_SUFFIX)), file
    if not statement.exists() and file.suffix == ".json":
        return file, file  # a statement under another name
    return file, statement


def _matching_statement(file: Path) -> Path | None:
    """Return the statement next to a file that has the digest of the file, or that the card in the file names."""
    of_folder = file.with_name(STATEMENT)
    places = [of_folder] if of_folder.exists() else file.parent.glob("*.json")
    statements = [(place, entry) for place in sorted(places) if (entry := _read_if_statement(place)) is not None]
    name = None  # digest or release id
    if file.suffix == _CARD:
        card = read_stored(file).decode(errors="replace")
        name = next((match[1] for pattern in _IN_CARDS if (match := pattern.search(card))), None)
    elif statements:
        name = file_digest(file)
    matching = [place for place, entry in statements if name and name in (entry.data_sha256, entry.release_id)]
    if len(matching) > 1:
        raise DataError(f"{file.name} belongs to {' and '.join(place.name for place in matching)}: name one of them")
    return matching[0] if matching else None


def _read_if_statement(place: Path) -> PrivacyStatement | None:
    try:
        if place.is_file() and place.stat().st_size <= _MAX_STATEMENT:
            return PrivacyStatement.from_json(read_stored(place).decode())
    except (DptextError, UnicodeDecodeError, OSError):
        pass
    return None


def is_present(data: Path) -> bool:
    """Return whether the data of a release is there; a statement under another name is not the data."""
    return data.exists() and data.suffix != ".json"


def write_rejects(path: Path, rejects: Iterable[Reject]) -> None:
    left = iter(rejects)
    first = next(left, None)
    if first is None:
        with storage_errors("write", path):
            path.unlink(missing_ok=True)
        return
    with hashed_file(path, owner_only=True) as stream:
        for entry in chain((first,), left):
            line = json.dumps(asdict(entry), ensure_ascii=False) + "\n"
            stream.write(line.encode("utf-8", "backslashreplace"))


def write_statement(path: Path, statement: PrivacyStatement) -> None:
    """Write a statement to a file, completely or not at all."""
    with hashed_file(path) as stream:
        stream.write((statement.to_json() + "\n").encode())


def folder_is_of(folder: str | os.PathLike[str], release_id: str) -> bool:
    try:
        text = (Path(folder) / "privacy.json").read_text(encoding="utf-8")
        return PrivacyStatement.from_json(text).release_id == release_id
    except (FileNotFoundError, NotADirectoryError, DataError, UnicodeDecodeError):
        return False
    except OSError as error:
        raise StorageError.of("read", folder, error) from None


def read_statement(path: Path) -> PrivacyStatement:
    check_released(path)
    if not path.exists():
        raise _missing(path, data_and_statement(path)[0])
    try:
        return PrivacyStatement.from_json(read_stored(path).decode())
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: a privacy statement must be JSON in UTF-8") from None
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None


def _missing(place: Path, data: Path) -> DptextError:
    """Return the error for a statement that is missing: whether its data is missing too, and where to get it."""
    if not data.exists() or data == place:
        return StorageError(f"cannot read {str(data)!r}: there is no such file or folder")
    if data.suffix == _CARD:
        return StorageError(f"{data.name} is not the card of a privacy statement next to it: get both from the source")
    inside = min((file.name.removesuffix(_SUFFIX) for file in data.glob(f"*{_SUFFIX}")), default=None)
    if inside is not None:
        return DataError(f"{data.name} is a folder: name a release in it, such as {inside}")
    return StorageError(
        f"{data.name} has no privacy statement ({place.name}), and without it no guarantee is known: get the statement "
        "from the source of the data"
    )


def data_agrees(statement: PrivacyStatement, data: Path) -> bool | None:
    """Return whether the data matches the digest in the statement; None if there is nothing to compare."""
    if statement.data_sha256 is None or not is_present(data):
        return None
    return (folder_digest(data) if data.is_dir() else file_digest(data)) == statement.data_sha256


def add_columns(statement: PrivacyStatement, keep: Sequence[str], *, skip: bool = False) -> PrivacyStatement:
    left_out = ("that rows which could not be read or had no author are missing",) if skip else ()
    return statement.replace(exposed=(*statement.exposed, *map(kept_as_it_was, keep), *left_out))


def without_text(some: bool) -> tuple[str, ...]:
    """Return the exposure of missing texts, if there are any: they stay missing in the output."""
    return ("which rows had no text (null)",) if some else ()


def kept_as_it_was(column: str) -> str:
    return f"the column {column!r}, unchanged"
