"""Vectors of *public* texts in files, so that a pool goes through an encoder once."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from dptext.checks import path
from dptext.errors import StorageError
from dptext.io.atomic import atomic_file

__all__ = ["Cache", "PoolCache", "digest_of_texts", "pool_cache"]

Cache = str | os.PathLike[str] | Literal[False] | None
"""A folder, False for none, None for the user's cache folder."""
Array = npt.NDArray[Any]
_OFF = ("", "0", "off", "no", "false")
_READ = 1 << 20


def digest_of_texts(texts: Iterable[str]) -> str:
    """SHA-256 over texts in their order; no two lists share it."""
    digest = hashlib.sha256()
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(content) + content)
    return digest.hexdigest()


def pool_cache(cache: Cache) -> PoolCache:
    """The cache in a folder, or one that keeps nothing."""
    if cache is False:
        return PoolCache(None)
    if cache is not None:
        return PoolCache(path("cache", cache))
    named = os.environ.get("DPTEXT_CACHE")
    if named is not None:
        return PoolCache(None if named.strip().lower() in _OFF or "\0" in named else Path(named))
    base = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):  # a user without a home
        return PoolCache((Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "dptext")
    return PoolCache(None)


class PoolCache:
    """Arrays by key in a folder; None keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: str, shape: tuple[int, int], dtype: npt.DTypeLike) -> Array | None:
        """The array of a key, mapped read-only; None if it is not there, or is not whole."""
        if self._folder is None:
            return None
        header = _header(shape, dtype)
        size = shape[0] * shape[1] * np.dtype(dtype).itemsize
        with suppress(OSError, ValueError):
            flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            with os.fdopen(os.open(self._place(key), os.O_RDONLY | flags), "rb") as file:
                found = os.fstat(file.fileno())
                if (
                    stat.S_ISREG(found.st_mode)
                    and (not hasattr(os, "geteuid") or found.st_uid == os.geteuid())
                    and found.st_size == len(header) + size + 32
                    and _is_whole(file, key, header, size)
                ):
                    return np.memmap(file, dtype=dtype, mode="r", offset=len(header), shape=shape)
        return None

    def put(
        self, key: str, shape: tuple[int, int], dtype: npt.DTypeLike, parts: Callable[[], Iterable[Array]]
    ) -> Array | None:
        """Keep an array that comes in parts (rows in a row), and map it; None if it cannot be kept."""
        if self._folder is None or 0 in shape:
            return None
        digest = hashlib.sha256(key.encode())
        with suppress(StorageError, OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with atomic_file(self._place(key), owner_only=True) as file:
                header = _header(shape, dtype)
                digest.update(header)
                file.write(header)
                for part in parts():
                    content = np.ascontiguousarray(part, dtype=dtype).data.cast("B")
                    digest.update(content)
                    file.write(content)
                file.write(digest.digest())
            return self.get(key, shape, dtype)
        return None

    def _place(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / f"pool-{hashlib.sha256(key.encode()).hexdigest()[:40]}.npy"


def _header(shape: Sequence[int], dtype: npt.DTypeLike) -> bytes:
    stream = io.BytesIO()
    described = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(stream, described)
    return stream.getvalue()


def _is_whole(file: BinaryIO, key: str, header: bytes, size: int) -> bool:
    digest = hashlib.sha256(key.encode())
    digest.update(header)
    if file.read(len(header)) != header:
        return False
    left = size
    while left:
        part = file.read(min(left, _READ))
        if not part:
            return False
        digest.update(part)
        left -= len(part)
    return file.read() == digest.digest()
