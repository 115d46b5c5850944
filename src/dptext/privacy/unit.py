"""The privacy unit, the neighbouring relation, the trust model, and the one canonical form of a user id."""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from unicodedata import normalize

import numpy as np

__all__ = ["Relation", "Trust", "Unit", "canonical_id"]


class Unit(StrEnum):
    """The privacy unit: what one neighbouring change may touch."""

    WORD = "word"
    SENTENCE = "sentence"
    EXAMPLE = "example"
    DOCUMENT = "document"
    USER = "user"


class Relation(StrEnum):
    """The neighbouring relation: how the data may differ between the two worlds that look alike."""

    SUBSTITUTION = "substitution"
    """One unit is replaced by another; the number of units is the same (public)."""
    ADD_REMOVE = "add/remove"
    """One unit is present or absent; the number of units is itself protected."""


class Trust(StrEnum):
    """Where the noise is added."""

    LOCAL = "local"
    """Before the data leaves its owner: no reader of the output has to be trusted."""
    CENTRAL = "central"
    """By a curator who sees everybody's data and must be trusted with it."""


_WHOLE = re.compile(r"(-?[1-9][0-9]*|-?0)\.0+")


def canonical_id(value: object) -> str | None:
    """Return the canonical form of a user id, by which mechanisms, counters and ledgers tell users apart.

    Whitespace around it is removed, whole numbers are written without a fraction, and Unicode is normalised (NFC).

    Args:
        value: a text or a whole number.

    Returns:
        The id; None if the value is missing, blank, or neither a text nor a whole number.

    >>> [canonical_id(value) for value in (7, 7.0, "7", " 7", "7.0", "Ann ", "", None, 7.5)]
    ['7', '7', '7', '7', '7', 'Ann', None, None, None]
    >>> [canonical_id(value) for value in ("0.0", "-7.0", -7.0, "1234567890123456.0")]
    ['0', '-7', '-7', '1234567890123456']
    >>> canonical_id("Jose\N{COMBINING ACUTE ACCENT}") == canonical_id("José")
    True
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        text = normalize("NFC", value.strip())
        whole = _WHOLE.fullmatch(text)
        return ("0" if whole and whole[1] == "-0" else whole[1] if whole else text) or None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return str(Decimal(value))  # str() of an int raises beyond some thousand digits
