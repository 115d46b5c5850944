"""Hash partition: group documents by user in bounded memory, in 256 encrypted buckets of one temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext.errors import StorageError
from dptext.privacy.randomness import RandomBits

BUFFER_BYTES = 1 << 22
BUFFER_DOCUMENTS = 1 << 16
LARGE_BUCKET = 1 << 25  # bytes; a larger bucket is partitioned again, or reduced to what the limit keeps
_BUCKETS = 256
_PER_DOCUMENT = 24  # bytes of digest, code and length


class Slab(NamedTuple):
    """Documents as columns."""

    digests: npt.NDArray[np.uint64]
    codes: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int64]
    content: bytes


def nameless_file(folder: str | Path | None) -> tuple[Any, Path]:
    """Open a temporary file that has no name on POSIX systems, and return its folder (default: the system's)."""
    path = Path(tempfile.gettempdir() if folder is None else folder)
    try:
        return tempfile.TemporaryFile(prefix="dptext-", dir=path), path
    except OSError as error:
        raise StorageError.of("write a temporary file in", path, error) from None


class UserPartition:
    """Group documents by user: `add` all documents, then iterate `groups` any number of times."""

    def __init__(
        self, folder: str | Path | None = None, *, limit: int | None = None, by_bytes: bool = False, depth: int = 0
    ) -> None:
        self._file, self._folder = nameless_file(folder)
        self._key = RandomBits().take(32)
        self._encryptor = _cipher(self._key, 0)
        self._limit, self._by_bytes, self._depth = limit, by_bytes, depth
        self._runs: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []  # offsets of buckets, documents
        self._end = 0
        self._waiting: list[Slab] = []
        self._documents = self._bytes = 0

    def close(self) -> None:
        """Close the file, which deletes it."""
        self._waiting.clear()
        self._file.close()

    def add(self, slab: Slab) -> None:
        """Add the next documents of the input."""
        self._waiting.append(slab)
        self._documents += slab.lengths.size
        self._bytes += len(slab.content)
        if self._bytes >= BUFFER_BYTES or self._documents >= BUFFER_DOCUMENTS:
            self.flush()

    def groups(self) -> Iterator[tuple[Slab, list[int]]]:
        self.flush()
        for bucket in range(_BUCKETS):
            size = sum(int(offsets[bucket + 1] - offsets[bucket]) for offsets, _ in self._runs)
            if size > LARGE_BUCKET and self._depth == 0:
                options: dict[str, Any] = {"limit": self._limit, "by_bytes": self._by_bytes}
                with closing(UserPartition(self._folder, depth=1, **options)) as inner:
                    for slab in self._slabs(bucket):
                        inner.add(slab)
                    yield from inner.groups()
            elif size:
                slab = self._merged_bucket(bucket)
                starts = np.flatnonzero(_is_first(slab.digests[:, 0], slab.digests[:, 1]))
                yield slab, [*starts.tolist(), slab.lengths.size]

    def flush(self) -> None:
        """Write the buffered documents: one slab per bucket."""
        if not self._documents:
            return
        slab = _concatenated(self._waiting)
        self._waiting.clear()
        self._documents = self._bytes = 0
        bucket = (slab.digests[:, 0] >> np.uint64(56 - 8 * self._depth)).astype(np.uint8)
        slab = _taken(slab, np.argsort(bucket, kind="stable"))
        counts = np.bincount(bucket, minlength=_BUCKETS)
        edges = np.concatenate([[0], np.cumsum(counts)])
        ends = np.concatenate([[0], np.cumsum(slab.lengths)])[edges]
        parts: list[bytes] = []
        for (start, stop), (first, last) in zip(pairwise(edges.tolist()), pairwise(ends.tolist()), strict=True):
            documents = slice(start, stop)
            parts += (
                slab.digests[documents].tobytes(),
                slab.codes[documents].tobytes(),
                slab.lengths[documents].astype(np.uint32).tobytes(),
                slab.content[first:last],
            )
        try:
            self._file.seek(self._end)
            self._file.write(self._encryptor.update(b"".join(parts)))
            self._file.flush()
        except OSError as error:
            raise StorageError.of("write a temporary file in", self._folder, error) from None
        offsets = self._end + ends + _PER_DOCUMENT * edges
        self._runs.append((offsets, counts))
        self._end = int(offsets[-1])

    def _slabs(self, bucket: int) -> Iterator[Slab]:
        """Read the slabs of a bucket in the order of the input."""
        for offsets, counts in self._runs:
            start, count = int(offsets[bucket]), int(counts[bucket])
            if count:
                self._file.seek(start)
                data = self._file.read(int(offsets[bucket + 1]) - start)
                if len(data) != offsets[bucket + 1] - start:
                    raise StorageError(f"a temporary file in {str(self._folder)!r} was truncated while it was in use")
                data = _cipher(self._key, start).update(data)
                yield Slab(
                    np.frombuffer(data, np.uint64, 2 * count).reshape(-1, 2),
                    np.frombuffer(data, np.int32, count, offset=16 * count),
                    np.frombuffer(data, np.uint32, count, offset=20 * count).astype(np.int64),
                    data[_PER_DOCUMENT * count :],
                )

    def _merged_bucket(self, bucket: int) -> Slab:
        slabs: list[Slab] = []
        size = reduced = 0
        for slab in self._slabs(bucket):
            slabs.append(slab)
            size += len(slab.content) + _PER_DOCUMENT * slab.lengths.size
            if self._limit is not None and size > max(LARGE_BUCKET, 2 * reduced):
                slabs = [self._merged(slabs)]
                size = reduced = len(slabs[0].content) + _PER_DOCUMENT * slabs[0].lengths.size
        return self._merged(slabs)

    def _merged(self, slabs: list[Slab]) -> Slab:
        """Sort documents by user, keeping their order, and drop those beyond the limit."""
        slab = _concatenated(slabs)
        high, low = slab.digests.T
        order = np.lexsort((low, high))
        if self._limit is not None:
            order = order[self._is_needed(high[order], low[order], slab.codes[order], slab.lengths[order])]
        return _taken(slab, order)

    def _is_needed(self, high: Any, low: Any, codes: Any, lengths: Any) -> npt.NDArray[np.bool_]:
        """(n,) False for documents beyond the limit; the arrays are sorted by user."""
        is_first = _is_first(high, low)
        owner = np.cumsum(is_first) - 1
        sizes = lengths if self._by_bytes else np.ones_like(lengths)
        before = np.cumsum(sizes) - sizes
        is_needed: npt.NDArray[np.bool_] = before - before[is_first][owner] < self._limit
        if self._by_bytes:
            by_code = np.lexsort((codes, owner))
            is_needed[by_code[_is_first(owner[by_code], codes[by_code])]] = True
        return is_needed


def _cipher(key: bytes, position: int) -> Any:
    """AES-CTR from this position of the file on; it encrypts and decrypts."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    block, skipped = divmod(position, 16)
    cipher = Cipher(algorithms.AES(key), modes.CTR(block.to_bytes(16, "big"))).encryptor()
    cipher.update(bytes(skipped))
    return cipher


def _is_first(*keys: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """(n,) True where a run of equal keys starts."""
    changes = np.zeros(keys[0].size, dtype=np.bool_)
    changes[:1] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return changes


def _concatenated(slabs: Iterable[Slab]) -> Slab:
    digests, codes, lengths, content = zip(*slabs, strict=True)
    return Slab(np.concatenate(digests), np.concatenate(codes), np.concatenate(lengths), b"".join(content))


def _taken(slab: Slab, order: npt.NDArray[np.intp]) -> Slab:
    ends = np.cumsum(slab.lengths)
    starts, ends = (ends - slab.lengths)[order], ends[order]
    content = slab.content
    documents = [content[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return Slab(slab.digests[order], slab.codes[order], slab.lengths[order], b"".join(documents))
