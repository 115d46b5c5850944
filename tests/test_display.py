"""A bar is shown where somebody waits, late enough, once, and nowhere else."""

import contextlib
import inspect
import io
import subprocess
import sys
import threading
import time

import pytest

import dptext
from dptext import display
from dptext.display import progress_bar
from dptext.errors import ParameterError

LONG = [
    dptext.audit,
    dptext.calibrate,
    dptext.deniability,
    dptext.encode_file,
    dptext.privatize,
    dptext.privatize_file,
    dptext.report,
    dptext.SkipGram.fit,
    dptext.Synthesizer.fit,
    dptext.TextBank,
    dptext.TextDistribution.generate,
    dptext.TextDistribution.sample,
]


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def __enter__(self):
        self._before, sys.stderr = sys.stderr, self
        return self

    def __exit__(self, *_error):
        sys.stderr = self._before


@pytest.fixture
def terminal(monkeypatch):
    """Standard error is it within ``with``: pytest puts its own there between a fixture and a test."""
    output = Terminal()
    monkeypatch.setattr(display, "DELAY", 0.02)
    monkeypatch.setattr(display, "_disabled", threading.Event())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return output


def work(how, *, steps=3, pause=0.1, **options):
    with progress_bar(how, "texts", steps, **options) as done:
        for step in range(steps):
            time.sleep(pause)
            done(step + 1)


def test_a_bar_appears_by_itself_after_a_while_and_goes(terminal):
    with terminal:
        work(None)
        text = terminal.getvalue()
        assert "texts" in text and "%" in text
        assert text.rstrip().endswith("\x1b[2K") or "\x1b[2K" in text[text.rindex("%") :]
        assert not any(entry.name.startswith("Timer") for entry in threading.enumerate())


def test_a_quick_call_shows_nothing(terminal, monkeypatch):
    with terminal:
        monkeypatch.setattr(display, "DELAY", 60.0)
        work(None, pause=0.0)
        assert terminal.getvalue() == ""
        work(True, pause=0.1)
        assert "texts" in terminal.getvalue()


@pytest.mark.parametrize("how", [False, print])
def test_nothing_is_shown_where_it_is_switched_off_or_a_function_is_given(terminal, how):
    with terminal:
        heard = []
        work(heard.append if how is print else how)
        assert terminal.getvalue() == ""
        assert heard == ([1, 2, 3] if how is print else [])


def test_nothing_is_shown_in_a_pipe_on_a_dumb_terminal_or_in_a_worker(terminal, monkeypatch):
    with terminal:
        with contextlib.redirect_stderr(io.StringIO()) as pipe:
            work(True, steps=1)
        assert pipe.getvalue() == ""
        monkeypatch.setenv("TERM", "dumb")
        work(True, steps=1)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("multiprocessing.parent_process", lambda: object())
        work(True, steps=1)
        assert terminal.getvalue() == ""


def test_one_bar_at_a_time(terminal):
    with terminal:
        with progress_bar(True, "outer"):
            work(True)
        assert "outer" in terminal.getvalue() and "texts" not in terminal.getvalue()
        work(True)
        assert "texts" in terminal.getvalue()


def test_a_program_shows_its_own(terminal):
    with terminal:
        display.disable_progress()
        work(None)
        assert terminal.getvalue() == ""


def test_an_error_leaves_no_bar_behind(terminal):
    with terminal:
        with pytest.raises(ValueError, match="of the work"), progress_bar(True, "outer"):
            raise ValueError("of the work")
        work(True)
        assert "texts" in terminal.getvalue()


def test_what_a_call_means_is_said_by_who_calls(terminal):
    with terminal:
        with progress_bar(True, "first", describe=lambda step: (step, 7, f"step {step}")) as done:
            time.sleep(0.1)
            done(5)
            time.sleep(0.2)
        assert "step 5" in terminal.getvalue()


def test_another_thing_is_refused():
    with pytest.raises(ParameterError, match="progress must be None, True, False or a function, got str"):
        work("yes")


def test_what_may_take_long_has_the_switch():
    for function in LONG:
        assert inspect.signature(function).parameters["progress"].default is None


def test_texts_are_counted_and_not_shown(terminal, monkeypatch):
    with terminal:
        secret = "qsecretq"
        mechanism = dptext.TEM(dptext.load_vectors((["tea", "tax"], [[0.0], [1.0]])), epsilon=3.0)
        heard = []
        monkeypatch.setattr("dptext.release.privatize._PROGRESS_STEP", 2)
        release = dptext.privatize(["tea", secret, "tax", "tea", None], mechanism, seed=1, progress=heard.append)
        assert heard == [2, 4] and len(release.texts) == 5
        assert secret not in terminal.getvalue()


def test_nothing_is_imported_before_a_bar_is_shown():
    code = "import sys, dptext, dptext.display; raise SystemExit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
