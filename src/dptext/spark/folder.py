"""A folder of parts as the engine writes it, wherever the cluster keeps its files, and the statement beside it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from dptext.errors import DptextError, ParameterError, StorageError
from dptext.io.artifacts import digest_of_parts
from dptext.io.atomic import sibling
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement

_AT_ONCE = 1 << 20


class OutputFolder:
    """A folder that the cluster sees; ``appeared`` says whether the output is published, None: it is not known."""

    def __init__(self, spark: Any, path: str) -> None:
        self.path = path.rstrip("/")
        self.appeared: bool | None = False
        self._java = spark._jvm
        hadoop = self._java.org.apache.hadoop.fs
        self._path = hadoop.Path
        self._out, self._beside = self._path(self.path), self._path(f"{self.path}.privacy.json")
        if self._out.getParent() is None:
            raise ParameterError(f"the output must be a folder with a name, got {path!r}")
        self._parts = self._path(self._out.getParent(), sibling(Path(self._out.getName()), "spark.part").name)
        self._run = f".{RandomBits().take(6).hex()}.part"  # a name that nobody takes for a release
        # one of our own: what is set here is no business of the engine's writer
        self._system = hadoop.FileSystem.newInstance(self._out.toUri(), spark._jsc.hadoopConfiguration())
        self._system.setWriteChecksum(False)  # no .crc beside a statement

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # Java may be gone
            self._system.close()

    @property
    def rows(self) -> str:
        return str(self._work("rows").toString())

    # -- before --------------------------------------------------------------------------------------------------

    def begin(self, *, force: bool) -> None:
        """Make the place for the work."""
        with self._named():
            self._check_free(force=force)
            owner_only = self._java.org.apache.hadoop.fs.permission.FsPermission("700")
            made = self._system.mkdirs(self._parts, owner_only) and self._system.mkdirs(self._work(), owner_only)
            if not made or not self._system.mkdirs(self._work("rows")):
                raise self._unwritable()

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
        for status in self._system.listStatus(self._work("rows")):
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
        """Put the statement in place and then the rows; what they replace comes back if a step fails."""
        made = self._work("privacy.json")
        stream = self._system.create(made, True)
        try:
            stream.write(bytearray(f"{statement.to_json()}\n".encode()))
        finally:
            stream.close()
        self._check_free(force=force)
        old = [(self._out, self._work("before")), (self._beside, self._work("before.privacy.json"))]
        steps = [step for step in old if self._system.exists(step[0])]
        steps += [(made, self._beside), (self._work("rows"), self._out)]
        self.appeared = None
        try:
            for source, target in steps:
                self._move(source, target)
        except BaseException:
            for source, target in reversed(steps):
                if self._system.exists(target) and not self._system.exists(source):
                    self._move(target, source)
            self.appeared = False
            raise
        self.appeared = True

    def clear(self) -> None:
        """Delete the work of this run, and what it has replaced."""
        self._system.delete(self._work(), True)
        with suppress(Exception):  # another run has something in it, or it is gone
            self._system.delete(self._parts, False)

    # -- both ----------------------------------------------------------------------------------------------------

    def _work(self, name: str = "") -> Any:
        folder = self._path(self._parts, self._run)
        return self._path(folder, name) if name else folder

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
