"""Documents: read from files as a stream of blocks of rows, and written block by block, in constant memory.

`dptext.files.formats` lists the formats.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from dptext.checks import choice
from dptext.errors import DataError, ParameterError, StorageError
from dptext.files.blocks import Block, Columns, Reject, add_reject
from dptext.files.column import is_missing
from dptext.files.formats import FileFormat, Source, file_format, written_format
from dptext.files.parquet import as_lists
from dptext.files.streams import STANDARD, is_pipe
from dptext.own_files import HashedFile, open_new, scratch_folder

__all__ = [
    "Document",
    "DocumentReader",
    "DocumentWriter",
    "NoDocumentsError",
    "OnError",
    "PathLike",
    "check_kept_columns",
    "first_rows",
    "read_documents",
]

OnError: TypeAlias = Literal["fail", "skip"]
PathLike: TypeAlias = str | os.PathLike[str]
_REJECTS_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Document:
    """One text and what is known about it.

    Attributes:
        text: the text; None where a row has none (null).
        user: who wrote it, where users are the privacy unit.
        label: what it is used for (a class).
        attributes: other columns by name.
    """

    # what is private stays out of logs and tracebacks
    text: str | None = field(repr=False)
    user: str | None = field(default=None, repr=False)
    label: Any = field(default=None, repr=False)
    attributes: Mapping[str, Any] | None = field(default=None, repr=False)


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
) -> DocumentReader:
    """Stream the documents of a file, or of several one after the other.

    Args:
        source: a .txt, .jsonl, .csv, .tsv (plain, .gz or .zst), .parquet or .xlsx file; ``"-"`` for standard input;
            or several of them.
        text: the column that holds the text (all but .txt).
        user: the column that names the author, if any.
        label: the column that holds the label, if any.
        keep: further columns to read into ``attributes``; all others are dropped.
        on_error: ``"fail"`` at the first row that cannot be read, or ``"skip"`` it (`DocumentReader.rejects`).
        suffix: says the format where the name does not (``".jsonl"``; standard input).

    Raises:
        StorageError: a file cannot be opened or read.
        DataError: a row is broken (not UTF-8, cut, not JSON, without the column, not a string); the row is named,
            its content never is.
        ParameterError: an unknown suffix; columns asked of a .txt file.
        MissingExtraError: the package that reads .parquet or .zst is not installed.
    """
    choice("on_error", on_error, get_args(OnError))
    check_kept_columns(text, keep)
    columns = tuple(dict.fromkeys(name for name in (user, label, *keep) if name is not None))
    opens = []
    for each in [source] if isinstance(source, str | os.PathLike) else source:
        path, announced = Path(each), file_format(Path(f"x{suffix}" if suffix else each))
        if columns and not announced.format.has_columns:
            raise ParameterError(
                f"a {announced.kind} file has no columns to keep ({path.name!r}): use .jsonl or .csv, or keep nothing"
            )
        if announced.format.needs_file and is_pipe(path):
            what = "standard input" if path == STANDARD else f"{path.name!r}, a pipe or a device"
            raise ParameterError(
                f"{announced.kind.removeprefix('.')} cannot be read from {what}: name a file, or pipe .jsonl"
            )

        def opened(path: Path = path, announced: FileFormat = announced) -> Source:
            return announced.format.source(
                path, announced.compression, text=text, columns=columns, skip=on_error == "skip"
            )

        opens.append((path, opened))
    return DocumentReader(opens, user=user, label=label, keep=tuple(keep))


def first_rows(
    paths: Sequence[PathLike], *, suffix: str | None = None, only: Collection[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of files with all their columns, for a look at them: one after the other, from the beginning.

    A pipe, which can be read once only, is passed over, and so is a row that cannot be read.

    Args:
        paths, suffix: as in `read_documents`.
        only: these columns alone, of rows that have them.

    Raises:
        StorageError, DataError, ParameterError, MissingExtraError: as `read_documents`.
    """
    for each in map(Path, paths):
        announced = file_format(Path(f"x{suffix}" if suffix else each))
        if not is_pipe(each):
            yield from announced.format.rows(each, announced.compression, only=only)


def check_kept_columns(text: str, keep: Sequence[str]) -> None:
    """Refuse to keep the text itself, or a column twice.

    Raises:
        ParameterError: the text would leave as it was, beside (or in place of) the private one.
    """
    if text in keep:
        raise ParameterError(f"the column {text!r} holds the text: to keep it would release it as it was")
    twice = next((name for name in keep if list(keep).count(name) > 1), None)
    if twice is not None:
        raise ParameterError(f"the column {twice!r} is named twice among those to keep: name it once")


class NoDocumentsError(DataError):
    """There is not one row."""


class DocumentReader(Iterator[Document]):
    """The documents of one or more files, once, in order (made by `read_documents`): one by one, or in `blocks`.

    Attributes:
        size: bytes in the files; 0 where nobody knows (standard input).
        user_column: the column that names the author, if one was asked for.
        label_column: the column that holds the label, if one was asked for.
        kept_columns: the further columns that are read.
        rejects: the rows left out so far, as runs; of a great many, the first thousand runs.
        skipped: how many rows were left out so far.
        count: the rows read so far, without those.
    """

    def __init__(
        self,
        files: Sequence[tuple[Path, Callable[[], Source]]],
        *,
        user: str | None,
        label: str | None,
        keep: tuple[str, ...],
    ) -> None:
        self.user_column, self.label_column, self.kept_columns = user, label, keep
        self.rejects: list[Reject] = []
        self.skipped = 0
        self.count = 0
        self._watchers: list[Callable[[Block], None]] = []
        self._at_end: list[Callable[[], None]] = []
        self._current: Source | None = None
        self._done = 0
        self._turns: list[Source | Callable[[], Source]] = []  # open, or to be opened
        self._names: list[str] = []
        sizes = []
        for path, opened in files:
            source = opened()  # what cannot be opened is said before anything is read
            sizes.append(source.size)
            self._names.append(source.name)
            if len(files) == 1 or not path.is_file():
                self._turns.append(source)  # a pipe can be opened once only
            else:
                source.close()  # a folder may hold more files than a process may open
                self._turns.append(opened)
        self.size = 0 if 0 in sizes else sum(sizes)
        self._documents: Iterator[Document] | None = None

    @property
    def position(self) -> int:
        """Bytes of the files read so far."""
        return self._done + (0 if self._current is None else self._current.position)

    def watch(self, watcher: Callable[[Block], None], *, at_end: Callable[[], None] | None = None) -> None:
        """Call a function with every block before it is used, and another one after the last row."""
        self._watchers.append(watcher)
        self._at_end += [] if at_end is None else [at_end]

    def close(self) -> None:
        """Close the files."""
        if self._current is not None:
            self._current.close()
        for turn in self._turns:
            if not callable(turn):
                turn.close()

    def blocks(self, by_rows: int | None = None) -> Iterator[Block]:
        """The rows in blocks; where one ends depends on the content of the files alone.

        Args:
            by_rows: end a block after this many rows, and for no other reason: where others can see the end of one,
                the length of the texts must not decide about it.

        Raises:
            DataError: a broken row (unless they are skipped); no row at all.
        """
        try:
            for turn in self._turns:
                self._current = turn() if callable(turn) else turn
                for block in self._current.blocks(by_rows):
                    self._remember(block.rejects)
                    self.count += len(block.texts)
                    for watcher in self._watchers:
                        watcher(block)
                    yield block
                self._current.close()
                self._done, self._current = self._done + self._current.size, None
        finally:
            self.close()
        if self.count == 0 and self.rejects:
            first = self.rejects[0]
            raise DataError(f"no row could be read; the first is {first.file}, row {first.first}: {first.reason}")
        if self.count == 0:
            names = ", ".join(self._names[:3]) or "nothing"
            raise NoDocumentsError(f"{names} holds no documents: expected at least one row")
        for each in self._at_end:
            each()

    def _remember(self, rejects: Sequence[Reject]) -> None:
        self.skipped += sum(each.count for each in rejects)
        for each in rejects:
            if len(self.rejects) < _REJECTS_KEPT:  # memory is not to grow with the input
                add_reject(self.rejects, each)

    def __next__(self) -> Document:
        if self._documents is None:
            self._documents = self._one_by_one()
        return next(self._documents)

    def __del__(self) -> None:
        if hasattr(self, "_turns"):
            self.close()

    def _one_by_one(self) -> Iterator[Document]:
        for block in self.blocks():
            columns = as_lists(block.columns)
            users = None if self.user_column is None else columns[self.user_column]
            labels = None if self.label_column is None else columns[self.label_column]
            kept = {name: columns[name] for name in self.kept_columns}
            for place, text in enumerate(block.texts):
                author = None if users is None else users[place]
                yield Document(
                    text,
                    user=None if is_missing(author) else str(author),
                    label=None if labels is None else labels[place],
                    attributes={name: values[place] for name, values in kept.items()} or None,
                )


# -- out ------------------------------------------------------------------------------------------------------


class DocumentWriter:
    """Blocks of documents as bytes, in the format that a file name announces.

    The bytes of the blocks one after the other *are* the file for plain formats of lines. A .parquet, .gz or .zst file
    is made from them at the end (`finish`): where a block ends depends on the length of the private texts, so nothing
    in a file may show it (a member of .gz, a row group of parquet).

    Args:
        path: decides the format (``Path("-.jsonl")`` or the like for standard output).
        text: the column to write the text to (all but .txt).
        keep: the columns to write beside it.

    A text that is None becomes null in .jsonl and .parquet, and an empty text in formats that have no null.

    Raises:
        ParameterError: an unknown suffix; kept columns for .txt.
        MissingExtraError: the package that writes .parquet or .zst is not installed.
    """

    def __init__(self, path: Path, *, text: str = "text", keep: Sequence[str] = ()) -> None:
        self.format = written_format(path)
        check_kept_columns(text, keep)
        if keep and not self.format.format.has_columns:
            raise ParameterError(
                f"a {self.format.kind} file cannot hold kept columns: write .jsonl or .csv, or keep nothing"
            )
        self.format.check_packages(path.name)
        self._names = (text, *keep)

    @property
    def is_assembled(self) -> bool:
        """Whether the file is made by `finish`, not by the bytes of the blocks alone."""
        return self.format.is_assembled

    def encode(self, texts: Sequence[str | None], columns: Columns, *, row: int, first: bool) -> bytes:
        """The bytes of one block.

        Args:
            texts: the private texts.
            columns: the kept columns, and maybe others.
            row: the number of the first of these rows in the output, from 1.
            first: whether this is the first block of the file.

        Raises:
            DataError: a row cannot be written in this format; it is named.
        """
        return self.format.format.encode(self._names, texts, columns, row, first)

    def write(self, blocks: Iterable[bytes], out: HashedFile) -> None:
        """Write the whole file from the bytes of its blocks (`encode`)."""
        if not self.is_assembled:
            for block in blocks:
                out.write(block)
            return
        with scratch_folder() as scratch:
            part, ends = scratch / "blocks", [0]
            with open_new(part) as file:
                for block in blocks:
                    try:
                        ends.append(ends[-1] + file.write(block))
                    except OSError as error:
                        raise StorageError.of("write", part, error) from None
            self.finish(part, ends[1:], out)

    def finish(self, blocks: Path, ends: Sequence[int], out: HashedFile) -> None:
        """Make the file from the bytes of all blocks, which lie in a file one after the other; ``ends`` says where."""
        self.format.format.finish(blocks, ends, out, self.format.compression)
