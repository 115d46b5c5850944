"""Rows that are held out of a training, and what fresh readers get out of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext.errors import DataError
from dptext.hiding.noise import NoiseInTheLoop
from dptext.hiding.targets import Target
from dptext.hiding.tradeoff import TradeOff, measured
from dptext.hiding.training import Source, shuffled, stream_of
from dptext.representations.domains import Floats

__all__ = ["Reader", "parted"]

Rows = npt.NDArray[np.int64]

_LOOKED_AT = 8192  # rows that readers are fitted on
_TOGETHER = 512


def parted(
    rows: int, groups: Sequence[Any] | None, task: Target, others: Sequence[Target], fraction: float, start: int
) -> tuple[Rows, Rows]:
    """(kept, held out) rows: whole groups are held out together, and without groups the same share of each class.

    Raises:
        DataError: what is kept has one class only of some target.
    """
    held = np.zeros(rows, dtype=bool)
    if fraction:
        order = shuffled(np.arange(rows), stream_of(start, b"held out"))
        codes = task.codes if groups is None else _numbers(groups)
        for code in np.unique(codes) if groups is None else ():
            of_class = order[codes[order] == code]
            held[of_class[: min(round(fraction * len(of_class)), len(of_class) - 1)]] = True
        if groups is not None:
            _, first = np.unique(codes[order], return_index=True)
            by_chance = codes[order][np.sort(first)]
            held = np.isin(codes, by_chance[: round(fraction * len(by_chance))])
    kept = np.flatnonzero(~held)
    for target in (task, *others):
        left = target.codes[kept]
        if len(np.unique(left[left >= 0])) < 2:
            raise DataError(
                f"{target.name!r} has one class only in the rows that are left to train on, without those held out: "
                "give more rows (or groups), or validation_fraction=0"
            )
    return kept, np.flatnonzero(held)


def _numbers(groups: Sequence[Any]) -> Rows:
    places: dict[Any, int] = {}
    return np.array([places.setdefault(group, len(places)) for group in groups], dtype=np.int64)


class Reader:
    """Fresh readers after each epoch.

    Args:
        torch: the module.
        source: inputs.
        network: from a batch to raw vectors.
        noise: bound and noise.
        task, attributes: labels.
        alpha: weight of the attributes.
        parts: (kept, held out) rows.
        start: of the run.
    """

    def __init__(
        self,
        torch: Any,
        source: Source,
        network: Any,
        noise: NoiseInTheLoop,
        task: Target,
        attributes: Sequence[Target],
        alpha: float,
        parts: tuple[Rows, Rows],
        start: int,
    ) -> None:
        self._torch, self._source, self._network, self._noise = torch, source, network, noise
        self._targets, self._alpha = (task, attributes), alpha
        kept, self._held = parts
        self._shown = shuffled(kept, stream_of(start, b"looked at"))[:_LOOKED_AT]

    def __call__(self) -> TradeOff | None:
        """What they get; None where nothing is held out."""
        if not self._held.size:
            return None
        read = self._arrived(self._shown), self._shown
        return measured(read, (self._arrived(self._held), self._held), *self._targets, self._alpha)

    def _arrived(self, rows: Rows) -> Floats:
        """(n, d) vectors of rows as they arrive, noise and all."""
        place = np.empty(int(rows.max()) + 1, dtype=np.int64)
        place[rows] = np.arange(rows.size)
        found: Floats | None = None
        with self._torch.no_grad():
            for some in self._source.batches(rows, _TOGETHER):
                raw = self._network(self._source.take(some))
                z = self._noise.add(self._noise.bound(raw)).numpy().astype(np.float64)
                found = np.empty((rows.size, z.shape[1])) if found is None else found
                found[place[some]] = z
        assert found is not None
        return found
