"""The output distributions of a mechanism as attacks take them: a matrix, or a function that gives its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError

__all__ = ["Channel", "ChannelRows"]

Floats: TypeAlias = npt.NDArray[np.float64]
Ids: TypeAlias = npt.NDArray[np.int64]
Channel: TypeAlias = npt.ArrayLike | Callable[[Ids], npt.ArrayLike]
"""(inputs, outputs) P(output | input), or a function from (k,) input ids to (k, outputs)."""

_ENTRIES = 1 << 22
_LEAST_ROWS = 32
_OFF = 1e-6  # a row may miss 1 by this much


class ChannelRows:
    """Checked rows of a channel, block by block.

    Args:
        channel: a matrix, or a function.
        inputs: how many inputs a function has.
        log: whether it gives natural logarithms.

    Raises:
        ParameterError: no matrix; a function without the number of its inputs; rows that are no distributions (when
            they are read).
    """

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

    def __getitem__(self, ids: Ids) -> Floats:
        """(k, outputs) P(output | input) of some inputs."""
        return self._read(ids)[0]

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
            yield self[np.arange(start, min(start + step, self.inputs))]

    def logarithms(self, inputs: Ids, outputs: Ids) -> Floats:
        """(inputs, outputs) ln P(output | input) of some of both, minus infinity where it cannot be.

        Raises:
            ParameterError: an id that is none.
        """
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
