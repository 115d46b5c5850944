"""A private file, or a stream, out of files of texts: resumable, charged to a ledger, in
constant memory, its statement beside it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Protocol

from dptext.checks import whole
from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.io.artifacts import file_digest
from dptext.io.atomic import HashedFile, check_target
from dptext.io.batches import STANDARD, Batch, Reject
from dptext.io.documents import DocumentReader, OnError, PathLike, read_documents
from dptext.privacy.guarantee import Guarantee
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import OF_THE_GUARANTEE, PrivacyStatement, new_release_id
from dptext.progress import How, watched
from dptext.release.charges import Charges
from dptext.release.job import Job, interrupted
from dptext.release.people import TextsOfPeople
from dptext.release.release import (
    Release,
    Tally,
    kept_as_it_was,
    rejects_path,
    statement_path,
    with_columns,
    write_rejects,
    write_statement,
)

__all__ = [
    "Piece",
    "Run",
    "RunSettings",
    "TextFiles",
    "charged",
    "check_output",
    "check_statement_file",
    "is_released",
    "noted_in_place",
    "release_file",
    "release_stream",
]

_ROWS_A_PIECE = 1024  # of a stream: the end of one can be seen, so the length of texts must not decide where it is


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """What is read."""

    paths: PathLike | Sequence[PathLike]
    text: str = "text"
    keep: Sequence[str] = ()
    on_error: OnError = "fail"
    suffix: str | None = None
    encoding: str | None = None
    separator: str | None = None

    @cached_property
    def sources(self) -> list[PathLike]:
        """The paths, as a list."""
        return [self.paths] if isinstance(self.paths, str | os.PathLike) else list(self.paths)

    def read(self, further: str | None = None) -> DocumentReader:
        """The rows, from the beginning, with a further column where one is named."""
        columns = tuple(dict.fromkeys((*self.keep, *(() if further is None else (further,)))))
        return read_documents(
            self.sources,
            text=self.text,
            keep=columns,
            on_error=self.on_error,
            suffix=self.suffix,
            encoding=self.encoding,
            separator=self.separator,
        )

    def stated(self, statement: PrivacyStatement) -> PrivacyStatement:
        """The statement of a release of these rows, with what it shows beside the texts."""
        return with_columns(statement, self.keep, skip=self.on_error == "skip")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a release is carried out."""

    seed: int | None = None
    resume: bool = False
    force: bool = False
    processes: int = 1
    ledger: PathLike | None = None
    user: str | None = None
    progress: How = None

    def __post_init__(self) -> None:
        whole("processes", self.processes, least=1)

    def charges(self, missing: str | None) -> Charges:
        """What the release charges; ``missing`` as in `dptext.release.charges.Charges`."""
        return Charges(None if self.ledger is None else Path(self.ledger), self.user, missing=missing)

    def people(self, missing: str | None) -> TextsOfPeople | None:
        """What counts the texts of each person, where a column says whose they are."""
        return None if self.user is None else TextsOfPeople(self.user, missing=missing)


@dataclass(frozen=True, slots=True)
class Piece:
    """A block that is done."""

    place: int
    data: bytes
    rows: int
    rejects: tuple[Reject, ...]
    tally: Tally | None = None


class Run(Protocol):
    """What one release does to its rows."""

    def work(self, blocks: Iterable[tuple[int, Batch]], *, row: int) -> Iterator[Piece]:
        """The blocks, given with their places, done and in order; a block that is done again repeats its noise."""
        ...

    def finish(self, blocks: Path, ends: Sequence[int], out: HashedFile) -> None:
        """Make the output from the bytes of all pieces, where these one after the other are not the output."""
        ...

    def statement_before(self) -> PrivacyStatement:
        """What no row loses more than, before any is read: what a ledger charges."""
        ...

    def statement(self, tally: Tally) -> PrivacyStatement:
        """The statement for rows of which this was counted."""
        ...


Begin = Callable[[NoiseKey, str], Run]
"""A run, from the secret of its noise and the id of the release."""


def release_file(
    source: TextFiles,
    out: Path,
    begin: Begin,
    settings: RunSettings,
    *,
    options: Mapping[str, Any],
    is_assembled: bool = False,
    missing: str | None = None,
) -> Release:
    """Read rows, let a `Run` change them, and put the private file and its statement in place."""
    charges = settings.charges(missing)
    reader = source.read(settings.user)
    read = {"text": source.text, "keep": list(source.keep), "on_error": source.on_error}
    with contextlib.closing(reader):
        check_output(source.sources, out, force=settings.force, resume=settings.resume, ledger=settings.ledger)
        job = Job(
            out,
            {**options, **read, "ledger": charges.kind, "user": settings.user},
            key=NoiseKey(settings.seed),
            release_id=new_release_id(),
            resume=settings.resume,
            restart=settings.force and not settings.resume,
            is_assembled=is_assembled,
        )
        with job, _kept_for_later(job, charges):
            resumed, people = job.rows, None
            run = begin(job.key, job.release_id)
            if job.statement is None or not charges.is_settled_or_reserved(job.release_id):
                if charges.kind is not None:
                    charges.reserve(job.release_id, run.statement_before(), source.read(settings.user))
                if job.statement is None:
                    people = settings.people(missing)
                    with watched(settings.progress, "rows", said=_of_rows) as done:
                        _do(job, reader, run, done, people)
                charges.check_same(part.digest for part in job.parts)
            if job.statement is None:
                made = _statement(job, run, source)
                job.remember(made.to_json(), digest=made.data_sha256)
            released = Release(
                statement=PrivacyStatement.from_json(str(job.statement)),
                documents=job.rows,
                skipped=sum(each.count for each in job.rejects()),
                resumed=resumed,
                tally=_tally(job),
                people=people,
                made={"out": out},
            )
            _publish(job, released.statement, charges)
    return released


def release_stream(
    source: TextFiles,
    stream: IO[bytes],
    begin: Begin,
    settings: RunSettings,
    *,
    statement_file: Path,
    missing: str | None = None,
) -> Release:
    """`release_file` into an open stream (a pipe): nothing can be resumed, and what was sent is sent."""
    check_statement_file(source.sources, statement_file, force=settings.force)
    run = begin(NoiseKey(settings.seed), new_release_id())
    sent, rows, tally = HashedFile(stream), 0, Tally()
    reader, people = source.read(settings.user), settings.people(missing)
    try:
        with contextlib.closing(reader), watched(settings.progress, "rows", said=_of_rows) as done:
            blocks = reader.batches(_ROWS_A_PIECE)
            for piece in run.work(enumerate(blocks if people is None else people.counting(blocks)), row=1):
                rows += piece.rows  # before anybody sees them, so that the statement covers them
                tally += piece.tally or Tally()
                sent.write(piece.data)
                sent.flush()
                done(reader, rows)
    except BaseException as error:
        if rows:
            error.add_note(
                f"up to {rows:,} rows are sent already; what was promised for them stands in {str(statement_file)!r}"
            )
        raise
    finally:
        statement = source.stated(run.statement(tally)).replace(data_sha256=sent.digest())
        if rows:
            write_statement(statement_file, statement)
    return Release(statement=statement, documents=rows, skipped=reader.skipped, tally=tally, people=people)


def check_statement_file(sources: Sequence[PathLike], statement: Path, *, force: bool) -> None:
    """Refuse a place for the statement of a stream that cannot be written, before anything is sent."""
    check_target(statement, replace=force, apart_from={"IN": [each for each in sources if Path(each) != STANDARD]})


# -- an output that appears at once ---------------------------------------------------------------------------


@contextlib.contextmanager
def charged(
    out: Path,
    charges: Charges,
    release_id: str,
    price: Callable[[], tuple[Guarantee, dict[str, Any]]],
    read: Callable[[], DocumentReader],
    is_out: Callable[[str], bool],
) -> Iterator[None]:
    """Charge a release whose output is renamed into place as a whole: reserve it, run the block, settle it."""
    with noted_in_place(out, lambda: is_out(release_id)):
        try:
            if charges.kind is not None:
                guarantee, terms = price()
                charges.reserve(release_id, guarantee, read(), **terms)
            yield
        except BaseException as error:
            charges.note_pending(error, release_id)
            raise
        charges.settle(release_id)


@contextlib.contextmanager
def noted_in_place(out: Path, is_out: Callable[[], bool]) -> Iterator[None]:
    """What stops a run when its output has appeared says that it has."""
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(StorageError):  # what went wrong first matters more
            if is_out():
                error.add_note(f"{out} is in place, whole")
        raise


def check_output(
    sources: Sequence[PathLike],
    out: Path,
    *,
    force: bool,
    resume: bool = False,
    beside: bool | None = None,
    ledger: PathLike | None = None,
    makes_folder: bool = False,
    by: str = "add --force (--resume where a run over several files was interrupted)",
    apart_from: Mapping[str, Iterable[PathLike]] = MappingProxyType({}),
) -> None:
    """Refuse an output that cannot be written or would destroy something, before any row is read."""
    replace = force or (resume and Job.is_open(out))
    never = {
        "IN": [each for each in sources if Path(each) != STANDARD],
        "the ledger": [] if ledger is None else [ledger, f"{os.fspath(ledger)}-journal"],
        **{what: list(files) for what, files in apart_from.items()},
    }
    if not replace and Job.is_open(out) and any(map(os.path.lexists, _written(out))):
        raise interrupted(out)
    for target in _written(out):
        may_go = replace if beside is None or target == out else beside
        check_target(target, replace=may_go, apart_from=never, by=by, makes_folder=makes_folder)
    for target in Job.files(out):
        check_target(target, replace=True, apart_from=never, makes_folder=makes_folder)


def _written(out: Path) -> tuple[Path, Path, Path]:
    return out, statement_path(out), rejects_path(out)


def is_released(out: Path, of: PrivacyStatement, keep: Sequence[str]) -> bool:
    """Whether this very release is there: the private file, whole, and its statement."""
    if not out.exists() or Job.is_open(out):
        return False
    beside = statement_path(out)
    text = beside.read_text(encoding="utf-8") if beside.exists() else ""
    with contextlib.suppress(DataError):
        statement = PrivacyStatement.from_json(text)
        # what follows from the guarantee of a document differs from that of its parts
        decided = {name: value for name, value in of.parameters.items() if name not in OF_THE_GUARANTEE}
        same = {**statement.parameters, **decided} == dict(statement.parameters)
        kept = {each for each in statement.exposed if each.startswith("the column ")}
        same = same and kept == {kept_as_it_was(name) for name in keep}
        if same and statement.mechanism == of.mechanism and statement.data_sha256 == file_digest(out):
            return True
    raise ParameterError(f"{str(out)!r} is there already, and is of another run: choose another name, or add --force")


# -- the walk of a file ------------------------------------------------------------------------------------


@contextlib.contextmanager
def _kept_for_later(job: Job, charges: Charges) -> Iterator[None]:
    """Keep finished rows when a run stops, and say so in a note; delete a job without rows and without a charge."""
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
        elif not charges.note_pending(error, job.release_id):
            with contextlib.suppress(StorageError):  # the next run throws it away
                job.discard()
        raise


def _of_rows(reader: DocumentReader, rows: int) -> tuple[int, int | None, str]:
    return reader.position, reader.size or None, f"{rows:,} rows"


def _do(
    job: Job,
    reader: DocumentReader,
    run: Run,
    done: Callable[[DocumentReader, int], object],
    people: TextsOfPeople | None = None,
) -> None:
    """Do all blocks that are not done yet; people are counted in all of them, which pass by in any case."""
    identities: dict[int, bytes] = {}  # of the few blocks under way

    def missing() -> Iterator[tuple[int, Batch]]:
        place = -1
        blocks = reader.batches()
        for place, block in enumerate(blocks if people is None else people.counting(blocks)):
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
        facts = {} if piece.tally is None else piece.tally.as_dict()
        job.add(piece.data, digest=identity, rows=piece.rows, facts=facts, rejects=piece.rejects)
        done(reader, job.rows)


def _tally(job: Job) -> Tally:
    """What was counted in all that is done."""
    return sum((Tally(**part.facts) for part in job.parts), Tally())


def _statement(job: Job, run: Run, source: TextFiles) -> PrivacyStatement:
    """The statement of all that the job did, with the digest of the file as it will appear."""
    if job.is_assembled:
        with job.assembled() as (blocks, stream):
            run.finish(blocks, [part.size for part in job.parts], stream)
        digest = stream.digest()
    else:
        digest = file_digest(job.content)
    return source.stated(run.statement(_tally(job))).replace(data_sha256=digest)


def _publish(job: Job, statement: PrivacyStatement, charges: Charges) -> None:
    """Put everything in place, the statement before the data: no data is ever without one."""
    write_rejects(rejects_path(job.out), job.rejects())
    charges.check_reserved(job.release_id)
    write_statement(statement_path(job.out), statement)
    job.publish()
    charges.settle(job.release_id)
    job.discard()
