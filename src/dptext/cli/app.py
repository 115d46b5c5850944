"""The program: its commands, and the line on standard error and the exit code for every error."""

from __future__ import annotations

import logging
import os
import re
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
from typing import Any, get_args, get_origin, get_type_hints

import typer
from rich.console import Console
from rich.logging import RichHandler
from typer.core import TyperCommand

from dptext.cli.console import discard_output, say, say_error
from dptext.cli.options import EPSILON_REQUIRED, PANELS, Output, output_option, run_option
from dptext.display import disable_progress
from dptext.errors import DptextError, ProtectionWarning

INPUT_OUTPUT = 4

# Typer contains a copy of click in some versions and imports it in others.
UsageProblem: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

_COMMANDS = {  # command: module
    "demo": "start", "advise": "start", "describe": "describe", "synthesize": "synthesize", "classify": "labels",
    "privatize": "privatize", "bank": "prepare", "encode": "encode", "embed": "embed", "explain": "releases",
    "audit": "releases", "report": "releases", "judge": "judge", "calibrate": "prepare", "attack": "attack",
    "ledger": "ledger", "contribute": "servers", "sum": "servers", "playground": "start",
}  # fmt: skip
_PARSER = re.compile(r"Value error, |, unable to parse string as an? \w+")  # words of a library in its messages
_SHARED_OPTIONS = ("as_json", "quiet", "verbose")


class Command(TyperCommand):
    """A command that also takes the options of the program itself: --json, --quiet and --verbose."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)
        help_option = params.pop()
        help_option.rich_help_panel = "Run"
        shared = [copy(option) for option in ctx.find_root().command.params if option.name in _SHARED_OPTIONS]
        for option in shared:
            option.expose_value = False  # their callbacks note them
        return [*params, *shared, help_option]


def program(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the program with the command that the arguments name (which starts faster), or with all commands."""
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
    kinds = get_type_hints(command)
    options: dict[str, Parameter] = {}
    groups: dict[str, list[str]] = {}  # names of the options in each dataclass
    for name, parameter in signature(command).parameters.items():
        kind = kinds[name]
        if kind is Output:
            continue
        if is_dataclass(kind):
            types, members = get_type_hints(kind), signature(kinds[name]).parameters
            groups[name] = list(members)
            options |= {key: member.replace(annotation=types[key]) for key, member in members.items()}
        else:
            options[name] = parameter.replace(annotation=kind)

    @wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        for name, option in options.items():
            if get_origin(option.annotation) is tuple:
                values[name] = tuple(values[name] or ())
        arguments = {name: values[name] for name in kinds if name in values}
        for name, members in groups.items():
            arguments[name] = kinds[name](**{member: values[member] for member in members})
        if kinds.get("output") is Output:
            arguments["output"] = Output(**{key: context.meta.get(key, False) for key in ("as_json", "quiet")})
        command(**arguments)

    described: Any = run
    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    ordered = sorted(options.values(), key=lambda option: (None, *PANELS).index(option.default.rich_help_panel))
    described.__signature__ = Signature([context, *map(_for_typer, ordered)])
    described.__annotations__ = {}
    described.__doc__ = "\n\n".join(" ".join(part.split()) for part in (command.__doc__ or "").split("\n\n"))
    return run


def _for_typer(option: Parameter) -> Parameter:
    """Return an option with a list instead of a tuple, which must have a fixed length in typer."""
    info, kind = copy(option.default), option.annotation
    if get_origin(kind) is tuple:
        item: Any = get_args(kind)[0]
        kind, info.default = (list[item] | None, None) if info.default == () else (list[item], info.default)
    if kind is bool and not info.param_decls:  # without a flag, typer would add --no-NAME
        info.param_decls = (f"--{option.name.replace('_', '-')}",)
    return option.replace(kind=Parameter.KEYWORD_ONLY, default=info, annotation=kind)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"dptext {version('dptext')}")
        raise typer.Exit


def _remember(context: typer.Context, option: typer.CallbackParam, value: bool) -> None:
    """Note --json or --quiet, before or after the name of the command."""
    if value:
        context.meta[str(option.name)] = True
        if option.name == "quiet":
            disable_progress()


def _set_verbose(value: bool) -> None:
    if value:
        logger = logging.getLogger("dptext")
        logger.setLevel(logging.DEBUG)
        if not logger.handlers:
            logger.addHandler(RichHandler(console=Console(stderr=True), show_path=False))


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
def _restored_logging() -> Iterator[None]:
    logger = logging.getLogger("dptext")
    level, handlers = logger.level, logger.handlers[:]
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.handlers[:] = handlers


def _say_bug(error: Exception) -> None:
    """Print where an unexpected error was raised, but not its message, which may contain a text."""
    frames = traceback.extract_tb(error.__traceback__)
    package = Path(__file__).parents[1]
    last = [frame for frame in frames if package in Path(frame.filename).parents][-1]
    place = f"{Path(last.filename).relative_to(package)}, line {last.lineno}"
    say_error(f"internal error ({place}): {type(error).__name__}; please report it (dptext --verbose shows more)")
    if logging.getLogger("dptext").isEnabledFor(logging.DEBUG):
        for frame in frames:
            say(f"  {frame.filename}, line {frame.lineno}, in {frame.name}")


@_restored_logging()
def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run one command of the program and return its exit code (`dptext.cli.main`)."""
    if "_DPTEXT_COMPLETE" in os.environ:
        app(args=list(arguments), prog_name="dptext")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # from a scheduler: like Ctrl-C
    try:
        # typer's own call of a command would replace errors by exit codes
        command: Any = typer.main.get_command(app)
        with command.make_context("dptext", list(arguments)) as context, warnings.catch_warnings():
            warnings.simplefilter("ignore", ProtectionWarning)  # commands print it before they start
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as done:
        return done.exit_code
    except DptextError as error:
        say_error(str(error), error)
        return error.exit_code
    except UsageProblem as error:
        context = getattr(error, "ctx", None)
        hint = "" if context is None else f"; see: {context.command_path} --help"
        message = _PARSER.sub("", error.format_message().rstrip("."))
        if message.startswith("Missing option '--epsilon'"):
            message, hint = EPSILON_REQUIRED, ""
        if message:  # a group of commands prints its help alone
            say_error(f"{message}{hint}")
        return int(error.exit_code)
    except MemoryError as error:
        say_error("out of memory: use fewer words (--limit)", error)
        return INPUT_OUTPUT
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # "| head" is not an error
            name = "" if error.filename is None else f"{error.filename}: "
            say_error(f"input or output failed: {name}{error.strerror or type(error).__name__}", error)
        discard_output()
        return INPUT_OUTPUT
    except SystemExit as error:
        return INPUT_OUTPUT if error.code == 1 else 0  # 1: of rich, for a closed pipe; 0: of --show-completion
    except Exception as error:  # noqa: BLE001  a traceback's last line may contain a text
        _say_bug(error)
        return DptextError.exit_code
    return 0
