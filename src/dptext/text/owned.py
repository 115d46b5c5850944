"""Files that only their owner reads, as long as nobody else is to see them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO

__all__ = ["make_private", "open_private", "sync_folder", "usual_mode"]


def open_private(path: Path, *, empty: bool = False) -> IO[bytes]:
    """Open a file for reading and writing that only its owner reads; it is made if need be, and emptied on request."""
    stream: IO[bytes] = os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b")
    if empty:
        stream.truncate(0)
    make_private(path)
    return stream


def make_private(path: Path) -> None:
    """Take the rights of others away from a file that was there before.

    Raises:
        OSError: it belongs to somebody else, or is a link.
    """
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def usual_mode(beside: Path) -> int:
    """The rights that a new file in this folder gets."""
    probe = beside.with_name(f"{beside.name}.mode")
    try:
        with probe.open("wb"):
            return probe.stat().st_mode & 0o777
    finally:
        probe.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """The rename itself onto the disk, where the system allows it."""
    with suppress(OSError):
        folder = os.open(path.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
