"""What stayed: pieces of the originals that look like somebody's name, address or number, in their private texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dptext.release.mechanism import unmarked
from dptext.release.redaction import Terms, united
from dptext.text.patterns import find
from dptext.text.tokens import fold, letters_between

_TELLING = 3  # letters or digits of a part that counts


@dataclass(frozen=True)
class Stayed:
    """One kind, in all rows that were looked at."""

    kind: str
    pieces: int
    whole: int
    part: int


def stayed(
    originals: Sequence[str | None], private: Sequence[str | None], *, words: Iterable[str] = ()
) -> list[Stayed]:
    """What of the recognised pieces of originals stands in their private texts, by kind, the most frequent first."""
    terms = Terms(words)
    counts: dict[str, list[int]] = {}
    for before, after in zip(originals, private, strict=True):
        if not before:
            continue
        spans = united([*terms.find(before), *find(before)])
        if not spans:
            continue
        runs = list(_runs(after or ""))
        there, joined = set(runs), f" {' '.join(runs)} "
        for start, end, kind in spans:
            piece = list(_runs(before[start:end]))
            count = counts.setdefault(kind, [0, 0, 0])
            count[0] += 1
            if piece and f" {' '.join(piece)} " in joined:
                count[1] += 1
            elif any(len(run) >= _TELLING and run in there for run in piece):
                count[2] += 1
    made = [Stayed(kind, *count) for kind, count in counts.items()]
    return sorted(made, key=lambda each: (-each.pieces, each.kind))


def _runs(text: str) -> Iterator[str]:
    return (fold(run) for run in letters_between(unmarked(text)))
