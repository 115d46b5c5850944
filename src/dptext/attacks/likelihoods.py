"""Where the mechanism's probabilities are known: how likely each original is to have become each private row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.ranking import Pairs
from dptext.errors import ParameterError

__all__ = ["Channel", "ChannelRows", "sequence_likelihoods"]

Floats: TypeAlias = npt.NDArray[np.float64]
Ids: TypeAlias = npt.NDArray[np.int64]
Channel: TypeAlias = npt.ArrayLike | Callable[[Ids], npt.ArrayLike]
"""(inputs, outputs) P(output | input), or a function from (k,) input ids to (k, outputs)."""
_ENTRIES = 1 << 22
_LEAST_ROWS = 32
_OFF = 1e-6  # a row may miss 1 by this much
_LARGEST = 1 << 28  # entries of the table of symbols


class ChannelRows:
    """Rows of a channel (a function needs ``inputs``), checked when they are read."""

    def __init__(self, channel: Channel, *, inputs: int | None = None, log: bool = False) -> None:
        self._log = log
        if callable(channel):
            if inputs is None or inputs < 1:
                raise ParameterError(f"channel is a function: say how many inputs it has, got {inputs}")
            self._rows: Any = channel
            self.inputs = inputs
            return
        table = np.asarray(channel)
        if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "fiu":
            raise ParameterError(f"channel must be a matrix (inputs, outputs) of numbers, got shape {table.shape}")
        if inputs is not None and inputs != len(table):
            raise ParameterError(f"channel must have one row for each of {inputs:,} inputs, got {len(table):,}")
        self._rows = lambda ids: table[ids]
        self.inputs = len(table)

    def _read(self, ids: Ids) -> tuple[Floats, Floats]:
        """(probabilities, what the channel gave: these, or their logarithms)."""
        given = np.asarray(self._rows(ids), dtype=np.float64)
        if given.ndim != 2 or len(given) != len(ids):
            raise ParameterError(f"channel must give {len(ids):,} rows for as many inputs, got shape {given.shape}")
        with np.errstate(over="ignore"):  # what is infinite is no distribution, and refused
            rows = np.exp(given) if self._log else given
        # NaN fails both comparisons
        if not ((rows >= 0).all() and (np.abs(rows.sum(axis=1) - 1) <= _OFF).all()):
            what = "exponentials" if self._log else "rows"
            raise ParameterError(f"channel must hold distributions: {what} of at least 0 that sum to 1, got others")
        return rows, given

    def blocks(self) -> Iterator[Floats]:
        """All rows in order."""
        step = max(_LEAST_ROWS, _ENTRIES // self.inputs)
        for start in range(0, self.inputs, step):
            yield self._read(np.arange(start, min(start + step, self.inputs)))[0]

    def logarithms(self, inputs: Ids, outputs: Ids) -> Floats:
        """(inputs, outputs) ln P(output | input) of some of both, minus infinity where it cannot be."""
        if inputs.min() < 0 or inputs.max() >= self.inputs:
            raise ParameterError(f"original must hold ids of {self.inputs:,} inputs, got others")
        found = np.empty((inputs.size, outputs.size))
        step = max(_LEAST_ROWS, _ENTRIES // self.inputs)
        for start in range(0, inputs.size, step):
            _, given = self._read(inputs[start : start + step])
            if outputs.min() < 0 or outputs.max() >= given.shape[1]:
                raise ParameterError(f"private must hold ids of {given.shape[1]:,} outputs, got others")
            with np.errstate(divide="ignore"):  # logarithms as they were given keep what lies below 1e-308
                found[start : start + step] = given[:, outputs] if self._log else np.log(given[:, outputs])
        return found


def sequence_likelihoods(
    original: Sequence[npt.ArrayLike],
    private: Sequence[npt.ArrayLike],
    channel: Channel,
    *,
    inputs: int | None = None,
    log: bool = False,
) -> tuple[Pairs, tuple[int, int]]:
    """Log-likelihoods of all pairs, for `dptext.attacks.linkage_of_scores`.

    Args:
        original: n sequences of input ids.
        private: m sequences of output ids.
        channel: (inputs, outputs) P(output | input), or a function from (k,) input ids to (k, outputs).
        inputs: how many inputs there are, where the channel is a function.
        log: whether the channel holds natural logarithms.

    Returns:
        A function of blocks, and (m, n).

    Raises:
        ParameterError: an id out of range, no sequence, too many distinct symbols for a table in memory.

    >>> keep = [[0.9, 0.1], [0.1, 0.9]]
    >>> pairs, shape = sequence_likelihoods([[0, 0], [0, 1], [1]], [[0, 1]], keep)
    >>> np.exp(pairs(0, 1)).round(2).tolist(), shape
    ([[0.09, 0.81, 0.0]], (1, 3))
    """
    sides = [_flat(name, rows) for name, rows in (("original", original), ("private", private))]
    rows_of = ChannelRows(channel, inputs=inputs, log=log)
    symbols = [np.unique(np.concatenate(rows)) for rows in sides]
    if symbols[0].size * symbols[1].size > _LARGEST:
        raise ParameterError(
            f"original and private hold {symbols[0].size:,} and {symbols[1].size:,} distinct symbols, a table of more "
            f"than {_LARGEST:,} pairs: attack a part of the rows"
        )
    table = rows_of.logarithms(symbols[0], symbols[1])
    codes = [[np.searchsorted(names, row) for row in rows] for names, rows in zip(symbols, sides, strict=True)]
    lengths = np.array([row.size for row in codes[0]])
    stacked = {
        int(length): (at, np.stack([codes[0][place] for place in at]))
        for length in np.unique(lengths)
        for at in [np.flatnonzero(lengths == length)]
    }

    def pairs(start: int, stop: int) -> npt.NDArray[Any]:
        found = np.full((stop - start, lengths.size), -np.inf)
        for place, row in enumerate(codes[1][start:stop]):
            at, inside = stacked.get(row.size, (np.empty(0, dtype=np.int64), np.empty((0, row.size), dtype=np.int64)))
            found[place, at] = table[inside, row].sum(axis=1)
        return found

    return pairs, (len(codes[1]), lengths.size)


def _flat(name: str, rows: Sequence[npt.ArrayLike]) -> list[npt.NDArray[np.int64]]:
    found = []
    for place, row in enumerate(rows):
        ids = np.asarray(row)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise ParameterError(f"{name} must be sequences of integers, entry {place} is none")
        found.append(ids.astype(np.int64))
    if not found or not any(row.size for row in found):
        raise ParameterError(f"{name} must hold at least one symbol, got none in {len(found):,} sequences")
    return found
