"""Options that several commands have come from one definition, and a command gets them as objects."""

from dataclasses import dataclass, fields
from typing import Annotated, Literal

import pytest
import typer

from dptext.cli import options
from dptext.cli.app import program
from dptext.errors import ParameterError

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
}  # files may be missing; no list of rows is released; nothing is, and columns are guessed


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
        assert {"--json", "--quiet", "--verbose", "--config"} <= {name for each in command.params for name in each.opts}


def test_a_command_alone_is_the_same_as_among_all():
    everything = typer.main.get_command(program(["--version"])).commands
    for name in ("demo", "ledger"):
        alone = typer.main.get_command(program([name, "--help"])).commands
        assert list(alone) == [name]
        assert alone[name].help == everything[name].help
    assert len(everything) == 14


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


@dataclass(frozen=True, kw_only=True)
class Renamed:
    """Of some command, with an option that had other names."""

    user: Annotated[str | None, options.Formerly("ledger-key"), typer.Option()] = None
    sizes: Annotated[tuple[int, ...], options.Formerly("counts"), typer.Option()] = ()
    output: options.ConfigOption = None


def _asked(*given):
    seen = []
    app = typer.Typer()
    app.callback()(lambda: None)

    @app.command("do")
    @options.collected
    def command(*, what: Renamed) -> None:
        seen.append(what)

    app(["do", *given], standalone_mode=False)
    return seen[0].user, seen[0].sizes


@pytest.mark.parametrize(
    ("given", "expected", "said"),
    [
        (["--user", "who"], ("who", ()), ""),
        (["--ledger-key", "who"], ("who", ()), "dptext: --ledger-key is --user now"),
        (["--counts", "1", "--counts", "2"], (None, (1, 2)), "dptext: --counts is --sizes now"),
    ],
)
def test_an_option_is_taken_under_its_former_name_with_a_warning(given, expected, said, capsys):
    assert _asked(*given) == expected
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("line", ['ledger_key = "who"', 'ledger-key = "who"'])
def test_a_file_of_options_may_have_the_former_name_too(line, tmp_path, capsys):
    file = tmp_path / "options.toml"
    file.write_text(f"[do]\n{line}\n")
    assert _asked("--config", str(file)) == ("who", ())
    assert "--ledger-key is --user now" in capsys.readouterr().err


def test_an_option_is_given_under_one_name():
    with pytest.raises(ParameterError, match="--user and --ledger-key are one option: leave --ledger-key out"):
        _asked("--user", "a", "--ledger-key", "b")


@pytest.mark.parametrize("name", COMMANDS)
def test_no_help_shows_a_former_name(name):
    """``report --group`` means groups of people that should be served alike, not a person."""
    shown = {each for option in COMMANDS[name].params if not option.hidden for each in option.opts}
    assert not shown & {"--ledger-key", "--person"}
    assert "--group" not in shown or name == "report"
    hidden = {each for option in COMMANDS[name].params if option.hidden for each in option.opts}
    assert hidden <= {"--ledger-key", "--person", "--group"}
