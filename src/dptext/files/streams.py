"""Bytes of files: in through a decompressor, out through a compressor, and their digests."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from dptext.errors import StorageError, extra
from dptext.own_files import HashedFile

__all__ = [
    "STANDARD",
    "OpenedFile",
    "compress",
    "digest_of_parts",
    "file_digest",
    "folder_digest",
    "is_pipe",
    "open_stored",
    "read_stored",
    "shown",
    "standard_input",
]

STANDARD = Path("-")
"""Standard input, or standard output."""

_COPIED = 1 << 20
_PIECE = 1 << 10  # zstandard unpacks all of what it is given: a small bite bounds the memory, to 32 MiB at worst


def is_pipe(path: Path) -> bool:
    """Whether this can be read once only: standard input, a pipe, a device."""
    return path == STANDARD or (path.exists() and not path.is_file() and not path.is_dir())


def shown(path: Path) -> str:
    """The name of a file on one line, with any character in it."""
    if path == STANDARD:
        return "standard input"
    return path.name if path.name.isprintable() else repr(path.name)[1:-1]


# -- streams --------------------------------------------------------------------------------------------------


class OpenedFile:
    """The bytes of a file or of standard input, decompressed, and how far it has been read.

    Attributes:
        size: bytes in the file as it lies; 0 where nobody knows (standard input).

    Raises:
        StorageError: it cannot be opened.
        MissingExtraError: the package for .zst is not installed.
    """

    def __init__(self, path: Path, compression: str = "") -> None:
        self.name = shown(path)
        self._is_ours = path != STANDARD
        zstandard = extra("zstandard", "files", self.name) if compression == ".zst" else None
        try:
            self._file: IO[bytes] = standard_input() if path == STANDARD else path.open("rb")
            self.size = 0 if path == STANDARD else os.fstat(self._file.fileno()).st_size
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError.of("open", path, error) from None
        self._stream: Any = self._file
        self._damage: tuple[type[Exception], ...] = (EOFError, gzip.BadGzipFile, zlib.error)
        if compression == ".gz":
            self._stream = gzip.GzipFile(fileobj=self._file)
        elif zstandard is not None:
            self._damage = (EOFError, zstandard.ZstdError)
            self._stream = io.BufferedReader(_ZstdFile(self._file, zstandard))

    @property
    def position(self) -> int:
        """Bytes of the file read so far."""
        return 0 if self.size == 0 else self.size if self._file.closed else self._file.tell()

    def close(self) -> None:
        """Close it; standard input stays open."""
        if self._is_ours:
            self._file.close()

    def readline(self, longest: int) -> bytes:
        """The next line, up to its line feed or ``longest`` bytes; empty at the end.

        Raises:
            EOFError: the compressed data is broken or ends early.
            StorageError: the system cannot read.
        """
        return self._read(self._stream.readline, longest)

    def read(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer at the end; raises like `readline`."""
        return self._read(self._stream.read, count)

    def _read(self, read: Callable[[int], bytes], count: int) -> bytes:
        try:
            return read(count)
        except self._damage:
            raise EOFError from None
        except OSError as error:
            raise StorageError.of("read", self.name, error) from None


def standard_input() -> IO[bytes]:
    """The bytes of standard input.

    Raises:
        StorageError: it was closed before the program started.
    """
    if sys.stdin is None:
        raise StorageError("cannot read standard input: it is closed")
    return sys.stdin.buffer


class _ZstdFile(io.RawIOBase):
    """The frames of a .zst file one after the other; unlike zstandard's own reader, a cut one is an error."""

    def __init__(self, file: IO[bytes], zstandard: Any) -> None:
        self._file = file
        self._new = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj
        self._frame: Any = None
        self._waiting = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer)
        while not self._waiting:
            data = self._file.read(_PIECE)
            if not data:
                if self._frame is not None:
                    raise EOFError("the last frame ends early")
                return 0
            self._waiting = memoryview(self._decompress(data))
        count = min(len(room), len(self._waiting))
        room[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count

    def _decompress(self, data: bytes) -> bytes:
        parts = []
        while data:
            if self._frame is None:
                self._frame = self._new()
            parts.append(self._frame.decompress(data))
            data = b""
            if self._frame.eof:
                data, self._frame = self._frame.unused_data, None
        return b"".join(parts)


def compress(source: IO[bytes], out: HashedFile, compression: str) -> None:
    """Copy bytes as one .gz member without name and time, or one .zst frame: equal bytes, equal result."""
    if compression == ".zst":
        extra("zstandard", "files", compression).ZstdCompressor().copy_stream(source, out)
        return
    compressor = zlib.compressobj(wbits=31)
    while data := source.read(_COPIED):
        out.write(compressor.compress(data))
    out.write(compressor.flush())


# -- whole files ----------------------------------------------------------------------------------------------


def digest_of_parts(digests: Mapping[str, str]) -> str:
    """One digest of a folder of parts (as Spark writes it), from the digests of its files by name."""
    lines = "".join(f"{name}\0{digests[name]}\n" for name in sorted(digests))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def folder_digest(folder: Path) -> str:
    """`digest_of_parts` of a folder; hidden files, and those that an engine marks with ``_``, are no parts.

    Raises:
        StorageError: a part cannot be read.
    """
    parts = [each for each in folder.iterdir() if each.is_file() and not each.name.startswith(("_", "."))]
    return digest_of_parts({each.name: file_digest(each) for each in parts})


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, in hexadecimal.

    Raises:
        StorageError: the file cannot be read.
    """
    try:
        with open_stored(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except StorageError:
        raise
    except OSError as error:
        raise StorageError.of("read", path, error) from None


def open_stored(path: str | os.PathLike[str]) -> io.BufferedReader:
    """A file that lies on a disk, open for reading: never a pipe or a device, of which reading may not end.

    Raises:
        StorageError: it cannot be opened, or is something else than a file.
    """
    try:
        # a pipe without a writer is opened at once, and then refused
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    what = os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "expected a file, got a pipe or a device"
    raise StorageError(f"cannot read {os.fspath(path)!r}: {what}")


def read_stored(path: str | os.PathLike[str]) -> bytes:
    """All bytes of a file that lies on a disk; see `open_stored`.

    Raises:
        StorageError: it cannot be read, or is something else than a file.
    """
    with open_stored(path) as stream:
        try:
            return stream.read()
        except OSError as error:
            raise StorageError.of("read", path, error) from None
