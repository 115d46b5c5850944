"""One run from files to a file: reserve the budget, work, publish statement and data, settle."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from dptext.display import ProgressOption, progress_bar
from dptext.errors import DptextError, ParameterError, RefusedError, StorageError
from dptext.io.artifacts import file_digest
from dptext.io.atomic import HashedFile, check_target
from dptext.io.batches import STANDARD, Batch, Reject, is_pipe, row_batches
from dptext.io.documents import DocumentReader, OnError, PathLike, read_documents, without_user
from dptext.ledger.ledger import PENDING, RELEASED, Ledger
from dptext.ledger.store import TEXT
from dptext.privacy.guarantee import Guarantee, MetricDP, canonical_id
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.shuffling import shuffled
from dptext.privacy.statement import PrivacyStatement, new_release_id
from dptext.release.job import Job, interrupted
from dptext.release.release import (
    Release,
    Tally,
    TextsOfPeople,
    add_columns,
    rejects_path,
    statement_path,
    write_rejects,
    write_statement,
)
from dptext.validation import check_int

FIRST_ROWS = 500
"""Number of private texts that are compared with public ones before a release."""
_logger = logging.getLogger(__name__)


class Charges:
    """The charge of one release to a ledger; without a ledger, every method does nothing."""

    def __init__(self, ledger: PathLike | None, by: str | None, *, missing: str | None = None) -> None:
        if by == TEXT and ledger is not None:
            raise ParameterError(f"the user column cannot be named {TEXT!r}, as ledgers call the text: rename it")
        self.column = by
        self._missing = missing
        self._ledger = None if ledger is None else Ledger(ledger)
        self._seen: bytes | None = None
        self._readings: list[Any] = []
        self.order: Callable[[Iterator[Batch]], Iterator[Batch]] = iter

    @property
    def kind(self) -> list[str] | None:
        """The path of the ledger and the column that rows are charged by, for JSON; None without a ledger."""
        return None if self._ledger is None else [str(self._ledger.path.resolve()), self.column or TEXT]

    def reserve(
        self, release_id: str, cost: PrivacyStatement | Guarantee, reader: DocumentReader, **terms: Any
    ) -> None:
        """Charge a release to all users of the rows, before any of its bytes exist."""
        if self._ledger is None:
            return
        if self._ledger.state(release_id) == RELEASED:
            raise RefusedError("the ledger has already settled this release: start over, as a new release")
        if isinstance(cost, PrivacyStatement) and isinstance(cost.guarantee, MetricDP):
            # the largest distance is known only when all rows are read
            cost = cost.replace(guarantee=replace(cost.guarantee, max_distance=None))
        others = self._ledger.pending(besides=release_id)
        self._ledger.reserve(release_id, cost, self._keys(reader), by=self.column or TEXT, **terms)
        if others:
            _logger.warning("%s", self._ledger.pending_advice(others))

    def is_settled_or_reserved(self, release_id: str) -> bool:
        """Return True if the ledger contains the release, or if there is no ledger."""
        return self._ledger is None or self._ledger.state(release_id) is not None

    def track(self, reader: DocumentReader) -> DocumentReader:
        """Return the reader; `check` compares its rows with the charged ones."""
        if self._ledger is not None:
            self._readings.append(digest := hashlib.sha256())
            reader.watch(lambda block: digest.update(block.identity()))
        return reader

    def check(self, release_id: str, identities: Iterable[bytes] | None = None) -> None:
        """Raise if the ledger no longer counts the release, or if it charged other rows than the run has read."""
        digests = [reading.digest() for reading in self._readings]
        if identities is not None:
            digests.append(hashlib.sha256(b"".join(identities)).digest())
        if self._seen is not None and any(digest != self._seen for digest in digests):
            raise RefusedError("the input changed while it was being read, after it was charged: start over (--force)")
        if not self.is_settled_or_reserved(release_id):
            raise RefusedError(f"the release {release_id} was voided in the ledger during this run: run it again")

    def settle(self, release_id: str) -> None:
        """Mark the release as released, unless it already is."""
        if self._ledger is not None and self._ledger.state(release_id) != RELEASED:
            self._ledger.settle(release_id)

    def note_pending(self, error: BaseException, release_id: str) -> bool:
        """Return True if the release is or may be still charged after an error; add a note about it to the error."""
        if self._ledger is None:
            return False
        try:
            if self._ledger.state(release_id) != PENDING:
                return False
        except DptextError as second:
            error.add_note(f"the ledger cannot be read, so it may still count this release ({second})")
            return True
        error.add_note(self._ledger.pending_advice([release_id]))
        return True

    def _keys(self, reader: DocumentReader) -> Iterator[str]:
        digest = hashlib.sha256()
        with contextlib.closing(reader):
            for block in self.order(reader.batches()):
                digest.update(block.identity())
                if self.column is None:
                    texts = (self._missing if text is None else text for text in block.texts)
                    yield from (text for text in texts if text is not None)
                    continue
                first = reader.count - len(block.texts) + 1
                for row, value in enumerate(block.columns[self.column], first):
                    key = canonical_id(value)
                    if key is None:
                        raise without_user(f"row {row} has", self.column, can_skip=False)
                    yield key
        self._seen = digest.digest()


@dataclass(frozen=True)
class TextFiles:
    """The input files of a release, and which rows and columns to read.

    Attributes:
        paths: one file, or several whose rows go to one output.
        text: the column that holds the text.
        keep: columns to publish unchanged. They are not checked here; `dptext.text.identifiers.columns_of` finds those
            that look like identifiers.
        on_error, suffix, encoding, separator: see `dptext.io.documents.read_documents`.
    """

    paths: PathLike | Sequence[PathLike]
    _: KW_ONLY
    text: str = "text"
    keep: Sequence[str] = ()
    on_error: OnError = "fail"
    suffix: str | None = None
    encoding: str | None = None
    separator: str | None = None

    @classmethod
    def of(cls, source: PathLike | Sequence[PathLike] | TextFiles) -> TextFiles:
        return source if isinstance(source, TextFiles) else cls(source)

    @cached_property
    def sources(self) -> list[PathLike]:
        return [self.paths] if isinstance(self.paths, str | os.PathLike) else list(self.paths)

    @cached_property
    def _opened(self) -> dict[str | None, DocumentReader]:
        return {}

    def open(self, user: str | None = None) -> None:
        """Check files, columns and users now; the next `read` of this user column continues with the same reader."""
        self._opened[user] = self.read(user)
        self._opened[user].check_users()

    def read(self, user: str | None = None) -> DocumentReader:
        """Read the rows from the beginning, with the column of users if one is named."""
        if user in self._opened:
            return self._opened.pop(user)
        return self.documents(tuple(dict.fromkeys((*self.keep, *(() if user is None else (user,))))), user=user)

    def documents(self, keep: Sequence[str], *, user: str | None = None) -> DocumentReader:
        return read_documents(
            self.sources,
            text=self.text,
            user=user,
            keep=keep,
            on_error=self.on_error,
            suffix=self.suffix,
            encoding=self.encoding,
            separator=self.separator,
        )

    def first(self) -> list[str]:
        """Return the texts of the first `FIRST_ROWS`; none from a pipe, which can be read only once."""
        if any(is_pipe(Path(source)) for source in self.sources):
            return []
        with contextlib.closing(replace(self, on_error="skip").documents(())) as reader:
            return [document.text for document in islice(reader, FIRST_ROWS) if document.text]

    def complete(self, statement: PrivacyStatement) -> PrivacyStatement:
        """Return the statement of a release of these rows, with the exposure of their kept columns."""
        return add_columns(statement, self.keep, skip=self.on_error == "skip")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Options of a run that do not change its guarantee.

    Attributes:
        seed: None for cryptographic randomness; an integer for tests and papers only.
        resume: continue an interrupted run with the same noise.
        force: replace an existing output, or start an interrupted run over.
        processes: number of processes; the output does not depend on it.
        ledger: the ledger that charges the rows, or refuses the release.
        user: the column of users, whom the ledger charges and `Release.people` counts.
        progress: a progress bar, or a function of the reader and the number of finished rows.
        shuffled: users among whom the rows are mixed (`dptext.shuffled`, with its default delta). The output has them
            in random order, and the rows are held in memory. A ledger charges the guarantee of the statement.
    """

    seed: int | None = None
    resume: bool = False
    force: bool = False
    processes: int = 1
    ledger: PathLike | None = None
    user: str | None = None
    progress: ProgressOption = None
    shuffled: int | None = None

    def __post_init__(self) -> None:
        check_int("processes", self.processes, minimum=1)

    def restate(self, statement: PrivacyStatement) -> PrivacyStatement:
        """Return the statement of the mixed rows, if they are shuffled."""
        return statement if self.shuffled is None else shuffled(statement, users=self.shuffled)


@dataclass(frozen=True, slots=True)
class Piece:
    """The output of one block."""

    place: int
    data: bytes
    rows: int
    rejects: tuple[Reject, ...]
    tally: Tally


class Run(Protocol):
    """The work of one release on its rows."""

    def work(self, blocks: Iterable[tuple[int, Batch]], *, row: int) -> Iterator[Piece]:
        """Yield the output of the numbered blocks in order; the same block always gets the same noise."""

    def finish(self, blocks: Path, ends: Sequence[int], out: HashedFile) -> None:
        """Build the output from the bytes of all pieces, for formats that are more than their concatenation."""

    def statement_before(self) -> PrivacyStatement:
        """Return a statement that covers every possible row, for the ledger to charge before any is read."""

    def statement(self, tally: Tally) -> PrivacyStatement:
        """Return the statement for rows with these counts."""


Begin = Callable[[NoiseKey, str], Run]
"""Builds a run from the key of its noise and the id of the release."""


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
    """Read rows, let a `Run` replace them, and publish the private file and its statement."""
    charges = Charges(settings.ledger, settings.user, missing=missing)
    reader = source.read(settings.user)
    read = {"text": source.text, "keep": list(source.keep), "on_error": source.on_error}
    with contextlib.closing(reader):
        check_output(source.sources, out, force=settings.force, resume=settings.resume, ledger=settings.ledger)
        reader.check_users()
        job = Job(
            out,
            {**options, **read, "ledger": charges.kind, "user": settings.user, "shuffled": settings.shuffled},
            key=NoiseKey(settings.seed),
            release_id=new_release_id(),
            resume=settings.resume,
            restart=settings.force and not settings.resume,
            is_assembled=is_assembled,
        )
        resumed, people = job.rows, None
        with job, charged(charges, job.release_id, note=partial(_note_on_job, job, charges), finish=job.discard):
            run = begin(job.key, job.release_id)
            if settings.shuffled is not None:
                settings.restate(run.statement(Tally(longest=1)))  # raises before any row is read
                charges.order = partial(_mixed, job.key)
            is_reserved = job.statement is not None and charges.is_settled_or_reserved(job.release_id)
            if charges.kind is not None and not is_reserved:
                charges.reserve(job.release_id, settings.restate(run.statement_before()), source.read(settings.user))
            if job.statement is None:
                people = None if settings.user is None else TextsOfPeople(settings.user, missing=missing)
                with progress_bar(settings.progress, "rows", describe=_describe_rows) as done:
                    _work(job, charges.order(reader.batches()), reader, run, done, people)
            charges.check(job.release_id, (part.digest for part in job.parts))
            if job.statement is None:
                job.remember(settings.restate(_statement(job, run, source)))
            assert job.statement is not None
            released = Release(
                statement=job.statement,
                documents=job.rows,
                skipped=sum(1 for _ in job.rejects()),
                resumed=resumed,
                tally=job.tally,
                people=people,
                outputs={"out": out},
            )
            write_rejects(rejects_path(out), job.rejects())
            charges.check(job.release_id)
            write_statement(statement_path(out), released.statement)  # first: no data is ever published without one
            job.publish()
    return released


# -- shared by all releases -----------------------------------------------------------------------------------


@contextlib.contextmanager
def charged(
    charges: Charges,
    release_id: str,
    *,
    note: Callable[[BaseException], object] | None = None,
    finish: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Settle a release after the body has reserved, made and published it; ``note`` adds advice to an error."""
    try:
        yield
        charges.settle(release_id)
        finish()
    except BaseException as error:
        if note is None:
            charges.note_pending(error, release_id)
        else:
            note(error)
        raise


def check_output(
    sources: Sequence[PathLike],
    out: Path,
    *,
    force: bool,
    resume: bool = False,
    statement_file: bool | None = None,
    ledger: PathLike | None = None,
    apart_from: Mapping[str, Iterable[PathLike]] = MappingProxyType({}),
) -> None:
    """Raise if an output cannot be written or would overwrite another file, before any row is read."""
    replace = force or (resume and Job.is_open(out))
    never = {
        "IN": [source for source in sources if Path(source) != STANDARD],
        "the ledger": [] if ledger is None else [ledger, f"{os.fspath(ledger)}-journal"],
        **{label: list(files) for label, files in apart_from.items()},
    }
    written = (out, statement_path(out), rejects_path(out))
    if not replace and Job.is_open(out) and any(map(os.path.lexists, written)):
        raise interrupted(out)
    for target in written:
        may_go = replace if statement_file is None or target == out else statement_file
        check_target(target, replace=may_go, apart_from=never)
    for target in Job.files(out):
        check_target(target, replace=True, apart_from=never)


# -- one file ----------------------------------------------------------------------------------------------


def _note_on_job(job: Job, charges: Charges, error: BaseException) -> None:
    """Add advice on resuming to an error; delete a job without rows and without a charge."""
    if job.is_published:
        charges.note_pending(error, job.release_id)
        error.add_note(f"{job.out} is published: run the same command with --resume to finish")
    elif job.rows:
        error.add_note(
            f"{job.rows:,} rows are done and kept: run the same command with --resume to continue, or with --force to "
            "start over"
        )
    elif not charges.note_pending(error, job.release_id):
        with contextlib.suppress(StorageError):  # the next run deletes it
            job.discard()


def _describe_rows(reader: DocumentReader, rows: int) -> tuple[int, int | None, str]:
    return reader.position, reader.size or None, f"{rows:,} rows"


def _work(
    job: Job,
    blocks: Iterator[Batch],
    reader: DocumentReader,
    run: Run,
    done: Callable[[DocumentReader, int], object],
    people: TextsOfPeople | None,
) -> None:
    """Work on all blocks that are not done yet; users are counted in every block."""
    identities: dict[int, bytes] = {}  # for the few blocks in progress

    def missing() -> Iterator[tuple[int, Batch]]:
        place = -1
        for place, block in enumerate(blocks if people is None else people.counting(blocks)):
            identity = block.identity()
            if not job.is_done(place, identity):
                identities[place] = identity
                yield place, block
        if place + 1 < len(job.parts):
            raise RefusedError("the input is shorter than before the interruption: add --force to start over")

    for piece in run.work(missing(), row=job.rows + 1):
        identity = identities.pop(piece.place)
        job.add(piece.data, digest=identity, rows=piece.rows, tally=piece.tally, rejects=piece.rejects)
        done(reader, job.rows)


def _mixed(key: NoiseKey, blocks: Iterator[Batch]) -> Iterator[Batch]:
    """Yield all rows in a random order, which the secret of the job and the content of the rows decide."""
    batches = [*blocks]
    rows = [
        (text, [column[place] for column in batch.columns.values()])
        for batch in batches
        for place, text in enumerate(batch.texts)
    ]
    content = b"".join(batch.identity() for batch in batches)
    order = np.argsort(key.stream(b"order of rows", 0, content).integers(len(rows)), kind="stable")
    rejects = (reject for batch in batches for reject in batch.rejects)
    yield from row_batches(chain(rejects, map(rows.__getitem__, order.tolist())), [*batches[0].columns])


def _statement(job: Job, run: Run, source: TextFiles) -> PrivacyStatement:
    """Return the statement of the whole job, with the digest of the file to be published."""
    if job.is_assembled:
        with job.assembled() as (blocks, stream):
            run.finish(blocks, [part.size for part in job.parts], stream)
        digest = stream.digest()
    else:
        digest = file_digest(job.content)
    return source.complete(run.statement(job.tally)).replace(data_sha256=digest)
