"""Closed, full and abandoned standard streams, and Ctrl-C at any time: one line or none, and the right exit code."""

import json
import os
import subprocess
import sys

import pytest

import dptext
from dptext.cli import main

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a shell and a device that is full")

RUN = [sys.executable, "-m", "dptext"]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    vectors = dptext.load_vectors((["a", "b", "c"], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    dptext.save_vectors(vectors, folder / "vectors")
    (folder / "in.jsonl").write_text('{"text": "a b"}\n{"text": "c"}\n')
    statement = dptext.TEM(vectors, epsilon=1.0).statement
    (folder / "s.json").write_text(statement.to_json())
    assert main(["ledger", "create", str(folder / "l.db"), "--releases", "5", "-q"]) == 0
    return folder


def run(work, redirected, *arguments):
    command = f'exec "$@" {redirected}'
    return subprocess.run(["sh", "-c", command, "sh", *RUN, *arguments], cwd=work, capture_output=True, text=True)


PRIVATIZE = ("privatize", "in.jsonl", "--epsilon", "1", "--vectors", "vectors", "--force", "-q")
COMMANDS = {
    "explain": ("explain", "s.json"),
    "version": ("--version",),
    "ledger": ("ledger", "show", "l.db"),
    "privatize": (*PRIVATIZE, "-o", "out.jsonl", "--json"),
    "pipe": (*PRIVATIZE, "-o", "-", "--statement", "pipe.json"),
}


@pytest.mark.slow
@pytest.mark.parametrize("redirected", [">&-", ">/dev/full"])
@pytest.mark.parametrize("command", COMMANDS)
def test_results_that_cannot_be_written_are_an_error(work, command, redirected):
    done = run(work, redirected, *COMMANDS[command])
    first, *notes = done.stderr.splitlines()
    assert done.returncode == 4
    assert first.startswith("dptext: input or output failed: ")
    assert len(notes) == (command == "pipe")  # the statement for the rows that may have been sent


@pytest.mark.slow
@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "<&- 2>&-"])
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (COMMANDS["explain"], 0),
        (COMMANDS["privatize"], 0),
        (("explain", "nothing.json"), 4),
        (("explain",), 2),
    ],
)
def test_messages_that_nobody_can_read_change_neither_work_nor_exit_code(work, redirected, command, code):
    done = run(work, redirected, *command)
    assert done.returncode == code
    assert (done.stdout != "") == (code == 0)
    assert done.stderr == ""


@pytest.mark.slow
def test_what_is_printed_goes_into_no_file_that_is_opened_later(work):
    done = run(work, "<&- >&- 2>&-", *PRIVATIZE[:-1], "-v", "-o", "closed.jsonl")
    assert done.returncode == 0
    rows = (work / "closed.jsonl").read_text().splitlines()
    assert [list(json.loads(row)) for row in rows] == [["text"], ["text"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [("ledger", "left", "l.db"), (*PRIVATIZE[:1], "-", *PRIVATIZE[2:], "--format", ".jsonl", "-o", "x.jsonl")],
)
def test_a_closed_standard_input_is_an_error(work, command):
    done = run(work, "<&-", *command)
    assert (done.returncode, done.stderr) == (4, "dptext: cannot read standard input: it is closed\n")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["explain", "ledger"])
def test_nothing_is_said_to_a_reader_that_went_away(work, command):
    process = subprocess.Popen(
        [*RUN, *COMMANDS[command]], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (4, "")


# -- Ctrl-C ---------------------------------------------------------------------------------------------------

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
@pytest.mark.parametrize("module", ["numpy", "dptext.errors", "rich.console", "dptext.cli.app"])
def test_an_interrupt_while_packages_are_imported_is_one_line(module):
    code = INTERRUPTED_AT.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stdout == ""
    assert done.stderr == "dptext: interrupted. If the output exists, it is complete; else run the same command again\n"


# -- input from elsewhere --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["9" * 400, "9" * 4000, "9" * 6000, "[" * 900 + "]" * 900])
@pytest.mark.parametrize("command", [("explain",), ("explain", "--json"), ("audit",), ("report", "-o", "page.html")])
def test_a_statement_with_a_number_or_a_nesting_of_any_length_is_one_line(tmp_path, capsys, command, number):
    vectors = dptext.load_vectors((["a", "b", "c"], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    text = dptext.TEM(vectors, epsilon=1.0).statement.to_json()
    statement_file = tmp_path / "out.jsonl.privacy.json"
    statement_file.write_text(text.replace('"parameters": {', f'"parameters": {{"more": {number}, '))
    assert main([command[0], str(tmp_path / "out.jsonl"), *command[1:]]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("dptext: ")
    assert captured.err.count("\n") == 1


def test_what_nobody_foresaw_is_one_line_without_its_text(work, capsys, monkeypatch):
    def fault(*_, **__):
        raise ZeroDivisionError("what somebody wrote")

    monkeypatch.setattr("dptext.methods.registry.read_statement", fault)
    assert main(["explain", str(work / "s.json")]) == 1
    err = capsys.readouterr().err
    assert err.startswith("dptext: internal error (methods/registry.py, line ")
    assert "ZeroDivisionError; please report it" in err
    assert err.count("\n") == 1
    assert "somebody" not in err
    assert main(["explain", str(work / "s.json"), "--verbose"]) == 1
    assert "in fault" in capsys.readouterr().err
