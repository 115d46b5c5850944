"""OME as published (Lyu et al. 2020, section 3), for reference: its bits, its flips, and its true epsilon."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.privacy.randomness import RandomBits

Floats = npt.NDArray[np.float64]

LENGTH = 10  # 1 bit of sign, 4 of the integer part, 5 of the fraction
FRACTION = 5


def bits(vectors: Floats) -> npt.NDArray[np.bool_]:
    """(n, r) to (n, 10 r): each vector's z-scores in fixed point, sign first, 1 for negative."""
    spread = vectors.std(axis=1, keepdims=True)
    scores = (vectors - vectors.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    magnitude = np.minimum(np.floor(np.abs(scores) * 2**FRACTION), 2 ** (LENGTH - 1) - 1).astype(np.int64)
    places = np.arange(LENGTH - 2, -1, -1)
    digits = (magnitude[:, :, None] >> places) & 1
    code = np.concatenate([(scores < 0)[:, :, None], digits.astype(bool)], axis=2)
    return code.reshape(len(vectors), -1)


def flip(code: npt.NDArray[np.bool_], epsilon: float, factor: float, random: RandomBits) -> Floats:
    """OME, equations (2) and (3), with the printed epsilon."""
    even = np.arange(code.shape[1]) % 2 == 0
    stays = np.where(even, factor / (1 + factor), 1 / (1 + factor**3))
    rises = 1 / (1 + factor * math.exp(epsilon / code.shape[1]))
    return (random.uniform(*code.shape) <= np.where(code, stays, rises)).astype(np.float64)


def true_epsilon(width: int, epsilon: float, factor: float) -> float:
    """The worst log-ratio over all pairs of codes: that of each bit at its own worst, not all at that of one pair."""
    rises = 1 / (1 + factor * math.exp(epsilon / width))
    total = 0.0
    for stays in (factor / (1 + factor), 1 / (1 + factor**3)):
        total += width / 2 * max(abs(math.log(stays / rises)), abs(math.log((1 - stays) / (1 - rises))))
    return total
