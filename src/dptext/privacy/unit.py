"""Who is protected, against which change of the data, and from whom."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Relation", "Trust", "Unit"]


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
