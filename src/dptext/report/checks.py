"""What can be checked of a private file beside the promise itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dptext.privacy.statement import PrivacyStatement
from dptext.text.statements import data_agrees

__all__ = ["Check", "check_digest"]

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
