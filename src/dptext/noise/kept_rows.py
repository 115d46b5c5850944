"""What was found of the rows of a table, kept for the next draw: a sampler needs it for every draw of a row."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["KeptRows"]

Rows: TypeAlias = npt.NDArray[np.int64]

_LEAST = 1024  # rows that there is room for


class KeptRows:
    """Arrays with an entry for each row that something was found of, in bounded memory."""

    def __init__(self, rows: int, *, most_bytes: int, **entries: tuple[tuple[int, ...], npt.DTypeLike]) -> None:
        size = sum(math.prod(shape) * np.dtype(kind).itemsize for shape, kind in entries.values())
        self._rows, self._entries = rows, entries
        self._room = min(rows, max(_LEAST, most_bytes // size))
        self._start()

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("_rows", "_entries", "_room")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._slots = np.full(self._rows, -1, dtype=np.int64)
        self._used = 0
        self._arrays = {name: np.empty((self._room, *shape), kind) for name, (shape, kind) in self._entries.items()}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """(room, ...) what is kept, at the slots of `slots`."""
        return self._arrays[name]

    def slots(self, rows: Rows) -> Rows:
        """(n,) where the entries of (n,) rows are; -1 where nothing is kept."""
        return self._slots[rows]

    def parts(self, rows: Rows, find: Callable[[Rows, Rows], None]) -> Iterator[Rows]:
        """Places in ``rows``, part after part, all of them once; meanwhile the entries of a part's rows are there."""
        if self._process != os.getpid():  # a fork copies a lock that another thread may have held
            self._start()
        with self._lock:
            distinct, which = np.unique(rows, return_inverse=True)
            for first in range(0, distinct.size, self._room):
                part = distinct[first : first + self._room]
                self._remember(part, find)
                yield np.flatnonzero((which >= first) & (which < first + part.size))

    def _remember(self, rows: Rows, find: Callable[[Rows, Rows], None]) -> None:
        missing = rows[self._slots[rows] < 0]
        if self._used + missing.size > self._room:
            self._slots[:] = -1
            self._used = 0
            missing = rows
        if missing.size:
            slots = np.arange(self._used, self._used + missing.size)
            find(missing, slots)
            self._slots[missing] = slots
            self._used += missing.size
