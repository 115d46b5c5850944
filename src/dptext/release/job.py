"""Output files that are written part by part: an interrupted run resumes with the same noise (`Job`)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

from dptext.errors import DataError, DptextError, ParameterError, RefusedError, StorageError, storage_errors
from dptext.io.artifacts import file_digest
from dptext.io.atomic import HashedFile, open_locked, open_own, publish, set_default_mode, sibling
from dptext.io.batches import Reject
from dptext.privacy.randomness import NoiseKey
from dptext.privacy.statement import PrivacyStatement
from dptext.release.release import Tally

_VERSION = 4


@dataclass(frozen=True, slots=True)
class Part:
    """A finished part: digest of its input, rows and bytes up to its end, digest of its output, counts."""

    digest: bytes
    rows: int
    size: int
    written: bytes
    tally: Tally


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
        self.statement: PrivacyStatement | None = None
        self.is_published = False
        self._replaces = os.path.lexists(out)
        self._log, self._rows = sibling(out, "job"), sibling(out, "rows")
        self.content = sibling(out, "made") if is_assembled else self._rows  # the output until it is published
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
        """Return the hidden files of a job; `is_open` checks for the last one."""
        return tuple(sibling(out, suffix) for suffix in ("rows", "made", "job"))

    # -- opening ----------------------------------------------------------------------------------------------

    def _open(self, options: dict[str, Any], *, resume: bool, restart: bool) -> None:
        then = None if restart else self._load()
        if then is not None and not resume:
            if self.parts:
                raise interrupted(self.out)
            if not then["options"].get("ledger"):
                then = None  # without parts and without a charge, there is nothing to resume
        if then is not None:
            self._resume(then, options)
        else:
            self.statement, self._end = None, 0
            head = {"version": _VERSION, "secret": self.key.secret().hex(), "seeded": self.key.seeded}
            self._append({**head, "options": options, "release_id": self.release_id, "replaces": self._replaces})
        if self.is_published:
            return
        self._spool = open_own(self._rows)
        start = 0
        for part in self.parts:
            if hashlib.sha256(self._spool.read(max(0, part.size - start))).digest() != part.written:
                raise self._changed(self._rows)
            start = part.size
        self._spool.truncate(start)
        if self.statement is not None and not self._is_complete(self.content):
            raise self._changed(self.content)

    def _load(self) -> dict[str, Any] | None:
        """Read the parts and the statement; return the first line, or None for a new job."""
        try:
            lines = self._lines()
            head = next(lines, None)
            if head is None:
                return None
            head["secret"] = bytes.fromhex(head["secret"])
            is_valid = head["version"] == _VERSION and len(head["secret"]) == 32 and isinstance(head["options"], dict)
            for line in lines:
                if "statement" in line:
                    self.statement = PrivacyStatement.from_json(line["statement"])
                    continue
                digest, written = bytes.fromhex(line["digest"]), bytes.fromhex(line["written"])
                tally = Tally(**{name: int(count) for name, count in line["tally"].items()})
                self.parts.append(Part(digest, int(line["rows"]), int(line["size"]), written, tally))
                _rejects_of(line)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, DptextError):
            is_valid = False  # the error itself would quote the log, which contains the secret
        if not is_valid:
            raise DataError(f"{str(self._log)!r} is damaged, or from another version: add --force to start over")
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
        self._end += _write_at(self._stream, self._end, data)

    def _resume(self, then: dict[str, Any], now: dict[str, Any]) -> None:
        before = then["options"]
        changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        if self.key.seeded != then["seeded"] or (then["seeded"] and self.key.secret() != then["secret"]):
            changed.append("seed")
        if changed:
            raise ParameterError(
                f"the interrupted run of {str(self.out)!r} had other options ({', '.join(changed)} changed): use "
                "the same ones, or add --force to start over"
            )
        self.key = NoiseKey.restored(then["secret"], seeded=bool(then["seeded"]))
        self.release_id, self._replaces = str(then["release_id"]), bool(then["replaces"])
        # killed after the rename: only the last steps remain
        is_renamed = self.statement is not None and not self.content.exists()
        self.is_published = is_renamed and self._is_complete(self.out)
        if self.out.exists() and not self._replaces and not self.is_published:
            raise ParameterError(f"{str(self.out)!r} appeared after the interruption: move it away, then add --resume")

    def _changed(self, path: Path) -> DataError:
        return DataError(f"{str(path)!r} was changed since the job wrote it: add --force to start over")

    def _is_complete(self, path: Path) -> bool:
        """Return True if a file has the digest in the statement."""
        assert self.statement is not None
        return path.is_file() and self.statement.data_sha256 in (None, file_digest(path))

    # -- working ----------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return self.parts[-1].rows if self.parts else 0

    @property
    def size(self) -> int:
        return self.parts[-1].size if self.parts else 0

    @property
    def tally(self) -> Tally:
        return sum((part.tally for part in self.parts), Tally())

    def is_done(self, place: int, digest: bytes) -> bool:
        """Return True if a part is finished; raise `RefusedError` if it was finished for another input."""
        if place >= len(self.parts):
            return False
        if self.parts[place].digest != digest:
            raise RefusedError(
                f"the input has changed since the run of {str(self.out)!r} was interrupted, in a finished part: "
                "add --force to start over"
            )
        return True

    def add(self, data: bytes, *, digest: bytes, rows: int, tally: Tally, rejects: Sequence[Reject]) -> None:
        """Append a part; it is durable when this returns."""
        if self._spool is None:
            raise ValueError("the job is closed")
        part = Part(digest, self.rows + rows, self.size + len(data), hashlib.sha256(data).digest(), tally)
        with self._errors():
            _write_at(self._spool, self.size, data)
            line = {**asdict(part), "digest": digest.hex(), "written": part.written.hex()}
            # the name of a file need not be UTF-8
            files = [os.fsencode(reject.file).decode("utf-8", "backslashreplace") for reject in rejects]
            line["rejects"] = [{**asdict(row), "file": file} for row, file in zip(rejects, files, strict=True)]
            self._append(line)
        self.parts.append(part)

    def rejects(self) -> Iterator[Reject]:
        """Yield the rejected rows of all parts in order."""
        with self._errors():
            for line in self._lines():
                yield from _rejects_of(line)

    def remember(self, statement: PrivacyStatement) -> None:
        """Store the statement, with the digest of the output, for a resumed run to publish unchanged."""
        text = statement.to_json()
        with self._errors():
            self._append({"statement": text})
        self.statement = PrivacyStatement.from_json(text)

    @contextmanager
    def assembled(self) -> Iterator[tuple[Path, HashedFile]]:
        """Yield the file with the bytes of all parts, and the file to build from them."""
        with self._errors():
            try:
                with open_own(self.content) as stream:
                    stream.truncate(0)  # an earlier attempt may have left bytes
                    yield self._rows, HashedFile(stream)
                    stream.flush()
                    os.fsync(stream.fileno())
            except BaseException:
                with suppress(OSError):
                    self.content.unlink()
                raise

    def publish(self) -> None:
        """Rename the output to its final name. The files of the job remain until `discard`."""
        with self._errors():
            self._close_spool()
            if self.is_published:
                set_default_mode(self.out)
                return
            if os.path.lexists(self.out) and not self._replaces:
                raise StorageError(f"{str(self.out)!r} appeared during the run: move it away, then add --resume")
            publish(self.content, self.out)
            self.is_published = True

    def discard(self) -> None:
        if os.name == "nt":  # Windows cannot remove an open file
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

    def _errors(self) -> AbstractContextManager[None]:
        return storage_errors("write", self.out)


def interrupted(out: Path) -> ParameterError:
    """Return the error for a new run where another one was interrupted."""
    return ParameterError(
        f"a run of {str(out)!r} was interrupted: add --resume to continue it, or --force to start over "
        "(a ledger then charges both runs)"
    )


def _write_at(stream: IO[bytes], end: int, data: bytes) -> int:
    """Replace all bytes after a position (an earlier attempt may have left some); durable when this returns."""
    stream.seek(end)
    stream.truncate()
    stream.write(data)
    stream.flush()
    os.fsync(stream.fileno())
    return len(data)


def _rejects_of(line: Mapping[str, Any]) -> list[Reject]:
    return [Reject(**reject) for reject in line.get("rejects", ())]
