"""Documents in files: reading and writing batches of rows in constant memory."""

from __future__ import annotations

import codecs
import glob
import gzip
import math
import os
import shutil
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dptext.errors import DataError, ParameterError, StorageError, storage_errors
from dptext.io.atomic import HashedFile, open_new, scratch_folder
from dptext.io.batches import STANDARD, Batch, Columns, InputFile, Reject, describe_columns, is_pipe, row_batches
from dptext.io.formats import NAMES_OF_FORMATS, BadRow, FileFormat, Reading, Row, file_format, read_rows, written_format
from dptext.privacy.guarantee import canonical_id
from dptext.validation import check_choice, is_missing

OnError: TypeAlias = Literal["fail", "skip"]
PathLike: TypeAlias = str | os.PathLike[str]
_REJECTS_KEPT = 1000  # bounds the memory
_COUNTED_ROWS = 200_000  # among which rows without a user are counted before the work
_NO_USER = "the row has no author"
_OWN = (".privacy.json", ".rejects.jsonl", ".answers.jsonl")


@dataclass(frozen=True, slots=True)
class Document:
    """One text with its user, label and other attributes.

    Attributes:
        text: the text; None for a missing text (null).
        user: id of the author, if users are the privacy unit.
        label: class of the text, for training.
        attributes: values of other columns by name.
    """

    # private values stay out of logs and tracebacks
    text: str | None = field(repr=False)
    user: str | None = field(default=None, repr=False)
    label: Any = field(default=None, repr=False)
    attributes: Mapping[str, Any] | None = field(default=None, repr=False)


# -- values ---------------------------------------------------------------------------------------------------


def check_one_column(texts: Iterable[str | None]) -> Iterable[str | None]:
    """Return the texts; raise `ParameterError` for a string or a table, whose items are not texts."""
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise ParameterError(f"texts must be a list, an array or a Series of strings, got {type(texts).__name__}")
    shape = getattr(texts, "shape", (0,))
    if len(shape) != 1:
        raise ParameterError(f"texts must be one column, got {len(shape)} axes: select a single column")
    return texts


def text_of(entry: Any, place: int) -> str | None:
    """Return a text, or the text of a `Document`; None if it is missing. ``place`` is for the error."""
    text = entry.text if isinstance(entry, Document) else entry
    if isinstance(text, str):
        return text
    if not is_missing(text):
        raise DataError(f"texts must be strings, entry {place} is {type(text).__name__}")
    return None


def canonical_label(value: object) -> str | None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date) and value == value:  # a datetime is one, and NaT differs from itself
        return value.isoformat()
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        return repr(value)
    label = canonical_id(value)
    return label.lower() if label in ("True", "False", "TRUE", "FALSE") else label


def without_user(
    rows: str, column: str, place: str = "", *, can_skip: bool = True, has_unit: bool = False
) -> DataError:
    """Return the error for rows without a user id, with the ways out that the caller has."""
    skip = "with --on-error skip (on_error='skip')" if can_skip else "of the input"
    unit = ", or protect texts instead of users with --unit document (unit='document')" if has_unit else ""
    problem = f"{rows} no usable value in the column {column!r}{place}"
    return DataError(f"{problem}. Leave such rows out {skip}, or fill in the column{unit}")


def check_kept_columns(text: str, keep: Sequence[str]) -> None:
    """Raise `ParameterError` if the columns to keep include the text or contain duplicates."""
    if text in keep:
        raise ParameterError(
            f"the column {text!r} contains the text and would be released unchanged: name another column"
        )
    twice = next((name for name in keep if list(keep).count(name) > 1), None)
    if twice is not None:
        raise ParameterError(f"the column {twice!r} is kept twice: list it once")


# -- in -------------------------------------------------------------------------------------------------------


def read_documents(
    source: PathLike | Sequence[PathLike],
    *,
    text: str = "text",
    user: str | None = None,
    label: str | None = None,
    keep: Sequence[str] = (),
    on_error: OnError = "fail",
    suffix: str | None = None,
    encoding: str | None = None,
    separator: str | None = None,
) -> DocumentReader:
    """Stream the documents of one or several files, in order.

    Args:
        source: a .txt, .jsonl, .csv, .tsv (plain, .gz, .zst or .xz), .parquet or .xlsx file; ``"-"`` for standard
            input; or several of them.
        text: name of the text column (except in .txt files).
        user: name of the user column, if any. A row without a user id (missing, blank, or neither a text nor a whole
            number) cannot be read.
        label: name of the label column, if any.
        keep: further columns to read into ``attributes``; all others are dropped.
        on_error: ``"fail"`` at the first row that cannot be read, or ``"skip"`` such rows (`DocumentReader.rejects`).
        suffix: the format, if the file name does not have it (such as ``".jsonl"`` for standard input).
        encoding: encoding of the text (such as ``"windows-1252"``); None for UTF-8, or UTF-16 with a byte order mark.
        separator: separator of .csv fields (such as ``";"``); None for the comma, or another separator if only that
            one gives a header with these columns.

    Returns:
        An iterator of `Document`.

    Raises:
        StorageError: a file cannot be opened or read.
        DataError: a row is broken (wrong encoding, truncated, not JSON, a missing column, not a string). The error
            names the row, never its content.
        ParameterError: the suffix, encoding or separator is unknown, or columns of a .txt file are requested.
        MissingExtraError: the package that reads .xlsx is not installed.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "reviews.csv")
        ...     _ = path.write_text("text;stars\\nlovely food;5\\n")
        ...     [(document.text, document.label) for document in read_documents(path, label="stars")]
        [('lovely food', '5')]
    """
    check_choice("on_error", on_error, get_args(OnError))
    check_kept_columns(text, keep)
    columns = tuple(dict.fromkeys(name for name in (user, label, *keep) if name is not None))
    skip = on_error == "skip"
    reading = replace(_reading(text, columns, encoding, separator, skip=skip), user=user)
    opens: list[tuple[Path, Callable[[], Source]]] = []
    for name in [source] if isinstance(source, str | os.PathLike) else source:
        path, announced = Path(name), _input_format(Path(name), suffix)
        if columns and not announced.format.has_columns:
            raise ParameterError(f"a {announced.kind} file has no columns to keep ({path.name!r}): use .jsonl or .csv")
        if is_pipe(path) and not announced.format.is_lines:
            kind = "standard input" if path == STANDARD else f"{path.name!r}, a pipe or a device"
            raise ParameterError(f"{announced.kind} cannot be read from {kind}: name a file, or pipe .jsonl")
        opens.append((path, partial(Source, path, announced, reading)))
    return DocumentReader(opens, user=user, label=label, keep=tuple(keep), skip=skip)


def _reading(
    text: str, columns: tuple[str, ...], encoding: str | None, separator: str | None, *, skip: bool = False
) -> Reading:
    try:
        "".encode(encoding or "utf-8")  # raises for binary codecs
        name = None if encoding is None else codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError):
        raise ParameterError(f"encoding must be a Python text encoding like windows-1252, got {encoding!r}") from None
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ParameterError(f"separator must be one character (',', ';' or a tab), got {separator!r}")
    return Reading(text, columns, skip, name, separator)


def _input_format(path: Path, suffix: str | None) -> FileFormat:
    """Return the format of an input: the named one (".jsonl" or "jsonl"), or that of the file name."""
    if not suffix:
        return file_format(path)
    try:
        return file_format(Path(f"x.{suffix.removeprefix('.')}"))
    except ParameterError:
        raise ParameterError(f"expected a format of input such as {NAMES_OF_FORMATS}, got {suffix!r}") from None


def first_rows(
    paths: Sequence[PathLike],
    *,
    suffix: str | None = None,
    only: Collection[str] | None = None,
    encoding: str | None = None,
    separator: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of files with all columns, for inspection; skip pipes and rows that cannot be read."""
    if only is not None and not only:
        return
    reading = _reading("", tuple(only or ()), encoding, separator)
    for path in map(Path, paths):
        announced = _input_format(path, suffix)
        if not is_pipe(path):
            with closing(InputFile(path, announced.compression)) as file:
                for row in read_rows(file, announced.format, replace(reading, text="text"), ()):
                    if not isinstance(row, BadRow):
                        yield {name: row[name] for name in only if name in row} if only else row


class Source:
    """One file in batches; its header and first row are read and validated when it is opened."""

    def __init__(self, path: Path, announced: FileFormat, reading: Reading) -> None:
        self._file = InputFile(path, announced.compression)
        self._reading = reading
        self.size, self.name = self._file.size, self._file.name
        usable = self._usable_rows(announced)
        try:
            self._rows = chain(list(islice(usable, 1)), usable)
        except BaseException:
            self.close()
            raise

    @property
    def position(self) -> int:
        return self._file.position

    def close(self) -> None:
        self._file.close()

    def batches(self) -> Iterator[Batch]:
        return row_batches(self._rows, self._reading.columns)

    def _usable_rows(self, announced: FileFormat) -> Iterator[Reject | tuple[str | None, list[Any]]]:
        text, user, columns = self._reading.text, self._reading.user, self._reading.columns
        rows = read_rows(self._file, announced.format, self._reading, (text, *columns))
        for number, row in enumerate(rows, 1):
            is_complete = not isinstance(row, BadRow) and all(name in row for name in (text, *columns))
            if not isinstance(row, BadRow) and is_complete and (isinstance(row[text], str) or is_missing(row[text])):
                if user is None or canonical_id(row[user]) is not None:
                    yield row[text] if isinstance(row[text], str) else None, [row[name] for name in columns]
                else:  # with ``fail``, the reader raises: it can count such rows
                    yield Reject(self.name, number, _NO_USER)
            elif self._reading.skip:
                yield Reject(self.name, number, _problem(row, self._reading))
            else:
                raise DataError(f"{self.name}, row {number}: {_problem(row, self._reading)}")


def _problem(row: Row, reading: Reading) -> str:
    """Return why a row cannot be used. With ``skip`` (rejects may be shown), do not name its columns."""
    if isinstance(row, BadRow):
        return row.reason
    for column in (reading.text, *reading.columns):
        if column not in row:
            present = "none" if reading.skip else describe_columns(column, list(row), sure=True)
            return f"expected a column {column!r}, the row has {present}; name the right column or repair the row"
    return f"expected a string in {reading.text!r}, the value is of type {type(row[reading.text]).__name__}"


def _nothing_read(first: Reject) -> DataError:
    return DataError(f"no row could be read; the first error is {first.file}, row {first.row}: {first.reason}")


class DocumentReader(Iterator[Document]):
    """Iterator over the documents of one or more files, in order and only once, singly or in `batches`."""

    def __init__(
        self,
        files: Sequence[tuple[Path, Callable[[], Source]]],
        *,
        user: str | None,
        label: str | None,
        keep: tuple[str, ...],
        skip: bool,
    ) -> None:
        self.user_column, self.label_column, self.kept_columns = user, label, keep
        self._files, self._skips, self._has_unit, self._is_checked = files, skip, False, False
        self.rejects: list[Reject] = []
        self.skipped = 0
        self.count = 0
        self._watchers: list[Callable[[Batch], None]] = []
        self._at_end: list[Callable[[], None]] = []
        self._current: Source | None = None
        self._done = 0
        self._turns: list[Source | Callable[[], Source]] = []  # open sources, or functions that open them
        sources = []
        for path, opened in files:
            source = opened()  # open every file once before anything is read
            sources.append(source)
            if len(files) == 1 or not path.is_file():
                self._turns.append(source)  # a pipe can be opened only once
            else:
                source.close()  # there may be more files than a process may open
                self._turns.append(opened)
        self._names = ", ".join(source.name for source in sources[:3]) or "nothing"
        self.size = sum(source.size for source in sources) if all(source.size for source in sources) else 0
        self._documents: Iterator[Document] | None = None

    @property
    def position(self) -> int:
        return self._done + (0 if self._current is None else self._current.position)

    def watch(self, watcher: Callable[[Batch], None], *, at_end: Callable[[], None] | None = None) -> None:
        """Call ``watcher`` with every batch before it is used, and ``at_end`` after the last row."""
        self._watchers.append(watcher)
        self._at_end += [] if at_end is None else [at_end]

    def check_users(self, *, has_unit: bool = False) -> None:
        """Raise `DataError` before any work if rows have no user; ``has_unit``: the caller has the unit document."""
        self._has_unit = has_unit
        if self.user_column is None or self._is_checked:
            return
        self._is_checked, count, missing, first = True, 0, 0, None
        with closing(self._first_batches()) as batches:
            for batch in batches:
                count += len(batch.texts) + len(batch.rejects)
                missing += len(batch.rejects)
                first = first or next(iter(batch.rejects), None)
                if count >= _COUNTED_ROWS or (batch.texts and self._skips):
                    break
        if first is not None and self._skips and missing == count:
            raise _nothing_read(first)
        if first is not None and not self._skips:
            rows = f"{missing:,} of {'the first ' * (count >= _COUNTED_ROWS)}{count:,} rows"
            place = f" (first: {first.file}, row {first.row})"
            raise self._without_user(f"{rows} {'has' if missing == 1 else 'have'}", place)

    def _first_batches(self) -> Generator[Batch, None, None]:
        for path, opened in self._files:
            if not is_pipe(path):
                with closing(opened()) as source:
                    yield from source.batches()

    def _without_user(self, rows: str, place: str = "") -> DataError:
        return without_user(rows, str(self.user_column), place, has_unit=self._has_unit)

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
        for turn in self._turns:
            if not callable(turn):
                turn.close()

    def batches(self) -> Iterator[Batch]:
        """Yield the rows in batches; the ends of batches depend on the content of the files only."""
        try:
            for turn in self._turns:
                self._current = turn() if callable(turn) else turn
                for batch in self._current.batches():
                    if batch.rejects and not self._skips:
                        raise self._without_user(f"{batch.rejects[0].file}, row {batch.rejects[0].row} has")
                    self.skipped += len(batch.rejects)
                    self.rejects += batch.rejects[: _REJECTS_KEPT - len(self.rejects)]
                    self.count += len(batch.texts)
                    for watcher in self._watchers:
                        watcher(batch)
                    yield batch
                self._current.close()
                self._done, self._current = self._done + self._current.size, None
        finally:
            self.close()
        if self.count == 0 and self.rejects:
            raise _nothing_read(self.rejects[0])
        if self.count == 0:
            raise DataError(f"{self._names} contains no documents: at least one row is needed")
        for callback in self._at_end:
            callback()

    def __next__(self) -> Document:
        if self._documents is None:
            self._documents = self._one_by_one()
        return next(self._documents)

    def __del__(self) -> None:
        if hasattr(self, "_turns"):
            self.close()

    def _one_by_one(self) -> Iterator[Document]:
        for batch in self.batches():
            columns = batch.columns
            users = None if self.user_column is None else columns[self.user_column]
            labels = None if self.label_column is None else columns[self.label_column]
            kept = {name: columns[name] for name in self.kept_columns}
            for row, text in enumerate(batch.texts):
                author = None if users is None else users[row]
                yield Document(
                    text,
                    user=None if author is None else str(author),
                    label=None if labels is None else labels[row],
                    attributes={name: values[row] for name, values in kept.items()} or None,
                )


# -- out ------------------------------------------------------------------------------------------------------


class DocumentWriter:
    """Writer of batches of documents, in the format of a file name."""

    def __init__(self, path: Path, *, text: str = "text", keep: Sequence[str] = ()) -> None:
        self.format = written_format(path)
        check_kept_columns(text, keep)
        if keep and not self.format.format.has_columns:
            raise ParameterError(f"a {self.format.kind} file cannot have kept columns: write .jsonl or .csv")
        self._names = (text, *keep)

    def encode(self, texts: Sequence[str | None], columns: Columns, *, row: int, first: bool) -> bytes:
        return self.format.format.encode(self._names, texts, columns, row, first=first)

    def write(self, parts: Iterable[bytes], out: HashedFile) -> None:
        """Write the whole file from the bytes of its batches (`encode`)."""
        if not self.format.is_assembled:  # else, it is not the concatenated bytes of the batches
            for part in parts:
                out.write(part)
            return
        with scratch_folder() as scratch:
            path, ends = scratch / "parts", [0]
            with open_new(path) as file:
                for part in parts:
                    with storage_errors("write", path):
                        ends.append(ends[-1] + file.write(part))
            self.finish(path, ends[1:], out)

    def finish(self, batches: Path, ends: Sequence[int], out: HashedFile) -> None:
        """Assemble the output from a file with the concatenated bytes of all batches, which end at ``ends``."""
        if self.format.format.is_lines:  # one gzip member without name and time; one per batch would reveal its end
            with batches.open("rb") as stream, gzip.GzipFile("", "wb", 6, out, mtime=0) as packed:
                shutil.copyfileobj(stream, packed, 1 << 20)
            return
        from dptext.io.parquet import assemble

        assemble(batches, ends, out)


# -- folders and patterns -------------------------------------------------------------------------------------


def find_files(sources: Iterable[str | os.PathLike[str]], *, any_format: bool = False) -> list[Path]:
    """Return the files of a list of names, folders and patterns, sorted within each entry."""
    paths: list[Path] = []
    for source in sources:
        path = Path(source)
        if path != STANDARD and path.is_dir():
            paths += _below(path)
        elif path != STANDARD and glob.has_magic(str(source)) and not path.exists():
            names = glob.glob(str(source), recursive=True)  # noqa: PTH207  Path.glob rejects absolute patterns
            matches = sorted(file for file in map(Path, names) if file.is_file() and (any_format or _is_input(file)))
            if not matches:
                raise DataError(f"no file of a known format matches {str(source)!r}: name a file or a folder")
            paths += matches
        else:
            paths.append(path)
    if len({path.resolve() for path in paths}) < len(paths):
        raise ParameterError("an input file is given twice, so its rows would be released twice: pass it once")
    return paths


def _below(folder: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        raise StorageError.of("read", folder, error) from None

    every = [Path(place, name) for place, _, names in os.walk(folder, onerror=fail) for name in names]
    visible = [file for file in every if not any(part.startswith(".") for part in file.relative_to(folder).parts)]
    files = sorted(filter(_is_input, visible))
    if not files:
        raise DataError(f"the folder {str(folder)!r} contains no file of a known format: name a file")
    return files


def _is_input(path: Path) -> bool:
    with suppress(ParameterError):
        return not path.name.endswith(_OWN) and path.is_file() and bool(file_format(path))
    return False
