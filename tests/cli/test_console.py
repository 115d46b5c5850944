"""A question on a terminal: asked where somebody can answer, and nowhere else."""

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
    shown = streams(Terminal(answer), Terminal())
    assert confirm("Write it all the same?", yes=False, quiet=False) is goes_on
    assert shown.getvalue().startswith("Write it all the same? [y/N] ")


@pytest.mark.parametrize("how", [{"yes": True, "quiet": False}, {"yes": False, "quiet": True}])
def test_yes_and_quiet_ask_nothing(streams, how):
    shown = streams(Terminal("n\n"), Terminal())
    assert confirm("Go on?", **how)
    assert not shown.getvalue()


@pytest.mark.parametrize(
    ("stdin", "stderr"), [(io.StringIO("n\n"), Terminal()), (Terminal("n\n"), io.StringIO()), (None, Terminal())]
)
def test_where_nobody_can_answer_nothing_is_asked(streams, stdin, stderr):
    shown = streams(stdin, stderr)
    assert confirm("Go on?", yes=False, quiet=False)
    assert not shown.getvalue()


def test_in_the_background_nothing_is_asked(streams, monkeypatch):
    """A process that reads from its terminal there is stopped, and waits for ever."""
    stdin = Terminal("n\n")
    stdin.fileno = lambda: 0
    shown = streams(stdin, Terminal())
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
    assert confirm("Go on?", yes=False, quiet=False)
    assert not shown.getvalue()
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())
    assert not confirm("Go on?", yes=False, quiet=False)


def test_a_question_cannot_steer_the_terminal(streams):
    shown = streams(Terminal("y\n"), Terminal())
    assert confirm("Keep \x1b[2J?", yes=False, quiet=False)
    assert "\x1b" not in shown.getvalue()


LONG = "Wrote 3,000 private vectors to some-folder/vectors.parquet, and what was promised to " + "x" * 90 + ".json."


def test_a_long_line_goes_on_between_words_on_a_terminal(streams, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    shown = streams(Terminal(), Terminal())
    say(f"  {LONG}\nshort")
    first, *more, last = shown.getvalue().splitlines()
    assert last == "short"
    assert len(first) <= 60
    assert all(each.startswith("    ") for each in more)
    assert " ".join(shown.getvalue().split()) == f"{LONG} short"  # nothing is broken, names of files least of all
