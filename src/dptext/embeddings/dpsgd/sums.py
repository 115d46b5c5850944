"""The sum of a step: whole numbers for each row that units touch, in as few bytes as they need."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.compiled import compiled
from dptext.embeddings.dpsgd.recipe import MOST

__all__ = ["NOWHERE", "Sums", "add_cells", "cells_of"]

Rows = npt.NDArray[np.int32]
Cells = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

NOWHERE = -1
"""The place of a row that nobody has touched."""
_NARROW, _SIGN = np.int32(2**15 - 1), np.int32(31)
_MOST, _LEAST = np.int32(MOST), np.int32(-MOST)


class Sums(NamedTuple):
    """The sum, private."""

    places: Rows
    narrow: npt.NDArray[np.int16]
    wide: Cells
    used: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: int, most: int, dimension: int) -> Sums:
        """Return empty sums of ``rows`` rows, at most ``most`` of which are touched in a step."""
        # large pages, as numpy asks for, where most of them are used: with small ones the processor looks up an address
        # for nearly every row, which was a fifth of a training
        narrow = np.empty((most, dimension), dtype=np.int16)
        wide = np.empty((most, dimension), dtype=np.int32)
        return cls(np.full(rows, NOWHERE, dtype=np.int32), narrow, wide, np.zeros(2, dtype=np.int64))

    @property
    def touched(self) -> Rows:
        """Rows that somebody has touched."""
        return np.flatnonzero(self.places != NOWHERE).astype(np.int32)

    def clear(self) -> None:
        """Set all rows to 0."""
        self.places[:] = NOWHERE
        self.used[:] = 0


@compiled
def cells_of(sums: Sums, row: int, first: int, count: int, cells: Cells) -> None:
    """Some numbers of a row, from ``first`` on, into an array."""
    place = sums.places[row]
    if place >= 0:
        narrow = sums.narrow[place]
        for axis in range(count):
            cells[axis] = narrow[first + axis]
    elif place < NOWHERE:
        wide = sums.wide[-2 - place]
        for axis in range(count):
            cells[axis] = wide[first + axis]
    else:
        for axis in range(count):
            cells[axis] = 0


@compiled
def _widened(sums: Sums, row: int) -> int:
    """A place for wider numbers; what stands there is left over from earlier steps."""
    place = -2 - int(sums.used[1])
    sums.used[1] += 1
    sums.places[row] = place
    return place


@compiled
def add_cells(sums: Sums, rows: Rows, parts: Singles, factors: Floats) -> None:
    """Add ``parts * factors``, rounded towards zero, to distinct rows; what goes beyond `MOST` is cut."""
    places, narrow, wide, used = sums
    for number in range(len(rows)):
        part, scale = parts[number], np.float32(factors[number])
        if scale == 0.0:
            continue
        place = places[rows[number]]
        if place == NOWHERE:  # not a function of its own: a call per row slows down steps of single pairs
            place = np.int32(used[0])
            used[0] += 1
            places[rows[number]] = place
            narrow[place][:] = 0
        if place >= 0:
            row = narrow[place]
            beyond = np.int32(0)
            for axis in range(len(part)):
                total = np.int32(np.int32(row[axis]) + np.int32(part[axis] * scale))
                beyond |= np.int32(total ^ (total >> _SIGN))
                row[axis] = np.int16(total)  # the lower 16 bits, where it does not fit
            if beyond <= _NARROW:
                continue
            place = _widened(sums, rows[number])
            into = wide[-2 - place]
            for axis in range(len(part)):  # what stood there, again from the lower 16 bits
                into[axis] = np.int16(np.int32(row[axis]) - np.int32(part[axis] * scale))
        into = wide[-2 - place]
        for axis in range(len(part)):
            total = np.int32(into[axis] + np.int32(part[axis] * scale))
            if total > _MOST:  # after the addition: the sum of the last unit must not stand out either
                total = _MOST
            if total < _LEAST:
                total = _LEAST
            into[axis] = total
