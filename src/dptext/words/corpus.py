"""Files of texts through a word mechanism: private files and their statements, resumable, in constant memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from dptext.checks import whole
from dptext.errors import ParameterError
from dptext.files.blocks import Block
from dptext.files.documents import OnError, PathLike, read_documents
from dptext.files.formats import STANDARD
from dptext.files.writers import DocumentWriter
from dptext.own_files import HashedFile, check_target
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import (
    Piece,
    Progress,
    check_output,
    rejects_path,
    release_file,
    statement_path,
    with_columns,
    write_statement,
)
from dptext.release.release import is_released as release_is_there
from dptext.words.mechanism import WordMechanism
from dptext.words.rewriter import Rewriter, Tally, rewrite_blocks

__all__ = [
    "FileRelease",
    "StreamRelease",
    "check_output",
    "check_statement_file",
    "is_released",
    "privatize_file",
    "privatize_stream",
    "rejects_path",
    "statement_path",
    "with_columns",
]

_ROWS_A_PIECE = 1024  # of a pipe


@dataclass(frozen=True)
class FileRelease:
    """What `privatize_file` returns.

    Attributes:
        out: the private file.
        statement: what was promised for a document; it stands in ``OUT.privacy.json``.
        documents: rows written.
        skipped: rows that could not be read and were left out; they are listed in ``OUT.rejects.jsonl``.
        tally: counts over the texts, private for the most part.
        resumed: rows that were done already when the run went on.
    """

    out: Path
    statement: PrivacyStatement
    documents: int
    skipped: int
    tally: Tally
    resumed: int


@dataclass(frozen=True)
class StreamRelease:
    """What `privatize_stream` returns.

    Attributes:
        statement: what was promised for a document.
        documents: rows sent.
        skipped: rows that could not be read and were left out.
        tally: counts over the texts, private for the most part.
    """

    statement: PrivacyStatement
    documents: int
    skipped: int
    tally: Tally


def privatize_file(
    source: PathLike | Sequence[PathLike],
    out: PathLike,
    mechanism: WordMechanism,
    *,
    text: str = "text",
    keep: Sequence[str] = (),
    on_error: OnError = "fail",
    seed: int | None = None,
    resume: bool = False,
    force: bool = False,
    processes: int = 1,
    ledger: PathLike | None = None,
    ledger_key: str | None = None,
    suffix: str | None = None,
    progress: Progress | None = None,
) -> FileRelease:
    """Replace every word of a file of texts, and write the private file, its statement and, maybe, its rejects.

    The input is read in constant memory. Whatever stops the program leaves the old output, if there was one, and a job
    that goes on with ``resume=True``: the same noise for what was done, so that nothing is released twice.

    Args:
        source: one file or several (see `dptext.files.documents.read_documents`); their rows go to one output.
        out: the private file; its name says the format.
        mechanism: a word mechanism.
        text: the column that holds the text.
        keep: columns to keep as they are; they are exposed. All others are dropped.
        on_error: ``"fail"`` at the first row that cannot be read, or ``"skip"`` it.
        seed: None for cryptographic randomness; an integer for tests and papers only.
        resume: go on with an interrupted run, if there is one.
        force: replace an output, or throw an interrupted run away.
        processes: how many work; the output does not depend on it.
        ledger: the file of a ledger (`dptext.ledger.ledger.Ledger`): it charges every row before the work starts, or
            refuses the release. The input is then read twice.
        ledger_key: the column that says which row or person a row is, for the ledger; None: the text itself.
        suffix: says the format of the input where its name does not (``".jsonl"``; standard input).
        progress: called with the reader and the number of rows done, block after block.

    **Guarantee** (unit document, substitution among documents of equal layout, local): as the statement says.

    Raises:
        DataError: a row cannot be read or written; it is named, its content never is.
        ParameterError: the output is there already, or is the input; a run was interrupted (``resume``, ``force``).
        RefusedError: the ledger refuses the release; the input has changed since the run was interrupted.
        StorageError: a file cannot be read or written; a process died.
    """
    out = Path(out)
    whole("processes", processes, least=1)
    writer = DocumentWriter(out, text=text, keep=keep)
    options = {**mechanism.parameters(), "mechanism": mechanism.name, "output": asdict(writer.format)}
    released = release_file(
        source,
        out,
        lambda key, release_id: _Rewriting(Rewriter(mechanism, key=key, release_id=release_id), writer, processes),
        options=options,
        key=NoiseKey(seed),
        is_assembled=writer.is_assembled,
        text=text,
        keep=keep,
        on_error=on_error,
        resume=resume,
        force=force,
        ledger=ledger,
        ledger_key=ledger_key,
        suffix=suffix,
        progress=progress,
    )
    return FileRelease(
        out=out,
        statement=released.statement,
        documents=released.rows,
        skipped=released.skipped,
        tally=_tally(released.facts),
        resumed=released.resumed,
    )


class _Rewriting:
    """The words of a file through a mechanism (`dptext.release.release.Run`)."""

    def __init__(self, rewriter: Rewriter, writer: DocumentWriter, processes: int) -> None:
        self._rewriter, self._processes = rewriter, processes
        self._encode = writer.encode
        self.finish = writer.finish

    def promise(self) -> PrivacyStatement:
        return self._rewriter.statement()

    def work(self, blocks: Iterable[tuple[int, Block]], *, row: int) -> Iterator[Piece]:
        for place, block, (private, tally) in rewrite_blocks(self._rewriter, blocks, processes=self._processes):
            data = self._encode(private, block.columns, row=row, first=place == 0)
            yield Piece(place, data, len(private), tally.as_dict(), block.rejects)
            row += len(private)

    def statement(self, facts: Sequence[Mapping[str, int]]) -> PrivacyStatement:
        self._rewriter.tally = _tally(facts)
        return self._rewriter.statement()


def _tally(facts: Sequence[Mapping[str, int]]) -> Tally:
    return sum((Tally(**each) for each in facts), Tally())


def is_released(out: Path, mechanism: WordMechanism, keep: Sequence[str]) -> bool:
    """Whether this very release is there: the private file, whole, and its statement with these parameters.

    Raises:
        ParameterError: something else is there.
    """
    return release_is_there(out, mechanism.name, mechanism.parameters(), keep)


def check_statement_file(sources: Sequence[PathLike], statement: Path, *, force: bool) -> None:
    """Refuse a place for the statement of a stream that cannot be written, before anything is sent.

    Raises:
        ParameterError, StorageError: as `dptext.own_files.check_target`.
    """
    inputs = [each for each in sources if Path(each) != STANDARD]
    check_target(statement, replace=force, apart_from={"IN": inputs})


def privatize_stream(
    source: PathLike | Sequence[PathLike],
    stream: IO[bytes],
    mechanism: WordMechanism,
    *,
    to: str,
    statement_file: PathLike,
    text: str = "text",
    keep: Sequence[str] = (),
    on_error: OnError = "fail",
    seed: int | None = None,
    processes: int = 1,
    suffix: str | None = None,
    force: bool = False,
) -> StreamRelease:
    """`privatize_file` into an open stream (a pipe): nothing can be resumed, and what was sent is sent.

    Args:
        stream: where the bytes go, a fixed number of rows at a time.
        to: suffixes that say their format (``".jsonl"``).
        statement_file: where the statement goes, when all is sent or the run stops.

    Raises:
        ParameterError: a format that is made as a whole (.parquet, .gz, .zst); see `check_statement_file`.
    """
    writer = DocumentWriter(Path(f"-{to}"), text=text, keep=keep)
    if writer.is_assembled:
        raise ParameterError(f"{to} cannot be written to a pipe: write .jsonl or .csv, or name a file")
    target = Path(statement_file)
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    check_statement_file(sources, target, force=force)
    rewriter = Rewriter(mechanism, seed=seed)
    sent = HashedFile(stream)
    rows = 0
    reader = read_documents(source, text=text, keep=keep, on_error=on_error, suffix=suffix)
    try:
        with contextlib.closing(reader):
            blocks = rewrite_blocks(rewriter, enumerate(reader.blocks(_ROWS_A_PIECE)), processes=processes)
            for place, block, (private, tally) in blocks:
                data = writer.encode(private, block.columns, row=rows + 1, first=place == 0)
                rewriter.tally += tally  # before anybody sees the rows, so that the statement covers them
                rows += len(private)
                sent.write(data)
                sent.flush()
    except BaseException as error:
        if rows:
            error.add_note(
                f"up to {rows:,} rows are sent already; what was promised for them stands in {str(target)!r}"
            )
        raise
    finally:
        statement = with_columns(rewriter.statement(), keep, skip=on_error == "skip")
        statement = statement.replace(data_sha256=sent.digest())
        if rows:
            write_statement(target, statement)
    return StreamRelease(statement, rows, reader.skipped, rewriter.tally)
