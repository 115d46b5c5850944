"""The program: its commands, and what an error becomes (one line on standard error and an exit code)."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer

from dptext.cli.console import ReaderLeftError, Stopped, say, say_error
from dptext.errors import DptextError, ProtectionWarning
from dptext.progress import switch_off

INTERRUPTED = 130
INPUT_OUTPUT = 4

# Typer carries a copy of click in some versions and imports it in others: its own BadParameter knows which.
UsageProblem: Any = next(each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException")

_COMMANDS = {  # each command and its module
    "demo": "demo", "advise": "choose", "synthesize": "synthesize", "classify": "classify", "privatize": "privatize",
    "bank": "bank", "encode": "encode", "embed": "embed", "explain": "records", "audit": "inspect",
    "report": "inspect", "calibrate": "calibrate", "attack": "attack", "ledger": "records", "playground": "choose",
}  # fmt: skip


def program(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the program with the command that the arguments begin with, which starts faster alone, or with all."""
    app = typer.Typer(
        name="dptext",
        help="Differentially private text: private data out, and a statement beside it that says what was promised.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_common)
    for name in arguments[:1] if arguments and arguments[0] in _COMMANDS else _COMMANDS:
        command = getattr(import_module(f"dptext.cli.{_COMMANDS[name]}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command)
        else:
            app.command(name)(command)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dptext {version('dptext')}")
        raise typer.Exit


def _common(
    _version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM (a scheduler, a container that stops) cleans up like Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say_fault(error: Exception) -> None:
    """What nobody foresaw, in one line: where it was, never what it says."""
    frames = traceback.extract_tb(error.__traceback__)
    package = Path(__file__).parents[1]
    ours = [each for each in frames if package in Path(each.filename).parents]
    where = f"{Path(ours[-1].filename).relative_to(package)}, line {ours[-1].lineno}"
    say_error(f"a fault of the program ({where}): {type(error).__name__}; please report it, --verbose says more")
    for each in frames if logging.getLogger("dptext").isEnabledFor(logging.DEBUG) else ():
        say(f"  {each.filename}, line {each.lineno}, in {each.name}")


@contextmanager
def _logging_as_it_was() -> Iterator[None]:
    logger = logging.getLogger("dptext")
    level, handlers = logger.level, logger.handlers[:]
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.handlers[:] = handlers


@_logging_as_it_was()
def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run one command of the program and return its exit code (`dptext.cli.main`)."""
    switch_off()  # commands show their own progress
    try:
        with _terminated_like_interrupted(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ProtectionWarning)  # commands print it before they start
            code = app(args=list(arguments), standalone_mode=False)
        sys.stdout.flush()
    except DptextError as error:
        if not isinstance(error, ReaderLeftError) or getattr(error, "__notes__", None):  # "| head" is no error
            say_error(str(error), error)
        return error.exit_code
    except UsageProblem as error:
        context = getattr(error, "ctx", None)
        where = f"; see: {context.command_path} --help" if context is not None else ""
        message = error.format_message().replace("Value error, ", "").rstrip(".")  # pydantic's prefix
        if message:  # a group of commands prints its help alone
            say_error(f"{message}{where}")
        return int(error.exit_code)
    except Stopped as error:
        say_error("interrupted", error)
        return INTERRUPTED
    except typer.Abort:
        raise KeyboardInterrupt from None
    except (OSError, MemoryError) as error:
        problem = getattr(error, "strerror", None) or type(error).__name__
        is_memory = isinstance(error, MemoryError)
        say_error(
            "out of memory: use fewer words (--limit)" if is_memory else f"input or output failed: {problem}", error
        )
        return INPUT_OUTPUT
    except Exception as error:  # noqa: BLE001  a traceback's last line may hold a text
        _say_fault(error)
        return DptextError.exit_code
    if code == INTERRUPTED:  # what typer makes of Ctrl-C
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0
