"""The values of a column, as lists, arrays, tables and files have them: texts, missing ones, and keys."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

import numpy as np

from dptext.errors import ParameterError

__all__ = ["is_missing", "one_column", "spelled_key", "spelled_label"]


def one_column(texts: Iterable[str | None]) -> Iterable[str | None]:
    """The texts, unless iterating would not go over them: a table yields its columns, a mapping its keys.

    Raises:
        ParameterError: one string, or something with columns.
    """
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise ParameterError(f"texts must be a list, an array or a Series of strings, got {type(texts).__name__}")
    shape = getattr(texts, "shape", (0,))
    if len(shape) != 1:
        raise ParameterError(
            f"texts must be one column, got something with {len(shape)} axes: select the column by its name alone "
            "(table['text'], not table[['text']])"
        )
    return texts


def is_missing(text: object) -> bool:
    """None, NaN, and the values that pandas has for the same (known by name: pandas need not be there)."""
    return text is None or (isinstance(text, float) and text != text) or type(text).__name__ in ("NAType", "NaTType")


_WHOLE = re.compile(r"[1-9][0-9]{0,14}\.0+")


def spelled_key(value: object) -> str | None:
    """The key as a string; None where the value is none: missing, blank, or neither a text nor a whole number.

    >>> [spelled_key(value) for value in (7, 7.0, "7", " 7", "7.0", "Ann ", "", None, 7.5)]
    ['7', '7', '7', '7', '7', 'Ann', None, None, None]
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        spelled = value.strip()
        return (str(int(float(spelled))) if _WHOLE.fullmatch(spelled) else spelled) or None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return str(Decimal(value))  # of any length: Python's own spelling ends in an error after some thousand digits


def spelled_label(value: object) -> str | None:
    """The label as a string: as `spelled_key`, and other numbers and truth values, which files spell in several ways.

    >>> [spelled_label(value) for value in (1, 1.0, "1", " news ", 4.5, True, "True", "", None, float("nan"), [1])]
    ['1', '1', '1', 'news', '4.5', 'true', 'true', None, None, None, None]
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        return repr(value)
    spelled = spelled_key(value)
    return spelled.lower() if spelled in ("True", "False", "TRUE", "FALSE") else spelled
