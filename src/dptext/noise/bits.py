"""Bits flipped with chances that are integers: what was drawn is what was proved.

A chance is t / 2^32 with an integer threshold t, and a coin is a random integer of 32 bits compared with t. Epsilons
are computed from the thresholds, never from the real numbers they were rounded from, and thresholds are rounded so
that no epsilon exceeds what was asked for. Binary randomised response (Warner 1965) flips a bit with chance t / 2^32:

    P(y | x) / P(y | x') <= (2^32 - t) / t                                                        (flip)

attained by y = x. No branch and no memory access depends on the bits that are hidden.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block

__all__ = [
    "SCALE",
    "Thresholds",
    "asked_less_rounding",
    "coins",
    "flip_codes",
    "flip_epsilon",
    "flip_threshold",
    "leaning_coins",
    "packed_coins",
    "stated",
]

SCALE = 2**32
"""Chances are multiples of 1 / SCALE."""

Thresholds = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_ROUNDING = 2.0**-40  # more than a float64 sum of 2^20 logarithms is off by
_COINS = 1 << 16  # drawn at once: 256 KiB, which stay in the cache
_COINS_A_TASK = 1 << 20


def asked_less_rounding(epsilon: float) -> float:
    """What may be spent so that what is `stated` does not exceed ``epsilon``."""
    return epsilon * (1 - 2 * _ROUNDING)


def stated(epsilon: float) -> float:
    """A computed epsilon, rounded up by more than the arithmetic that computed it can be off by."""
    return epsilon * (1 + _ROUNDING)


def flip_epsilon(threshold: int) -> float:
    """ln((2^32 - t) / t), equation (flip): what a bit that is flipped with chance t / 2^32 tells."""
    return math.log1p((SCALE - 2 * threshold) / threshold)


def flip_threshold(epsilon: float) -> int:
    """The least t of which `flip_epsilon` is at most ``epsilon``: the rarest flips that keep the promise.

    From epsilon = 22.18 on it is 1. An epsilon below 1e-9 leaves no bit readable.

    Raises:
        ParameterError: only a fair coin keeps the promise.
    """
    threshold = max(1, math.floor(SCALE / (1 + math.exp(min(epsilon, 700.0)))) - 1)
    while flip_epsilon(threshold) > epsilon and threshold < SCALE // 2:
        threshold += 1
    if threshold >= SCALE // 2:
        raise ParameterError(
            f"a budget of {epsilon:.3g} for one bit is less than a chance of 32 bits can tell from a fair coin: "
            "raise epsilon, or send fewer bits"
        )
    return threshold


def coins(bits: RandomBits, count: int, threshold: int) -> Booleans:
    """(count,) bools, each True with chance threshold / 2^32."""
    heads = np.empty(count, dtype=np.bool_)
    for start in range(0, count, _COINS):
        block = heads[start : start + _COINS]
        np.less(_words(bits, block.size), np.uint32(threshold), out=block)
    return heads


def leaning_coins(bits: RandomBits, numbers: Floats, threshold: int) -> Booleans:
    """(m,) bools from (m,) numbers x between -1 and 1, each True with chance 1/2 + x (1/2 - t / 2^32).

    One comparison does what rounding x to -1 or 1 at random and then flipping with chance t / 2^32 do together. The
    chance is a multiple of 2^-32 between t / 2^32 and 1 - t / 2^32: `flip_epsilon`, attained by -1 against 1. It is
    off the line by at most 2^-33.
    """
    half = SCALE // 2
    chances = np.rint(half + numbers * (half - threshold)).astype(np.uint32)
    return _words(bits, numbers.size) < chances


def packed_coins(bits: RandomBits, rows: int, thresholds: Thresholds) -> Bytes:
    """(rows, ceil(k / 8)) uint8: bit j of a row is 1 with chance thresholds[j] / 2^32, all independently.

    The first bit is the highest of the first byte (as in numpy.packbits); bits beyond k are 0. The exclusive or with
    packed bits flips them: randomised response for k bits of any meaning.

    Args:
        bits: the stream of random bits.
        rows: how many rows.
        thresholds: (k,) uint32.
    """
    width = thresholds.size
    packed = np.empty((rows, -(-width // 8)), dtype=np.uint8)
    if not rows or not width:
        return packed
    alike = thresholds[0] if (thresholds == thresholds[0]).all() else thresholds
    step = max(1, _COINS // width)
    rows_a_task = step * max(1, _COINS_A_TASK // (step * width))
    starts = range(0, rows, rows_a_task)

    def fill(task: tuple[int, RandomBits]) -> None:
        first, stream = task
        last = min(first + rows_a_task, rows)
        for start in range(first, last, step):
            block = packed[start : min(start + step, last)]
            heads = _words(stream, len(block) * width).reshape(len(block), width) < alike
            if width % 8 == 0:  # rows end at bytes: one long row packs faster than many
                block.reshape(-1)[:] = np.packbits(heads.reshape(-1))
            else:
                block[:] = np.packbits(heads, axis=1)

    for_each_block(fill, zip(starts, bits.spawn(len(starts)), strict=True))
    return packed


def flip_codes(codes: npt.NDArray[np.uint16], thresholds: list[int], bits: RandomBits) -> None:
    """Flip bit j (bit 0 is the lowest) of every code with chance thresholds[j] / 2^32, in place.

    Args:
        codes: (m,) uint16, contiguous.
        thresholds: one a bit.
        bits: the stream of random bits.
    """
    plane = np.empty(min(codes.size, _COINS), dtype=np.uint16)
    for start in range(0, codes.size, _COINS):
        block = codes[start : start + _COINS]
        shifted = plane[: block.size]
        for place, threshold in enumerate(thresholds):
            heads = _words(bits, block.size) < np.uint32(threshold)
            np.left_shift(heads.view(np.uint8), place, out=shifted, dtype=np.uint16)
            np.bitwise_xor(block, shifted, out=block)


def _words(bits: RandomBits, count: int) -> Thresholds:
    """(count,) uint32, uniform over all integers of 32 bits."""
    return np.frombuffer(bits.take(4 * count), dtype="<u4")
