"""A file that is written in parts and survives all that stops the program: an interrupted job goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from dptext.errors import DataError, ParameterError, RefusedError, StorageError
from dptext.io.artifacts import file_digest
from dptext.io.atomic import HashedFile, open_new, open_own, publish, set_default_mode, sibling
from dptext.io.batches import Reject, merge_rejects
from dptext.privacy.randomness import NoiseKey

__all__ = ["Job", "Part", "interrupted"]

_VERSION = 2
_AT_ONCE = 1 << 20
_TABLES = (
    "CREATE TABLE job (version INTEGER, secret BLOB, seeded INTEGER, asked TEXT, name TEXT, replaces INTEGER, "
    "promise TEXT, made TEXT)",
    "CREATE TABLE part (place INTEGER PRIMARY KEY, digest BLOB, rows INTEGER, size INTEGER, written BLOB, facts TEXT)",
    "CREATE TABLE reject (file TEXT, first INTEGER, last INTEGER, reason TEXT)",
)


@dataclass(frozen=True, slots=True)
class Part:
    """What is remembered of a part that is done."""

    digest: bytes
    rows: int
    size: int
    written: bytes
    facts: Mapping[str, int]


class Job:
    """An output in the making."""

    def __init__(
        self,
        out: Path,
        options: Mapping[str, Any],
        *,
        key: NoiseKey,
        release_id: str,
        resume: bool = False,
        restart: bool = False,
        is_assembled: bool = False,
    ) -> None:
        self.out = out
        self.is_assembled = is_assembled
        self.is_published = False
        self._replaces = os.path.lexists(out)
        self.key, self.release_id = key, release_id
        self.parts: list[Part] = []
        self.statement: str | None = None
        self._book, self._rows = sibling(out, "job"), sibling(out, "rows")
        self._finished = sibling(out, "made") if is_assembled else self._rows
        self._database: Any = None
        self._spool: IO[bytes] | None = None
        there = self.is_open(out)
        self.resumed = there and resume
        locked = False
        try:
            with self._errors():
                self._open_book(restart=restart)
            locked = True
            if there and not resume:
                if not restart and self._has_parts():
                    raise interrupted(out)
                if restart or not self._may_be_charged():
                    self._forget()
            self._begin_or_go_on(options)
        except BaseException:
            if locked and not there:
                self.discard()
            self.close()
            raise

    @staticmethod
    def is_open(out: Path) -> bool:
        """Whether an interrupted job for this output is there."""
        return sibling(out, "job").exists()

    @staticmethod
    def files(out: Path) -> tuple[Path, ...]:
        """The hidden files that a job for this output makes; the one by which the next run finds them is the last."""
        return tuple(sibling(out, each) for each in ("rows", "made", "job-journal", "job"))

    # -- opening ----------------------------------------------------------------------------------------------

    def _open_book(self, *, restart: bool) -> None:
        made = False
        with suppress(FileExistsError):
            # nobody else may ever read the secret, so the file is made before anything is in it
            open_new(self._book).close()
            made = True
        open_own(self._book).close()
        try:
            self._lock_book()
        except sqlite3.OperationalError as error:
            if made and "locked" not in str(error):  # locked: another process has found the new file, it is theirs
                self._book.unlink()
            raise
        except sqlite3.DatabaseError:  # not a database at all
            if not restart:
                raise
            self._book.unlink()
            self._open_book(restart=False)

    def _lock_book(self) -> None:
        self._database = sqlite3.connect(self._book, isolation_level=None, timeout=0)
        try:
            # the lock is held until the job is closed, and falls with the process
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA synchronous = EXTRA")
            self._database.execute("BEGIN EXCLUSIVE")
            self._database.execute("COMMIT")
        except BaseException:
            self._database.close()
            raise

    def _may_be_charged(self) -> bool:
        """Return whether a ledger may count this job; it is then continued: a new one would be charged again."""
        with self._errors():
            row = self._database.execute("SELECT asked FROM job").fetchone() if self._has_begun() else None
        return row is not None and bool((_options(row[0]) or {}).get("ledger"))

    def _forget(self) -> None:
        with self._errors(), self._transaction() as database:
            for table in ("job", "part", "reject"):
                database.execute(f"DROP TABLE IF EXISTS {table}")

    def _begin_or_go_on(self, options: Mapping[str, Any]) -> None:
        spelled = json.dumps(options, sort_keys=True)
        with self._errors():
            if not self._has_begun():  # new, or stopped before it began
                self.resumed = False
                self._begin(spelled)
            else:
                self._go_on(json.loads(spelled))
            if self.is_published:
                return
            self._spool = open_own(self._rows)
            self._check_spool(self._spool)
            self._spool.truncate(self.size)
            if self.statement is not None and not self._is_made(self._finished):
                raise DataError(
                    f"{str(self._finished)!r} is not what the job made: it was changed; add --force to start over"
                )

    def _check_spool(self, spool: IO[bytes]) -> None:
        """Raises: DataError: the parts in it are not those that were written."""
        if spool.seek(0, os.SEEK_END) < self.size:
            raise DataError(
                f"{str(self._rows)!r} is shorter than the job remembers: it was changed; add --force to start over"
            )
        start = spool.seek(0)
        for part in self.parts:
            digest = hashlib.sha256()
            while start < part.size and (data := spool.read(min(_AT_ONCE, part.size - start))):
                digest.update(data)
                start += len(data)
            if digest.digest() != part.written:
                raise DataError(
                    f"{str(self._rows)!r} is not what the job wrote: it was changed; add --force to start over"
                )

    def _has_begun(self) -> bool:
        found = self._database.execute("SELECT name FROM sqlite_master WHERE name = 'job'").fetchone()
        return found is not None

    def _has_parts(self) -> bool:
        with self._errors():
            return self._has_begun() and self._database.execute("SELECT * FROM part").fetchone() is not None

    def _begin(self, options: str) -> None:
        with self._transaction() as database:
            for table in _TABLES:
                database.execute(table)
            database.execute(
                "INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)",
                (_VERSION, self.key.secret(), self.key.seeded, options, self.release_id, self._replaces),
            )

    def _go_on(self, now: Mapping[str, Any]) -> None:
        then, seeded, secret, self._replaces = self._remembered()
        changed = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
        if self.key.seeded != seeded or (seeded and self.key.secret() != secret):
            changed.append("seed")
        if changed:
            raise ParameterError(
                f"the interrupted run of {str(self.out)!r} was another one ({', '.join(changed)} changed): repeat its "
                "options, or add --force to start over"
            )
        self.key = NoiseKey.restored(secret, seeded=seeded)
        # stopped between the rename and the end: nothing is left to do but to say so
        self.is_published = self._is_published()
        if self.out.exists() and not self._replaces and not self.is_published:
            raise ParameterError(
                f"{str(self.out)!r} has appeared since the run was interrupted: move it away, then --resume"
            )

    def _is_published(self) -> bool:
        if self.statement is None or self._finished.exists() or not self.out.exists():
            return False
        return self._is_made(self.out)

    def _is_made(self, path: Path) -> bool:
        """Whether a file is the output that the statement was made for."""
        (digest,) = self._database.execute("SELECT made FROM job").fetchone()
        return path.is_file() and (digest is None or digest == file_digest(path))

    def _remembered(self) -> tuple[dict[str, Any], bool, bytes, bool]:
        """What the file of the job holds, taken over as far as it can be used as it is."""
        try:
            row = self._database.execute("SELECT * FROM job").fetchone()
            version, secret, seeded, asked, self.release_id, replaces, self.statement, _ = row
            then = _options(asked)
            is_ours = version == _VERSION and then is not None and isinstance(secret, bytes)
            is_ours = is_ours and len(secret) == 32 and isinstance(self.release_id, str)
            found = self._database.execute("SELECT * FROM part ORDER BY place").fetchall()
            for place, digest, rows, size, written, facts in found:
                is_ours = is_ours and place == len(self.parts)
                is_ours = is_ours and isinstance(digest, bytes) and isinstance(written, bytes)
                counted = {name: int(count) for name, count in json.loads(facts).items()}
                self.parts.append(Part(digest, int(rows), int(size), written, counted))
            if is_ours and then is not None and (self.statement is None or isinstance(self.statement, str)):
                return then, bool(seeded), secret, bool(replaces)
        except (TypeError, ValueError, AttributeError, OverflowError, RecursionError):
            pass
        raise DataError(f"{str(self._book)!r} is damaged, or of another version of dptext: add --force to start over")

    # -- going ------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """Rows of the output so far."""
        return self.parts[-1].rows if self.parts else 0

    @property
    def size(self) -> int:
        """Bytes of the parts so far."""
        return self.parts[-1].size if self.parts else 0

    def is_done(self, place: int, digest: bytes) -> bool:
        """Whether the part at this place is done already."""
        if place >= len(self.parts):
            return False
        if self.parts[place].digest != digest:
            raise RefusedError(
                f"the input is not what it was when the run of {str(self.out)!r} was interrupted: a part of it that is "
                "done has changed; add --force to start over"
            )
        return True

    def add(
        self, data: bytes, *, digest: bytes, rows: int, facts: Mapping[str, int], rejects: Sequence[Reject]
    ) -> None:
        """Append a part; it counts when this returns."""
        if self._spool is None:
            raise ValueError("the job is closed")
        written = hashlib.sha256(data).digest()
        part = Part(digest, self.rows + rows, self.size + len(data), written, dict(facts))
        with self._errors():
            self._spool.seek(self.size)  # an earlier attempt may have left bytes that do not count
            self._spool.truncate()
            self._spool.write(data)
            self._spool.flush()
            os.fsync(self._spool.fileno())
            with self._transaction() as database:
                database.execute(
                    "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
                    (len(self.parts), digest, part.rows, part.size, written, json.dumps(part.facts)),
                )
                database.executemany("INSERT INTO reject VALUES (?, ?, ?, ?)", [_values(each) for each in rejects])
        self.parts.append(part)

    def rejects(self) -> Iterator[Reject]:
        """The rows left out of all parts, in order; rows in a row with one reason are one entry."""
        with self._errors():
            rows = self._database.execute("SELECT file, first, last, reason FROM reject ORDER BY rowid")
            yield from merge_rejects(Reject(*row) for row in rows)

    def remember(self, statement: str, *, digest: str | None = None) -> None:
        """Keep the statement: a run that is stopped while it ends must not make another one."""
        with self._errors(), self._transaction() as database:
            database.execute("UPDATE job SET promise = ?, made = ?", (statement, digest))
        self.statement = statement

    @contextmanager
    def assembled(self) -> Iterator[tuple[Path, HashedFile]]:
        """The bytes of all parts, and the file to make from them."""
        try:
            with open_own(self._finished) as stream:
                stream.truncate(0)  # what an earlier attempt left
                yield self._rows, HashedFile(stream)
                stream.flush()
                os.fsync(stream.fileno())
        except BaseException as error:
            with suppress(OSError):
                self._finished.unlink()
            if isinstance(error, OSError) and not isinstance(error, StorageError):
                raise StorageError.of("write", self.out, error) from None
            raise

    @property
    def content(self) -> Path:
        """Where the bytes of the output lie until it is published."""
        return self._finished

    def publish(self) -> None:
        """Put the output in place; the job stays until it is discarded."""
        with self._errors():
            self._close_spool()
            if not self.is_published:
                if os.path.lexists(self.out) and not self._replaces:
                    raise StorageError(
                        f"{str(self.out)!r} has appeared while the run was going on: move it away, then --resume"
                    )
                publish(self._finished, self.out)
                self.is_published = True
            set_default_mode(self.out)  # which a run that was killed after the rename had not done

    def discard(self) -> None:
        """Delete the job and all that it made so far."""
        self.close()
        with self._errors():
            for path in self.files(self.out):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the job; it stays for another time."""
        with suppress(OSError):
            self._close_spool()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _close_spool(self) -> None:
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- errors -----------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._database
        except BaseException:
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (StorageError, DataError, ParameterError):
            raise
        except OSError as error:
            raise StorageError.of("write", self.out, error) from None
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise StorageError(f"another process is writing {str(self.out)!r}: wait for it, or stop it") from None
            what = "No space left on device" if "full" in str(error) else "the file of the job cannot be written"
            raise StorageError(f"cannot write {str(self.out)!r}: {what}") from None
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            raise DataError(
                f"{str(self._book)!r} is damaged, or the disk failed: try again, or add --force to start over"
            ) from None


def interrupted(out: Path) -> ParameterError:
    """What is said to who would begin anew where a run was interrupted."""
    return ParameterError(
        f"an interrupted run of {str(out)!r} is there: add --resume to go on with it, or --force to start over "
        "(a ledger then counts both)"
    )


def _options(asked: Any) -> dict[str, Any] | None:
    """What was asked of a job; None where that cannot be read."""
    try:
        found = json.loads(asked)
    except (TypeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _values(reject: Reject) -> tuple[Any, ...]:
    file = os.fsencode(reject.file).decode("utf-8", "backslashreplace")  # a name need not be UTF-8
    return (file, reject.first, reject.last, reject.reason)
