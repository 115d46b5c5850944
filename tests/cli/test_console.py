"""Tests of questions on a terminal, which are asked only if a person can answer."""

import io
import os
import sys

import pytest

from dptext.cli.console import confirm, say


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def streams(monkeypatch):
    def replaced(stdin, stderr):
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stderr", stderr)
        return stderr

    return replaced


@pytest.mark.parametrize(
    ("answer", "goes_on"),
    [("y\n", True), ("Yes\n", True), ("\n", False), ("n\n", False), ("", False), ("yesterday\n", False)],
)
def test_on_a_terminal_only_a_yes_is_one(streams, answer, goes_on):
    messages = streams(Terminal(answer), Terminal())
    assert confirm("Write it all the same?", yes=False, quiet=False) is goes_on
    assert messages.getvalue().startswith("Write it all the same? [y/N] ")


@pytest.mark.parametrize(
    ("stdin", "stderr"), [(io.StringIO("n\n"), Terminal()), (Terminal("n\n"), io.StringIO()), (None, Terminal())]
)
def test_where_nobody_can_answer_nothing_is_asked(streams, stdin, stderr):
    messages = streams(stdin, stderr)
    assert confirm("Go on?", yes=False, quiet=False)
    assert not messages.getvalue()


def test_in_the_background_nothing_is_asked(streams, monkeypatch):
    """A process that reads from its terminal there is stopped, and waits for ever."""
    stdin = Terminal("n\n")
    stdin.fileno = lambda: 0
    messages = streams(stdin, Terminal())
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
    assert confirm("Go on?", yes=False, quiet=False)
    assert not messages.getvalue()
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())
    assert not confirm("Go on?", yes=False, quiet=False)


def test_a_question_cannot_steer_the_terminal(streams):
    messages = streams(Terminal("y\n"), Terminal())
    assert confirm("Keep \x1b[2J?", yes=False, quiet=False)
    assert "\x1b" not in messages.getvalue()


LONG = "Wrote 3,000 private vectors to some-folder/vectors.parquet, and what was promised to " + "x" * 90 + ".json."


def test_a_long_line_goes_on_between_words_on_a_terminal(streams, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    messages = streams(Terminal(), Terminal())
    say(f"  {LONG}\nshort")
    first, *more, last = messages.getvalue().splitlines()
    assert last == "short"
    assert len(first) <= 60
    assert all(line.startswith("    ") for line in more)
    assert " ".join(messages.getvalue().split()) == f"{LONG} short"  # nothing is broken, names of files least of all
