"""The result of a release, its files (statement, rejects), and counts of texts per user."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dptext.display import Fields, ReprMixin
from dptext.errors import DataError, DptextError, StorageError
from dptext.io.artifacts import file_digest, folder_digest, read_stored
from dptext.io.atomic import check_released, hashed_file
from dptext.io.batches import Batch, Reject, as_lists
from dptext.privacy.guarantee import canonical_id
from dptext.privacy.randomness import RandomBits
from dptext.privacy.restating import statement_for_user
from dptext.privacy.statement import PrivacyStatement
from dptext.privacy.wording import UNBOUNDED, Strength, facts_of, strength_sentence

_AT_LEAST = 1 << 16  # rows that wait for each other before they are sorted


class MostTexts(NamedTuple):
    """Counts of texts per user."""

    texts: int
    unnamed: int = 0


class TextsOfPeople:
    """A count for each person: 16 bytes for each, however long their names and however many their rows."""

    def __init__(self, column: str, *, missing: str | None = None) -> None:
        self.column = column
        self._missing = missing
        self._who: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._texts: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._waiting = bytearray()
        self._unnamed = 0

    def counting(self, blocks: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the blocks after counting them."""
        for block in blocks:
            if len(block.texts):
                self.add(as_lists(block.columns)[self.column], block.texts)
            yield block

    def add(self, people: Iterable[object], texts: Sequence[str | None]) -> None:
        """Count rows: who wrote each, and its text."""
        authors = (
            who for who, text in zip(people, texts, strict=True) if text is not None or self._missing is not None
        )
        names = [canonical_id(who) for who in authors]
        results = [user_digest(name, _key()) for name in names if name is not None]
        self._unnamed += len(names) - len(results)
        self._waiting += b"".join(results)
        if len(self._waiting) >= 8 * max(_AT_LEAST, len(self._who) // 4):  # in all, every user is moved rarely
            self._settle()

    def __add__(self, other: TextsOfPeople) -> TextsOfPeople:
        both = TextsOfPeople(self.column, missing=self._missing)
        for part in (self, other):
            part._settle()
            both._merge(part._who, part._texts)
            both._unnamed += part._unnamed
        return both

    @property
    def most(self) -> MostTexts:
        self._settle()
        return MostTexts(int(self._texts.max(initial=0)), self._unnamed)

    def _settle(self) -> None:
        """Count the rows that wait."""
        who = np.frombuffer(bytes(self._waiting), dtype=np.uint64)
        self._merge(who, np.ones(len(who), dtype=np.int64))
        self._waiting.clear()

    def _merge(self, who: NDArray[np.uint64], texts: NDArray[np.int64]) -> None:
        self._who, position = np.unique(np.concatenate([self._who, who]), return_inverse=True)
        total = np.zeros(len(self._who), dtype=np.int64)
        np.add.at(total, position.reshape(-1), np.concatenate([self._texts, texts]))
        self._texts = total


@cache
def _key() -> bytes:
    return RandomBits().take(16)


def user_digest(name: str, key: bytes) -> bytes:
    """Return 64 bits that stand for a user while texts are counted."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()


def promise_to(maximum: MostTexts, statements: Sequence[PrivacyStatement]) -> PrivacyStatement | None:
    """Return the statement for the person with the most texts, for the owner of the texts only."""
    if not maximum.texts:
        return None
    weakest = max(statements, key=lambda candidate: candidate.epsilon)
    try:
        return statement_for_user(weakest, maximum.texts)
    except DptextError:
        return None


_SUFFIX = ".privacy.json"


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

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True, repr=False)
class Release(ReprMixin):
    """Result of a release: private texts, table or file, with the privacy statement.

    Attributes:
        statement: the privacy statement; for a file also in ``OUT.privacy.json``.
        documents: number of output rows.
        skipped: number of unreadable rows that were left out; for a file they are listed in ``OUT.rejects.jsonl``.
        resumed: number of rows finished by an earlier, interrupted run.
        tally: counts over the texts, mostly private; zeros if nothing was counted.
        people: counts of texts per user, private. None: not counted.
        doubts: sentences about noise that drowns out the data; they follow from the release.
        made: the output by name: `texts` (and the `columns` of their labels), a `table`, or the path `out`; empty for
            a stream.
    """

    statement: PrivacyStatement
    documents: int
    skipped: int = 0
    resumed: int = 0
    tally: Tally = Tally()
    people: TextsOfPeople | None = field(default=None, repr=False)
    doubts: tuple[str, ...] = ()
    made: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def most_texts(self) -> MostTexts | None:
        """How many texts the person with the most has. **Private: for the owner of the texts alone.**"""
        return None if self.people is None else self.people.most

    @property
    def for_user(self) -> PrivacyStatement | None:
        """The statement for the person with the most texts; None if not counted or without a guarantee.

        **Private: for the owner of the texts alone**, as the number of texts is. A statement to hand on has a bound
        that was fixed beforehand: `dptext.statement_for_user`.
        """
        most_texts = self.most_texts
        return None if most_texts is None else promise_to(most_texts, [self.statement])

    @property
    def texts(self) -> list[str | None]:
        """One private text for each text, in order; None where there was none."""
        texts: list[str | None] = self._output("texts")
        return texts

    @property
    def labels(self) -> list[Any]:
        """The label of each text of a synthetic corpus: of several columns, one tuple a text."""
        columns = list(self.columns.values())
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    @property
    def columns(self) -> Mapping[str, list[str]]:
        """The columns of labels of a synthetic corpus."""
        columns: Mapping[str, list[str]] = self._output("columns")
        return columns

    @property
    def table(self) -> Any:
        """A table of the kind that came in: the private texts and the kept columns, row for row."""
        return self._output("table")

    @property
    def out(self) -> Path:
        """The private file."""
        out: Path = self._output("out")
        return out

    def _output(self, name: str) -> Any:
        if name not in self.made:
            has = ", ".join(self.made) or "neither texts nor a table nor a file: the output went into a stream"
            raise AttributeError(f"this release has no {name!r}, it has {has}")
        return self.made[name]

    def _repr_fields(self) -> Fields:
        yield "documents", self.documents
        yield "made", ", ".join(self.made) or "a stream"
        yield "mechanism", self.statement.mechanism
        if strength_sentence(self.statement) in (Strength.TOO_LARGE.value, UNBOUNDED):
            yield "protects", False  # by its bound
        yield "guarantee", str(self.statement.guarantee)

    def _html_fields(self) -> Fields:
        yield from facts_of(self.statement)
        yield from (("doubt", doubt) for doubt in self.doubts)


def statement_path(data: Path) -> Path:
    return data.with_name(data.name + _SUFFIX)


def rejects_path(data: Path) -> Path:
    """Where the rows stand that could not be read. The list is for the owner of the data."""
    return data.with_name(f"{data.name}.rejects.jsonl")


def data_and_statement(file: Path) -> tuple[Path, Path]:
    """Return the paths of the data and its statement, given either of them."""
    if not file.name:  # "." or ".."
        file = file.resolve()
    if file.name.endswith(_SUFFIX):
        return file.with_name(file.name.removesuffix(_SUFFIX)), file
    beside = statement_path(file)
    if not beside.exists() and file.suffix == ".json":
        return file, file  # a statement under another name
    return file, beside


def write_rejects(path: Path, rejects: Iterable[Reject]) -> None:
    left = iter(rejects)
    first = next(left, None)
    if first is None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError.of("write", path, error) from None
        return
    with hashed_file(path, owner_only=True) as stream:
        for entry in chain((first,), left):
            line = json.dumps(asdict(entry), ensure_ascii=False) + "\n"
            stream.write(line.encode("utf-8", "backslashreplace"))


def write_statement(path: Path, statement: PrivacyStatement) -> None:
    """The statement in a file, whole or not at all."""
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
    if path.name.endswith(_SUFFIX) and not path.exists():
        raise StorageError(
            f"cannot read {str(path)!r}: there is no such file, and without its statement the data has no "
            "known guarantee: ask for both files"
        )
    try:
        return PrivacyStatement.from_json(read_stored(path).decode())
    except UnicodeDecodeError:
        raise DataError(f"{path.name}: expected UTF-8 text: a privacy statement is JSON") from None
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None


def data_agrees(statement: PrivacyStatement, data: Path) -> bool | None:
    """Whether the digests agree; None where there is nothing to compare."""
    if statement.data_sha256 is None or not data.exists() or data.name.endswith(".json"):
        return None
    return (folder_digest(data) if data.is_dir() else file_digest(data)) == statement.data_sha256


def add_columns(statement: PrivacyStatement, keep: Sequence[str], *, skip: bool = False) -> PrivacyStatement:
    left_out = ("that rows which could not be read are missing",) if skip else ()
    return statement.replace(exposed=(*statement.exposed, *map(kept_as_it_was, keep), *left_out))


def without_text(some: bool) -> tuple[str, ...]:
    """What a statement exposes of rows that had no text, where there are some; such a row stays without."""
    return ("which rows had no text (null)",) if some else ()


def kept_as_it_was(column: str) -> str:
    return f"the column {column!r}, unchanged"
