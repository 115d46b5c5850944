"""A folder of parts as the engine writes it, wherever the cluster keeps its files, and the statement beside it."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from dptext.errors import DptextError, ParameterError, StorageError
from dptext.io.artifacts import digest_of_parts
from dptext.io.atomic import sibling
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement

__all__ = ["Appeared", "OutputFolder"]

_AT_ONCE = 1 << 20
_ROWS, _STATEMENT, _RUN = "rows", "privacy.json", "run.json"
_BEFORE, _BEFORE_STATEMENT = "before", "before.privacy.json"
_PART, _TAKEN = ".part", ".taken.part"
_running: set[str] = set()  # the runs of this process


class Appeared(Enum):
    """Whether somebody may have seen the output of a run."""

    NO = "no"
    UNKNOWN = "unknown"
    YES = "yes"


class OutputFolder:
    """A folder that the cluster sees; a context manager."""

    def __init__(self, spark: Any, path: str) -> None:
        self.path = path.rstrip("/")
        self.appeared = Appeared.NO
        self._java = spark._jvm
        hadoop = self._java.org.apache.hadoop.fs
        self._path = hadoop.Path
        self._out, self._beside = self._path(self.path), self._path(f"{self.path}.privacy.json")
        if self._out.getParent() is None:
            raise ParameterError(f"the output must be a folder with a name, got {path!r}")
        self._parts = self._path(self._out.getParent(), sibling(Path(self._out.getName()), "spark.part").name)
        self._run = f".{RandomBits().take(6).hex()}{_PART}"  # a name that nobody takes for a release
        # one of our own: what is set here is no business of the engine's writer
        self._system = hadoop.FileSystem.newInstance(self._out.toUri(), spark._jsc.hadoopConfiguration())
        self._system.setWriteChecksum(False)  # no .crc beside a statement

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _running.discard(self._run)
        with suppress(Exception):  # Java may be gone
            self._system.close()

    @property
    def rows(self) -> str:
        """Where the engine is to write the rows."""
        return str(self._work(_ROWS).toString())

    # -- before --------------------------------------------------------------------------------------------------

    def clear_earlier(self) -> None:
        """Put back what killed runs replaced, and delete their temporary files."""
        with self._named():
            found = self._system.listStatus(self._parts) if self._system.exists(self._parts) else ()
        for status in found:
            name = str(status.getPath().getName())
            run = self._read(self._path(status.getPath(), _RUN))
            if _is_going_on(name, run):
                raise StorageError(f"another process is writing {self.path!r}: wait for it, or stop it")
            taken = status.getPath()
            if not name.endswith(_TAKEN):  # from here on it cannot appear any more, should it still be going on
                taken = self._path(self._parts, name.removesuffix(_PART) + _TAKEN)
                self._move(status.getPath(), taken)
            self._put_back(taken, run.get("release_id"))
            self._system.delete(taken, True)
        self._forget_parts()

    def begin(self, release_id: str, *, force: bool) -> None:
        """Make the place for the work."""
        with self._named():
            self._check_free(force=force)
            owner_only = self._java.org.apache.hadoop.fs.permission.FsPermission("700")
            _running.add(self._run)
            made = self._system.mkdirs(self._parts, owner_only) and self._system.mkdirs(self._work(), owner_only)
            if not made or not self._system.mkdirs(self._work(_ROWS)):
                raise self._unwritable()
            where = {"host": socket.gethostname(), "process": os.getpid()}
            self._write(self._work(_RUN), json.dumps({"release_id": release_id, **where}))

    def check_no_input(self, frame: Any) -> None:
        """Refuse an output that a DataFrame is read from."""
        out = _spelled(str(self._system.makeQualified(self._out).toUri()))
        if any(f"{_spelled(file)}/".startswith(f"{out}/") for file in frame.inputFiles()):
            raise ParameterError("OUT is the same folder as IN, or IN is in it: choose another name for OUT")

    def _check_free(self, *, force: bool) -> None:
        is_there = self._system.exists(self._out)
        has_statement = self._system.exists(self._beside)
        if not force and (is_there or has_statement):
            raise ParameterError(
                f"{self.path!r}, or its statement, is there already: choose another name, or add --force (force=True)"
            )
        if is_there and not self._system.getFileStatus(self._out).isDirectory():
            raise ParameterError(f"{self.path!r} is a file, and Spark writes a folder: choose another name")
        if is_there and not has_statement:
            names = [str(each.getPath().getName()) for each in self._system.listStatus(self._out)]
            if not all(each.endswith(".parquet") or each.startswith(("_", ".")) for each in names):
                raise ParameterError(f"{self.path!r} holds other things than parquet: choose another name")

    # -- after ---------------------------------------------------------------------------------------------------

    def digest(self) -> str:
        """One digest of all parts (`dptext.io.artifacts.digest_of_parts`), read as a stream by the driver's Java."""
        found = {}
        for status in self._system.listStatus(self._work(_ROWS)):
            name = str(status.getPath().getName())
            if status.isFile() and not name.startswith(("_", ".")):
                found[name] = self._digest_of(status.getPath())
        return digest_of_parts(found)

    def _digest_of(self, file: Any) -> str:
        java = self._java
        algorithm = java.java.security.MessageDigest.getInstance("SHA-256")
        sink = java.java.security.DigestOutputStream(java.java.io.OutputStream.nullOutputStream(), algorithm)
        java.org.apache.hadoop.io.IOUtils.copyBytes(self._system.open(file), sink, _AT_ONCE, True)
        found = bytes(each & 0xFF for each in algorithm.digest())
        assert len(found) == hashlib.sha256().digest_size
        return found.hex()

    def publish(self, statement: PrivacyStatement, *, force: bool) -> None:
        """Put the statement in place, and then the rows."""
        self._write(self._work(_STATEMENT), statement.to_json() + "\n")
        self._check_free(force=force)
        for there, aside in ((self._out, _BEFORE), (self._beside, _BEFORE_STATEMENT)):
            if self._system.exists(there):
                self._move(there, self._work(aside))
        self._move(self._work(_STATEMENT), self._beside)
        self.appeared = Appeared.UNKNOWN
        self._move(self._work(_ROWS), self._out)
        self.appeared = Appeared.YES

    def undo(self, release_id: str) -> None:
        """Put back what was replaced, and delete what was made; what has appeared stays, for the next run to end."""
        if self.appeared is not Appeared.YES and self._system.exists(self._work(_RUN)):
            self.appeared = self._put_back(self._work(), release_id)
        if self.appeared is Appeared.NO:
            self.clear()

    def clear(self) -> None:
        """Delete what is left of the run, and what it has replaced."""
        self._system.delete(self._work(), True)
        self._forget_parts()

    # -- both ----------------------------------------------------------------------------------------------------

    def _work(self, name: str = "") -> Any:
        folder = self._path(self._parts, self._run)
        return self._path(folder, name) if name else folder

    def _put_back(self, work: Any, release_id: str | None) -> Appeared:
        """Undo a publication that was not completed; whether it was."""
        exists = self._system.exists
        is_ours = release_id is not None and self._read(self._beside).get("release_id") == release_id
        if (is_ours and exists(self._out)) or not exists(self._path(work, _ROWS)):
            return Appeared.YES
        if is_ours:
            self._system.delete(self._beside, False)
        for there, aside in ((self._out, _BEFORE), (self._beside, _BEFORE_STATEMENT)):
            if exists(self._path(work, aside)) and not exists(there):
                self._move(self._path(work, aside), there)
        return Appeared.NO

    def _forget_parts(self) -> None:
        with suppress(Exception):  # another run has something in it, or it is gone
            self._system.delete(self._parts, False)

    def _write(self, file: Any, text: str) -> None:
        stream = self._system.create(file, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _read(self, file: Any) -> dict[str, Any]:
        """The object in a small file; an empty one if there is none."""
        if not self._system.exists(file):
            return {}
        stream = self._java.java.io.ByteArrayOutputStream()
        self._java.org.apache.hadoop.io.IOUtils.copyBytes(self._system.open(file), stream, _AT_ONCE, True)
        with suppress(ValueError, RecursionError):
            found = json.loads(bytes(stream.toByteArray()))
            if isinstance(found, dict):
                return found
        return {}

    def _move(self, source: Any, target: Any) -> None:
        if self._system.exists(target) or not self._system.rename(source, target):
            raise StorageError(
                f"cannot write {self.path!r}: its file system does not rename what was made for it; is something else "
                "writing there?"
            )

    def _unwritable(self) -> StorageError:
        return StorageError(
            f"cannot write {self.path!r}: Spark cannot make a folder there; name a place that you, and every node, may "
            "write to"
        )

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors about the place of the output, with its name."""
        try:
            yield
        except DptextError:
            raise
        except Exception as error:
            if any(each in str(error) for each in ("ParentNotDirectory", "AccessControl", "AccessDenied")):
                raise self._unwritable() from None
            raise


def _spelled(uri: str) -> str:
    """A place without the ways to write it: ``file:/a``, ``file:///a``, a link to it."""
    parts = urlsplit(uri)
    path = unquote(parts.path).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{os.path.realpath(path) if parts.scheme == 'file' else path}"


def _is_going_on(name: str, run: dict[str, Any]) -> bool:
    """Whether a run is one of a process that lives; on another machine nobody can tell."""
    process = run.get("process")
    if run.get("host") != socket.gethostname() or not isinstance(process, int):
        return False
    if process == os.getpid():
        return name.removesuffix(_TAKEN) + _PART in _running or name in _running
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's
    return True
