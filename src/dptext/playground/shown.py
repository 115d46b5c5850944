"""What the playground shows for one text at one epsilon: plain values, ready for JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

NOTE = (
    "This is a teaching aid: what is typed here is not released, and no promise is made for it. Trying a private text "
    "here and publishing the draw that looks best is a release of its own, and the choice adds to what it gives away."
)
"""Stands beside all that is shown."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text; joined in their order they are the text."""

    text: str
    stays: float | None
    becomes: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Attacker:
    """The best attacker."""

    says: str
    right: float
    blind: float


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two inputs that the promise makes hard to tell apart."""

    first: str
    second: str
    overlap: float
    outcomes: tuple[tuple[str, float, float], ...]
    says: str


@dataclass(frozen=True, slots=True)
class Point:
    """An output in the plane."""

    x: float
    y: float
    of: int


@dataclass(frozen=True, slots=True)
class Shown:
    """All that is shown for a text."""

    way: str
    epsilon: float
    promise: str
    strength: str
    protects: bool
    pieces: tuple[Piece, ...]
    draws: tuple[str, ...]
    attacker: Attacker
    neighbours: Neighbours
    points: tuple[Point, ...] | None = None
    note: str = NOTE

    def as_json(self) -> dict[str, Any]:
        """Dictionaries, lists and plain values."""
        return asdict(self)
