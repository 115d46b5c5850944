"""What is computed from private texts, and nothing else is: for each class, how many documents people have and where
these lie in a public feature space, added up over people who are each clipped to norm 1.

Derivation: docs/mechanisms/synthesis.md#synthesis-moments
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dptext.features.features import UNIT
from dptext.noise.gaussian_sums import clipped_matrices
from dptext.users.grouping import Chunk, UserTexts

__all__ = ["COUNT_WEIGHT", "TEXTS_AT_ONCE", "MomentSum", "Space"]

COUNT_WEIGHT = 0.2
"""beta of (document): the noise on a count of documents is sigma / beta, and 98% of a document's length are left to its
features."""
TEXTS_AT_ONCE = 1024

Integers = npt.NDArray[np.int64]


class Space(Protocol):
    """The public feature space of a description (`dptext.features.features.PublicFeatures`)."""

    @property
    def dimension(self) -> int:
        """k."""
        ...

    def units(self, texts: Sequence[str]) -> npt.NDArray[np.int32]:
        """(n, k) in units of `UNIT`, each row at most 1 long: of each text from this text alone."""
        ...


@dataclass(eq=False)
class MomentSum:
    """The sum of all people's matrices."""

    space: Space
    classes: int
    cells: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.cells = np.zeros((self.classes, 1 + self.space.dimension), dtype=np.int64)

    def add(self, people: Iterable[UserTexts]) -> int:
        """Add the matrices of people, each of whom must bring all their documents at once; how many there were."""
        texts: list[str] = []
        keys: list[Integers] = []
        count = waiting = 0
        for person in people:
            count += 1
            chunks = person.chunks()
            first = next(chunks, None)
            if first is None:
                continue
            second = next(chunks, None)
            if second is not None or len(first[0]) >= TEXTS_AT_ONCE:
                self._add_prolific(chain((first,), () if second is None else (second,), chunks))
                continue
            mine, codes = _of_classes(first)
            texts += mine
            keys.append(codes + waiting * self.classes)
            waiting += 1
            if len(texts) >= TEXTS_AT_ONCE:
                self._add_batch(texts, keys)
                texts, keys, waiting = [], [], 0
        self._add_batch(texts, keys)
        return count

    def _add_batch(self, texts: Sequence[str], keys: Sequence[Integers]) -> None:
        """People who wrote little, several at once."""
        if texts:
            self._add_matrices(*self._summed(texts, np.concatenate(keys)))

    def _add_prolific(self, chunks: Iterable[Chunk]) -> None:
        """One person who wrote much, in memory for one matrix."""
        counts = np.zeros(self.classes, dtype=np.int64)
        sums = np.zeros((self.classes, self.space.dimension), dtype=np.int64)
        for chunk in chunks:
            texts, codes = _of_classes(chunk)
            for start in range(0, len(texts), TEXTS_AT_ONCE):
                part = slice(start, start + TEXTS_AT_ONCE)
                rows, found, added = self._summed(texts[part], codes[part])
                counts[rows] += found
                sums[rows] += added
        present = np.flatnonzero(counts)
        self._add_matrices(present, counts[present], sums[present])

    def _summed(self, texts: Sequence[str], keys: Integers) -> tuple[Integers, Integers, Integers]:
        """Distinct keys (person * K + class), ascending; how many documents each has; the sum of their features."""
        order = np.argsort(keys, kind="stable")
        units = self.space.units(texts)[order].astype(np.int64)
        found, first, counts = np.unique(keys[order], return_index=True, return_counts=True)
        return found, counts, np.add.reduceat(units, first, axis=0)

    def _add_matrices(self, keys: Integers, counts: Integers, sums: Integers) -> None:
        """Rows of whole people, by ascending person: clip, add."""
        if len(keys) == 0:
            return
        person, label = np.divmod(keys, self.classes)
        features = sums * (UNIT * math.sqrt(1 - COUNT_WEIGHT**2))
        rows = np.concatenate([COUNT_WEIGHT * counts[:, None], features], axis=1)  # (document)
        starts = np.flatnonzero(np.r_[True, person[1:] != person[:-1]])
        cells = clipped_matrices(rows, starts, np.ones(len(starts)))  # (person)
        order = np.argsort(label, kind="stable")
        present, first = np.unique(label[order], return_index=True)
        self.cells[present] += np.add.reduceat(cells[order], first, axis=0)


def _of_classes(chunk: Chunk) -> tuple[list[str], Integers]:
    """The documents that have a class."""
    texts, codes = chunk
    inside = np.flatnonzero(codes >= 0)
    if len(inside) == len(texts):
        return list(texts), codes.astype(np.int64)
    return [texts[place] for place in inside.tolist()], codes[inside].astype(np.int64)
