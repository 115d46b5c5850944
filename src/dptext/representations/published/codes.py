"""Numbers as the bits that the published protocols flip, and which two codes lose most.

With l = 1 + m + n bits, **sign-magnitude** is the paper's fixed point: a sign (1 for negative), m bits of the integer
part and n of the fraction, cut off towards zero, the largest magnitude for all that lie beyond 2^m. Minus zero is a
code of its own. **One-hot** marks which of l equal parts of [-2^m, 2^m] a number lies in, the outer ones for what lies
beyond.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.representations.bounds import Bound
from dptext.representations.domains import Floats, checked_vectors

__all__ = ["CODES", "Bits", "Code", "public_z_scores", "z_scores"]

Bits = npt.NDArray[np.bool_]
Losses = npt.NDArray[np.float64]

_ROUNDING = 1e-12  # of vectors of length 1: what differences between equal coordinates come to


@dataclass(frozen=True)
class Code:
    """A way to write a number between -1 and 1 as l bits.

    Attributes:
        name: as arguments and statements call it.
        most: the largest l.
        bits_of: ((n, r) numbers, l) -> (n, r, l) bits.
        numbers_of: (r, l) bits -> (r,) numbers in the middle of those that have these bits.
        worst_pair: (n, l) losses of a bit that is 1 in place of 0, and of one that is 0 in place of 1 -> the bits of
            the two codes, (n, l) each, that lose most together, of all codes.
    """

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
    if isinstance(integer_bits, bool) or not isinstance(integer_bits, int) or not 0 <= integer_bits <= 15:
        raise ParameterError("integer_bits must be an integer from 0 to 15")
    spread = public.std(axis=0)
    return Bound(
        mean=public.mean(axis=0),
        directions=np.diag(1 / np.where(spread > 0, spread, 1.0)),
        kind="cube",
        radius=float(1 << integer_bits),
        public_name=public_name,
        public_texts=len(public),
    )
