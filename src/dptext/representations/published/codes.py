"""Numbers as the bits that the published protocols flip, and which two codes lose most.

Derivation: docs/mechanisms/published-protocols.md#representations-published-codes
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.checks import whole
from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.representations.bounds import Bound
from dptext.representations.domains import Floats, checked_vectors

__all__ = ["CODES", "Bits", "Code", "most_telling_pair", "public_z_scores", "z_scores"]

Bits = npt.NDArray[np.bool_]
Losses = npt.NDArray[np.float64]

_ROUNDING = 1e-12  # of vectors of length 1: what differences between equal coordinates come to


@dataclass(frozen=True)
class Code:
    """A way to write a number between -1 and 1 as l bits."""

    name: str
    most: int
    bits_of: Callable[[Floats, int], Bits]
    numbers_of: Callable[[Bits], Floats]
    worst_pair: Callable[[Losses, Losses], tuple[Bits, Bits]]


# -- sign and magnitude ----------------------------------------------------------------------------------------


def _fixed_point(numbers: Floats, length: int) -> Bits:
    size = 1 << (length - 1)
    codes = np.minimum(np.floor(np.abs(numbers) * size), size - 1).astype(np.uint16)
    codes |= (numbers < 0).astype(np.uint16) << np.uint16(length - 1)
    ones = np.unpackbits(codes.astype(">u2").view(np.uint8).reshape(*numbers.shape, 2), axis=-1)
    return ones[..., 16 - length :].astype(bool)


def _from_fixed_point(bits: Bits) -> Floats:
    places = bits.shape[1] - 1
    magnitudes = (bits[:, 1:] @ 2.0 ** np.arange(places - 1, -1, -1) + 0.5) / (1 << places)
    numbers: Floats = np.where(bits[:, 0], -magnitudes, magnitudes)
    return numbers


def _each_bit_at_its_worst(up: Losses, down: Losses) -> tuple[Bits, Bits]:
    """Every combination of bits is a code, so the worst of each bit is attained by one pair."""
    return up >= down, up < down


# -- one-hot ---------------------------------------------------------------------------------------------------


def _one_hot(numbers: Floats, length: int) -> Bits:
    parts = np.clip(np.floor((numbers + 1) * (length / 2)), 0, length - 1).astype(np.int64)
    marked: Bits = parts[..., None] == np.arange(length)
    return marked


def _from_one_hot(bits: Bits) -> Floats:
    centres: Floats = (2 * bits.argmax(axis=1) + 1) / bits.shape[1] - 1
    return centres


def _two_places(up: Losses, down: Losses) -> tuple[Bits, Bits]:
    """Two codes differ where the one has its 1 and where the other has it."""
    count, length = up.shape
    together = up[:, :, None] + down[:, None, :]
    together[:, np.arange(length), np.arange(length)] = 0.0  # one place: the same code
    one, other = np.unravel_index(together.reshape(count, -1).argmax(axis=1), (length, length))
    places = np.arange(length)
    return one[:, None] == places, other[:, None] == places


CODES = {
    each.name: each
    for each in (
        Code("sign-magnitude", 16, _fixed_point, _from_fixed_point, _each_bit_at_its_worst),
        Code("one-hot", 64, _one_hot, _from_one_hot, _two_places),
    )
}


# -- z-scores --------------------------------------------------------------------------------------------------


def z_scores(vectors: Floats) -> Floats:
    """(n, d) vectors of length 1, each less its own mean, over its own standard deviation; zeros for a constant one."""
    scores: Floats = vectors - vectors.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.einsum("ij,ij->i", scores, scores) / scores.shape[1])
    scores /= np.where(spread > _ROUNDING, spread, np.inf)[:, None]
    scores += 0.0  # no minus zero where nothing is negative
    return scores


def public_z_scores(vectors: npt.ArrayLike, *, integer_bits: int = 4, public_name: str | None = None) -> Bound:
    """The bound that gives z-scores by the moments of *public* vectors, for ``scores="public"`` of the protocols.

    Every coordinate less the mean of the public vectors there, over their standard deviation there (1 where they do not
    differ), over 2^m, cut to [-1, 1].

    Args:
        vectors: (n, D), what the encoder gives for public texts; nothing is promised to those who are in them.
        integer_bits: m, as in the protocol.
        public_name: what the texts are, for the statement.

    Raises:
        ParameterError: no vectors; they are no numbers, or not finite; bits out of range.

    >>> bound = public_z_scores([[1.0, 5.0], [3.0, 5.0]], integer_bits=1)
    >>> bound.apply([[3.0, 6.0], [9.0, 4.5]]).tolist()
    [[0.5, 0.5], [1.0, -0.25]]
    """
    public = checked_vectors(vectors)
    if not len(public) or not np.isfinite(public).all():
        raise ParameterError(
            f"moments need finite vectors, at least one, got {len(public)} or some that are not finite"
        )
    whole("integer_bits", integer_bits, least=0, most=15)
    spread = public.std(axis=0)
    return Bound(
        mean=public.mean(axis=0),
        directions=np.diag(1 / np.where(spread > 0, spread, 1.0)),
        kind="cube",
        radius=float(1 << integer_bits),
        public_name=public_name,
        public_texts=len(public),
    )


_PATTERNS = 6  # bits of which every pattern is tried; those below repeat
_BESIDE_ONE = 1e-9
_FEW = 8  # numbers, of which directions all over the sphere are tried
_DIRECTIONS = 1 << 11
_LOOKED_AT = 1 << 21  # bits of all vectors together


def most_telling_pair(
    code_of: Callable[[Floats], Bits], up: Floats, down: Floats, *, dimension: int, length: int, integer_bits: int
) -> tuple[Floats, Floats]:
    """The two vectors, of those that are looked at, whose codes lose most."""
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
