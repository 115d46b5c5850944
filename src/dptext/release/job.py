"""A file that is written part by part, so that an interrupted run can be resumed with the same noise (`Job`)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

from dptext.errors import DataError, DptextError, ParameterError, RefusedError, StorageError
from dptext.io.artifacts import file_digest
from dptext.io.atomic import HashedFile, open_locked, open_own, publish, set_default_mode, sibling
from dptext.io.batches import Reject
from dptext.privacy.randomness import NoiseKey

_VERSION = 3


@dataclass(frozen=True, slots=True)
class Part:
    """A finished part: digest of its input, rows and bytes up to its end, digest of its output, counts."""

    digest: bytes
    rows: int
    size: int
    written: bytes
    facts: Mapping[str, int]


class Job:
    """An unfinished output: the bytes of its parts in ``.OUT.rows``, one JSON line per step in ``.OUT.job``."""

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
        self.out, self.is_assembled = out, is_assembled
        self.key, self.release_id = key, release_id
        self.parts: list[Part] = []
        self.statement: str | None = None
        self.is_published = False
        self._data_sha256: str | None = None
        self._replaces = os.path.lexists(out)
        self._log, self._rows = sibling(out, "job"), sibling(out, "rows")
        self._finished = sibling(out, "made") if is_assembled else self._rows
        self._spool: IO[bytes] | None = None
        with self._errors():
            stream = open_locked(self._log)
        if stream is None:
            raise StorageError(f"another process is writing {str(out)!r}: wait for it, or stop it")
        self._stream, is_new = stream, not stream.seek(0, os.SEEK_END)
        try:
            with self._errors():
                self._open(json.loads(json.dumps(options)), resume=resume, restart=restart)
        except BaseException:
            if is_new:
                self.discard()
            self.close()
            raise

    @staticmethod
    def is_open(out: Path) -> bool:
        """Return True if there is an interrupted job for this output."""
        return sibling(out, "job").exists()

    @staticmethod
    def files(out: Path) -> tuple[Path, ...]:
        """Return the hidden files of a job; the last one is the one that `is_open` looks for."""
        return tuple(sibling(out, suffix) for suffix in ("rows", "made", "job"))

    # -- opening ----------------------------------------------------------------------------------------------

    def _open(self, options: dict[str, Any], *, resume: bool, restart: bool) -> None:
        then = None if restart else self._load()
        if then is not None and not resume:
            if self.parts:
                raise interrupted(self.out)
            if not then["options"].get("ledger"):
                then = None  # without parts and without a charge, there is nothing to resume
        if then is None:
            self._begin(options)
        else:
            self._resume(then, options)
        if self.is_published:
            return
        self._spool = open_own(self._rows)
        self._check_spool(self._spool)
        if self.statement is not None and not self._is_made(self._finished):
            raise self._changed(self._finished)

    def _begin(self, options: dict[str, Any]) -> None:
        self.statement, self._end = None, 0
        head = {"version": _VERSION, "secret": self.key.secret().hex(), "seeded": self.key.seeded}
        self._append({**head, "options": options, "release_id": self.release_id, "replaces": self._replaces})

    def _load(self) -> dict[str, Any] | None:
        """Read the parts and the statement; return the first line, or None if the job did not begin."""
        head, is_damaged = None, False
        try:
            for line in self._lines():
                if head is None:
                    head = line
                    head["secret"] = bytes.fromhex(head["secret"])
                    if (
                        head["version"] != _VERSION
                        or len(head["secret"]) != 32
                        or not isinstance(head["options"], dict)
                    ):
                        raise ValueError
                elif "statement" in line:
                    self.statement, self._data_sha256 = str(line["statement"]), line["data_sha256"]
                else:
                    digest, written = bytes.fromhex(line["digest"]), bytes.fromhex(line["written"])
                    facts = {name: int(count) for name, count in line["facts"].items()}
                    self.parts.append(Part(digest, int(line["rows"]), int(line["size"]), written, facts))
                    _rejects_of(line)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            is_damaged = True  # the error itself would quote the log, which holds the secret
        if is_damaged:
            raise DataError(f"{str(self._log)!r} is damaged, or of another version: add --force to start over")
        return head

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Yield the appended lines, without an incomplete last one."""
        self._end = self._stream.seek(0)
        for line in self._stream:
            if line.endswith(b"\n"):
                self._end += len(line)
                yield json.loads(line)

    def _append(self, line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        self._stream.seek(self._end)  # an earlier attempt may have left half a line
        self._stream.truncate()
        self._stream.write(data)
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._end += len(data)

    def _resume(self, then: dict[str, Any], now: dict[str, Any]) -> None:
        before = then["options"]
        changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        if self.key.seeded != then["seeded"] or (then["seeded"] and self.key.secret() != then["secret"]):
            changed.append("seed")
        if changed:
            raise ParameterError(
                f"the interrupted run of {str(self.out)!r} had other options ({', '.join(changed)} changed): repeat "
                "them, or add --force to start over"
            )
        self.key = NoiseKey.restored(then["secret"], seeded=bool(then["seeded"]))
        self.release_id, self._replaces = str(then["release_id"]), bool(then["replaces"])
        # killed after the rename: only the end of the job remains to be done
        is_renamed = self.statement is not None and not self._finished.exists()
        self.is_published = is_renamed and self._is_made(self.out)
        if self.out.exists() and not self._replaces and not self.is_published:
            raise ParameterError(f"{str(self.out)!r} has appeared since the interruption: move it away, then --resume")

    def _check_spool(self, spool: IO[bytes]) -> None:
        start = 0
        for part in self.parts:
            if hashlib.sha256(spool.read(max(0, part.size - start))).digest() != part.written:
                raise self._changed(self._rows)
            start = part.size
        spool.truncate(start)

    def _changed(self, path: Path) -> DataError:
        return DataError(f"{str(path)!r} was changed since the job wrote it: add --force to start over")

    def _is_made(self, path: Path) -> bool:
        """Return True if a file has the digest in the statement."""
        return path.is_file() and self._data_sha256 in (None, file_digest(path))

    # -- working ----------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return self.parts[-1].rows if self.parts else 0

    @property
    def size(self) -> int:
        return self.parts[-1].size if self.parts else 0

    def is_done(self, place: int, digest: bytes) -> bool:
        """Return True if a part is done; raise `RefusedError` if it was done for another input."""
        if place >= len(self.parts):
            return False
        if self.parts[place].digest != digest:
            raise RefusedError(
                f"the input has changed since the run of {str(self.out)!r} was interrupted, in a part that is done: "
                "add --force to start over"
            )
        return True

    def add(
        self, data: bytes, *, digest: bytes, rows: int, facts: Mapping[str, int], rejects: Sequence[Reject]
    ) -> None:
        """Append a part; it is durable when this returns."""
        if self._spool is None:
            raise ValueError("the job is closed")
        part = Part(digest, self.rows + rows, self.size + len(data), hashlib.sha256(data).digest(), dict(facts))
        with self._errors():
            self._spool.seek(self.size)  # an earlier attempt may have left bytes that do not count
            self._spool.truncate()
            self._spool.write(data)
            self._spool.flush()
            os.fsync(self._spool.fileno())
            line = {**asdict(part), "digest": digest.hex(), "written": part.written.hex()}
            self._append({**line, "rejects": [_as_json(reject) for reject in rejects]})
        self.parts.append(part)

    def rejects(self) -> Iterator[Reject]:
        """Yield the rejected rows of all parts in order."""
        with self._errors():
            for line in self._lines():
                yield from _rejects_of(line)

    def remember(self, statement: str, *, digest: str | None = None) -> None:
        """Store the statement and the digest of the output, for a resumed run to publish unchanged."""
        with self._errors():
            self._append({"statement": statement, "data_sha256": digest})
        self.statement, self._data_sha256 = statement, digest

    @contextmanager
    def assembled(self) -> Iterator[tuple[Path, HashedFile]]:
        """Yield the file with the bytes of all parts, and the file to build from them."""
        with self._errors():
            try:
                with open_own(self._finished) as stream:
                    stream.truncate(0)  # an earlier attempt may have left bytes
                    yield self._rows, HashedFile(stream)
                    stream.flush()
                    os.fsync(stream.fileno())
            except BaseException:
                with suppress(OSError):
                    self._finished.unlink()
                raise

    @property
    def content(self) -> Path:
        """The file with the bytes of the output until it is published."""
        return self._finished

    def publish(self) -> None:
        """Rename the output to its place; the job stays until it is discarded."""
        with self._errors():
            self._close_spool()
            if self.is_published:
                set_default_mode(self.out)
                return
            if os.path.lexists(self.out) and not self._replaces:
                raise StorageError(f"{str(self.out)!r} has appeared during the run: move it away, then --resume")
            publish(self._finished, self.out)
            self.is_published = True

    def discard(self) -> None:
        if os.name == "nt":  # which removes no open file
            self.close()
        with self._errors():
            for path in self.files(self.out):
                path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the files; the job can be resumed later."""
        with suppress(OSError):
            self._close_spool()
        with suppress(OSError):
            self._stream.close()

    def _close_spool(self) -> None:
        spool, self._spool = self._spool, None
        if spool is not None:
            spool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise error if isinstance(error, DptextError) else StorageError.of("write", self.out, error) from None


def interrupted(out: Path) -> ParameterError:
    """Return the error for a new run where another one was interrupted."""
    return ParameterError(
        f"a run of {str(out)!r} was interrupted: add --resume to continue it, or --force to start over "
        "(a ledger then counts both)"
    )


def _as_json(reject: Reject) -> dict[str, Any]:
    file = os.fsencode(reject.file).decode("utf-8", "backslashreplace")  # a name need not be UTF-8
    return {**asdict(reject), "file": file}


def _rejects_of(line: Mapping[str, Any]) -> list[Reject]:
    return [Reject(**reject) for reject in line.get("rejects", ())]
