"""How likely each original is to have become each private row, where the mechanism's probabilities are known.

Rows are sequences of symbols (words of a text) that went through a mechanism one by one:

    ln P(private | original) = sum over places i of ln P(private_i | original_i),        -infinity if lengths differ

The length is public (the layout is), so an original of another length is excluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.attacks.channel import Channel, ChannelRows
from dptext.attacks.ranking import Pairs
from dptext.errors import ParameterError

__all__ = ["sequence_likelihoods"]

Floats: TypeAlias = npt.NDArray[np.float64]
_LARGEST = 1 << 28  # entries of the table of symbols


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
