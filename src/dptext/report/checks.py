"""What can be checked of a private file beside the promise itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dptext.privacy.statement import PrivacyStatement
from dptext.release.statements import data_agrees

__all__ = ["Check", "check_digest", "check_promise"]

_SEEN = {True: "its SHA-256 agrees", False: "its SHA-256 DIFFERS", None: "there is no data to compare"}


@dataclass(frozen=True)
class Check:
    """One thing that was checked: what, whether it held (None: nothing to check), and what was seen."""

    name: str
    held: bool | None
    seen: str


def check_digest(statement: PrivacyStatement, data: Path) -> Check:
    """Whether the data is the data of the statement."""
    agrees = data_agrees(statement, data)
    return Check("the data is the data of the statement", agrees, _SEEN[agrees])


_WORDED = {"condition", "assumptions", "exposed"}


def check_promise(statement: PrivacyStatement, again: PrivacyStatement, differ: Sequence[str]) -> Check:
    """Whether a statement is the one that follows from its parameters, given the names of what differs.

    Another version of dptext may have put the same into other words, so words are held only against its own.
    """
    same_version = statement.software == again.software
    counted = [name for name in differ if same_version or name not in _WORDED]
    seen = f"{again.guarantee}" + (f"; {', '.join(differ)} differ" if differ else "")
    if len(counted) < len(differ):
        seen += ", perhaps in their wording only: another version wrote the statement"
    return Check("the promise follows from the parameters", not counted, seen)
