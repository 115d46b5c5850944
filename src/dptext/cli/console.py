"""The console: standard streams that may be closed, messages and questions."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dptext.privacy.wording import paragraphs

WIDTH = 79
_MAX_LINE = 1000


# -- standard streams ----------------------------------------------------------------------------------------------


def prepare_streams() -> None:
    """Make closed standard streams fail at a write, and letters that a terminal lacks print as escapes."""
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:  # closed: the next opened file would get this number, and receive the messages
            os.set_inheritable(os.open(os.devnull, mode), True)
    sys.stdout, sys.stderr = sys.stdout or _failing_stream(1), sys.stderr or _failing_stream(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


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


# -- results -------------------------------------------------------------------------------------------------------


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


def print_paragraphs(template: str, **values: Any) -> None:
    for paragraph in paragraphs(template, **values):
        typer.echo(filled(paragraph, indent=""))


def print_json(result: object) -> None:
    """Print a result for programs, with ASCII escapes if the stream is not UTF-8."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    typer.echo(json.dumps(result, ensure_ascii=not is_utf8))


def filled(text: str, indent: str = "  ", hang: str = "") -> str:
    """Break a paragraph into lines of a terminal, indented."""
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent + hang, break_on_hyphens=False)


# -- messages and questions ----------------------------------------------------------------------------------------


def say(text: str) -> None:
    """Print lines for the person who runs the command; standard output stays clean."""
    with suppress(OSError):  # nobody reads the messages
        sys.stderr.write("".join(f"{_fitted(_printable(line))}\n" for line in text.split("\n")))


def say_error(text: str, error: BaseException | None = None) -> None:
    say(f"dptext: {' '.join(text.split())}")
    for note in getattr(error, "__notes__", ()):
        say(f"dptext: {note}")


def _fitted(line: str) -> str:
    """Wrap a line on a narrower terminal; names and commands are broken at spaces only."""
    width = min(shutil.get_terminal_size().columns, WIDTH + 1)
    if len(line) <= width or not sys.stderr.isatty():
        return line
    hang = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)


def _printable(line: str) -> str:
    """Shorten a line and escape control characters, which could steer the terminal."""
    if len(line) > _MAX_LINE:
        line = f"{line[: _MAX_LINE // 2]} ... {line[-_MAX_LINE // 2 :]}"
    return line if line.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


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
    try:
        is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):  # one is closed
        return False
    with suppress(OSError, AttributeError):  # another system, or not the terminal of this session
        return is_terminal and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()  # else reading would stop the process
    return is_terminal
