"""Validation of arguments: each function returns the value in its plain type or raises `ParameterError`."""

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
_IDENTIFIER = re.compile(r"[A-Za-z][\w+-]{0,30}")
_MAX_NAME = 60


def check_float(
    name: str,
    value: object,
    *,
    minimum: float | None = None,
    above: float | None = None,
    maximum: float | None = None,
    below: float | None = None,
    infinite: bool = False,
) -> float:
    """Return ``value`` as a finite float; ``minimum`` and ``maximum`` are allowed, ``above`` and ``below`` are not."""
    number = _as_float(value)
    if (
        number is None
        or not (math.isfinite(number) or (infinite and value == number))
        or (minimum is not None and number < minimum)
        or (above is not None and number <= above)
        or (maximum is not None and number > maximum)
        or (below is not None and number >= below)
    ):
        bounded = (maximum, below) != (None, None) and (minimum, above) != (None, None)
        finite = "" if bounded or infinite else "finite "
        interval = _format_range(minimum, above, maximum, below)
        raise ParameterError(f"{name} must be a {finite}number{interval}, got {display_value(value)}")
    return number


def require_epsilon(value: T | None, where: str) -> T:
    """Return epsilon, or raise if it is None: there is no default, because the user has to choose."""
    if value is None:
        raise ParameterError(f"{where} needs epsilon=.... Choose one with dptext.advise or dptext.calibrate")
    return value


def check_int(name: str, value: object, *, minimum: int | None = None, maximum: int | None = None) -> int:
    """Return ``value`` as an int between ``minimum`` and ``maximum``."""
    if (
        isinstance(value, bool)
        or not isinstance(value, Integral)
        or (minimum is not None and int(value) < minimum)
        or (maximum is not None and int(value) > maximum)
    ):
        interval = _format_range(minimum, None, maximum, None)
        raise ParameterError(f"{name} must be an integer{interval}, got {display_value(value)}")
    return int(value)


def check_choice(name: str, value: T, choices: Iterable[T], *, also: str = "") -> T:
    """Return the member of ``choices`` that equals ``value``; ``also`` names other accepted values in the message."""
    options = tuple(choices)
    for option in options:
        if (isinstance(value, str) or type(value) is type(option)) and value == option:
            return option
    listing = ", ".join(repr(str(option)) if isinstance(option, str) else repr(option) for option in options)
    hint = did_you_mean(value, [option for option in options if isinstance(option, str)])
    raise ParameterError(f"{name} must be one of {listing}{also}, got {display_value(value)}{hint}")


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """Return ``": did you mean 'x'?"`` for the most similar known name, or an empty string."""
    matches = _similar_names(value, known, 1) if isinstance(value, str) else []
    return f": did you mean {str(matches[0])!r}?" if matches else ""


def format_names(names: Iterable[str], *, near: object = None, maximum: int = 20) -> str:
    """Return a list of names for an error message, starting with those most similar to ``near``."""
    ordered = [str(name) for name in names]
    if isinstance(near, str):
        ordered = list(dict.fromkeys([*_similar_names(near, ordered, 3), *ordered]))
    more = f" and {len(ordered) - maximum:,} more" if len(ordered) > maximum else ""
    return ", ".join(map(repr, ordered[:maximum])) + more


def _similar_names(value: str, known: Iterable[str], count: int) -> list[str]:
    if len(value) > _MAX_NAME:
        return []
    from difflib import get_close_matches

    names = {str(name).casefold(): str(name) for name in known if len(name) <= _MAX_NAME}
    return [names[match] for match in get_close_matches(value.casefold(), names, count, 0.6)]


def check_text(name: str, value: object) -> str:
    """Return ``value`` as a non-empty text that UTF-8 can encode."""
    if not isinstance(value, str) or not value:
        raise ParameterError(f"{name} must be text, got {'an empty text' if value == '' else display_value(value)}")
    if not is_encodable(value):
        raise ParameterError(f"{name} must be text that UTF-8 can encode, got a lone surrogate")
    return str(value)


def encodable(text: str) -> str:
    """Replace lone surrogates by question marks, so that UTF-8 can encode the text."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def is_encodable(value: str) -> bool:
    """Return whether UTF-8 can encode a text: a shell passes invalid bytes as surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_names(name: str, value: object) -> tuple[str, ...]:
    """Return ``value`` as a tuple of distinct names."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ParameterError(f"{name} must be a list of names, got {display_value(value)}")
    names = tuple(value)
    if not all(isinstance(entry, str) and entry for entry in names):
        raise ParameterError(f"{name} must contain strings only")
    if not all(map(is_encodable, names)):
        raise ParameterError(f"{name} must be names that UTF-8 can encode, got a lone surrogate")
    if len(set(names)) < len(names):
        raise ParameterError(f"{name} must not repeat a name")
    return names


def check_path(name: str, value: object) -> Path:
    """Return ``value`` as a path."""
    if not isinstance(value, str | os.PathLike):
        raise ParameterError(f"{name} must be a path, got {display_value(value)}")
    path = os.fspath(value)
    if not isinstance(path, str) or not path or "\0" in path:
        raise ParameterError(f"{name} must be a valid path")
    return Path(path)


def display_value(value: object) -> str:
    """Return a value for an error message, or only its type if it may be private."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, str):
        return repr(str(value)) if _IDENTIFIER.fullmatch(value) else "another text"
    if isinstance(value, Integral):
        return str(int(value)) if abs(int(value)) < 10**18 else "an integer of more than 18 digits"
    number = _as_float(value)
    return type(value).__name__ if number is None else repr(number)


def _as_float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _format_range(minimum: float | None, above: float | None, maximum: float | None, below: float | None) -> str:
    low = f"above {_format_bound(above)}" if above is not None else ""
    high = f"below {_format_bound(below)}" if below is not None else ""
    if minimum is not None and maximum is not None and not low and not high:
        return f" from {_format_bound(minimum)} to {_format_bound(maximum)}"
    low = low or ("" if minimum is None else f"at least {_format_bound(minimum)}")
    high = high or ("" if maximum is None else f"at most {_format_bound(maximum)}")
    interval = " and ".join(filter(None, (low, high)))
    return f" of {interval}" if interval.startswith("at ") else f" {interval}" if interval else ""


def _format_bound(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:,g}"


def is_missing(value: object) -> bool:
    """Return True for None, NaN and the missing values of pandas (by name, because pandas is optional)."""
    if isinstance(value, Real):  # numbers of NumPy are Real, too
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")
