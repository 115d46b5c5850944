"""Fail, kill or interrupt a run at its k-th operation on files below one folder.

A small library (``preload.c``, compiled for Linux) is loaded before the C library, and sees the calls of Python, SQLite
and pyarrow alike.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

_OPERATIONS, _LONGEST, _PATH = 4096, 112, 4096
_NEEDS_SPACE, _CHANGES, _READS = 1, 2, 4


class How(IntEnum):
    """The kind of fault; the numbers are in preload.c as well."""

    COUNT = 0
    FAIL = 1
    FULL = 2
    KILL = 3
    INTERRUPT = 4


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a run: its number from 1, its name and file below the folder, and its kind as bits."""

    number: int
    name: str
    kind: int

    def can(self, fault: How) -> bool:
        """True if a fault makes sense here: a full disk stops writing, a kill matters where files change."""
        if fault is How.FULL:
            return bool(self.kind & _NEEDS_SPACE)
        if fault is How.KILL:
            return bool(self.kind & _CHANGES)
        return fault is How.FAIL or not self.kind & _READS


class _One(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("what", ctypes.c_char * _LONGEST))


class _State(ctypes.Structure):
    _fields_ = (
        ("group", ctypes.c_int),
        ("at", ctypes.c_int),
        ("how", ctypes.c_int),
        ("count", ctypes.c_int),
        ("root", ctypes.c_char * _PATH),
        ("operations", _One * _OPERATIONS),
    )


def compiler() -> str | None:
    """The C compiler; None without one, or on another system than Linux."""
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None) if sys.platform == "linux" else None


def compiled(folder: Path) -> Path:
    """Compile the library into a folder."""
    library = folder / "faults.so"
    source = Path(__file__).with_name("preload.c")
    command = [str(compiler()), "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, capture_output=True, check=True)
    return library


class Injection:
    """One counter, shared with the processes that are forked from here on."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, ctypes.sizeof(_State))
        self._state = _State.from_buffer(self._memory)
        _SHARED.append(self._state)  # the library looks there as long as this process lives
        ctypes.CDLL(None).faults_share(ctypes.byref(self._state))

    def arm(self, root: Path, fault: How, number: int) -> None:
        """Count the operations of this process group below a folder, with a fault at one of them."""
        self._state.count = 0
        self._state.at, self._state.how = number, fault
        self._state.root = os.fsencode(root)
        self._state.group = os.getpgrp()

    def disarm(self) -> None:
        self._state.group = 0

    @property
    def has_happened(self) -> bool:
        """True if the run reached the operation."""
        return self._state.count >= self._state.at > 0

    def operations(self) -> list[Operation]:
        count = self._state.count
        if count > _OPERATIONS:
            raise ValueError(f"a run made {count} operations, the limit is {_OPERATIONS}: make it shorter")
        operations = self._state.operations[:count]
        return [Operation(number, os.fsdecode(entry.what), entry.kind) for number, entry in enumerate(operations, 1)]


_SHARED: list[_State] = []
