"""How far a call has come, for the person who waits for it: the only place that shows it, and the only switch."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

from dptext.errors import ParameterError

How: TypeAlias = bool | Callable[..., object] | None
"""What ``progress=`` may be."""

Said: TypeAlias = Callable[..., tuple[int, int | None, str]]
"""What the arguments of a call mean: done, total and description."""

AFTER = 2.0
"""Seconds after which a bar appears by itself."""

_one = threading.Lock()  # one bar at a time: a second one would write over it
_off = threading.Event()


def switch_off() -> None:
    """No bar in this process but where one is asked for with True: a program shows its own, or says nothing."""
    _off.set()


@contextmanager
def watched(
    progress: How, what: str, total: int | None = None, *, said: Said | None = None
) -> Iterator[Callable[..., None]]:
    if callable(progress):
        called: Any = progress
        yield called
        return
    if progress is not None and not isinstance(progress, bool):
        raise ParameterError(f"progress must be None, True, False or a function, got {type(progress).__name__}")
    shows = progress if progress is not None else not _off.is_set()
    if not shows or not _is_watched() or not _one.acquire(blocking=False):
        yield _nothing
        return
    bar = _Bar(what, total)
    try:
        timer = threading.Timer(0.0 if progress else AFTER, bar.start)
        timer.daemon = True
        timer.start()
        try:
            yield partial(_show, bar, said)
        finally:
            timer.cancel()
            timer.join()  # what is starting would otherwise stay
            bar.stop()
    finally:
        _one.release()


def columns() -> tuple[Any, ...]:
    """What a bar consists of."""
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    first = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    return (*first, TextColumn("left"), TimeRemainingColumn())


class _Bar:
    """How far something has come; on the screen from `start` to `stop`."""

    def __init__(self, what: str, total: int | None) -> None:
        self._at: dict[str, Any] = {"completed": 0, "total": total, "description": what}
        self._shown: Any = None
        self._task: Any = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Called by a timer."""
        from rich.console import Console
        from rich.progress import Progress

        with self._lock:
            shown = Progress(*columns(), console=Console(stderr=True), transient=True)
            shown.start()
            at = dict(self._at)
            self._task = shown.add_task(at.pop("description"), **at)
            self._shown = shown

    def move(self, **at: Any) -> None:
        """The work has come further."""
        with self._lock:
            self._at |= at
            if self._shown is not None:
                self._shown.update(self._task, **self._at)

    def stop(self) -> None:
        """The screen is as it was."""
        with self._lock:
            if self._shown is not None:
                self._shown.stop()
                self._shown = None


def _show(bar: _Bar, said: Said | None, *arguments: Any) -> None:
    if said is None:
        bar.move(completed=arguments[0])
    else:
        completed, total, description = said(*arguments)
        bar.move(completed=completed, total=total, description=description)


def _nothing(*_arguments: object) -> None:
    """Nobody is watching."""


def _is_watched() -> bool:
    """Whether somebody sees what this process shows."""
    from multiprocessing import parent_process

    if parent_process() is not None:
        return False
    try:
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # it is closed
        return False
    return (is_terminal and os.environ.get("TERM") != "dumb") or _is_notebook()


def _is_notebook() -> bool:
    """Whether a notebook shows bars: rich needs ipywidgets there, and says so into the page where they are missing."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if type(shell).__name__ != "ZMQInteractiveShell":
        return False
    from importlib.util import find_spec

    return find_spec("ipywidgets") is not None
