"""Files of texts through a word mechanism: private files and their statements, resumable, in constant memory."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from dptext.errors import DataError, ParameterError, RefusedError
from dptext.privacy.noise_key import NoiseKey
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.text.blocks import Block
from dptext.text.documents import DocumentReader, OnError, PathLike, read_documents
from dptext.text.files import HashedFile, file_digest, replacing
from dptext.text.job import Job
from dptext.text.writers import DocumentWriter
from dptext.words.charges import Charges
from dptext.words.mechanism import WordMechanism
from dptext.words.rewriter import Rewriter, Tally
from dptext.words.workers import checked_processes, rewrite_blocks

__all__ = [
    "FileRelease",
    "StreamRelease",
    "check_output",
    "is_released",
    "privatize_file",
    "privatize_stream",
    "rejects_path",
    "statement_path",
    "with_columns",
]

_ROWS_A_PIECE = 1024  # of a pipe
Progress = Callable[[DocumentReader, int], None]


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


def statement_path(data: Path) -> Path:
    """Where the statement of a data file stands."""
    return data.with_name(f"{data.name}.privacy.json")


def rejects_path(data: Path) -> Path:
    """Where the rows stand that could not be read. The list is for the owner of the data."""
    return data.with_name(f"{data.name}.rejects.jsonl")


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
        source: one file or several (see `dptext.text.documents.read_documents`); their rows go to one output.
        out: the private file; its name says the format.
        mechanism: a word mechanism.
        text: the column that holds the text.
        keep: columns to keep as they are; they are exposed. All others are dropped.
        on_error: ``"fail"`` at the first row that cannot be read, or ``"skip"`` it.
        seed: None for cryptographic randomness; an integer for tests and papers only.
        resume: go on with an interrupted run, if there is one.
        force: replace an output, or throw an interrupted run away.
        processes: how many work; the output does not depend on it.
        ledger: the file of a ledger (`dptext.privacy.ledger.Ledger`): it charges every row before the work starts, or
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
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    checked_processes(processes)
    writer = DocumentWriter(out, text=text, keep=keep)
    charges = Charges(None if ledger is None else Path(ledger), ledger_key)
    columns = tuple(dict.fromkeys((*keep, *(() if ledger_key is None else (ledger_key,)))))

    def read() -> DocumentReader:
        return read_documents(sources, text=text, keep=columns, on_error=on_error, suffix=suffix)

    reader = read()
    options = {
        **mechanism.parameters(),
        "mechanism": mechanism.name,
        "text": text,
        "keep": list(keep),
        "on_error": on_error,
        "output": asdict(writer.format),
        "ledger": charges.kind,
    }
    with contextlib.closing(reader):
        check_output(sources, out, force=force, resume=resume)
        job = Job(
            out,
            options,
            key=NoiseKey(seed),
            release_id=new_release_id(),
            resume=resume,
            restart=force and not resume,
            is_assembled=writer.is_assembled,
        )
        with job, _kept_for_later(job, charges):
            resumed = job.rows
            rewriter = Rewriter(mechanism, key=job.key, release_id=job.release_id)
            charges.void(job.abandoned)
            if job.statement is None:
                if charges.kind is not None:
                    charges.reserve(job.release_id, rewriter.statement(), read())
                _rewrite(job, reader, rewriter, writer, processes, progress)
                charges.check_same(part.digest for part in job.parts)
                made = _statement(job, rewriter, writer, keep, skip=on_error == "skip")
                job.remember(made.to_json(), digest=made.data_sha256)
            release = FileRelease(
                out=out,
                statement=PrivacyStatement.from_json(str(job.statement)),
                documents=job.rows,
                skipped=sum(each.count for each in job.rejects()),
                tally=_tally(job),
                resumed=resumed,
            )
            _publish(job, release.statement, charges)
    return release


def check_output(sources: Sequence[PathLike], out: Path, *, force: bool, resume: bool = False) -> None:
    """Refuse an output that would destroy something.

    Raises:
        ParameterError: OUT is an input, is a folder, or is there already (without force).
    """
    targets = (out, statement_path(out), rejects_path(out))
    for source in map(Path, sources):
        if any(target.exists() and source.exists() and target.samefile(source) for target in targets):
            raise ParameterError("OUT, or what stands beside it, is the same file as IN: choose another name for OUT")
    for target in targets:
        if target.is_dir():
            raise ParameterError(f"{str(target)!r} is a folder: name a file in it")
        if target.exists() and not force and not (resume and Job.is_open(out)):
            raise ParameterError(f"{str(target)!r} is there already: choose another name, or add --force")


@contextlib.contextmanager
def _kept_for_later(job: Job, charges: Charges) -> Iterator[None]:
    """Whatever stops a run: what is done is kept, and the error says so; a job with nothing done goes."""
    try:
        yield
    except BaseException as error:
        if job.rows:
            error.add_note(
                f"{job.rows:,} rows are done and kept: run the same command with --resume to go on, or with --force to "
                "start over"
            )
        else:
            job.discard()
            charges.void(job.release_id)
        raise


def is_released(out: Path, mechanism: WordMechanism, keep: Sequence[str]) -> bool:
    """Whether this very release is there: the private file, whole, and its statement with these parameters.

    Raises:
        ParameterError: something else is there.
    """
    if not out.exists() or Job.is_open(out):
        return False
    beside = statement_path(out)
    text = beside.read_text(encoding="utf-8") if beside.exists() else ""
    with contextlib.suppress(DataError):
        statement = PrivacyStatement.from_json(text)
        same = {**statement.parameters, **mechanism.parameters()} == dict(statement.parameters)
        kept = {each for each in statement.exposed if each.startswith("the column ")}
        same = same and kept == {f"the column {name!r}, as it was" for name in keep}
        if same and statement.mechanism == mechanism.name and statement.data_sha256 == file_digest(out):
            return True
    raise ParameterError(f"{str(out)!r} is there already, and is of another run: choose another name, or add --force")


def _rewrite(
    job: Job,
    reader: DocumentReader,
    rewriter: Rewriter,
    writer: DocumentWriter,
    processes: int,
    progress: Progress | None,
) -> None:
    """Do all blocks that are not done yet."""
    identities: dict[int, bytes] = {}  # of the few blocks under way

    def missing() -> Iterator[tuple[int, Block]]:
        place = -1
        for place, block in enumerate(reader.blocks()):
            identity = block.identity()
            if not job.is_done(place, identity):
                identities[place] = identity
                yield place, block
        if place + 1 < len(job.parts):
            raise RefusedError(
                "the input is shorter than it was when the run was interrupted: add --force to start over"
            )

    for place, block, (private, tally) in rewrite_blocks(rewriter, missing(), processes=processes):
        data = writer.encode(private, block.columns, row=job.rows + 1, first=not job.parts)
        identity = identities.pop(place)
        job.add(data, digest=identity, rows=len(private), facts=tally.as_dict(), rejects=block.rejects)
        if progress is not None:
            progress(reader, job.rows)


def _tally(job: Job) -> Tally:
    return sum((Tally(**part.facts) for part in job.parts), Tally())


def _statement(
    job: Job, rewriter: Rewriter, writer: DocumentWriter, keep: Sequence[str], *, skip: bool
) -> PrivacyStatement:
    """The statement of all that the job did, with the digest of the file as it will appear."""
    if writer.is_assembled:
        with job.assembled() as (blocks, stream):
            writer.finish(blocks, [part.size for part in job.parts], stream)
        digest = stream.digest()
    else:
        digest = file_digest(job.content)
    rewriter.tally = _tally(job)
    return with_columns(rewriter.statement(), keep, skip=skip).replace(data_sha256=digest)


def with_columns(statement: PrivacyStatement, keep: Sequence[str], *, skip: bool = False) -> PrivacyStatement:
    """The statement, when columns were kept or bad rows skipped."""
    left_out = ("that rows which could not be read are missing",) if skip else ()
    kept = (f"the column {name!r}, as it was" for name in keep)
    return statement.replace(exposed=(*statement.exposed, *kept, *left_out))


def _publish(job: Job, statement: PrivacyStatement, charges: Charges) -> None:
    """Put everything in place, the statement before the data: no data is ever without one."""
    charges.settle(job.release_id)
    rejects = rejects_path(job.out)
    listed = [json.dumps(asdict(reject), ensure_ascii=False) + "\n" for reject in job.rejects()]
    if listed:
        with replacing(rejects) as stream:
            stream.write("".join(listed).encode("utf-8", "backslashreplace"))
    else:
        rejects.unlink(missing_ok=True)  # it spoke of an output that goes now
    _write_statement(statement_path(job.out), statement)
    job.publish()


def _write_statement(path: Path, statement: PrivacyStatement) -> None:
    with replacing(path) as stream:
        stream.write((statement.to_json() + "\n").encode())


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
        ParameterError: a format that is made as a whole (.parquet, .gz, .zst).
    """
    writer = DocumentWriter(Path(f"-{to}"), text=text, keep=keep)
    if writer.is_assembled:
        raise ParameterError(f"{to} cannot be written to a pipe: write .jsonl or .csv, or name a file")
    target = Path(statement_file)
    if target.exists() and not force:
        raise ParameterError(f"{str(target)!r} is there already: choose another name, or add --force")
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
            _write_statement(target, statement)
    return StreamRelease(statement, rows, sum(each.count for each in reader.rejects), rewriter.tally)
