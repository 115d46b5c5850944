"""The program: options, help, standard streams, questions, Ctrl-C and unexpected errors."""

import io
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, fields
from typing import Literal

import pytest
import typer

import dptext
from cli.conftest import command
from dptext.cli import main, options
from dptext.cli.app import expand_options, program
from dptext.cli.console import confirm, say

# -- options -------------------------------------------------------------------------------------------------------

SHARED = {
    *(field.name for kind in (options.Rows, options.Run) for field in fields(kind)),
    *("ledger", "processes", "limit", "delta", "engine", "licence", "yes", "public_text", "redact_list", "samples"),
}
DIFFERENT = {
    ("describe", "sources"), ("embed", "sources"), ("encode", "sources"),
    ("synthesize", "sources"), ("advise", "text"), ("audit", "text"),
    ("report", "text"), ("classify", "keep"), ("encode", "delta"),
    ("ledger create", "delta"), ("privatize", "redact_list"),
}  # fmt: skip


def commands_of(group, parent=None, path=()):
    context = group.context_class(group, info_name=path[-1] if path else "dptext", parent=parent)
    for name, member in group.commands.items():
        if hasattr(member, "commands"):
            yield from commands_of(member, context, (*path, name))
        else:
            yield " ".join((*path, name)), member, member.context_class(member, info_name=name, parent=context)


COMMANDS = {name: (member, context) for name, member, context in commands_of(typer.main.get_command(program()))}


def test_commands_share_their_options_panels_and_help():
    count, texts = 0, {}
    for name, (member, context) in COMMANDS.items():
        options_of_command = [option for option in member.params if option.param_type_name == "option"]
        every = [option for option in member.get_params(context) if option.param_type_name == "option"]
        count += len(options_of_command)
        assert all(option.help for option in options_of_command)
        assert {"--json", "--quiet", "--verbose", "--help"} <= {flag for option in every for flag in option.opts}
        assert {option.rich_help_panel for option in every} <= set(options.PANELS)
        assert member.help.count(f"Example: dptext {name}") == 1
        for option in member.params:
            if option.name in SHARED and (name, option.name) not in DIFFERENT:
                texts.setdefault(option.name, set()).add((option.help, tuple(option.opts), option.metavar))
    assert count <= 246
    assert all(len(variants) == 1 for variants in texts.values())
    seeded = {name for name, (member, _) in COMMANDS.items() for option in member.params if option.name == "seed"}
    assert seeded == {"demo", "describe", "synthesize", "privatize", "encode", "embed"}  # commands that draw noise


@dataclass(frozen=True, kw_only=True)
class Several:
    """Options of some command."""

    needed: int = options.run_option(..., "Needed.")
    some: tuple[str, ...] = options.run_option((), "Repeatable.")
    speed: Literal["slow", "fast"] | None = options.run_option(None, "A choice.")


def test_a_command_gets_its_options_as_objects():
    seen, app = [], typer.Typer()

    def run(*, several: Several, file: tuple[str, ...] = options.argument(..., "Files.", "FILE")) -> None:
        seen.append((several, file))

    app.command()(expand_options(run))
    app(["in", "put", "--needed", "3"], standalone_mode=False)
    app(["in", "--needed", "1", "--some", "x", "--some", "y", "--speed", "fast"], standalone_mode=False)
    assert seen == [
        (Several(needed=3, some=(), speed=None), ("in", "put")),
        (Several(needed=1, some=("x", "y"), speed="fast"), ("in",)),
    ]


def test_version_usage_and_options_on_both_sides_of_the_command(run, work):
    code, out, _ = run("-V")
    assert (code, out.startswith("dptext 0.")) == (0, True)
    for arguments, message in ((["privatize"], "Missing argument"), (["nonsense"], "No such command")):
        code, _, err = run(*arguments)
        assert (code, err.count("\n"), message in err) == (2, 1, True)
    dptext.Ledger.create("no.db", epsilon=1)
    for arguments in (["--json", "ledger", "show", "no.db"], ["ledger", "show", "no.db", "--json"]):
        assert json.loads(run(*arguments)[1])["releases"] == []
    rendered = f"{shlex.join(command('--show-completion'))}; exit $?"  # typer asks which shell is its parent
    done = subprocess.run(["bash", "-c", rendered], capture_output=True, text=True)
    assert (done.returncode, "_dptext_completion" in done.stdout) == (0, True)


# -- questions and messages ----------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def streams(monkeypatch):
    def replace(stdin, stderr):
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stderr", stderr)
        return stderr

    return replace


def test_only_yes_confirms_and_only_a_person_is_asked(streams, monkeypatch):
    for answer, expected in (
        ("y\n", True),
        ("Yes\n", True),
        ("\n", False),
        ("n\n", False),
        ("", False),
        ("yest\n", False),
    ):
        messages = streams(Terminal(answer), Terminal())
        assert confirm("Keep \x1b[2J?", yes=False, quiet=False) is expected
        assert messages.getvalue().startswith("Keep \\x1b[2J? [y/N] ")  # it cannot steer the terminal
    for stdin, stderr in ((io.StringIO("n\n"), Terminal()), (Terminal("n\n"), io.StringIO()), (None, Terminal())):
        messages = streams(stdin, stderr)
        assert (confirm("Go on?", yes=False, quiet=False), messages.getvalue()) == (True, "")
    stdin = Terminal("n\n")
    stdin.fileno = lambda: 0
    messages = streams(stdin, Terminal())
    for group, answer in ((os.getpgrp() + 1, True), (os.getpgrp(), False)):  # reading in the background would stop
        monkeypatch.setattr(os, "tcgetpgrp", lambda _, group=group: group)
        assert confirm("Go on?", yes=False, quiet=False) is answer


def test_a_long_line_is_broken_between_words_on_a_terminal(streams, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    messages = streams(Terminal(), Terminal())
    line = "Wrote 3,000 private vectors to some-folder/vectors.parquet, and the statement to " + "x" * 90 + ".json."
    say(f"  {line}\nshort")
    first, *more, last = messages.getvalue().splitlines()
    assert (last, len(first) <= 60, all(part.startswith("    ") for part in more)) == ("short", True, True)
    assert " ".join(messages.getvalue().split()) == f"{line} short"  # no name of a file is broken


# -- standard streams ----------------------------------------------------------------------------------------------

needs_full_device = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
PRIVATIZE = ("privatize", "in.jsonl", "--epsilon", "1", "--vectors", "vectors", "--force", "-q")
RESULTS = {
    "explain": ("explain", "s.json"),
    "version": ("--version",),
    "ledger": ("ledger", "show", "l.db"),
    "privatize": (*PRIVATIZE, "-o", "out.jsonl", "--json"),
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Run the program in a shell, with redirections, where there are vectors, a ledger and a statement."""
    folder = tmp_path_factory.mktemp("streams")
    vectors = dptext.load_vectors((["a", "b", "c"], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    dptext.save_vectors(vectors, folder / "vectors")
    (folder / "in.jsonl").write_text('{"text": "a b"}\n{"text": "c"}\n')
    (folder / "s.json").write_text(dptext.TEM(vectors, epsilon=1.0).statement.to_json())
    dptext.Ledger.create(folder / "l.db", releases=5)

    def call(redirected, *arguments):
        line = f'exec "$@" {redirected}'
        return subprocess.run(
            ["sh", "-c", line, "sh", *command(*arguments)], cwd=folder, capture_output=True, text=True
        )

    call.folder = folder
    return call


@pytest.mark.slow
@needs_full_device
def test_results_that_cannot_be_written_are_an_error(shell):
    for name, arguments in RESULTS.items():
        for redirected in (">&-", ">/dev/full"):
            done = shell(redirected, *arguments)
            first, *notes = done.stderr.splitlines()
            assert (done.returncode, first.startswith("dptext: input or output failed: ")) == (4, True), name
            assert not notes


@pytest.mark.slow
@needs_full_device
def test_messages_that_nobody_reads_change_neither_work_nor_exit_code(shell):
    for redirected in ("2>&-", "2>/dev/full", "<&- 2>&-"):
        for arguments, code in ((RESULTS["privatize"], 0), (("explain", "nothing.json"), 4), (("explain",), 2)):
            done = shell(redirected, *arguments)
            assert (done.returncode, done.stdout != "", done.stderr) == (code, code == 0, "")
    done = shell("<&- >&- 2>&-", *PRIVATIZE[:-1], "-v", "-o", "closed.jsonl")  # no message goes into an opened file
    assert done.returncode == 0
    rows = (shell.folder / "closed.jsonl").read_text().splitlines()
    assert [list(json.loads(row)) for row in rows] == [["text"], ["text"]]


@pytest.mark.slow
def test_closed_standard_input_is_an_error_and_a_reader_that_left_is_none(shell):
    from_input = (*PRIVATIZE[:1], "-", *PRIVATIZE[2:], "--format", ".jsonl", "-o", "x.jsonl")
    for arguments in (("ledger", "left", "l.db"), from_input):
        done = shell("<&-", *arguments)
        assert (done.returncode, done.stderr) == (4, "dptext: cannot read standard input: it is closed\n")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(*RESULTS["explain"]), cwd=shell.folder, text=True, **pipes) as process:
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == ("", 4)


INTERRUPTED_AT = """
import os, runpy, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is deaf to it
sys.meta_path.insert(0, Interrupt())
sys.argv = ["dptext", "--version"]
runpy.run_module("dptext", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("module", ["numpy", "dptext.errors", "dptext.cli.app"])
def test_an_interrupt_during_imports_is_one_line(module):
    code = INTERRUPTED_AT.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    message = "dptext: interrupted. If the output exists, it is complete; else run the same command again\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "", message)


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("explain", "--json"), ("audit",), ("report", "-qo", "page.html")])
def test_a_statement_with_an_endless_number_or_nesting_is_refused(run, work, arguments):
    vectors = dptext.load_vectors((["a", "b", "c"], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    text = dptext.TEM(vectors, epsilon=1.0).statement.to_json()
    for number in ("9" * 400, "9" * 6000, "[" * 900 + "]" * 900):
        changed = text.replace('"parameters": {', f'"parameters": {{"more": {number}, ')
        (work / "out.jsonl.privacy.json").write_text(changed)
        code, out, err = run(arguments[0], "out.jsonl", *arguments[1:])
        *_, last = err.splitlines()
        assert (code, out, last.startswith("dptext: ")) == (1, "", True)


def test_an_unexpected_error_is_one_line_without_its_text(work, capsys, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("a private text")

    monkeypatch.setattr("dptext.methods.registry.read_statement", fail)
    assert main(["explain", "s.json"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("dptext: internal error (methods/registry.py, line ")
    assert ("ZeroDivisionError; please report it" in err, err.count("\n"), "private" in err) == (True, 1, False)
    assert main(["explain", "s.json", "--verbose"]) == 1
    assert "in fail" in capsys.readouterr().err
