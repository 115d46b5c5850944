"""A progress bar is shown late enough, once, and only on a terminal."""

import contextlib
import inspect
import io
import threading
import time

import pytest

import dptext
from dptext import display
from dptext.display import progress_bar
from dptext.errors import ParameterError
from secrecy import MARKER, assert_error

LONG = [
    *(dptext.audit, dptext.encode_file, dptext.privatize, dptext.privatize_file, dptext.SkipGram.fit),
    *(dptext.Synthesizer.fit, dptext.TextBank, dptext.TextDistribution.generate, dptext.TextDistribution.sample),
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stderr_of(monkeypatch):
    """Return a function that runs work with standard error as a terminal and returns the output."""
    monkeypatch.setattr(display, "DELAY", 0.02)
    monkeypatch.setattr(display, "_disabled", threading.Event())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def run(act):
        with contextlib.redirect_stderr(Terminal()) as terminal:
            act()
            return terminal.getvalue()

    return run


def work(progress, *, steps=3, pause=0.1, **options):
    with progress_bar(progress, "texts", steps, **options) as done:
        for step in range(steps):
            time.sleep(pause)
            done(step + 1)


def test_a_bar_appears_after_a_delay_and_goes(stderr_of, monkeypatch):
    text = stderr_of(lambda: work(None))
    assert "texts" in text and "%" in text
    assert "\x1b[2K" in text[text.rindex("%") :]
    assert not any(entry.name.startswith("Timer") for entry in threading.enumerate())
    monkeypatch.setattr(display, "DELAY", 60.0)
    assert stderr_of(lambda: work(None, pause=0.0)) == ""
    assert "texts" in stderr_of(lambda: work(True))


def test_nothing_is_shown_if_switched_off_replaced_or_without_a_viewer(stderr_of, monkeypatch):
    counts = []
    assert stderr_of(lambda: work(False)) == stderr_of(lambda: work(counts.append)) == ""
    assert counts == [1, 2, 3]
    with contextlib.redirect_stderr(io.StringIO()) as pipe:
        work(True, steps=1)
    assert pipe.getvalue() == ""
    monkeypatch.setenv("TERM", "dumb")
    assert stderr_of(lambda: work(True, steps=1)) == ""
    monkeypatch.setenv("TERM", "xterm")
    with monkeypatch.context() as patch:
        patch.setattr("multiprocessing.parent_process", lambda: object())
        assert stderr_of(lambda: work(True, steps=1)) == ""
    display.disable_progress()
    assert stderr_of(lambda: work(None)) == ""
    assert_error(ParameterError, lambda: work("yes"), "progress must be None, True, False or a function, got str")


def test_long_functions_have_the_option_and_count_texts_without_showing_them(stderr_of, monkeypatch):
    for function in LONG:
        assert inspect.signature(function).parameters["progress"].default is None
    mechanism = dptext.TEM(dptext.load_vectors((["tea", "tax"], [[0.0], [1.0]])), epsilon=3.0)
    monkeypatch.setattr("dptext.release.privatize._PROGRESS_STEP", 2)
    texts, counts = ["tea", MARKER, "tax", "tea", None], []
    assert MARKER not in stderr_of(lambda: dptext.privatize(texts, mechanism, seed=1, progress=counts.append))
    assert counts == [2, 4]
