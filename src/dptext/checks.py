"""Validate arguments: each check returns the value in its plain form or raises one clear error."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import TypeVar

from dptext.errors import ParameterError

T = TypeVar("T")
_A_NAME = re.compile(r"[A-Za-z][\w+-]{0,30}")
_LONGEST_NAME = 60


def number(
    name: str,
    value: object,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    infinite: bool = False,
) -> float:
    """``value`` as a finite float within the bounds: ``least`` and ``most`` included, ``above`` and ``below`` not."""
    found = _as_float(value)
    if (
        found is None
        or not (math.isfinite(found) or (infinite and value == found))
        or (least is not None and found < least)
        or (above is not None and found <= above)
        or (most is not None and found > most)
        or (below is not None and found >= below)
    ):
        bounded = (most, below) != (None, None) and (least, above) != (None, None)
        finite = "" if bounded or infinite else "finite "
        raise ParameterError(f"{name} must be a {finite}number{_range(least, above, most, below)}, got {shown(value)}")
    return found


def chosen_epsilon(value: T | None, where: str) -> T:
    """An epsilon that somebody chose: nothing here has a usual one, for how much may be lost is not ours to decide."""
    if value is None:
        raise ParameterError(
            f"{where} needs epsilon=..., how much may be lost: dptext.advise and dptext.calibrate help to choose it"
        )
    return value


def whole(name: str, value: object, *, least: int | None = None, most: int | None = None) -> int:
    """``value`` as an int from ``least`` to ``most``."""
    if (
        isinstance(value, bool)
        or not isinstance(value, Integral)
        or (least is not None and int(value) < least)
        or (most is not None and int(value) > most)
    ):
        raise ParameterError(f"{name} must be an integer{_range(least, None, most, None)}, got {shown(value)}")
    return int(value)


def choice(name: str, value: T, choices: Iterable[T], *, also: str = "") -> T:
    """The one of ``choices`` that ``value`` (also as a member of a `StrEnum`) is; ``also`` says what else is taken."""
    known = tuple(choices)
    for each in known:
        if (isinstance(value, str) or type(value) is type(each)) and value == each:
            return each
    every = ", ".join(repr(str(each)) if isinstance(each, str) else repr(each) for each in known)
    guess = meant(value, [each for each in known if isinstance(each, str)])
    raise ParameterError(f"{name} must be one of {every}{also}, got {shown(value)}{guess}")


def meant(value: object, known: Iterable[str]) -> str:
    """``": did you mean 'x'?"``, of the known name that is spelled most alike; nothing where none is alike."""
    found = _most_alike(value, known, 1) if isinstance(value, str) else []
    return f": did you mean {str(found[0])!r}?" if found else ""


def listed(names: Iterable[str], *, near: object = None, most: int = 20) -> str:
    """Names for an error that says what there is: those that are spelled like ``near`` first, at most so many."""
    given = [str(each) for each in names]
    first = _most_alike(near, given, 3) if isinstance(near, str) else []
    ordered = [*first, *(each for each in given if each not in first)]
    more = f" and {len(ordered) - most:,} more" if len(ordered) > most else ""
    return ", ".join(map(repr, ordered[:most])) + more


def _most_alike(value: str, known: Iterable[str], count: int) -> list[str]:
    """Those that are spelled alike, the most alike first, in letters of either case."""
    if len(value) > _LONGEST_NAME:
        return []
    from difflib import get_close_matches  # for an error alone

    names = {str(each).casefold(): str(each) for each in known if len(each) <= _LONGEST_NAME}
    return [names[each] for each in get_close_matches(value.casefold(), names, count, 0.6)]


def text(name: str, value: object) -> str:
    """``value`` as a text that is not empty and that files can hold."""
    if not isinstance(value, str) or not value:
        raise ParameterError(f"{name} must be text, got {'none' if value == '' else shown(value)}")
    if not is_encodable(value):
        raise ParameterError(f"{name} must be text that UTF-8 can hold, got one with half a surrogate pair")
    return str(value)


def is_encodable(value: str) -> bool:
    """Whether files and statements can hold a text; a shell hands on bytes that are none as surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def names(name: str, value: object) -> tuple[str, ...]:
    """``value`` as distinct names (of columns, say): any sequence of strings but a string."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ParameterError(f"{name} must be a list of names, got {shown(value)}")
    found = tuple(value)
    if not all(isinstance(each, str) and each for each in found):
        raise ParameterError(f"{name} must be a list of names, got something else in it")
    if not all(map(is_encodable, found)):
        raise ParameterError(f"{name} must be names that UTF-8 can hold, got one with half a surrogate pair")
    if len(set(found)) < len(found):
        raise ParameterError(f"{name} must name each once, got one twice")
    return found


def path(name: str, value: object) -> Path:
    """``value`` as a path."""
    if not isinstance(value, str | os.PathLike):
        raise ParameterError(f"{name} must be a path, got {shown(value)}")
    found = os.fspath(value)
    if not isinstance(found, str) or not found or "\0" in found:
        raise ParameterError(f"{name} must be a path, got one that no file has")
    return Path(found)


def shown(value: object) -> str:
    """What an error may say of a value that was given."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, str):
        return repr(str(value)) if _A_NAME.fullmatch(value) else "another text"
    if isinstance(value, Integral):
        return str(int(value)) if abs(int(value)) < 10**18 else "an integer of more than 18 digits"
    found = _as_float(value)
    return type(value).__name__ if found is None else repr(found)


def _as_float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _range(least: float | None, above: float | None, most: float | None, below: float | None) -> str:
    low = f"above {_digits(above)}" if above is not None else "" if least is None else f"from {_digits(least)}"
    high = f"below {_digits(below)}" if below is not None else "" if most is None else _digits(most)
    if not high:
        return f" {low}" if above is not None else f" of at least {_digits(least)}" if least is not None else ""
    if not low:
        return f" {high}" if below is not None else f" of at most {high}"
    if above is not None:
        return f" {low} and {high}" if below is not None else f" {low} and at most {high}"
    return f" {low} to {high}"


def _digits(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:,g}"
