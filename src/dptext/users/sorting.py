"""Rows of words grouped by user on disk: an external sort in one nameless file, in bounded memory.

Documents come in the order of the input, whoever wrote them. They are gathered in memory up to a fixed size, sorted by
the digest of their user (a stable sort, so a user's documents keep their order) and appended to the file as a *run*:
an index with one record for each user in it, the lengths of the documents, their rows. Whatever range of digests one
asks for, each run holds it as three contiguous pieces; so the users come out by walking through the digests, one range
after the other, side by side through all runs. Memory depends on neither the number of users nor how much one wrote.

**Secrecy.** The file has no name: on Linux it never had one, elsewhere on POSIX it loses it before anything is written,
on Windows the system deletes it with its last handle. So nothing is left when the program ends, fails or is killed;
only its owner could have read it. It holds digests instead of names, and all of it is encrypted (AES-256 in counter
mode, each place of the file once) under a key that is in memory only: what the disk keeps of deleted files says nothing
but their size.

**Why no library.** ``benchmarks/by_user.py --sorts`` compares. SQLite's sort takes two to five times as long in the
same memory, and its files lie where the environment said when it was loaded, not in ``folder``. pyarrow sorts in memory
only: its engine takes nine times as much, and over buckets on disk it takes about as long as this in twice the memory,
which one user with many words could make any size.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import StorageError
from dptext.privacy.randomness import RandomBits

__all__ = ["Batch", "Digests", "Lengths", "Prolific", "Rows", "SortedRuns", "nameless_file"]

Rows: TypeAlias = npt.NDArray[np.int32]
Lengths: TypeAlias = npt.NDArray[np.int64]
Digests: TypeAlias = npt.NDArray[np.uint64]

RUN_WORDS = 1 << 21
RUN_DOCUMENTS = 1 << 17
BATCH_WORDS = 1 << 20
PART_RECORDS = 1 << 15
_FENCES = 1 << 10  # ranges of digests whose places in a run are remembered
_RECORD = np.dtype(
    {
        "names": ["high", "low", "lengths_at", "rows_at", "words", "documents", "level"],
        "formats": ["<u8", "<u8", "<i8", "<i8", "<i8", "<i4", "<i4"],
    }
)
"""What a run holds of a user: the digest, where lengths and rows start in the file, how many, and the level. A further
level of the same user has a record without documents."""
_LENGTH = np.dtype("<i4")
_ROW = np.dtype("<i4")


class Batch(NamedTuple):
    """Whole users one after the other.

    Attributes:
        rows: (words,) of all of them.
        lengths: (documents,) of all of them.
        words: (users,) how many words each has.
        documents: (users,) how many documents.
        levels: for each user the codes of their levels, in the order in which they came.
    """

    rows: Rows
    lengths: Lengths
    words: Lengths
    documents: Lengths
    levels: list[tuple[int, ...]]


class Prolific:
    """One user with many words; iterate over it for pairs of rows and lengths, each time from the start.

    Attributes:
        levels: the codes of their levels.
    """

    def __init__(self, runs: SortedRuns, records: npt.NDArray[Any]) -> None:
        self._runs, self._records = runs, records
        self.levels = _distinct(records["level"])

    def __iter__(self) -> Iterator[tuple[Rows, Lengths]]:
        for record in self._records[self._records["documents"] > 0]:
            yield self._runs.texts_of(record)


class _Run(NamedTuple):
    """Where a run is: its index in the file, and at which record each range of digests starts."""

    at: int
    fences: npt.NDArray[np.int32]


def nameless_file(folder: str | Path | None) -> tuple[Any, Path]:
    """An open file without a name, and the folder where it lies; None: where the system has its temporary files.

    Raises:
        StorageError: the file cannot be made.
    """
    place = Path(tempfile.gettempdir() if folder is None else folder)
    try:
        return tempfile.TemporaryFile(prefix="dptext-", dir=place), place
    except OSError as error:
        raise StorageError.of("write a temporary file in", place, error) from None


class SortedRuns:
    """Documents in, users out, each whole. First `add` them all, then `close_input`, then iterate `batches`.

    Args:
        folder: where the nameless file lies; None: where the system has its temporary files.

    Raises:
        StorageError: the file cannot be made or written (a full disk).
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._file, self._folder = nameless_file(folder)
        self._key = RandomBits().take(32)
        self._runs: list[_Run] = []
        self._waiting: list[tuple[Digests, npt.NDArray[np.int32], Lengths, Rows]] = []
        self._words = self._documents = 0

    def close(self) -> None:
        """Close the file, with which it is gone."""
        self._waiting.clear()
        self._file.close()

    def add(self, users: Digests, levels: npt.NDArray[np.int32], lengths: Lengths, rows: Rows) -> None:
        """Documents in the order of the input.

        Args:
            users: (n, 2) the digest of the user of each.
            levels: (n,) the code of their level.
            lengths: (n,) words in each.
            rows: (words,) the rows of all of them.
        """
        self._waiting.append((users, levels, lengths, rows))
        self._words += rows.size
        self._documents += lengths.size
        if self._words >= RUN_WORDS or self._documents >= RUN_DOCUMENTS:
            self._write_run()

    def close_input(self) -> None:
        """All documents are there."""
        if self._waiting:
            self._write_run()

    def batches(self) -> Iterator[Batch | Prolific]:
        """The users by ascending digest: several at once, or one with many words. As often as one likes."""
        if not self._runs:
            return
        counts = np.sum([np.diff(run.fences) for run in self._runs], axis=0, dtype=np.int64)
        before = np.concatenate([[0], np.cumsum(counts)])
        start = 0
        while start < _FENCES:
            end = max(start + 1, int(np.searchsorted(before, before[start] + PART_RECORDS, side="right")) - 1)
            yield from self._part(start, min(end, _FENCES))
            start = end

    def texts_of(self, record: np.void) -> tuple[Rows, Lengths]:
        """What one record of an index stands for."""
        lengths = self._read(int(record["lengths_at"]), int(record["documents"]), _LENGTH).astype(np.int64)
        return self._read(int(record["rows_at"]), int(record["words"]), _ROW), lengths

    # -- in ---------------------------------------------------------------------------------------------------

    def _write_run(self) -> None:
        users, levels, lengths, rows = (np.concatenate(each) for each in zip(*self._waiting, strict=True))
        self._waiting.clear()
        self._words = self._documents = 0
        starts = np.cumsum(lengths) - lengths
        order = np.lexsort((users[:, 1], users[:, 0]))  # stable: the documents of a user stay in order
        users, levels, starts, lengths = users[order], levels[order], starts[order], lengths[order]
        rows = _gathered(rows, starts, lengths)
        self._file.seek(0, 2)
        at = self._file.tell()
        index = _indexed(users, levels, lengths)
        index["lengths_at"] += at + index.nbytes
        index["rows_at"] += at + index.nbytes + _LENGTH.itemsize * lengths.size
        fences = np.zeros(_FENCES + 1, dtype=np.int32)
        edges = np.arange(1, _FENCES, dtype=np.uint64) << np.uint64(54)
        fences[1:-1] = np.searchsorted(index["high"], edges)
        fences[-1] = index.size
        try:
            cipher = _cipher(self._key, at)
            for values in (index, lengths.astype(_LENGTH), rows.astype(_ROW, copy=False)):
                self._file.write(cipher.update(values.view(np.uint8).data))
            self._file.flush()
        except OSError as error:
            raise StorageError.of("write a temporary file in", self._folder, error) from None
        self._runs.append(_Run(at, fences))

    # -- out --------------------------------------------------------------------------------------------------

    def _part(self, start: int, end: int) -> Iterator[Batch | Prolific]:
        """The users of a range of fences."""
        pieces = []
        for run in self._runs:
            first, last = int(run.fences[start]), int(run.fences[end])
            pieces.append(self._read(run.at + first * _RECORD.itemsize, last - first, _RECORD))
        run_of = np.repeat(np.arange(len(pieces)), [piece.size for piece in pieces])
        index = np.concatenate(pieces)
        if not index.size:
            return
        order = np.lexsort((index["low"], index["high"]))  # stable: run after run
        index, run_of = index[order], run_of[order]
        firsts = _firsts(index["high"], index["low"])
        sizes = np.cumsum(np.add.reduceat(index["words"] + index["documents"], firsts))
        bounds = np.append(firsts, index.size)
        user, done = 0, 0
        while user < firsts.size:
            after = max(user + 1, int(np.searchsorted(sizes, done + BATCH_WORDS, side="right")))
            part = slice(bounds[user], bounds[after])
            size, done = int(sizes[after - 1]) - done, int(sizes[after - 1])
            starts = bounds[user:after] - bounds[user]
            user = after
            if size > BATCH_WORDS:
                yield Prolific(self, index[part])
            else:
                yield self._batch(index[part], run_of[part], starts)

    def _batch(self, records: npt.NDArray[Any], run_of: npt.NDArray[Any], starts: npt.NDArray[Any]) -> Batch:
        """Several users at once; ``starts`` says at which record each begins."""
        by_run = np.argsort(run_of, kind="stable")  # within a run they stand in the file as they stand here
        runs = _firsts(run_of[by_run])
        words, documents = records["words"], records["documents"].astype(np.int64)
        rows = self._side_by_side(records["rows_at"][by_run], words[by_run], runs, _ROW)
        lengths = self._side_by_side(records["lengths_at"][by_run], documents[by_run], runs, _LENGTH)
        back = np.empty_like(by_run)
        back[by_run] = np.arange(by_run.size)
        codes = records["level"]
        if (codes == codes[0]).all():
            levels = [_distinct(codes[:1])] * starts.size
        else:
            levels = [_distinct(each) for each in np.split(codes, starts[1:])]
        return Batch(
            rows=_gathered(rows, (np.cumsum(words[by_run]) - words[by_run])[back], words),
            lengths=_gathered(lengths, (np.cumsum(documents[by_run]) - documents[by_run])[back], documents).astype(
                np.int64
            ),
            words=np.add.reduceat(words, starts),
            documents=np.add.reduceat(documents, starts),
            levels=levels,
        )

    def _side_by_side(
        self, at: npt.NDArray[Any], counts: npt.NDArray[Any], runs: npt.NDArray[Any], dtype: np.dtype[Any]
    ) -> npt.NDArray[Any]:
        """What records hold of each run, run by run: one contiguous piece of the file for each."""
        return np.concatenate(
            [
                self._read(int(at[run]), int(count), dtype)
                for run, count in zip(runs, np.add.reduceat(counts, runs), strict=True)
            ]
        )

    def _read(self, at: int, count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        values = np.empty(count, dtype=dtype)
        if count:
            self._file.seek(at)
            if self._file.readinto(values.view(np.uint8).data) != values.nbytes:
                raise StorageError(f"a temporary file in {str(self._folder)!r} was cut while it was in use")
            plain = _cipher(self._key, at).update(values.view(np.uint8).data)
            values.view(np.uint8)[:] = np.frombuffer(plain, dtype=np.uint8)
        return values


def _cipher(key: bytes, at: int) -> Any:
    """What encrypts and decrypts a file from this place on: in counter mode the two are one."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    block, skipped = divmod(at, 16)
    cipher = Cipher(algorithms.AES(key), modes.CTR(block.to_bytes(16, "big"))).encryptor()
    cipher.update(bytes(skipped))
    return cipher


def _indexed(users: Digests, levels: npt.NDArray[np.int32], lengths: Lengths) -> npt.NDArray[Any]:
    """The records of a run whose documents are sorted; their places are counted from the first length and row."""
    firsts = _firsts(users[:, 0], users[:, 1])
    counts = np.diff(np.append(firsts, lengths.size))
    words = np.add.reduceat(lengths, firsts)
    index = np.zeros(firsts.size, dtype=_RECORD)
    index["high"], index["low"], index["level"] = users[firsts, 0], users[firsts, 1], levels[firsts]
    index["words"], index["documents"] = words, counts
    index["lengths_at"] = _LENGTH.itemsize * firsts
    index["rows_at"] = _ROW.itemsize * (np.cumsum(words) - words)
    owner = np.repeat(np.arange(firsts.size), counts)
    other = np.flatnonzero(levels != levels[firsts][owner])
    if not other.size:
        return index
    # few, if any: a user whose documents name different levels
    more = dict.fromkeys(zip(owner[other].tolist(), levels[other].tolist(), strict=True))
    owners = np.array([user for user, _ in more])
    extra = index[owners]
    extra["level"] = [level for _, level in more]
    extra["rows_at"] += _ROW.itemsize * extra["words"]
    extra["lengths_at"] += _LENGTH.itemsize * extra["documents"]
    extra["words"] = extra["documents"] = 0
    together = np.concatenate([index, extra])
    sorted_index: npt.NDArray[Any] = together[np.argsort(np.append(np.arange(index.size), owners), kind="stable")]
    return sorted_index


def _firsts(*keys: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Where each stretch of equal keys begins."""
    changes = np.zeros(keys[0].size, dtype=np.bool_)
    changes[:1] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changes)


def _gathered(values: npt.NDArray[Any], starts: npt.NDArray[Any], counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The stretches of ``values`` that begin at ``starts``, one after the other."""
    ends = np.cumsum(counts)
    places = np.repeat(starts - (ends - counts), counts) + np.arange(int(ends[-1]))
    taken: npt.NDArray[Any] = values[places]
    return taken


def _distinct(codes: npt.NDArray[Any]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(codes.tolist()))
