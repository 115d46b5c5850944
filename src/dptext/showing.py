"""Text and HTML representations of public objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from inspect import signature
from itertools import chain
from numbers import Integral, Real
from typing import TypeAlias

Facts: TypeAlias = Iterable[tuple[str, object]]
"""Names with values, in the order in which they are shown; None is left out."""

_LONGEST = 119
_LONGEST_TEXT = 40
_LONGEST_CELL = 600
_ENTRIES = 4


class Showing:
    """What shows itself in a line and in a table."""

    __slots__ = ()

    def _in_brief(self) -> Facts:
        """What the line says: names as in Python, values that are known at once; the arguments of the constructor."""
        return arguments_of(self)

    def _in_full(self) -> Facts:
        """What the table says beside that, in words; it may take a moment."""
        return ()

    def __repr__(self) -> str:
        try:
            return line(type(self).__name__, self._in_brief())
        except AttributeError:  # its constructor has not come to its end: a debugger asks all the same
            return f"{type(self).__name__}(...)"

    def _repr_html_(self) -> str:
        return table(type(self).__name__, chain(self._in_brief(), self._in_full()))


def arguments_of(made: object) -> Facts:
    """The arguments of a constructor that the object keeps under their names, where they are not the usual ones."""
    for name, each in signature(type(made)).parameters.items():
        value = getattr(made, name, each.default)
        if value is not each.default and not _is_equal(value, each.default):
            yield name, value


def _is_equal(one: object, other: object) -> bool:
    return isinstance(one, str | int | float) and type(one) is type(other) and one == other


def line(name: str, facts: Facts) -> str:
    """``Name(fact=value, ...)`` of fewer than 120 characters: facts that no longer fit are left out."""
    parts: list[str] = []
    room = _LONGEST - len(f"{name}(, ...)")
    for fact, value in facts:
        if value is None:
            continue
        part = f"{fact}={_in_a_line(value)}"
        room -= len(part) + 2
        if room < 0:
            return f"{name}({', '.join([*parts, '...'])})"
        parts.append(part)
    return f"{name}({', '.join(parts)})"


def table(name: str, facts: Facts) -> str:
    """The same as a table in HTML; everything is escaped, and nothing is loaded."""
    from markupsafe import Markup  # comes with jinja2; nothing is imported before it is needed

    row = Markup('<tr><th scope="row" style="{}">{}</th><td style="{}">{}</td></tr>')
    rows = (
        row.format(_NAME, fact, _LEFT, _clipped(_in_a_cell(value), _LONGEST_CELL))
        for fact, value in facts
        if value is not None
    )
    whole = Markup('<table class="dptext"><caption style="{}">{}</caption><tbody>{}</tbody></table>')
    return str(whole.format(f"{_LEFT}; font-weight: bold", name, Markup("").join(rows)))


_LEFT = "text-align: left; vertical-align: top; max-width: 60em; white-space: normal; overflow-wrap: anywhere"
_NAME = "text-align: left; vertical-align: top; white-space: nowrap"  # a name stays whole beside a long value


def _in_a_line(value: object) -> str:
    if isinstance(value, str) and not isinstance(value, Enum):
        return repr(_clipped(value, _LONGEST_TEXT))
    return _spelled(value)


def _in_a_cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, str) and not isinstance(value, Enum):
        return "".join(each if each.isprintable() else " " for each in value)
    return _spelled(value)


def _spelled(value: object) -> str:
    """A number, what says itself in a line, or of what kind it is: a list may be of anybody's texts."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Real):
        return str(int(value)) if isinstance(value, Integral) else f"{float(value):.6g}"
    if isinstance(value, Mapping):
        simple = len(value) <= _ENTRIES and all(isinstance(each, str | Real) for each in chain(value, value.values()))
        said = (f"{_in_a_line(name)}: {_in_a_line(each)}" for name, each in value.items())
        return f"{{{', '.join(said)}}}" if simple else f"{len(value):,} entries"
    if isinstance(value, tuple | list | set | frozenset):
        return f"{len(value):,} {'entry' if len(value) == 1 else 'entries'}"
    if isinstance(value, Showing) or type(value).__module__.startswith("dptext."):
        return " ".join(repr(value).split())
    return str(getattr(value, "__name__", type(value).__name__))


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
