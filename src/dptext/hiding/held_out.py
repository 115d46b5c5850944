"""Rows that are held out of a training, and what fresh readers get out of their vectors: how an epoch is judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError
from dptext.hiding.inputs import Rows, Source, Target, shuffled, stream_of
from dptext.privacy.randomness import RandomBits, seed_bytes
from dptext.representations.domains import Floats

__all__ = ["Reader", "TradeOff", "advantage", "measured", "parted"]

_FEATURES = 256
_RIDGE = 1e-2
_MOST_ROWS = 8192  # that readers are fitted on
_TOGETHER = 512


def parted(
    rows: int, users: Sequence[Any] | None, task: Target, others: Sequence[Target], fraction: float, start: int
) -> tuple[Rows, Rows]:
    """(kept, held out) rows: people are held out as a whole, and without users the same share of each class."""
    held = np.zeros(rows, dtype=bool)
    if fraction:
        order = shuffled(np.arange(rows), stream_of(start, b"held out"))
        codes = task.codes if users is None else _numbers(users)
        for code in np.unique(codes) if users is None else ():
            of_class = order[codes[order] == code]
            held[of_class[: min(round(fraction * len(of_class)), len(of_class) - 1)]] = True
        if users is not None:
            _, first = np.unique(codes[order], return_index=True)
            by_chance = codes[order][np.sort(first)]
            held = np.isin(codes, by_chance[: round(fraction * len(by_chance))])
    kept = np.flatnonzero(~held)
    for target in (task, *others):
        left = target.codes[kept]
        if len(np.unique(left[left >= 0])) < 2:
            raise DataError(
                f"{target.name!r} has one class only in the rows that are left to train on, without those held out: "
                "give more rows (or people), or validation_fraction=0"
            )
    return kept, np.flatnonzero(held)


def _numbers(users: Sequence[Any]) -> Rows:
    places: dict[Any, int] = {}
    return np.array([places.setdefault(user, len(places)) for user in users], dtype=np.int64)


class Reader:
    """Fresh readers after each epoch."""

    def __init__(
        self,
        source: Source,
        task: Target,
        attributes: Sequence[Target],
        alpha: float,
        parts: tuple[Rows, Rows],
        start: int,
    ) -> None:
        self._source, self._targets, self._alpha = source, (task, attributes), alpha
        kept, self._held = parts
        self._shown = shuffled(kept, stream_of(start, b"looked at"))[:_MOST_ROWS]

    def look(self, arrived: Callable[[Any], Floats]) -> TradeOff | None:
        """What they get out of vectors, from a batch to (n, d) as they arrive; None where nothing is held out."""
        if not self._held.size:
            return None
        read, held = ((self._vectors(arrived, rows), rows) for rows in (self._shown, self._held))
        return measured(read, held, *self._targets, self._alpha)

    def _vectors(self, arrived: Callable[[Any], Floats], rows: Rows) -> Floats:
        batches = list(self._source.batches(rows, _TOGETHER))
        found = np.concatenate([arrived(self._source.take(batch)) for batch in batches])
        place = np.empty(int(rows.max()) + 1, dtype=np.int64)
        place[np.concatenate(batches)] = np.arange(rows.size)
        return found[place[rows]]


@dataclass(frozen=True)
class TradeOff:
    """How much a fresh reader gets out of held-out vectors."""

    task: float
    attributes: Mapping[str, float] = field(default_factory=dict)
    score: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))


def measured(
    read: tuple[Floats, npt.NDArray[np.intp]],
    held: tuple[Floats, npt.NDArray[np.intp]],
    task: Target,
    attributes: Sequence[Target],
    alpha: float,
) -> TradeOff:
    """Fresh readers fitted on some noisy vectors, ``read``, and judged on others, ``held``: (n, d) and their rows."""
    fit, fit_rows = read[0][:_MOST_ROWS], read[1][:_MOST_ROWS]
    scale = float(np.sqrt(np.mean(fit**2))) or 1.0
    projection = _projection(fit.shape[1])
    known, asked = _features(fit / scale, projection), _features(held[0] / scale, projection)
    numbers = {
        target.name: advantage(known, target.codes[fit_rows], asked, target.codes[held[1]], len(target.classes))
        for target in attributes
    }
    useful = advantage(known, task.codes[fit_rows], asked, task.codes[held[1]], len(task.classes))
    known_ones = [max(each, 0.0) for each in numbers.values() if not math.isnan(each)]
    leaked = float(np.mean(known_ones)) if known_ones else math.nan
    return TradeOff(useful, numbers, useful - alpha * leaked if alpha else useful)


def advantage(known: Floats, labels: Rows, asked: Floats, truth: Rows, classes: int) -> float:
    """Of a least-squares reader that counts each class the same; rows without a label (-1) are left out."""
    kept, judged = labels >= 0, truth >= 0
    labels, truth = labels[kept], truth[judged]
    present = np.unique(truth)
    if not labels.size or len(present) < 2:
        return math.nan
    counts = np.bincount(labels, minlength=classes)
    weights = 1 / np.maximum(counts, 1)[labels]
    wanted = np.eye(classes)[labels] - 1 / classes
    inputs = known[kept]
    gram = (inputs.T * weights) @ inputs
    gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram) / len(gram)
    weighted = np.linalg.solve(gram, (inputs.T * weights) @ wanted)
    found = present[(asked[judged] @ weighted)[:, present].argmax(axis=1)]
    shares = [float(np.mean(found[truth == each] == each)) for each in present]
    return (float(np.mean(shares)) - 1 / len(present)) / (1 - 1 / len(present))


def _projection(width: int) -> Floats:
    """The same every time, so that readers can be compared."""
    return RandomBits.keyed(seed_bytes(b"fresh readers", width)).normal(width + 1, _FEATURES)


def _features(vectors: Floats, projection: Floats) -> Floats:
    bent = np.maximum(vectors @ projection[:-1] / np.sqrt(vectors.shape[1]) + projection[-1], 0.0)
    return np.column_stack([vectors, bent, np.ones(len(vectors))])
