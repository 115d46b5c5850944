"""What fails, kills or interrupts a run at its k-th operation on files below one folder.

With a C compiler on Linux, a small library (``preload.c``) stands between the programs and the C library, and sees what
Python, SQLite and pyarrow do alike. Elsewhere Python's audit events are all there is: they name what Python itself
opens, renames, makes and deletes, but no write, and nothing that SQLite does.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

__all__ = ["How", "Injection", "Operation", "compiled", "compiler"]

_OPERATIONS, _LONGEST, _PATH = 4096, 112, 4096
_NEEDS_SPACE, _CHANGES, _READS = 1, 2, 4


class How(IntEnum):
    """What happens; the numbers stand in preload.c as well."""

    COUNT = 0
    FAIL = 1
    FULL = 2
    KILL = 3
    INTERRUPT = 4


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a run.

    Attributes:
        number: which, from 1.
        what: its name and the file below the folder.
        kind: what it is, as bits.
    """

    number: int
    what: str
    kind: int

    def can(self, how: How) -> bool:
        """Whether this is worth doing to it: a full disk stops what needs space, a kill tells where files changed."""
        if how is How.FULL:
            return bool(self.kind & _NEEDS_SPACE)
        if how is How.KILL:
            return bool(self.kind & _CHANGES)
        return how is How.FAIL or not self.kind & _READS


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
    """The C compiler; None where there is none, or where no library can be put before the C library."""
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None) if sys.platform == "linux" else None


def compiled(folder: Path) -> Path | None:
    """The library, made in this folder; None where that cannot be."""
    program = compiler()
    if program is None:
        return None
    library = folder / "faults.so"
    source = Path(__file__).with_name("preload.c")
    command = [program, "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
    output = subprocess.run(command, capture_output=True, check=False)
    return library if output.returncode == 0 else None


class Injection:
    """One counter, shared with the processes that are forked from here on."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, ctypes.sizeof(_State))
        self._state = _State.from_buffer(self._memory)
        self._preloaded = False
        _SHARED.append(self._state)  # the library looks there as long as this process lives
        if hasattr(library := ctypes.CDLL(None), "faults_share"):
            library.faults_share(ctypes.byref(self._state))
            self._preloaded = True

    def arm(self, root: Path, how: How, at: int) -> None:
        """Count this process and its children from here on; it leads its own process group."""
        self._state.count = 0
        self._state.at, self._state.how = at, how
        self._state.root = os.fsencode(root)
        self._state.group = os.getpgrp()
        if not self._preloaded:
            sys.addaudithook(self._audit)

    def disarm(self) -> None:
        """Nothing is counted any more."""
        self._state.group = 0

    @property
    def has_happened(self) -> bool:
        """Whether the run came so far."""
        return self._state.count >= self._state.at > 0

    def operations(self) -> list[Operation]:
        """All operations that were counted."""
        count = self._state.count
        if count > _OPERATIONS:
            raise ValueError(f"a run made {count} operations, the limit is {_OPERATIONS}: make it shorter")
        operation = self._state.operations[:count]
        return [Operation(number, os.fsdecode(entry.what), entry.kind) for number, entry in enumerate(operation, 1)]

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        name = _AUDITED.get(event)
        if name is None or os.getpgrp() != self._state.group:
            return
        path = arguments[1 if event == "os.rename" else 0]
        if not isinstance(path, str | bytes | os.PathLike):
            return
        path = os.path.abspath(os.fsdecode(path))
        root = os.fsdecode(self._state.root)
        if not path.startswith(root + os.sep):
            return
        kind = _CHANGES
        if event == "open":
            output = isinstance(arguments[2], int) and arguments[2] & os.O_CREAT and not os.path.lexists(path)
            kind = _CHANGES | _NEEDS_SPACE if output else 0
        elif event == "os.mkdir":
            kind = _CHANGES | _NEEDS_SPACE
        self._state.count = number = self._state.count + 1
        if number <= _OPERATIONS:
            self._state.operations[number - 1].kind = kind
            self._state.operations[number - 1].what = os.fsencode(f"{name} {path[len(root) :]}")[: _LONGEST - 1]
        settings = self._state.how
        if settings == How.FULL and number >= self._state.at and kind & _NEEDS_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if number == self._state.at and settings == How.FAIL:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        if number == self._state.at and settings == How.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == self._state.at and settings == How.INTERRUPT:
            os.kill(self._state.group, signal.SIGINT)


_SHARED: list[_State] = []
_AUDITED = {
    "open": "open",
    "os.rename": "rename",
    "os.remove": "unlink",
    "os.rmdir": "rmdir",
    "os.mkdir": "mkdir",
    "os.chmod": "chmod",
    "os.truncate": "truncate",
    "os.link": "link",
    "sqlite3.connect": "connect",
}
