"""Options that several commands have come from one definition, and a command gets them as objects."""

import json
from dataclasses import dataclass, fields
from typing import Literal

import pytest
import typer

import dptext
from dptext.cli import main, options
from dptext.cli.app import expand_options, program

SHARED = {
    *(field.name for kind in (options.Rows, options.Run) for field in fields(kind)),
    *("ledger", "processes", "limit", "delta", "engine", "licence", "yes", "public_text", "redact_list", "samples"),
}
RELEASE = {"demo", "synthesize", "privatize", "encode", "embed"}
OF_ITS_OWN = {
    ("embed", "sources"), ("encode", "sources"), ("synthesize", "sources"), ("advise", "text"), ("audit", "text"),
    ("report", "text"), ("synthesize", "on_error"), ("classify", "keep"), ("encode", "delta"),
    ("ledger create", "delta"), ("privatize", "redact_list"),
}  # fmt: skip


def _commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(_commands(typer.main.get_command(program())))


def test_an_option_of_several_commands_has_one_help_text():
    for name in sorted(SHARED):
        matches = [
            option
            for command, command_object in COMMANDS.items()
            for option in command_object.params
            if option.name == name and (command, name) not in OF_ITS_OWN
        ]
        assert len({(option.help, tuple(option.opts), option.metavar) for option in matches}) == 1


def test_only_what_draws_noise_takes_a_seed():
    assert {name for name, command in COMMANDS.items() for option in command.params if option.name == "seed"} == RELEASE


def _all_params(name):
    root = typer.main.get_command(program())
    context, command = root.context_class(root, info_name="dptext"), root
    for part in name.split():
        command = command.commands[part]
        context = command.context_class(command, info_name=part, parent=context)
    return command.get_params(context)


def test_every_command_answers_in_the_same_ways_and_says_where_an_option_belongs():
    for name in COMMANDS:
        params = [option for option in _all_params(name) if option.param_type_name == "option"]
        assert {"--json", "--quiet", "--verbose", "--help"} <= {flag for option in params for flag in option.opts}
        assert {option.rich_help_panel for option in params} <= set(options.PANELS)


def test_there_are_at_most_200_options_of_commands_and_each_has_a_help_text():
    params = [param for command in COMMANDS.values() for param in command.params]
    matches = [param for param in params if param.param_type_name == "option"]
    assert len(matches) <= 200
    assert all(option.help for option in matches)


@pytest.mark.parametrize("arguments", [["--json", "ledger", "show", "no.db"], ["ledger", "show", "no.db", "--json"]])
def test_an_option_of_the_program_may_stand_before_or_after_the_command(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    dptext.Ledger.create("no.db", epsilon=1)
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["releases"] == []


def test_every_command_has_one_example():
    for name in sorted(COMMANDS):
        assert COMMANDS[name].help.count(f"Example: dptext {name}") == 1


@dataclass(frozen=True, kw_only=True)
class Several:
    """Of some command."""

    needed: int = options.run_option(..., "Needed.")
    some: tuple[str, ...] = options.run_option((), "Repeatable.")
    speed: Literal["slow", "fast"] | None = options.run_option(None, "A choice.")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--needed", "3"], Several(needed=3, some=(), speed=None)),
        (
            ["--needed", "1", "--some", "x", "--some", "y", "--speed", "fast"],
            Several(needed=1, some=("x", "y"), speed="fast"),
        ),
    ],
)
def test_a_command_gets_objects_of_plain_values(flags, expected):
    seen = []
    app = typer.Typer()

    def command(*, several: Several, file: tuple[str, ...] = options.argument(..., "Files.", "FILE")) -> None:
        seen.append((several, file))

    app.command()(expand_options(command))

    app(["in", "put", *flags], standalone_mode=False)
    assert seen == [(expected, ("in", "put"))]
    matches = seen[0][0]
    assert isinstance(matches.some, tuple)
