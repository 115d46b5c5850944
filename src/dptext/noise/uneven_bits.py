"""Bits that are sent as 1 with one chance where they are 1 and with another where they are 0.

The chances are t / 2^64 with integer thresholds t: fine enough for chances of 1e-12, which a threshold of 32 bits would
round away. Most coins are decided by 16 random bits, the others (one in 32,000) by 48 more; the outcome is that of a
comparison of all 64. Epsilons come from the thresholds: the loss of one output of one bit is ln(t / t').

No branch and no memory access depends on the bits that are sent.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits

__all__ = ["FINE_SCALE", "FineThresholds", "fine_threshold", "log_ratio", "losses_of_a_bit", "uneven_bits"]

FINE_SCALE = 2**64
"""Chances are multiples of 1 / FINE_SCALE."""

FineThresholds = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

_COARSE = np.uint64(48)  # the bits below the 16 that are drawn for every coin
_LEAST = 2**20  # a chance of at least 2^-44, so that rounding moves it by less than a part in a million


def fine_threshold(chance: float) -> int:
    """The threshold nearest to a chance.

    Raises:
        ParameterError: the chance, or that of the contrary, is below 2^-44 (5.7e-14).
    """
    threshold = round(chance * 2.0**64) if 0 < chance < 1 else 0
    if not _LEAST <= threshold <= FINE_SCALE - _LEAST:
        raise ParameterError(
            f"a bit would be sent with the chance {chance:.3g}: chances must lie between 5.7e-14 and 1 less that"
        )
    return threshold


def log_ratio(above: int, below: int) -> float:
    """ln(above / below) of two thresholds, right to 2^-52 of itself also where they are nearly equal."""
    if above < below:
        return -log_ratio(below, above)
    return math.log1p((above - below) / below)


def losses_of_a_bit(one: int, zero: int) -> tuple[float, float]:
    """What a bit loses at most when it is 1 in place of 0, and when it is 0 in place of 1.

    The largest, over the two outputs, of ln P(output | bit) / P(output | the other bit):

        max(ln(p / q), ln((1 - p) / (1 - q))),   max(ln(q / p), ln((1 - q) / (1 - p))).            (bit)

    Args:
        one: threshold of p, the chance that a 1 is sent as 1.
        zero: threshold of q, the chance that a 0 is sent as 1.
    """
    sent, held = log_ratio(one, zero), log_ratio(FINE_SCALE - one, FINE_SCALE - zero)
    return max(sent, held), max(-sent, -held)


def uneven_bits(bits: RandomBits, given: Bytes, one: FineThresholds, zero: FineThresholds) -> Bytes:
    """(n, ceil(k / 8)) uint8 noisy bits of (n, ceil(k / 8)) packed ones (the first bit is the highest, as in packbits).

    Args:
        bits: the stream of random bits.
        given: n rows of k bits; unused bits of the last byte count for nothing and come out as 0.
        one: (k,) thresholds of the chances that a 1 is sent as 1.
        zero: (k,) thresholds of the chances that a 0 is sent as 1.
    """
    rows, width = len(given), one.size
    words = np.frombuffer(bits.take(2 * rows * width), dtype="<u2").reshape(rows, width)
    coarse = [(each >> _COARSE).astype(np.uint16) for each in (one, zero)]
    heads = [words < each for each in coarse]
    tied = words == coarse[0]
    tied |= words == coarse[1]
    places = np.flatnonzero(tied)
    columns = places % width
    drawn = (words.reshape(-1)[places].astype(np.uint64) << _COARSE) | (bits.integers(places.size) >> np.uint64(16))
    for each, thresholds in zip(heads, (one, zero), strict=True):
        each.reshape(-1)[places] = drawn < thresholds[columns]
    # the same coin for a 1 and for a 0: only one of the two is used
    if_one, if_zero = (np.packbits(each, axis=1) for each in heads)
    sent: Bytes = (given & if_one) | (~given & if_zero)
    return sent
