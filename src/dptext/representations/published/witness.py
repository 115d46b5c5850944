"""Two vectors whose z-scores lose much: a search where the worst two codes of all may not occur.

The z-scores of one vector have mean 0 and mean square 1, so only some codes occur, and which two of these lose most is
a combinatorial question. The search looks at many vectors and at all pairs of them; what it finds is attained by the
very bits that are sent, and so a lower bound.

- Blocks: all numbers of one size with balanced signs, the last two as large as it takes. Sizes are those whose bits
  below 1 are any pattern, and just below and above 1, where all bits from there on change.
- Blocks of two sizes: some numbers just below or above 2, 4, ..., the others small enough for that.
- Directions all over the sphere, where numbers are few. Two numbers have z-scores of 1 and -1, which come out of
  floating-point arithmetic as that, or just below or above: two vectors can differ in all bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dptext.privacy.randomness import RandomBits
from dptext.representations.domains import Floats
from dptext.representations.published.codes import Bits

__all__ = ["most_telling_pair"]

_PATTERNS = 6  # bits of which every pattern is tried; those below repeat
_BESIDE_ONE = 1e-9
_FEW = 8  # numbers, of which directions all over the sphere are tried
_DIRECTIONS = 1 << 11
_LOOKED_AT = 1 << 21  # bits of all vectors together


def most_telling_pair(
    code_of: Callable[[Floats], Bits], up: Floats, down: Floats, *, dimension: int, length: int, integer_bits: int
) -> tuple[Floats, Floats]:
    """The two vectors, of those that are looked at, whose codes lose most.

    Args:
        code_of: (n, r) vectors -> (n, rl) bits before they are flipped.
        up, down: (rl,) what a bit loses as 1 against 0, and as 0 against 1.
        dimension, length, integer_bits: r, l and m of the code.
    """
    vectors = _blocks(dimension, _sizes(length, integer_bits), integer_bits)
    if dimension <= _FEW:
        vectors = np.concatenate([vectors, RandomBits(0).normal(_DIRECTIONS, dimension)])
    if vectors.size * length > _LOOKED_AT:
        vectors = vectors[:: -(-vectors.size * length // _LOOKED_AT)]
    codes, places = np.unique(code_of(vectors), axis=0, return_index=True)
    ones = codes.astype(np.float32)
    losses = (ones * up.astype(np.float32)) @ (1 - ones).T + ((1 - ones) * down.astype(np.float32)) @ ones.T
    first, second = np.unravel_index(int(losses.argmax()), losses.shape)
    return vectors[places[first]], vectors[places[second]]


def _sizes(length: int, integer_bits: int) -> Floats:
    """Sizes of a number up to 1 that differ in their bits, and those beside 1."""
    unit = float(1 << integer_bits)
    worth = unit * 2.0 ** -np.arange(1, length)
    below, step = worth[worth < 1], worth[-1]
    tried = min(below.size, _PATTERNS)
    heads = np.arange(1 << tried)[:, None] >> np.arange(tried - 1, -1, -1) & 1
    tails = np.array([np.resize(each, below.size - tried) for each in ([1, 0], [0, 1], [0, 0], [1, 1])])
    ones = np.concatenate([np.repeat(heads, len(tails), axis=0), np.tile(tails, (len(heads), 1))], axis=1)
    # in the middle of what has these bits; without any bit below 1 a number is cut to 0
    sizes = ones @ below + min(step, 1.0) / 2
    return np.unique(np.append(sizes[sizes <= 1], [1 - _BESIDE_ONE, 1.0, 1 + _BESIDE_ONE]))


def _blocks(dimension: int, sizes: Floats, integer_bits: int) -> Floats:
    """Vectors of numbers of one or two sizes, balanced in two ways; two numbers bring the mean square to 1."""
    paired = dimension - dimension % 2
    room = paired - 2
    found = [np.full(dimension, size) for size in sizes if size * size * room <= dimension]
    small = sizes[[0, len(sizes) // 3, 2 * len(sizes) // 3]]
    for size in (side * 2.0**bit for bit in range(1, integer_bits) for side in (1 - _BESIDE_ONE, 1 + _BESIDE_ONE)):
        for other in small[small < 1]:
            most = int((dimension - room * other**2) / (size**2 - other**2)) // 2 * 2
            counts = {min(most, room), min(most, room) // 4 * 2} - {0}
            found += [np.where(np.arange(dimension) < count, size, other) for count in sorted(counts)]
    vectors = np.array(found)
    vectors[:, room:paired] = np.sqrt(np.maximum(dimension - (vectors[:, :room] ** 2).sum(axis=1), 0.0) / 2)[:, None]
    signs = [_balanced(dimension, run) for run in (1, 2)]
    return np.concatenate([side * vectors for each in signs for side in (each, -each)])


def _balanced(dimension: int, run: int) -> Floats:
    """Signs of sum 0 that alternate after so many numbers; an odd number at the end has none."""
    signs: Floats = 1.0 - 2.0 * (np.arange(dimension) // run % 2).astype(np.float64)
    paired = dimension - dimension % 2
    signs[paired - 2 :] = 0.0
    signs[paired - 2 : paired] = [1, -1]
    if signs.sum():  # an odd number of pairs before them
        signs[paired - 4 : paired - 2] = [1, -1]
    return signs
