"""What the playground shows for one text at one epsilon: plain values, ready for JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["NOTE", "Attacker", "Neighbours", "Piece", "Point", "Shown"]

NOTE = (
    "This is a teaching aid: what is typed here is not released, and no promise is made for it. Trying a private text "
    "here and publishing the draw that looks best is a release of its own, and the choice adds to what it gives away."
)
"""Stands beside all that is shown."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text; joined in their order they are the text.

    Attributes:
        text: the part.
        stays: the chance that it comes out as it is; None for what has none: spaces, punctuation, placeholders.
        becomes: what else could come out, the likeliest first, with its chance.
    """

    text: str
    stays: float | None
    becomes: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Attacker:
    """The best attacker.

    Attributes:
        says: who they are, what they name, and how it is known.
        right: the share of guesses that are right.
        blind: the same for somebody who sees no output.
    """

    says: str
    right: float
    blind: float


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two inputs that the promise makes hard to tell apart.

    Attributes:
        first, second: the inputs.
        overlap: 1 minus the total variation of their outputs; 1 where nobody can tell them apart.
        outcomes: (output, chance for the first, chance for the second); the last one is the rest.
        says: what the overlap means, and whether it is exact.
    """

    first: str
    second: str
    overlap: float
    outcomes: tuple[tuple[str, float, float], ...]
    says: str


@dataclass(frozen=True, slots=True)
class Point:
    """An output in the plane.

    Attributes:
        x, y: its place.
        of: 0 for an output of the first neighbour, 1 for one of the second.
    """

    x: float
    y: float
    of: int


@dataclass(frozen=True, slots=True)
class Shown:
    """All that is shown for a text.

    Attributes:
        way: the name of the way, a key of `dptext.playground.ways.WAYS`.
        epsilon: where the slider stands.
        promise: what a release with it would promise.
        strength: how much that is, for somebody who knows nothing of differential privacy.
        protects: whether a bound of this size protects by itself (`dptext.privacy.wording.Strength`).
        pieces: the text, in parts.
        draws: what came out, each drawn afresh.
        attacker: what the best attacker gets.
        neighbours: two inputs and their outputs.
        points: outputs of both neighbours in the plane; None for ways without vectors.
        note: what this page is not.
    """

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
