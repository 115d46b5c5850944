"""Numbers of a README's prose, and whether its experiment has them: in a generated table, or among its results.

A number with decimals or a per cent sign is looked for at the precision that it is written with, as a share or in per
cent. An estimate with its interval (``.1 [.0, .2]``, ``.1 ± .2``) is looked for as a whole. Whole numbers are sizes and
settings, and are left out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_NUMBER = r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))"
_SINGLE = re.compile(rf"(?<![\w.,/@:-]){_NUMBER}%?(?![\w/])")
_INTERVAL = re.compile(rf"({_NUMBER}) \[({_NUMBER}), ({_NUMBER})\]")
_BRACKETS = re.compile(rf"\[({_NUMBER}), ({_NUMBER})\]")
_PLUS_MINUS = re.compile(rf"({_NUMBER}) ± ({_NUMBER})")
_SCALES = (1.0, 100.0, 0.01)  # as it is, a share in per cent, a percentage as a share
_BLOCK = re.compile(r"<!-- (?!end)[^>]*-->(.*?)<!-- end[^>]*-->", re.DOTALL)
_CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|https?://\S+", re.DOTALL)


@dataclass(frozen=True)
class Spelled:
    """A number, and the last digit that it is written with."""

    value: float
    digits: int

    @classmethod
    def of(cls, text: str) -> Spelled:
        bare = text.strip("+%").replace(",", "")
        sign, bare = (-1.0, bare[1:]) if bare.startswith("-") else (1.0, bare)
        return cls(sign * float(bare), len(bare.partition(".")[2]))

    @property
    def reach(self) -> float:
        """How far what it was rounded from may lie."""
        return 0.5 * 10.0**-self.digits + 1e-9


class Known:
    """Numbers that an experiment has.

    Args:
        texts: generated tables, and files of results.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        singles: set[float] = set()
        several: set[tuple[float, ...]] = set()
        for text in texts:
            bare = text.replace("**", "").replace("\\*", "")
            singles |= {abs(Spelled.of(match.group()).value) for match in _SINGLE.finditer(bare)}
            for pattern in (_INTERVAL, _BRACKETS, _PLUS_MINUS):
                several |= {tuple(Spelled.of(entry).value for entry in result) for result in pattern.findall(bare)}
        several |= {
            (-value, *(-entry for entry in reversed(rest))) for value, *rest in several
        }  # said the other way round
        self._several = sorted({tuple(scale * one for one in entry) for entry in several for scale in _SCALES})
        self._singles = sorted({scale * single for single in singles for scale in _SCALES})

    def has(self, numbers: tuple[str, ...]) -> bool:
        """Whether a number stands there, or several do as one estimate; prose may leave a sign out."""
        spelled = [Spelled.of(number) for number in numbers]
        if len(spelled) == 1:
            (one,) = spelled
            place = bisect_left(self._singles, abs(one.value) - one.reach)
            return place < len(self._singles) and self._singles[place] <= abs(one.value) + one.reach
        if len(spelled) == 3 and self.has(numbers[:1]) and self.has(numbers[1:]):
            return True  # a table may have an interval in a column of its own
        first = spelled[0]
        low = bisect_left(self._several, (first.value - first.reach,))
        high = bisect_left(self._several, (first.value + first.reach,))
        return any(
            len(entry) == len(spelled)
            and all(abs(one.value - other) <= one.reach for one, other in zip(spelled, entry, strict=True))
            for entry in self._several[low:high]
        )


def generated(readme: str) -> Iterator[str]:
    """What stands between marks."""
    return (match[1] for match in _BLOCK.finditer(readme))


def unknown_numbers(readme: str, known: Known, sections: Iterable[str] = ()) -> Iterator[str]:
    """Numbers of the prose that are not known, as they are written.

    Args:
        readme: the whole file.
        known: the numbers of its experiment.
        sections: headings of parts that say themselves that they have no rows.
    """
    for heading, text in _sections(_CODE.sub("", _BLOCK.sub("", readme))):
        if heading in sections:
            continue
        bare = text.replace("**", "")
        for pattern in (_INTERVAL, _PLUS_MINUS):
            for match in pattern.finditer(bare):
                if not known.has(match.groups()):
                    yield match.group()
            bare = pattern.sub("", bare)
        for single in _SINGLE.finditer(bare):
            number = single.group()
            if ("." in number or "%" in number) and not known.has((number,)):
                yield number


def _sections(text: str) -> Iterator[tuple[str, str]]:
    heading, lines = "", list[str]()
    for line in text.splitlines():
        if line.startswith("#"):
            yield heading, "\n".join(lines)
            heading, lines = line.lstrip("# "), []
        else:
            lines.append(line)
    yield heading, "\n".join(lines)
