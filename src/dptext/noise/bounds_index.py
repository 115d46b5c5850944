"""Block bounds of every input of a selection, in a file: a corpus then costs draws only, from its first word on.

The file says nothing about any corpus: it holds *all* inputs, and everything in it follows from public parameters. It
is readable by its owner only (mode 0600), because whoever can change it can change what is drawn. A file that is cut,
damaged, or of something else is noticed (sizes, fingerprint, SHA-256 of the content) and built again. Any number of
processes may build at once: each writes a file of its own and renames it, and all write the same.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import StorageError
from dptext.own_files import whole_file

__all__ = ["BoundsIndex", "IndexPlace"]

Bounds: TypeAlias = npt.NDArray[np.float32]

_logger = logging.getLogger(__name__)
_MAGIC = b"dptext bounds 1\n"
_HEADER = struct.Struct("<16s32sQQ32s")  # magic, fingerprint, rows, blocks, SHA-256 of the content
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """Where an index goes, and what it is of.

    Attributes:
        folder: made (mode 0700) if it is not there.
        of: the public parameters that all bounds follow from.
    """

    folder: Path
    of: str


class BoundsIndex:
    """(rows, blocks) float32 upper bounds, from a file where it is whole, built and written where it is not.

    Args:
        place: where, and of what.
        shape: rows and blocks.
        build: the bounds of the rows start .. stop - 1.

    Raises:
        StorageError: the folder cannot be made, or the file cannot be written.
    """

    def __init__(self, place: IndexPlace, shape: tuple[int, int], build: Callable[[int, int], Bounds]) -> None:
        fingerprint = hashlib.sha256(place.of.encode()).digest()
        self.path = place.folder / f"{fingerprint.hex()[:32]}.bounds"
        try:
            place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_whole(self.path, fingerprint, shape):
                _logger.info("building the index %s of %d rows", self.path.name, shape[0])
                _write(self.path, fingerprint, shape, build)
            self._bounds = _opened(self.path, shape)
        except OSError as error:
            raise StorageError.of("write", self.path, error) from None

    def rows(self, rows: npt.NDArray[np.int64]) -> Bounds:
        """(n, blocks) bounds of the given rows."""
        return np.asarray(self._bounds[rows])

    @property
    def array(self) -> Bounds:
        """(rows, blocks) all of it, as it lies in the file."""
        bounds: Bounds = self._bounds
        return bounds

    @classmethod
    def of_array(cls, path: Path, bounds: Bounds) -> BoundsIndex:
        """The index again where its file is not: from what `array` gave."""
        index = cls.__new__(cls)
        index.path, index._bounds = path, bounds
        return index

    def __reduce__(self) -> tuple[Any, ...]:
        return (_reopened, (self.path, self._bounds.shape))  # the file, not its content


def _reopened(path: Path, shape: tuple[int, int]) -> BoundsIndex:
    index = BoundsIndex.__new__(BoundsIndex)
    index.path = path
    try:
        index._bounds = _opened(path, shape)
    except OSError as error:
        raise StorageError.of("read", path, error) from None
    return index


def _opened(path: Path, shape: tuple[int, int]) -> Any:
    return np.memmap(path, dtype="<f4", mode="r", offset=_HEADER.size, shape=shape)


def _is_whole(path: Path, fingerprint: bytes, shape: tuple[int, int]) -> bool:
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEADER.size)
            if len(head) < _HEADER.size or os.fstat(stream.fileno()).st_size != _HEADER.size + 4 * shape[0] * shape[1]:
                return False
            magic, found, rows, blocks, digest = _HEADER.unpack(head)
            if (magic, found, (rows, blocks)) != (_MAGIC, fingerprint, shape):
                return False
            return bool(hashlib.file_digest(stream, "sha256").digest() == digest)
    except FileNotFoundError:
        return False


def _write(path: Path, fingerprint: bytes, shape: tuple[int, int], build: Callable[[int, int], Bounds]) -> None:
    digest = hashlib.sha256()
    with whole_file(path, owner_only=True) as stream:
        stream.write(bytes(_HEADER.size))
        for start in range(0, shape[0], _ROWS_AT_A_TIME):
            data = build(start, min(start + _ROWS_AT_A_TIME, shape[0])).astype("<f4").tobytes()
            digest.update(data)
            stream.write(data)
        stream.seek(0)
        stream.write(_HEADER.pack(_MAGIC, fingerprint, *shape, digest.digest()))
