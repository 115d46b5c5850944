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
from copy import copy
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler
from typer.core import TyperCommand

from dptext.cli.console import ReaderLeftError, Stopped, say, say_error
from dptext.cli.options import EPSILON_REQUIRED, output_option, run_option
from dptext.display import disable_progress
from dptext.errors import DptextError, ProtectionWarning

INTERRUPTED = 130
INPUT_OUTPUT = 4

# Typer carries a copy of click in some versions and imports it in others: its own BadParameter knows which.
UsageProblem: Any = next(each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException")

_COMMANDS = {  # command: module
    "demo": "demo", "advise": "choose", "synthesize": "synthesize", "classify": "classify", "privatize": "privatize",
    "bank": "bank", "encode": "encode", "embed": "embed", "explain": "explain", "audit": "audit", "report": "report",
    "calibrate": "calibrate", "attack": "attack", "ledger": "ledger", "playground": "choose",
}  # fmt: skip
_EVERYWHERE = ("as_json", "quiet", "verbose")


class Command(TyperCommand):
    """A command that also takes the options of the program itself: --json, --quiet and --verbose."""

    _shared: tuple[Any, ...] | None = None

    def get_params(self, ctx: Any) -> list[Any]:
        own: list[Any] = [*super().get_params(ctx)]
        own[-1].rich_help_panel = "Run"  # --help
        if self._shared is None:
            self._shared = tuple(copy(each) for each in ctx.find_root().command.params if each.name in _EVERYWHERE)
            for option in self._shared:
                option.expose_value = False  # their callbacks note them
        return [*own[:-1], *self._shared, own[-1]]


def program(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the program with the command that the arguments begin with, which starts faster alone, or with all."""
    app = typer.Typer(
        name="dptext",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_common)
    for name in arguments[:1] if arguments and arguments[0] in _COMMANDS else _COMMANDS:
        command = getattr(import_module(f"dptext.cli.{_COMMANDS[name]}"), name)
        if isinstance(command, typer.Typer):
            for each in command.registered_commands:
                each.cls = Command
            app.add_typer(command)
        else:
            app.command(name, cls=Command)(command)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dptext {version('dptext')}")
        raise typer.Exit


def _remember(context: typer.Context, option: typer.CallbackParam, value: bool) -> bool:
    """Note that --json or --quiet is there, before or after the name of the command."""
    if value:
        context.meta[str(option.name)] = True
    return value


def _set_verbose(wanted: bool) -> bool:
    if wanted:
        logger = logging.getLogger("dptext")
        logger.setLevel(logging.DEBUG)
        if not logger.handlers:
            logger.addHandler(RichHandler(console=Console(stderr=True), show_path=False))
    return wanted


def _common(
    *,
    _version: Annotated[
        bool, run_option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    as_json: Annotated[
        bool, output_option("--json", callback=_remember, help="Print the result as JSON on standard output.")
    ] = False,
    quiet: Annotated[bool, run_option("--quiet", "-q", callback=_remember, help="Print errors only.")] = False,
    verbose: Annotated[bool, run_option("--verbose", "-v", callback=_set_verbose, help="Log every step.")] = False,
) -> None:
    """Release texts with differential privacy.

    Every release has a privacy statement: who is protected, and how strongly.

    Example: dptext demo
    """


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
    """Print where an unexpected error was raised, but not its message, which may hold a text."""
    frames = traceback.extract_tb(error.__traceback__)
    package = Path(__file__).parents[1]
    ours = [each for each in frames if package in Path(each.filename).parents]
    where = f"{Path(ours[-1].filename).relative_to(package)}, line {ours[-1].lineno}"
    say_error(
        f"a fault of the program ({where}): {type(error).__name__}; please report it (dptext --verbose shows more)"
    )
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
    disable_progress()  # commands show their own progress
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
        message = error.format_message().rstrip(".")
        if message.startswith("Missing option '--epsilon'"):
            message, where = EPSILON_REQUIRED, ""
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
