"""Which rows belong to one person: one spelling for one key, whatever format it comes from."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np

__all__ = ["spelled_key"]

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
