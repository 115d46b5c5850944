"""Gradients of skip-gram with negative sampling: of each unit, cut to a length, and added up in whole numbers.

For a pair with word vector w and context vectors c_0 (of the word beside it) and c_1 .. c_k (of negative words), and a
public number b_i for each context word (0, unless the training starts from public vectors),

    loss = -ln sigmoid(w.c_0 + b_0) - sum over i >= 1 of ln sigmoid(-w.c_i - b_i)     (Mikolov et al. 2013, equation 4)
    gradient by w: sum of e_i c_i,   by c_i: e_i w,   e_i = sigmoid(w.c_i + b_i) - [i = 0]              (gradient)

A *unit* (a user, a document, a pair) has the sum g of the gradients of its pairs, over both tables together; the rows
that it touches are gathered, equal rows are added up (also of a negative word that came twice), and the length is taken
of what is there. For a single pair that is the closed form

    ||g||^2 = ||sum of e_i c_i||^2 + ||w||^2 * sum over distinct contexts of (sum of its e_i)^2.      (length)

**Bounded in whole numbers.** The unit adds to the sum, in units of C / `CELLS` (`dptext.embeddings.dpsgd.clipping`),
the whole numbers

    trunc(g * min(1, C / ||g||) * (1 - 2^-20) * CELLS / C).         (cells)

*Their Euclidean length is at most `CELLS`,* whatever the texts and the tables are: the length is a double, from squares
of single-precision numbers, which doubles hold, added up in a row and then row by row; with fewer than 2^21 rows and
2^21 numbers in each it is right to 2^-30 of itself, one rounding of the factor and one of each product add 2^-23, and
rounding towards zero makes nothing longer. Where the length is no finite number the unit adds nothing. The sum is cut
to `MOST` on either side after each addition, so that it never runs over, and never stands above what it is cut to:
without a unit it is what it was, with the unit it moves by its own cells at most, and cutting what comes later brings
the two no farther apart, in every coordinate. So the sum moves by at most `CELLS` in Euclidean length, C in the real
world, when a unit comes or goes: exactly, as floating-point sums would not. |
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.embeddings.dpsgd.compiled import compiled
from dptext.embeddings.dpsgd.prefetching import prefetch

__all__ = ["MOST", "Scratch", "add_units", "follow_units", "unit_gradient"]

MOST = 2**30
"""No number of the sum goes beyond; it takes 4096 units that agree on one coordinate alone."""

Rows = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]
Cells = npt.NDArray[np.int32]

_SHORTER = 1 - 2.0**-20
_AHEAD, _ROWS_AHEAD, _FEW = 2, 6, 4  # pairs and rows that are fetched before their turn; pairs of a small unit
_MOST, _LEAST = np.int32(MOST), np.int32(-MOST)
_ONE = np.float32(1.0)


class Scratch:
    """Room for the gradient of one unit.

    Attributes:
        slots: (R,) int32, where the row of a table stands in ``gradient``; -1: nowhere.
        touched: (m,) int32, which row stands there.
        gradient: (m + 1, d) float32; its last row is for what a pair says of its word.
    """

    def __init__(self, rows: int, most: int, dimension: int) -> None:
        most = min(rows, most)
        self.slots = np.full(rows, -1, dtype=np.int32)
        self.touched = np.empty(most, dtype=np.int32)
        self.gradient = np.empty((most + 1, dimension), dtype=np.float32)


@compiled
def unit_gradient(
    tables: Singles,
    offsets: Singles,
    pairs: Rows,
    first: int,
    last: int,
    both: bool,
    slots: Rows,
    touched: Rows,
    gradient: Singles,
) -> int:
    """Gather the gradient (gradient) of a unit's pairs, row by row; how many rows there are.

    Args:
        tables: (2 V, d), word vectors above context vectors.
        offsets: (2 V,) b of equation (gradient), by row of a context.
        both: False: word vectors stay as they are, and have no gradient.
        pairs: (m, 2 + negatives) rows of the tables; below 0: none. Those of the unit are ``first`` to ``last`` - 1.
        slots, touched, gradient: see `Scratch`; ``slots`` must hold -1 only.
    """
    dimension = tables.shape[1]
    contexts = pairs.shape[1] - 1
    found = 0
    errors = np.empty(contexts, dtype=np.float32)
    by_word = gradient[len(gradient) - 1]
    for number in range(first, last):
        pair = pairs[number]
        if number + _AHEAD < len(pairs):
            for row in pairs[number + _AHEAD]:
                if row >= 0:
                    prefetch(tables, row)
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
def squared_lengths(gradient: Singles, count: int, touched: Rows, half: int) -> tuple[float, float]:
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
def _factor(squared: float, limit: float, unit: float) -> float:
    """From gradients to cells (cells); 0 where there is nothing to say, or nothing that could be bounded.

    Args:
        squared: ||g||^2.
        limit: the greatest length in cells.
        unit: cells for a length of 1.
    """
    length = math.sqrt(squared)
    if not 0.0 < length < math.inf:
        return 0.0
    return min(unit, limit / length) * _SHORTER


@compiled
def _add_cells(row: Singles, factor: float, into: Cells) -> None:
    scale = np.float32(factor)
    for axis in range(len(row)):
        total = np.int32(into[axis] + np.int32(row[axis] * scale))
        if total > _MOST:  # after the addition: the sum of the last unit must not stand out either
            total = _MOST
        if total < _LEAST:
            total = _LEAST
        into[axis] = total


@compiled
def add_units(
    tables: Singles,
    offsets: Singles,
    pairs: Rows,
    ends: npt.NDArray[np.int64],
    limits: tuple[float, float, float, float],
    both: bool,
    slots: Rows,
    touched: Rows,
    gradient: Singles,
    places: Rows,
    cells: Cells,
) -> None:
    """Add the cells of several units to a sum.

    Args:
        tables: (2 V, d).
        pairs: (m, 2 + negatives) of all of them; ``ends``: where the pairs of each unit end.
        limits: see `dptext.embeddings.dpsgd.clipping.Clipping`.
        both: see `unit_gradient`.
        slots, touched, gradient: see `Scratch`.
        places: (2 V,) where a row of the tables stands in ``cells``; below 0 for rows that nobody touches.
        cells: (n, d) int32, the sum.
    """
    joint, words_alone, contexts_alone, unit = limits
    rows = len(tables)
    first = 0
    for number in range(len(ends)):
        if ends[number] - first < _FEW:
            for place in range(first, ends[number]):
                for row in pairs[place]:
                    if row >= 0:
                        prefetch(cells, places[row])
        count = unit_gradient(tables, offsets, pairs, first, ends[number], both, slots, touched, gradient)
        first = ends[number]
        of_words, of_contexts = squared_lengths(gradient, count, touched, rows // 2)
        if joint > 0.0:
            by_word = by_context = _factor(of_words + of_contexts, joint, unit)
        else:
            by_word, by_context = _factor(of_words, words_alone, unit), _factor(of_contexts, contexts_alone, unit)
        for slot in range(count):
            row = touched[slot]
            slots[row] = -1
            if slot + _ROWS_AHEAD < count:
                prefetch(cells, places[touched[slot + _ROWS_AHEAD]])
            factor = by_word if row < rows // 2 else by_context
            if factor > 0.0:
                _add_cells(gradient[slot], factor, cells[places[row]])


@compiled
def follow_units(
    tables: Singles,
    offsets: Singles,
    pairs: Rows,
    ends: npt.NDArray[np.int64],
    rate: float,
    both: bool,
    slots: Rows,
    touched: Rows,
    gradient: Singles,
) -> None:
    """tables -= rate * gradient, unit after unit, without any limit: what word2vec does, for comparison.

    Args:
        rate: what a gradient of length 1 moves. For the others see `add_units`.
    """
    first = 0
    for number in range(len(ends)):
        count = unit_gradient(tables, offsets, pairs, first, ends[number], both, slots, touched, gradient)
        first = ends[number]
        for slot in range(count):
            row = touched[slot]
            slots[row] = -1
            into, part = tables[row], gradient[slot]
            for axis in range(len(part)):
                into[axis] -= np.float32(part[axis] * rate)
