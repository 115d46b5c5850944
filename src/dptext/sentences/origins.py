"""Likelihood of candidate originals, from the segmentation of an output into bank texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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

    def counts(self, text: str, limit: int | None = None) -> set[int]:
        """Return the possible numbers of bank texts in a text; the set is empty if it contains anything else."""
        reached, _ = self._walk(text, limit)
        return {count for count in range(reached[-1].bit_length()) if reached[-1] >> count & 1}

    def ways(self, text: str, parts: int | None = None) -> list[tuple[int, ...]]:
        reached, steps = self._walk(text, parts)
        segmentations: list[tuple[int, ...]] = []
        counts = [index for index in range(reached[-1].bit_length()) if reached[-1] >> index & 1]
        for count in counts if parts is None else [entry for entry in counts if entry == parts]:
            for way in _backwards(steps, reached, len(reached) - 1, count):
                segmentations.append(way)
                if len(segmentations) == _WAYS:
                    return segmentations
        return segmentations

    def _walk(self, text: str, limit: int | None) -> tuple[list[int], list[list[tuple[int, int]]]]:
        words = text.split(" ") if text else []
        # texts whose white space differs from a bank's never reach the last position
        starts = [0, *accumulate(len(word) + 1 for word in words)]
        reached = [1] + [0] * len(words)
        steps: list[list[tuple[int, int]]] = [[] for _ in reached]
        kept = -1 if limit is None else (1 << (limit + 1)) - 1
        for place, word in enumerate(words):
            if not reached[place]:
                continue
            for length in self._lengths.get(word, ()):
                end = place + length
                if end > len(words):
                    break
                row = self._rows.get(text[starts[place] : starts[end] - 1])
                if row is not None:
                    reached[end] |= reached[place] << 1 & kept
                    steps[end].append((place, row))
        return reached, steps


def _backwards(
    steps: list[list[tuple[int, int]]], reached: list[int], place: int, count: int
) -> Iterator[tuple[int, ...]]:
    """Yield the segmentations into ``count`` texts that end at a position."""
    todo: list[tuple[int, int, tuple[int, ...]]] = [(place, count, ())]
    while todo:
        position, left, way = todo.pop()
        if not left:
            yield way
            continue
        todo += [
            (before, left - 1, (row, *way)) for before, row in steps[position] if reached[before] >> (left - 1) & 1
        ]


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
