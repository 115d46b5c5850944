"""Likelihood of candidate originals, from the segmentation of an output into bank texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.sentences.rewriter import BankRewriter

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_WAYS = 64  # maximum number of segmentations per text
_MEMBERS = 1 << 22  # set members in memory at a time
_MOST_PAIRS = 1 << 30  # pairs use one byte each


class Parting:
    """Segmentation of outputs into bank texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._rows = {text: row for row, text in enumerate(texts)}
        lengths: dict[str, set[int]] = {}
        for text in self._rows:
            words = text.split(" ")
            lengths.setdefault(words[0], set()).add(len(words))
        self._lengths = {word: sorted(result) for word, result in lengths.items()}

    def counts(self, text: str) -> list[int]:
        """Return the possible numbers of bank texts in a text, ascending; none if it contains anything else."""
        last = self._walk(text)[0][-1]
        return [count for count in range(last.bit_length()) if last >> count & 1]

    def ways(self, text: str) -> list[tuple[int, ...]]:
        """Return the segmentations of a text into rows of the bank, those with the fewest texts first."""
        reached, steps = self._walk(text)
        ways: list[tuple[int, ...]] = []
        todo: list[tuple[int, int, tuple[int, ...]]] = [(len(reached) - 1, n, ()) for n in self.counts(text)[::-1]]
        while todo and len(ways) < _WAYS:
            position, left, way = todo.pop()
            if not left:
                ways.append(way)
                continue
            earlier = (step for step in steps[position] if reached[step[0]] >> (left - 1) & 1)
            todo += [(before, left - 1, (row, *way)) for before, row in earlier]
        return ways

    def _walk(self, text: str) -> tuple[list[int], list[list[tuple[int, int]]]]:
        words = text.split(" ") if text else []
        # texts whose white space differs from a bank's never reach the last position
        starts = [0, *accumulate(len(word) + 1 for word in words)]
        reached = [1] + [0] * len(words)
        steps: list[list[tuple[int, int]]] = [[] for _ in reached]
        for place, word in enumerate(words):
            if not reached[place]:
                continue
            for length in self._lengths.get(word, ()):
                end = place + length
                if end > len(words):
                    break
                row = self._rows.get(text[starts[place] : starts[end] - 1])
                if row is not None:
                    reached[end] |= reached[place] << 1
                    steps[end].append((place, row))
        return reached, steps


class Likelihoods:
    """Log likelihoods ln P(private text | original), for all pairs of private texts and candidate originals."""

    def __init__(self, rewriter: BankRewriter, originals: Sequence[str | None], private: Sequence[str | None]) -> None:
        self.shape = (len(private), len(originals))
        if len(originals) * len(private) > _MOST_PAIRS:
            raise ParameterError(
                f"{len(private):,} private texts and {len(originals):,} candidates are more than {_MOST_PAIRS:,} "
                "pairs: attack fewer rows"
            )
        self._rewriter = rewriter
        parts = [None if text is None else rewriter.parts(text) for text in originals]
        self._counts = np.array([-1 if part is None else len(part) for part in parts], dtype=np.int64)
        parting = Parting(rewriter.bank.texts)
        ways = [[] if text is None else parting.ways(text) for text in private]
        self._missing = np.array([text is None for text in private], dtype=bool)
        self._hits: list[tuple[int, Rows, Rows, npt.NDArray[np.uint16]]] = []
        for count in np.unique(self._counts[self._counts >= 0]).tolist():
            owners = np.flatnonzero(self._counts == count)
            taken = [(row, way) for row, result in enumerate(ways) for way in result if len(way) == count]
            rows = np.array([row for row, _ in taken], dtype=np.int64)
            draws = np.array([way for _, way in taken], dtype=np.int64).reshape(len(taken), count)
            hits = np.zeros((len(taken), len(owners)), dtype=np.uint16)
            for place in range(count):
                self._count(hits, [(parts[position] or [])[place] for position in owners.tolist()], draws[:, place])
            self._hits.append((count, rows, owners, hits))

    def _count(self, hits: npt.NDArray[np.uint16], parts: list[str], draws: Rows) -> None:
        """Add 1 to the (segmentations, originals) counts where the set of a part contains the draw."""
        bank, size = self._rewriter.bank, self._rewriter.size
        target = np.zeros(len(bank), dtype=bool)
        target[draws] = True
        distinct = {part: index for index, part in enumerate(dict.fromkeys(parts))}
        owners = np.array([distinct[part] for part in parts], dtype=np.int64)
        vectors = bank.features.vectors([*distinct])
        step = max(1, _MEMBERS // size)
        members: list[Rows] = []
        of: list[Rows] = []
        for start in range(0, len(vectors), step):
            sets = bank.nearest(vectors[start : start + step], size)
            position, place = np.nonzero(target[sets])
            of.append(position + start)
            members.append(sets[position, place])
        order = np.argsort(np.concatenate(members), kind="stable")
        member, owner_ids = np.concatenate(members)[order], np.concatenate(of)[order]
        first, last = np.searchsorted(member, draws, side="left"), np.searchsorted(member, draws, side="right")
        inside = np.zeros(len(vectors), dtype=np.uint16)
        for row, (one, other) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            inside[owner_ids[one:other]] = 1
            hits[row] += inside[owners]
            inside[owner_ids[one:other]] = 0

    def __call__(self, start: int, stop: int) -> Floats:
        """Return the (stop - start, n) log likelihoods of a range of outputs; impossible pairs are minus infinity."""
        selection = self._rewriter.selection
        gap, low = math.log(selection.high / selection.low), math.log(selection.low / selection.total)
        result = np.full((stop - start, self.shape[1]), -np.inf)
        result[np.ix_(self._missing[start:stop], self._counts == -1)] = 0.0
        for count, rows, owners, hits in self._hits:
            for way in range(*np.searchsorted(rows, (start, stop)).tolist()):
                row = result[rows[way] - start]
                row[owners] = np.logaddexp(row[owners], hits[way] * gap + count * low)
        return result

    def own(self) -> tuple[Rows, Rows, Rows]:
        parts, maximum = np.full(self.shape[0], -1), np.zeros(self.shape[0], dtype=np.int64)
        minimum = np.full(self.shape[0], np.iinfo(np.int64).max)
        parts[self._missing & (self._counts == -1)] = 0
        for count, rows, owners, hits in self._hits:
            position = np.searchsorted(owners, rows)
            owned = np.flatnonzero(owners[np.minimum(position, len(owners) - 1)] == rows)
            inside = hits[owned, position[owned]].astype(np.int64)
            parts[rows[owned]] = count
            np.minimum.at(minimum, rows[owned], inside)
            np.maximum.at(maximum, rows[owned], inside)
        return parts, np.minimum(minimum, maximum), maximum
