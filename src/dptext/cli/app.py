"""The program: its commands, and the line on standard error and the exit code for every error."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import is_dataclass
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from rich.console import Console
from rich.logging import RichHandler
from typer.core import TyperCommand

from dptext.cli.console import ResumableInterrupt, discard_output, say, say_error
from dptext.cli.options import EPSILON_REQUIRED, PANELS, Output, output_option, run_option
from dptext.display import disable_progress
from dptext.errors import DptextError, ProtectionWarning

INTERRUPTED = 130
INPUT_OUTPUT = 4

# Typer contains a copy of click in some versions and imports it in others.
UsageProblem: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

_COMMANDS = {  # command: module
    "demo": "demo", "advise": "prepare", "synthesize": "synthesize", "classify": "labels", "privatize": "privatize",
    "bank": "prepare", "encode": "encode", "embed": "embed", "explain": "releases", "audit": "releases",
    "report": "releases", "calibrate": "calibrate", "attack": "attack", "ledger": "ledger", "playground": "prepare",
}  # fmt: skip
_SHARED_OPTIONS = ("as_json", "quiet", "verbose")


class ReaderLeftError(Exception):
    """Standard output is a closed pipe; typer would turn the `BrokenPipeError` into an exit code."""


class Command(TyperCommand):
    """A command that also takes the options of the program itself: --json, --quiet and --verbose."""

    _shared: tuple[Any, ...] | None = None

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = [*super().get_params(ctx)]
        help_option = params.pop()
        help_option.rich_help_panel = "Run"
        if self._shared is None:
            program_options = ctx.find_root().command.params
            self._shared = tuple(copy(option) for option in program_options if option.name in _SHARED_OPTIONS)
            for option in self._shared:
                option.expose_value = False  # their callbacks note them
        return [*params, *self._shared, help_option]


def program(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the program with the command that the arguments begin with, which starts faster alone, or with all."""
    app = typer.Typer(
        name="dptext",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(expand_options(_common))
    for name in arguments[:1] if arguments and arguments[0] in _COMMANDS else _COMMANDS:
        command = getattr(import_module(f"dptext.cli.{_COMMANDS[name]}"), name)
        if isinstance(command, typer.Typer):
            group = copy(command)
            group.registered_commands = [copy(member) for member in command.registered_commands]
            for member in group.registered_commands:
                member.cls, member.callback = Command, expand_options(member.callback)
            app.add_typer(group)
        else:
            app.command(name, cls=Command)(expand_options(command))
    return app


def expand_options(command: Any) -> Callable[..., None]:
    """Return a command with one parameter per option, as typer needs it, from one that takes options in dataclasses."""
    kinds = {name: kind for name, kind in get_type_hints(command, include_extras=True).items() if name != "return"}
    groups = {name: _options_of(kind) for name, kind in kinds.items() if is_dataclass(kind) and kind is not Output}
    single = {
        name: parameter.replace(annotation=kinds[name]) for name, parameter in signature(command).parameters.items()
    }
    options: dict[str, Parameter] = {}
    for name, kind in kinds.items():
        if kind is not Output:
            options |= groups.get(name, {name: single[name]})

    @wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        for name, option in options.items():
            if get_origin(option.annotation) is tuple:
                values[name] = tuple(values[name] or ())
        arguments: dict[str, Any] = {name: values[name] for name in kinds if name in values}
        for name, kind in kinds.items():
            if kind is Output:
                arguments[name] = Output(**{key: context.meta.get(key, False) for key in ("as_json", "quiet")})
            elif name in groups:
                arguments[name] = kind(**{option: values[option] for option in groups[name]})
        try:
            command(**arguments)
        except BrokenPipeError as error:
            raise ReaderLeftError(error) from error

    described: Any = run
    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    described.__signature__ = Signature([context, *map(_for_typer, sorted(options.values(), key=_panel))])
    described.__annotations__ = {}
    described.__doc__ = "\n\n".join(" ".join(part.split()) for part in (command.__doc__ or "").split("\n\n"))
    return run


def _options_of(group: Any) -> dict[str, Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return {name: option.replace(annotation=hints[name]) for name, option in signature(group).parameters.items()}


def _panel(option: Parameter) -> int:
    panel = option.default.panel
    return PANELS.index(panel) if panel is not None else -1


def _for_typer(parameter: Parameter) -> Parameter:
    """Return a parameter as typer declares it: with a list instead of a tuple, which must have a fixed length there."""
    option, kind = parameter.default, parameter.annotation
    default = Parameter.empty if option.default is ... else option.default
    if get_origin(kind) is tuple:
        item: Any = get_args(kind)[0]
        kind, default = (list[item] | None, None) if default == () else (list[item], default)
    settings = {"help": option.help, "metavar": option.metavar, **option.settings}
    if option.panel is None:
        info = typer.Argument(**settings)
    else:  # without a flag, typer would add --no-NAME
        flags = option.flags or ((f"--{parameter.name.replace('_', '-')}",) if kind is bool else ())
        info = typer.Option(*flags, rich_help_panel=option.panel, **settings)
    annotated: Any = Annotated
    return Parameter(parameter.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotated[kind, info])


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"dptext {version('dptext')}")
        raise typer.Exit


def _remember(context: typer.Context, option: typer.CallbackParam, value: bool) -> bool:
    """Note --json or --quiet, before or after the name of the command."""
    if value:
        context.meta[str(option.name)] = True
    return value


def _set_verbose(value: bool) -> bool:
    if value:
        logger = logging.getLogger("dptext")
        logger.setLevel(logging.DEBUG)
        if not logger.handlers:
            logger.addHandler(RichHandler(console=Console(stderr=True), show_path=False))
    return value


def _common(
    *,
    _version: bool = run_option(
        False, "Print the version and exit.", None, "--version", "-V", callback=_print_version, is_eager=True
    ),
    as_json: bool = output_option(
        False, "Print the result as JSON on standard output.", None, "--json", callback=_remember
    ),
    quiet: bool = run_option(False, "Print errors only.", None, "--quiet", "-q", callback=_remember),
    verbose: bool = run_option(False, "Log every step.", None, "--verbose", "-v", callback=_set_verbose),
) -> None:
    """Release texts with differential privacy.

    Every release has a privacy statement: who is protected, and how strongly.

    Example: dptext demo
    """


@contextmanager
def _environment() -> Iterator[None]:
    """Treat SIGTERM (a scheduler, a container that stops) like Ctrl-C, and restore signals and logging at the end."""
    logger = logging.getLogger("dptext")
    level, handlers = logger.level, logger.handlers[:]
    is_main_thread = threading.current_thread() is threading.main_thread()

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt) if is_main_thread else None
    try:
        yield
    finally:
        if is_main_thread:
            signal.signal(signal.SIGTERM, before)
        logger.setLevel(level)
        logger.handlers[:] = handlers


def _say_bug(error: Exception) -> None:
    """Print where an unexpected error was raised, but not its message, which may hold a text."""
    frames = traceback.extract_tb(error.__traceback__)
    package = Path(__file__).parents[1]
    last = [frame for frame in frames if package in Path(frame.filename).parents][-1]
    place = f"{Path(last.filename).relative_to(package)}, line {last.lineno}"
    say_error(f"internal error ({place}): {type(error).__name__}; please report it (dptext --verbose shows more)")
    if logging.getLogger("dptext").isEnabledFor(logging.DEBUG):
        for frame in frames:
            say(f"  {frame.filename}, line {frame.lineno}, in {frame.name}")


@_environment()
def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run one command of the program and return its exit code (`dptext.cli.main`)."""
    disable_progress()  # commands show their own progress
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProtectionWarning)  # commands print it before they start
            code = app(args=list(arguments), standalone_mode=False)
        sys.stdout.flush()
    except DptextError as error:
        say_error(str(error), error)
        return error.exit_code
    except UsageProblem as error:
        context = getattr(error, "ctx", None)
        hint = "" if context is None else f"; see: {context.command_path} --help"
        message = error.format_message().rstrip(".")
        if message.startswith("Missing option '--epsilon'"):
            message, hint = EPSILON_REQUIRED, ""
        if message:  # a group of commands prints its help alone
            say_error(f"{message}{hint}")
        return int(error.exit_code)
    except ResumableInterrupt as error:
        say_error("interrupted", error)
        return INTERRUPTED
    except typer.Abort:
        raise KeyboardInterrupt from None
    except MemoryError as error:
        say_error("out of memory: use fewer words (--limit)", error)
        return INPUT_OUTPUT
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            say_error(f"input or output failed: {error.strerror or type(error).__name__}", error)
        discard_output()
        return INPUT_OUTPUT
    except SystemExit:  # rich, for a closed pipe
        return INPUT_OUTPUT
    except ReaderLeftError as error:
        if getattr(error.__cause__, "__notes__", None):  # "| head" is no error
            say_error("the reader of standard output is gone", error.__cause__)
        discard_output()
        return INPUT_OUTPUT
    except Exception as error:  # noqa: BLE001  a traceback's last line may hold a text
        _say_bug(error)
        return DptextError.exit_code
    if code == INTERRUPTED:  # typer's exit code for Ctrl-C
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0
