"""The standard streams while the program runs: closed, full, or left by their reader."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from dptext.errors import StorageError

__all__ = ["ReaderLeftError", "standard_streams"]


class ReaderLeftError(StorageError):
    """Nobody reads standard output any more (``| head``)."""


@contextmanager
def standard_streams() -> Iterator[None]:
    """Within it standard output raises a `StorageError` where it cannot be written, and standard error nothing."""
    _occupy_descriptors()
    before: tuple[Any, Any] = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal or pipe may know fewer letters than we print
    output: Any = _Stream(before[0] or _closed(1), _refuse)
    messages: Any = _Stream(before[1] or _closed(2), _ignore)
    sys.stdout, sys.stderr = output, messages
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _occupy_descriptors() -> None:
    """A standard descriptor that is closed would become the next file that is opened, and take what is printed."""
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, mode)  # the lowest that is free
            os.set_inheritable(opened, True)  # for workers


def _closed(descriptor: int) -> Any:
    """A stream that cannot be written, in place of the None that Python has for one that was closed."""
    raw = open(descriptor, "wb", buffering=0, closefd=False)  # noqa: SIM115  a descriptor has no path
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)


def _refuse(error: OSError) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        raise ReaderLeftError("the reader of the output went away") from None
    raise StorageError(f"cannot write to standard output: {error.strerror or type(error).__name__}") from None


def _ignore(_error: OSError) -> None:
    pass


class _Stream:
    """A standard stream that calls ``failed`` whenever it is used after it failed, and goes to the null device then."""

    def __init__(self, stream: Any, failed: Callable[[OSError], None]) -> None:
        self._stream, self._failed = stream, failed
        self._error: OSError | None = None

    def write(self, data: Any) -> int:
        """Like that of a file."""
        self._try(self._stream.write, data)
        return len(data)

    def flush(self) -> None:
        """Like that of a file."""
        self._try(self._stream.flush)

    @property
    def buffer(self) -> _Stream:
        """For bytes."""
        return _Stream(self._stream.buffer, self._failed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _try(self, use: Callable[..., object], *arguments: Any) -> None:
        if self._error is None:
            try:
                use(*arguments)
            except OSError as error:
                self._error = error
                self._give_up()
        if self._error is not None:
            self._failed(self._error)

    def _give_up(self) -> None:
        with suppress(OSError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)
            self._stream.flush()
