"""A private file out of files of texts, whatever is done to the texts: resumable, charged to a ledger, in constant
memory, its statement beside it.

What is particular about a release (how a block of rows becomes bytes, what is promised) is a `Run`; all else that a
release owes its owner stands here: an output is never destroyed or half there, nothing is released twice or without a
statement, and an error says how to go on.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.files.blocks import Block, Reject
from dptext.files.documents import DocumentReader, OnError, PathLike, read_documents
from dptext.files.formats import STANDARD, file_digest
from dptext.own_files import HashedFile, check_target, replacing, sweep
from dptext.privacy.guarantee import Guarantee
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import Parameter, PrivacyStatement, new_release_id
from dptext.release.charges import Charges
from dptext.release.job import Job, interrupted

__all__ = [
    "Piece",
    "Progress",
    "Released",
    "Run",
    "charged",
    "check_output",
    "end_earlier",
    "is_released",
    "rejects_path",
    "release_file",
    "statement_path",
    "with_columns",
    "write_statement",
]

Progress = Callable[[DocumentReader, int], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """A block that is done.

    Attributes:
        place: which block of the job it is.
        data: its rows as bytes.
        rows: how many these are.
        facts: what has to be remembered of it until the end, across interruptions.
        rejects: rows that were left out before it.
    """

    place: int
    data: bytes
    rows: int
    facts: Mapping[str, int]
    rejects: tuple[Reject, ...]


class Run(Protocol):
    """What one release does to its rows."""

    def promise(self) -> PrivacyStatement:
        """What is promised for a row, before any is read: a ledger charges it."""
        ...

    def work(self, blocks: Iterable[tuple[int, Block]], *, row: int) -> Iterator[Piece]:
        """The blocks, given with their places, done and in order; a block that is done again repeats its noise.

        Args:
            row: the number of the first of these rows in the output, from 1.
        """
        ...

    def finish(self, blocks: Path, ends: Sequence[int], out: HashedFile) -> None:
        """Make the output from the bytes of all pieces, where these one after the other are not the output."""
        ...

    def statement(self, facts: Sequence[Mapping[str, int]]) -> PrivacyStatement:
        """The statement of the release, from what was remembered of its pieces."""
        ...


@dataclass(frozen=True, slots=True)
class Released:
    """What `release_file` returns.

    Attributes:
        statement: what was promised; it stands in ``OUT.privacy.json``.
        rows: rows written.
        skipped: rows that could not be read and were left out; they are listed in ``OUT.rejects.jsonl``.
        resumed: rows that were done already when the run went on.
        facts: what was remembered of the pieces, in order.
    """

    statement: PrivacyStatement
    rows: int
    skipped: int
    resumed: int
    facts: Sequence[Mapping[str, int]]


def statement_path(data: Path) -> Path:
    """Where the statement of a data file stands."""
    return data.with_name(f"{data.name}.privacy.json")


def rejects_path(data: Path) -> Path:
    """Where the rows stand that could not be read. The list is for the owner of the data."""
    return data.with_name(f"{data.name}.rejects.jsonl")


def release_file(
    source: PathLike | Sequence[PathLike],
    out: Path,
    begin: Callable[[NoiseKey, str], Run],
    *,
    options: Mapping[str, Any],
    key: NoiseKey,
    is_assembled: bool,
    text: str = "text",
    keep: Sequence[str] = (),
    on_error: OnError = "fail",
    resume: bool = False,
    force: bool = False,
    ledger: PathLike | None = None,
    ledger_key: str | None = None,
    missing: str | None = None,
    suffix: str | None = None,
    progress: Progress | None = None,
) -> Released:
    """Read rows, let a `Run` change them, and put the private file and its statement in place.

    Args:
        source: one file or several; their rows go to one output.
        out: the private file.
        begin: the run, from the secret of the job and the id of the release.
        options: all that decides about the output besides the input and the arguments here that do.
        key: the secret of a new job; a resumed one has its own.
        is_assembled: whether the output is made by `Run.finish`, not by joining the pieces alone.
        text, keep, on_error, suffix: as in `dptext.files.documents.read_documents`.
        resume: go on with an interrupted run, if there is one.
        force: replace an output, or throw an interrupted run away.
        ledger, ledger_key, missing: as in `dptext.release.charges.Charges`.
        progress: called with the reader and the number of rows done, block after block.

    Raises:
        DataError: a row cannot be read or written; it is named, its content never is.
        ParameterError: the output is there already, or is the input; a run was interrupted (``resume``, ``force``).
        RefusedError: the ledger refuses the release; the input has changed since the run was interrupted.
        StorageError: a file cannot be read or written.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    charges = Charges(None if ledger is None else Path(ledger), ledger_key, missing=missing)
    columns = tuple(dict.fromkeys((*keep, *(() if ledger_key is None else (ledger_key,)))))

    def read() -> DocumentReader:
        return read_documents(sources, text=text, keep=columns, on_error=on_error, suffix=suffix)

    reader = read()
    options = {**options, "text": text, "keep": list(keep), "on_error": on_error, "ledger": charges.kind}
    with contextlib.closing(reader):
        check_output(sources, out, force=force, resume=resume, ledger=ledger)
        sweep(*_written(out))
        job = Job(
            out,
            options,
            key=key,
            release_id=new_release_id(),
            resume=resume,
            restart=force and not resume,
            is_assembled=is_assembled,
            give_up=charges.give_up,
        )
        with job, _kept_for_later(job, charges):
            resumed = job.rows
            run = begin(job.key, job.release_id)
            if job.statement is None or not (job.is_published or charges.holds(job.release_id)):
                if charges.kind is not None:
                    charges.reserve(job.release_id, run.promise(), read())
                if job.statement is None:
                    _do(job, reader, run, progress)
                charges.check_same(part.digest for part in job.parts)
            if job.statement is None:
                made = _statement(job, run, keep, skip=on_error == "skip")
                job.remember(made.to_json(), digest=made.data_sha256)
            released = Released(
                statement=PrivacyStatement.from_json(str(job.statement)),
                rows=job.rows,
                skipped=sum(each.count for each in job.rejects()),
                resumed=resumed,
                facts=[part.facts for part in job.parts],
            )
            _publish(job, released.statement, charges)
    return released


@contextlib.contextmanager
def charged(
    out: Path,
    charges: Charges,
    release_id: str,
    promise: Callable[[], tuple[Guarantee, dict[str, Any]]],
    read: Callable[[], DocumentReader],
    is_out: Callable[[str], bool],
) -> Iterator[None]:
    """A release whose output appears at once, in the block: reserved before it, settled after it, voided where nothing
    came out. Without a ledger, nothing.

    While it lasts a job lies beside the output (`dptext.release.job`), so that what a run had reserved that was killed
    is
    known to the next one: `end_earlier`.

    Args:
        out: where the output will stand.
        charges: the ledger.
        release_id: of the release.
        promise: what is promised: a guarantee, and its terms as in `Charges.reserve`.
        read: the rows that are charged.
        is_out: whether the release of this name stands there.

    Raises:
        RefusedError, DataError, StorageError: as `Charges.reserve` and `Charges.settle`; another run is at work there.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_in_place(out, lambda: is_out(release_id)))
        if charges.kind is None:
            yield
            return
        job = stack.enter_context(Job(out, {"ledger": charges.kind}, key=NoiseKey(None), release_id=release_id))
        try:
            guarantee, terms = promise()
            charges.reserve(release_id, guarantee, read(), **terms)
            yield
        except BaseException as error:
            if is_out(release_id):
                charges.settle(release_id)
                job.discard()
            elif charges.void_after(error, release_id):
                with contextlib.suppress(StorageError):  # the next run throws it away
                    job.discard()
            raise
        charges.settle(release_id)
        job.discard()


@contextlib.contextmanager
def _in_place(out: Path, is_out: Callable[[], bool]) -> Iterator[None]:
    """What stops a run when its output has appeared says that it has."""
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(StorageError):  # what went wrong first matters more
            if is_out():
                error.add_note(f"{out} is in place, whole")
        raise


def end_earlier(out: Path, charges: Charges, is_out: Callable[[str], bool], *, restart: bool) -> None:
    """End the release of a run that was killed in `charged`: settled if its output stands there, else voided.

    Args:
        out, charges, is_out: as there.
        restart: throw away the interrupted run of a file of this name as well (`release_file`).

    Raises:
        ParameterError: there is one, and ``restart`` is not asked for.
        StorageError: another run is at work there; the ledger failed.
    """
    if out.name in ("", "..") or not Job.is_open(out):
        return

    def give_up(release_id: str, options: Mapping[str, Any], may_be_out: bool) -> None:
        charges.give_up(release_id, options, may_be_out or is_out(release_id))

    key = NoiseKey(None)
    with Job(out, {}, key=key, release_id=new_release_id(), restart=restart, give_up=give_up) as job:
        job.discard()


def check_output(
    sources: Sequence[PathLike],
    out: Path,
    *,
    force: bool,
    resume: bool = False,
    ledger: PathLike | None = None,
    makes_folder: bool = False,
) -> None:
    """Refuse an output that cannot be written or would destroy something, before any row is read.

    Args:
        sources: the inputs.
        out: the output; its statement and its rejects stand beside it.
        force: whether what is there may be replaced.
        resume: whether it may be replaced if a run of it was interrupted.
        ledger: the ledger, if there is one.
        makes_folder: whether the folder of the output will be made.

    Raises:
        ParameterError, StorageError: as `dptext.own_files.check_target`, for the output and what stands beside it.
    """
    replace = force or (resume and Job.is_open(out))
    apart_from = {
        "IN": [each for each in sources if Path(each) != STANDARD],
        "the ledger": [] if ledger is None else [ledger, f"{os.fspath(ledger)}-journal"],
    }
    if not replace and Job.is_open(out) and any(map(os.path.lexists, _written(out))):
        raise interrupted(out)
    by = "add --force (--resume where a run over several files was interrupted)"
    for target in _written(out):
        check_target(target, replace=replace, apart_from=apart_from, by=by, makes_folder=makes_folder)
    for target in Job.files(out):
        check_target(target, replace=True, apart_from=apart_from, makes_folder=makes_folder)


def _written(out: Path) -> tuple[Path, Path, Path]:
    return out, statement_path(out), rejects_path(out)


def is_released(out: Path, mechanism: str, parameters: Mapping[str, Parameter], keep: Sequence[str]) -> bool:
    """Whether this very release is there: the private file, whole, and its statement with these parameters.

    Raises:
        ParameterError: something else is there.
    """
    sweep(*_written(out))
    if not out.exists() or Job.is_open(out):
        return False
    beside = statement_path(out)
    text = beside.read_text(encoding="utf-8") if beside.exists() else ""
    with contextlib.suppress(DataError):
        statement = PrivacyStatement.from_json(text)
        same = {**statement.parameters, **parameters} == dict(statement.parameters)
        kept = {each for each in statement.exposed if each.startswith("the column ")}
        same = same and kept == {_as_it_was(name) for name in keep}
        if same and statement.mechanism == mechanism and statement.data_sha256 == file_digest(out):
            return True
    raise ParameterError(f"{str(out)!r} is there already, and is of another run: choose another name, or add --force")


def with_columns(statement: PrivacyStatement, keep: Sequence[str], *, skip: bool = False) -> PrivacyStatement:
    """The statement, when columns were kept or bad rows skipped."""
    left_out = ("that rows which could not be read are missing",) if skip else ()
    return statement.replace(exposed=(*statement.exposed, *map(_as_it_was, keep), *left_out))


def _as_it_was(column: str) -> str:
    return f"the column {column!r}, as it was"


def write_statement(path: Path, statement: PrivacyStatement) -> None:
    """The statement in a file, whole or not at all.

    Raises:
        StorageError: the folder is missing, read-only or full.
    """
    with replacing(path) as stream:
        stream.write((statement.to_json() + "\n").encode())


@contextlib.contextmanager
def _kept_for_later(job: Job, charges: Charges) -> Iterator[None]:
    """Whatever stops a run: what is done is kept, and the error says so; a job with nothing done goes, but not while
    the ledger counts it."""
    try:
        yield
    except BaseException as error:
        if job.is_published:
            error.add_note(f"{job.out} is in place: run the same command with --resume to finish")
        elif job.rows:
            error.add_note(
                f"{job.rows:,} rows are done and kept: run the same command with --resume to go on, or with --force to "
                "start over"
            )
        elif charges.void_after(error, job.release_id):
            with contextlib.suppress(StorageError):  # the next run throws it away
                job.discard()
        raise


def _do(job: Job, reader: DocumentReader, run: Run, progress: Progress | None) -> None:
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

    for piece in run.work(missing(), row=job.rows + 1):
        identity = identities.pop(piece.place)
        job.add(piece.data, digest=identity, rows=piece.rows, facts=piece.facts, rejects=piece.rejects)
        if progress is not None:
            progress(reader, job.rows)


def _statement(job: Job, run: Run, keep: Sequence[str], *, skip: bool) -> PrivacyStatement:
    """The statement of all that the job did, with the digest of the file as it will appear."""
    if job.is_assembled:
        with job.assembled() as (blocks, stream):
            run.finish(blocks, [part.size for part in job.parts], stream)
        digest = stream.digest()
    else:
        digest = file_digest(job.content)
    statement = run.statement([part.facts for part in job.parts])
    return with_columns(statement, keep, skip=skip).replace(data_sha256=digest)


def _publish(job: Job, statement: PrivacyStatement, charges: Charges) -> None:
    """Put everything in place, the statement before the data: no data is ever without one. Then nothing is left but to
    settle, and to forget the job: until then it knows of which release the output is."""
    rejects = rejects_path(job.out)
    if next(job.rejects(), None) is None:
        rejects.unlink(missing_ok=True)  # it spoke of an output that goes now
    else:
        with replacing(rejects, owner_only=True) as stream:
            for each in job.rejects():
                line = json.dumps(asdict(each), ensure_ascii=False) + "\n"
                stream.write(line.encode("utf-8", "backslashreplace"))
    write_statement(statement_path(job.out), statement)
    job.publish()
    charges.settle(job.release_id)
    job.discard()
