"""Whether a statement says what follows from the constants that it speaks of: one comparison, field by field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from dptext.privacy.statement import PrivacyStatement

__all__ = ["NEAR", "disagreements", "same_value"]

NEAR = 1e-6
"""How far two machines' calibrations may be apart: they search for a flat optimum, to the root of the precision."""

_OF_A_RELEASE = ("seeded", "data_sha256", "release_id", "supersedes")
_ONLY_MORE = ("assumptions", "exposed")


def disagreements(
    said: PrivacyStatement, follows: PrivacyStatement, *, of_a_release: bool = False, apart_from: tuple[str, ...] = ()
) -> list[str]:
    found = []
    for name in (each.name for each in fields(PrivacyStatement)):
        if name == "software" or name in apart_from or (of_a_release and name in _OF_A_RELEASE):
            continue
        mine, theirs = getattr(said, name), getattr(follows, name)
        if name == "parameters":
            found += _parameters(mine, theirs, of_a_release, apart_from)
        elif name == "guarantee":
            agree = type(mine) is type(theirs) and same_numbers(asdict(mine), asdict(theirs), 1e-12)
            found += [] if agree else [name]
        elif of_a_release and name in _ONLY_MORE:
            found += [] if set(theirs) <= set(mine) else [name]
        elif of_a_release and name == "condition":
            found += [] if mine.narrows(theirs, said.unit) else [name]
        elif of_a_release and name == "slack":
            found += [] if mine >= theirs * (1 - NEAR) else [name]
        elif not _same(mine, theirs, NEAR):
            found.append(name)
    return found


def same_value(one: Mapping[str, Any], other: Mapping[str, Any], name: str, near: float) -> bool:
    """Whether both have a value of this name, and the same; floats up to a relative difference of ``near``."""
    return name in one and name in other and _same(one[name], other[name], near)


def same_numbers(one: Mapping[str, Any], other: Mapping[str, Any], near: float) -> bool:
    """Whether both have the same names with the same values."""
    return one.keys() == other.keys() and all(_same(one[name], other[name], near) for name in one)


def _parameters(
    said: Mapping[str, Any], follows: Mapping[str, Any], of_a_release: bool, apart_from: tuple[str, ...]
) -> list[str]:
    names = [*follows, *(() if of_a_release else (name for name in said if name not in follows))]
    return [name for name in names if name not in apart_from and not same_value(said, follows, name, NEAR)]


def _same(mine: Any, theirs: Any, near: float) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=near, abs_tol=1e-12 if near else 0.0)
    if isinstance(mine, str) and isinstance(theirs, str):
        return mine == theirs  # one of an enumeration is the string that it is written as
    return type(mine) is type(theirs) and bool(mine == theirs)
