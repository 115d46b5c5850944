"""The console: standard streams that may be closed, messages, questions and progress bars."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from dptext.display import progress_columns
from dptext.io.documents import DocumentReader
from dptext.privacy.wording import paragraphs

WIDTH = 79
_MAX_LINE = 1000


# -- standard streams ----------------------------------------------------------------------------------------------


@contextmanager
def standard_streams() -> Iterator[None]:
    """Make closed standard streams fail at a write, and letters that a terminal lacks print as escapes."""
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:  # closed: the next opened file would get this number, and receive the messages
            os.set_inheritable(os.open(os.devnull, mode), True)
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = before[0] or _failing_stream(1), before[1] or _failing_stream(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _failing_stream(descriptor: int) -> Any:
    raw = open(descriptor, "wb", buffering=0, closefd=False)  # noqa: SIM115  a descriptor has no path
    return io.TextIOWrapper(raw, encoding="utf-8", write_through=True)


def discard_output() -> None:
    """Send the rest of standard output to the null device, so that Python does not fail at exit."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        sys.stdout.flush()


# -- messages ------------------------------------------------------------------------------------------------------


def stdout() -> Console:
    """Return standard output for people: as wide as the terminal, 100 columns without one."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=100)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1, title: str = "", wide: str = ""
) -> None:
    """Print a table: the first ``left`` columns aligned left, the others right; the ``wide`` column takes the space."""
    table = Table(title=title, title_justify="left", pad_edge=False, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number, name in enumerate(columns):
        is_wide = name == wide
        justify: Any = "left" if number < left or is_wide else "right"
        table.add_column(name, justify=justify, no_wrap=not is_wide, ratio=1 if is_wide else None, overflow="fold")
    table.expand = bool(wide)
    for row in rows:
        table.add_row(*map(escape, row))
    stdout().print(table)


def print_paragraph(text: str) -> None:
    typer.echo(filled(text, indent=""))


def print_paragraphs(template: str, **values: Any) -> None:
    """Print the sentences of a template."""
    for paragraph in paragraphs(template, **values):
        print_paragraph(paragraph)


def print_json(result: object) -> None:
    """Print a result for programs, with ASCII escapes if the stream is not UTF-8."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    typer.echo(json.dumps(result, ensure_ascii=not is_utf8))


def filled(text: str, indent: str = "  ", hang: str = "") -> str:
    """Break a paragraph into lines of a terminal, indented."""
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent + hang, break_on_hyphens=False)


def say(text: str, *, quiet: bool = False) -> None:
    """Print lines for the person who runs the command; standard output stays clean."""
    if not quiet:
        with suppress(OSError):  # nobody reads the messages
            sys.stderr.write("".join(f"{_fitted(_printable(line))}\n" for line in text.split("\n")))


def say_error(text: str, error: BaseException | None = None) -> None:
    say(f"dptext: {' '.join(text.split())}")
    for note in getattr(error, "__notes__", ()):
        say(f"dptext: {note}")


def _fitted(line: str) -> str:
    """Wrap a line on a narrower terminal; names and commands are broken at spaces only."""
    width = min(shutil.get_terminal_size().columns, WIDTH + 1)
    if len(line) <= width or not _is_terminal(sys.stderr):
        return line
    hang = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)


def _printable(line: str) -> str:
    """Shorten a line and escape control characters, which could steer the terminal."""
    if len(line) > _MAX_LINE:
        line = f"{line[: _MAX_LINE // 2]} ... {line[-_MAX_LINE // 2 :]}"
    return line if line.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


# -- questions, interrupts -----------------------------------------------------------------------------------------


def confirm(question: str, *, yes: bool, quiet: bool) -> bool:
    """Ask a question on an interactive terminal; without one the answer is yes."""
    if yes or quiet or not can_ask():
        return True
    sys.stderr.write(f"{_fitted(f'{_printable(question)} [y/N]')} ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        say("")  # end of input: the next message needs a new line
    return answer.strip().casefold() in ("y", "yes")


def can_ask() -> bool:
    """True if stdin and stderr are an interactive terminal, and this process may read from it."""
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr) and _is_foreground()


def _is_foreground() -> bool:
    """False in the background, where reading from the terminal stops the process."""
    with suppress(OSError, ValueError, AttributeError):  # another system, or not the terminal of this session
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return True


def _is_terminal(stream: Any) -> bool:
    with suppress(OSError, ValueError, AttributeError):  # closed, or None
        return bool(stream.isatty())
    return False


class ResumableInterrupt(BaseException):
    """An interrupt whose notes say how to resume."""


@contextmanager
def resumable() -> Iterator[None]:
    """Keep the notes of an interrupt: typer would replace it by an exit code."""
    try:
        yield
    except KeyboardInterrupt as error:
        if not hasattr(error, "__notes__"):
            raise
        interrupt = ResumableInterrupt()
        interrupt.__notes__ = error.__notes__
        raise interrupt from None


# -- progress ------------------------------------------------------------------------------------------------------


class Bar:
    """Progress of a command on a terminal; invisible without one."""

    def __init__(self, progress: Progress, description: str) -> None:
        self._progress, self._description = progress, description
        self._task = progress.add_task(description, total=None)

    @property
    def is_visible(self) -> bool:
        return not self._progress.disable

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._progress.stop()
        yield
        self._progress.start()

    def rows(self, reader: DocumentReader, count: int) -> None:
        self._update(f"{count:,} documents", reader.position, reader.size or None)

    def reading(self, reader: DocumentReader, then: str, description: str = "reading") -> None:
        """Show the part of the input that is read, and ``then`` at its end."""
        if reader.size and reader.position >= reader.size:
            self._start(then)
        else:
            self._update(description, reader.position, reader.size or None)

    def step(self, done: int, steps: int, description: str) -> None:
        self._start("steps")
        self._update(description, done, steps)

    def _update(self, description: str, completed: int, total: int | None) -> None:
        self._progress.update(self._task, completed=completed, total=total, description=description)

    def _start(self, description: str) -> None:
        """Begin a task of unknown length: a full bar would look stuck."""
        if self._description != description:
            self._progress.remove_task(self._task)
            self._description, self._task = description, self._progress.add_task(description, total=None)


@contextmanager
def progress_bar(description: str, *, quiet: bool) -> Iterator[Bar]:
    console = Console(stderr=True)
    disable = quiet or not console.is_terminal
    with Progress(*progress_columns(), console=console, transient=True, disable=disable) as progress:
        yield Bar(progress, description)
