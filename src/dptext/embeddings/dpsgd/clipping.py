"""Where a unit's norm is bounded before noise is added: its gradient is clipped and added to the sum, by `add_clipped`.

Derivation: docs/mechanisms/skip-gram.md#embeddings-dpsgd-clipping
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.compiled import compiled
from dptext.embeddings.dpsgd.recipe import Limits
from dptext.embeddings.dpsgd.sums import Sums, add_cells

__all__ = ["Scratch", "add_clipped", "follow_unclipped", "unit_gradient"]

Rows = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]

_SHORTER = 1 - 2.0**-20
_ONE = np.float32(1.0)


class Scratch(NamedTuple):
    """Room for the gradient of one unit."""

    slots: Rows
    touched: Rows
    gradient: Singles

    @classmethod
    def of(cls, rows: int, most: int, dimension: int) -> Scratch:
        """For units that touch at most so many of so many rows."""
        most = min(rows, most)
        slots, touched = np.full(rows, -1, dtype=np.int32), np.empty(most, dtype=np.int32)
        return cls(slots, touched, np.empty((most + 1, dimension), dtype=np.float32))


@compiled
def unit_gradient(
    tables: Singles,
    offsets: Singles,
    pairs: Rows,
    first: int,
    last: int,
    both: bool,
    scratch: Scratch,
) -> int:
    """Gather the gradient (gradient) of a unit's pairs, row by row; how many rows there are."""
    slots, touched, gradient = scratch
    dimension = tables.shape[1]
    contexts = pairs.shape[1] - 1
    found = 0
    errors = np.empty(contexts, dtype=np.float32)
    by_word = gradient[len(gradient) - 1]
    for number in range(first, last):
        pair = pairs[number]
        word = tables[pair[0]]
        for place in range(contexts):
            product = np.float32(0.0)
            row = pair[place + 1]
            if row >= 0:
                context = tables[row]
                for axis in range(dimension):
                    product += word[axis] * context[axis]
                product += offsets[row]
            errors[place] = product
        for place in range(contexts):
            errors[place] = _ONE / (_ONE + np.float32(math.exp(-errors[place])))
        errors[0] -= _ONE
        by_word[:] = np.float32(0.0)
        for place in range(contexts):
            row = pair[place + 1]
            if row < 0:
                continue
            error = errors[place]
            if both:
                context = tables[row]
                for axis in range(dimension):
                    by_word[axis] += error * context[axis]
            slot = slots[row]
            if slot < 0:
                slots[row], touched[found] = found, row
                into = gradient[found]
                found += 1
                for axis in range(dimension):
                    into[axis] = error * word[axis]
            else:
                into = gradient[slot]
                for axis in range(dimension):
                    into[axis] += error * word[axis]
        if not both:
            continue
        row = pair[0]
        slot = slots[row]
        if slot < 0:
            slots[row], touched[found] = found, row
            gradient[found] = by_word
            found += 1
        else:
            into = gradient[slot]
            for axis in range(dimension):
                into[axis] += by_word[axis]
    return found


@compiled
def _squared_lengths(gradient: Singles, count: int, touched: Rows, half: int) -> tuple[float, float]:
    """Of the first ``count`` rows: of those of words, whose place in the tables is below ``half``; of the others."""
    of_words = of_contexts = 0.0
    for number in range(count):
        row = gradient[number]
        part = 0.0
        for axis in range(len(row)):
            part += np.float64(row[axis]) * np.float64(row[axis])
        if touched[number] < half:
            of_words += part
        else:
            of_contexts += part
    return of_words, of_contexts


@compiled
def _clip_factor(squared: float, limit: float, cells: float) -> float:
    """What brings a gradient to cells (cells), clipped; 0 where there is nothing to say, or nothing to be bounded."""
    length = math.sqrt(squared)
    if not 0.0 < length < math.inf:
        return 0.0
    return min(cells, limit / length) * _SHORTER


@compiled
def add_clipped(
    tables: Singles,
    offsets: Singles,
    pairs: Rows,
    ends: npt.NDArray[np.int64],
    limits: Limits,
    both: bool,
    scratch: Scratch,
    sums: Sums,
) -> None:
    slots, touched, gradient = scratch
    half = len(tables) // 2
    factors = np.empty(len(touched), dtype=np.float64)
    first = 0
    for number in range(len(ends)):
        count = unit_gradient(tables, offsets, pairs, first, ends[number], both, scratch)
        first = ends[number]
        of_words, of_contexts = _squared_lengths(gradient, count, touched, half)
        if limits.joint > 0.0:
            by_word = by_context = _clip_factor(of_words + of_contexts, limits.joint, limits.cells)
        else:
            by_word = _clip_factor(of_words, limits.words, limits.cells)
            by_context = _clip_factor(of_contexts, limits.contexts, limits.cells)
        for slot in range(count):
            row = touched[slot]
            slots[row] = -1
            factors[slot] = by_word if row < half else by_context
        add_cells(sums, touched[:count], gradient, factors[:count])


@compiled
def follow_unclipped(
    tables: Singles,
    offsets: Singles,
    pairs: Rows,
    ends: npt.NDArray[np.int64],
    rate: float,
    both: bool,
    scratch: Scratch,
) -> None:
    """tables -= rate * gradient, unit after unit, without any bound: what word2vec does, for comparison."""
    slots, touched, gradient = scratch
    first = 0
    for number in range(len(ends)):
        count = unit_gradient(tables, offsets, pairs, first, ends[number], both, scratch)
        first = ends[number]
        for slot in range(count):
            row = touched[slot]
            slots[row] = -1
            into, part = tables[row], gradient[slot]
            for axis in range(len(part)):
                into[axis] -= np.float32(part[axis] * rate)
