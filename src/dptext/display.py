"""Text and HTML representations of public objects, and progress bars."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import partial
from inspect import signature
from itertools import chain
from numbers import Integral, Real
from typing import Any, TypeAlias

from dptext.errors import ParameterError

Fields: TypeAlias = Iterable[tuple[str, object]]
"""(name, value) pairs in display order; pairs with the value None are omitted."""

_MAX_LINE = 119
_MAX_TEXT = 40
_MAX_CELL = 600
_MAX_ENTRIES = 4
_CELL_STYLE = "text-align: left; vertical-align: top; max-width: 60em; white-space: normal; overflow-wrap: anywhere"
_NAME_STYLE = "text-align: left; vertical-align: top; white-space: nowrap"


class ReprMixin:
    """Mixin for representations of an object: one line of text and an HTML table."""

    __slots__ = ()

    def _repr_fields(self) -> Fields:
        """Return the fields of the text representation, by default the constructor arguments."""
        return constructor_fields(self)

    def _html_fields(self) -> Fields:
        """Return additional fields for the HTML table; they may be slow to compute."""
        return ()

    def __repr__(self) -> str:
        try:
            return format_line(type(self).__name__, self._repr_fields())
        except AttributeError:  # a debugger may call this before the constructor has finished
            return f"{type(self).__name__}(...)"

    def _repr_html_(self) -> str:
        return format_table(type(self).__name__, chain(self._repr_fields(), self._html_fields()))


def constructor_fields(instance: object) -> Fields:
    """Yield the arguments of the constructor that the object stores and that differ from their defaults."""
    for name, parameter in signature(type(instance)).parameters.items():
        default = parameter.default
        value = getattr(instance, name, default)
        is_equal = isinstance(value, str | int | float) and type(value) is type(default) and value == default
        if value is not default and not is_equal:
            yield name, value


def format_line(name: str, fields: Fields) -> str:
    """Return ``Name(field=value, ...)`` in fewer than 120 characters; fields that do not fit are omitted."""
    parts: list[str] = []
    remaining = _MAX_LINE - len(f"{name}(, ...)")
    for field, value in fields:
        if value is None:
            continue
        part = f"{field}={_line_value(value)}"
        remaining -= len(part) + 2
        if remaining < 0:
            return f"{name}({', '.join([*parts, '...'])})"
        parts.append(part)
    return f"{name}({', '.join(parts)})"


def format_table(name: str, fields: Fields) -> str:
    """Return the fields as an escaped HTML table."""
    from markupsafe import Markup

    row = Markup('<tr><th scope="row" style="{}">{}</th><td style="{}">{}</td></tr>')
    rows = (
        row.format(_NAME_STYLE, field, _CELL_STYLE, _shorten(_cell_value(value), _MAX_CELL))
        for field, value in fields
        if value is not None
    )
    table = Markup('<table class="dptext"><caption style="{}">{}</caption><tbody>{}</tbody></table>')
    return str(table.format(f"{_CELL_STYLE}; font-weight: bold", name, Markup("").join(rows)))


def _line_value(value: object) -> str:
    if isinstance(value, str) and not isinstance(value, Enum):
        return repr(_shorten(value, _MAX_TEXT))
    return _format_value(value)


def _cell_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, str) and not isinstance(value, Enum):
        return "".join(character if character.isprintable() else " " for character in value)
    return _format_value(value)


def _format_value(value: object) -> str:
    """Format a number, a dptext object, or only the type of a value: a list may contain private texts."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Real):
        return str(int(value)) if isinstance(value, Integral) else f"{float(value):.6g}"
    if isinstance(value, Mapping):
        if len(value) > _MAX_ENTRIES or not all(isinstance(v, str | Real) for v in chain(value, value.values())):
            return f"{len(value):,} entries"
        entries = (f"{_line_value(key)}: {_line_value(entry)}" for key, entry in value.items())
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, tuple | list | set | frozenset):
        return f"{len(value):,} {'entry' if len(value) == 1 else 'entries'}"
    if isinstance(value, ReprMixin) or type(value).__module__.startswith("dptext."):
        return " ".join(repr(value).split())
    return str(getattr(value, "__name__", type(value).__name__))


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


ProgressOption: TypeAlias = bool | Callable[..., object] | None
"""Values of ``progress=``: None (a bar on a terminal), True (always), False (never), or a function to call instead."""

Describe: TypeAlias = Callable[..., tuple[int, int | None, str]]
"""Function that maps the arguments of a progress call to (completed, total, description)."""

DELAY = 2.0
"""Seconds after which a bar appears."""

_one_bar = threading.Lock()  # two bars would overwrite each other
_disabled = threading.Event()


def disable_progress() -> None:
    """Disable progress bars in this process unless ``progress=True``; the command line shows its own."""
    _disabled.set()


@contextmanager
def progress_bar(
    progress: ProgressOption, label: str, total: int | None = None, *, describe: Describe | None = None
) -> Iterator[Callable[..., None]]:
    """Yield a function that updates a progress bar, or does nothing if the bar is disabled."""
    if callable(progress):
        callback: Any = progress
        yield callback
        return
    if progress is not None and not isinstance(progress, bool):
        raise ParameterError(f"progress must be None, True, False or a function, got {type(progress).__name__}")
    if not shows_progress(progress) or not _one_bar.acquire(blocking=False):
        yield lambda *_: None
        return
    bar = _Bar(label, total)
    try:
        timer = threading.Timer(0.0 if progress else DELAY, bar.start)
        timer.daemon = True
        timer.start()
        try:
            yield partial(_move, bar, describe)
        finally:
            timer.cancel()
            timer.join()  # otherwise a bar that is just starting would stay on the screen
            bar.stop()
    finally:
        _one_bar.release()


def shows_progress(progress: bool | None = None) -> bool:
    """Return True if there are progress bars: on a terminal or in a notebook, unless they are disabled."""
    return (not _disabled.is_set() if progress is None else progress) and _has_viewer()


class _Bar:
    """Progress bar on standard error, visible from `start` to `stop`."""

    def __init__(self, label: str, total: int | None) -> None:
        self._fields: dict[str, Any] = {"completed": 0, "total": total, "description": label}
        self._bar: Any = None
        self._task: Any = None
        self._lock = threading.Lock()

    def start(self) -> None:
        from rich import console, progress

        columns = (progress.TextColumn("{task.description}"), progress.BarColumn(), progress.TaskProgressColumn())
        left = (progress.TimeElapsedColumn(), progress.TextColumn("left"), progress.TimeRemainingColumn())
        with self._lock:
            self._bar = progress.Progress(*columns, *left, console=console.Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(**self._fields)

    def update(self, **fields: Any) -> None:
        with self._lock:
            self._fields |= fields
            if self._bar is not None:
                self._bar.update(self._task, **self._fields)

    def stop(self) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.stop()
                self._bar = None


def _move(bar: _Bar, describe: Describe | None, *arguments: Any) -> None:
    if describe is None:
        bar.update(completed=arguments[0])
    else:
        completed, total, description = describe(*arguments)
        bar.update(completed=completed, total=total, description=description)


def _has_viewer() -> bool:
    """Return whether standard error is a terminal or a notebook of the main process."""
    from multiprocessing import parent_process

    if parent_process() is not None:
        return False
    try:
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # standard error is closed
        return False
    return (is_terminal and os.environ.get("TERM") != "dumb") or _is_notebook()


def _is_notebook() -> bool:
    """Return whether a notebook can show bars: rich needs ipywidgets and otherwise prints a warning."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if type(shell).__name__ != "ZMQInteractiveShell":
        return False
    from importlib.util import find_spec

    return find_spec("ipywidgets") is not None
