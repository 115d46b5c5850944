"""A folder of parts as the engine writes it, wherever the cluster keeps its files, and the statement beside it.

Everything goes through Hadoop's file systems, which the engine's own writer uses too: what it can write to, this can
read from.
"""

from __future__ import annotations

import hashlib
from typing import Any

from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import PrivacyStatement
from dptext.text.files import digest_of_parts

__all__ = ["OutputFolder"]

_AT_ONCE = 1 << 20
_ENDS = ("", ".privacy.json")


class OutputFolder:
    """A folder that the cluster sees.

    Args:
        spark: the session.
        path: as the engine spells it (``hdfs://...``, ``s3a://...``, a local or mounted path).
    """

    def __init__(self, spark: Any, path: str) -> None:
        self.path = path.rstrip("/")
        self._java = spark._jvm
        self._folder = self._java.org.apache.hadoop.fs.Path(self.path)
        self._beside = self._java.org.apache.hadoop.fs.Path(f"{self.path}.privacy.json")
        self._system = self._folder.getFileSystem(spark._jsc.hadoopConfiguration())

    @property
    def exists(self) -> bool:
        """Whether the folder, or a statement for it, is there."""
        return bool(self._system.exists(self._folder) or self._system.exists(self._beside))

    def set_aside(self) -> str | None:
        """Give folder and statement another name beside, if they are there, and return it."""
        if not self.exists:
            return None
        other = f"{self.path}.{RandomBits().take(6).hex()}.before"
        self._move(self.path, other)
        return other

    def take_back(self, other: str) -> None:
        """Undo `set_aside`."""
        self._move(other, self.path)

    def remove(self, other: str | None = None) -> None:
        """Remove the folder and its statement; or those that were set aside."""
        for end in _ENDS:
            self._system.delete(self._java.org.apache.hadoop.fs.Path(f"{other or self.path}{end}"), True)

    def _move(self, source: str, target: str) -> None:
        path = self._java.org.apache.hadoop.fs.Path
        for end in _ENDS:
            if self._system.exists(path(f"{source}{end}")):
                self._system.rename(path(f"{source}{end}"), path(f"{target}{end}"))

    def write_statement(self, statement: PrivacyStatement) -> None:
        """The statement beside the folder, whole or not at all."""
        part = self._java.org.apache.hadoop.fs.Path(f"{self.path}.privacy.json.part")
        stream = self._system.create(part, True)
        try:
            stream.write(bytearray((statement.to_json() + "\n").encode()))
        finally:
            stream.close()
        self._system.delete(self._beside, False)
        self._system.rename(part, self._beside)

    def digest(self) -> str:
        """One digest of all parts (`dptext.text.files.digest_of_parts`), read as a stream by the driver's Java."""
        found = {}
        for status in self._system.listStatus(self._folder):
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
