"""What a command shows: lines on standard error, tables on standard output, progress on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dptext.files.documents import DocumentReader

__all__ = [
    "Stopped",
    "fitting_bar",
    "print_json",
    "progress_bar",
    "reading_bar",
    "say",
    "say_error",
    "stdout",
    "stopped_with_notes",
]


def stdout() -> Console:
    """Standard output for people: as wide as the terminal, 100 columns where there is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=100)


def print_json(found: object) -> None:
    """A result on standard output, for programs."""
    typer.echo(json.dumps(found, ensure_ascii=False))


def say(text: str, *, quiet: bool = False) -> None:
    """Lines for the person who runs the command; standard output stays clean.

    What comes from elsewhere (names of files, values) can neither steer a terminal nor fill it.
    """
    if not quiet:
        sys.stderr.write("".join(f"{_shown(line)}\n" for line in text.split("\n")))


def _shown(line: str) -> str:
    if len(line) > _LONGEST_LINE:
        line = f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"
    return line if line.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in line)


_LONGEST_LINE = 1000


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
    """The one line that an error becomes; what is known about how to go on stands on another."""
    say(f"dptext: {' '.join(text.split())}")
    for note in getattr(error, "__notes__", ()):
        say(f"dptext: {note}")


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[DocumentReader, int], None]]:
    """A progress bar on a terminal only; yields a function to call with a reader and the number of rows done."""
    with _bar("privatizing", quiet=quiet) as bar:
        yield lambda reader, rows: bar.show(reader, f"{rows:,} documents")


@contextmanager
def reading_bar(what: str, then: str, *, quiet: bool) -> Iterator[Callable[[DocumentReader], None]]:
    """The same for what goes on when all is read, and that shows no count; yields a function to call with a reader.

    Args:
        what: is done while it is read.
        then: is done after it.
        quiet: show nothing.
    """
    with _bar(what, quiet=quiet) as bar:
        yield lambda reader: bar.reading(reader, then, what)


@contextmanager
def fitting_bar(*, quiet: bool) -> Iterator[_Bar]:
    """The same for a model that is fitted: a pass over the documents, and maybe steps after it."""
    with _bar("reading", quiet=quiet) as bar:
        yield bar


class _Bar:
    """What is shown of one task; nothing without a terminal."""

    def __init__(self, progress: Progress | None, first: str) -> None:
        self._progress = progress
        self._now = first
        self._task = None if progress is None else progress.add_task(first, total=None)

    def show(self, reader: DocumentReader, description: str) -> None:
        """How far the reader is."""
        if self._progress is not None and self._task is not None:
            total = reader.size or None
            self._progress.update(self._task, completed=reader.position, total=total, description=description)

    @property
    def shown(self) -> bool:
        """Whether anybody sees it."""
        return self._progress is not None

    def reading(self, reader: DocumentReader, then: str, what: str = "reading") -> None:
        """How far the reader is, or what comes when all is read; without a count."""
        if reader.size and reader.position >= reader.size:
            self.go_on(then)
        else:
            self.show(reader, what)

    def step(self, done: int, steps: int, description: str) -> None:
        """How many steps are done."""
        self.go_on("steps")
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, total=steps, description=description)

    def go_on(self, description: str) -> None:
        """Another task begins, of which nobody knows how long it takes: a bar that is full would look stuck."""
        if self._progress is not None and self._task is not None and self._now != description:
            self._progress.remove_task(self._task)
            self._now, self._task = description, self._progress.add_task(description, total=None)


@contextmanager
def _bar(first: str, *, quiet: bool) -> Iterator[_Bar]:
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield _Bar(None, first)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress, first)
