"""Options that several commands have come from one definition, and a command gets them as objects."""

from dataclasses import dataclass, fields
from typing import Annotated, Literal

import pytest
import typer

from dptext.cli import options
from dptext.cli.app import program

SHARED = {
    *(each.name for kind in (options.Rows, options.Run, options.Charge, options.Output) for each in fields(kind)),
    *("processes", "limit", "metric", "beta", "attacker", "folds", "samples"),
} - {"seed", "user"}  # a seed of noise or of an analysis; and each command says what becomes of a user
RELEASE = ("demo", "synthesize", "privatize", "encode", "embed")
OF_ITS_OWN = {
    ("synthesize", "sources"),
    ("synthesize", "on_error"),
    ("advise", "sources"),
    ("advise", "text"),
    ("classify", "keep"),
}  # files may be missing; no list of rows is released; nothing is, and columns are guessed; nothing is released


def _commands(group, path=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(_commands(typer.main.get_command(program())))


@pytest.mark.parametrize("name", sorted(SHARED))
def test_an_option_of_several_commands_has_one_help_text(name):
    found = [
        each
        for command, made in COMMANDS.items()
        for each in made.params
        if each.name == name and (command, name) not in OF_ITS_OWN
    ]
    assert len({(each.help, tuple(each.opts), each.metavar) for each in found}) == 1
    assert len(found) > 1 or name == "resume"


def test_a_seed_of_noise_and_one_of_an_analysis_are_told_apart():
    said = {name: each.help for name, command in COMMANDS.items() for each in command.params if each.name == "seed"}
    assert {said.pop(name) for name in RELEASE} == {
        "Repeatable noise, for tests and papers only: it voids the promise."
    }
    assert "no private word" in said.pop("calibrate")
    assert set(said.values()) == {"Make the same random choices again."}


def test_every_command_answers_in_the_same_ways():
    for command in COMMANDS.values():
        assert {"--json", "--quiet", "--verbose"} <= {name for each in command.params for name in each.opts}


def test_a_command_alone_is_the_same_as_among_all():
    everything = typer.main.get_command(program(["--version"])).commands
    for name in ("demo", "ledger"):
        alone = typer.main.get_command(program([name, "--help"])).commands
        assert list(alone) == [name]
        assert alone[name].help == everything[name].help
    assert len(everything) == 15


@dataclass(frozen=True, kw_only=True)
class Several:
    """Of some command."""

    needed: Annotated[int, typer.Option()]
    some: Annotated[tuple[str, ...], typer.Option()] = ()
    how: Annotated[Literal["slow", "at once"] | None, typer.Option()] = None
    known: Annotated[str, options.OneOf(("a+", "b")), typer.Option()] = "b"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--needed", "3"], Several(needed=3)),
        (
            ["--needed", "1", "--some", "x", "--some", "y", "--how", "at once", "--known", "a+"],
            Several(needed=1, some=("x", "y"), how="at once", known="a+"),
        ),
    ],
)
def test_a_command_gets_objects_of_plain_values(given, expected):
    seen = []
    app = typer.Typer()

    @app.command()
    @options.collected
    def command(*, several: Several, file: Annotated[tuple[str, ...], typer.Argument()]) -> None:
        seen.append((several, file))

    app(["in", "put", *given], standalone_mode=False)
    assert seen == [(expected, ("in", "put"))]
    found = seen[0][0]
    assert [type(each) for each in (found.some, found.known)] == [tuple, str]


def test_what_a_command_cannot_do_without_is_shown_first():
    @options.collected
    def command(*, few: Annotated[int, typer.Option()] = 1, several: Several) -> None:
        pass

    app = typer.Typer()
    app.command()(command)
    assert [each.name for each in typer.main.get_command(app).params][:3] == ["needed", "few", "some"]
