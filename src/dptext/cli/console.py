"""The console: standard streams that may be closed, messages, tables, questions and progress bars."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import Progress

from dptext.display import progress_columns
from dptext.errors import StorageError
from dptext.io.documents import DocumentReader


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
        self._try(self._stream.write, data)
        return len(data)

    def flush(self) -> None:
        self._try(self._stream.flush)

    @property
    def buffer(self) -> _Stream:
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


def stdout() -> Console:
    """Standard output for people: as wide as the terminal, 100 columns where there is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=100)


def print_json(found: object) -> None:
    """A result on standard output, for programs: letters as they are where the stream can hold all of them."""
    holds_all = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    typer.echo(json.dumps(found, ensure_ascii=not holds_all))


def say(text: str, *, quiet: bool = False) -> None:
    """Lines for the person who runs the command; standard output stays clean."""
    if not quiet:
        sys.stderr.write("".join(f"{_fitting(_shown(line))}\n" for line in text.split("\n")))


def _fitting(line: str) -> str:
    """A line, in several where the terminal is narrower; names and commands are broken at spaces alone."""
    width = min(shutil.get_terminal_size().columns, _WIDTH)
    if len(line) <= width or not _is_terminal(sys.stderr):
        return line
    hang = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)


def _shown(line: str) -> str:
    if len(line) > _LONGEST_LINE:
        line = f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"
    return line if line.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in line)


_LONGEST_LINE = 1000
_WIDTH = 80


def confirm(question: str, *, yes: bool, quiet: bool) -> bool:
    if yes or quiet or not can_ask():
        return True
    sys.stderr.write(f"{_fitting(f'{_shown(question)} [y/N]')} ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        say("")  # the input ended: the next line is to begin on its own
    return answer.strip().casefold() in ("y", "yes")


def can_ask() -> bool:
    """Whether somebody could answer a question."""
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr) and _is_in_front()


def _is_in_front() -> bool:
    """Whether this process may read from its terminal: one in the background is stopped when it tries."""
    with suppress(OSError, ValueError, AttributeError):  # another system, or not the terminal of this session
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return True


def _is_terminal(stream: Any) -> bool:
    with suppress(OSError, ValueError, AttributeError):  # closed, or none at all
        return bool(stream.isatty())
    return False


class Stopped(BaseException):
    """An interrupt after which there is something to go on with: its notes say how."""


@contextmanager
def stopped_with_notes() -> Iterator[None]:
    """Let the notes of an interrupt through: typer would make an exit code of it."""
    try:
        yield
    except KeyboardInterrupt as error:
        notes = getattr(error, "__notes__", ())
        if not notes:
            raise
        stopped = Stopped()
        for note in notes:
            stopped.add_note(note)
        raise stopped from None


def say_error(text: str, error: BaseException | None = None) -> None:
    say(f"dptext: {' '.join(text.split())}")
    for note in getattr(error, "__notes__", ()):
        say(f"dptext: {note}")


class Bar:
    """How far a task is, on a terminal; elsewhere nothing."""

    def __init__(self, progress: Progress | None, first: str) -> None:
        self._progress = progress
        self._now = first
        self._task = None if progress is None else progress.add_task(first, total=None)

    @property
    def shown(self) -> bool:
        return self._progress is not None

    @contextmanager
    def away(self) -> Iterator[None]:
        if self._progress is not None:
            self._progress.stop()
        yield
        if self._progress is not None:
            self._progress.start()

    def rows(self, reader: DocumentReader, count: int) -> None:
        self._show(f"{count:,} documents", completed=reader.position, total=reader.size or None)

    def reading(self, reader: DocumentReader, then: str, what: str = "reading") -> None:
        if reader.size and reader.position >= reader.size:
            self._go_on(then)
        else:
            self._show(what, completed=reader.position, total=reader.size or None)

    def step(self, done: int, steps: int, description: str) -> None:
        self._go_on("steps")
        self._show(description, completed=done, total=steps)

    def _show(self, description: str, *, completed: int, total: int | None) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=completed, total=total, description=description)

    def _go_on(self, description: str) -> None:
        """Another task begins, of which nobody knows how long it takes: a bar that is full would look stuck."""
        if self._progress is not None and self._task is not None and self._now != description:
            self._progress.remove_task(self._task)
            self._now, self._task = description, self._progress.add_task(description, total=None)


@contextmanager
def progress_bar(first: str, *, quiet: bool) -> Iterator[Bar]:
    """What is shown of a task that begins with ``first``; nothing without a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Bar(None, first)
        return
    with Progress(*progress_columns(), console=console, transient=True) as progress:
        yield Bar(progress, first)
