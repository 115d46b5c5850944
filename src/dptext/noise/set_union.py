"""Weighted set union: the keys that many users have, from noisy sums of weights and a threshold.

Derivation: docs/mechanisms/cooccurrence.md#noise-thresholded
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.noise.gaussian_sums import CELL, Floats, Integers, grid_step, noisy_matrix, rounded_laplace, sums_by_key
from dptext.privacy.gaussian import gaussian_sigma
from dptext.privacy.guarantee import rounded_up
from dptext.privacy.randomness import RandomBits
from dptext.validation import check_float, check_int

NoiseKind: TypeAlias = Literal["gaussian", "laplace"]

_CELLS = round(1 / CELL)
_OPTIONS: tuple[tuple[NoiseKind, float], ...] = (  # and the fraction of delta for the names
    ("laplace", 1.0),
    *(("gaussian", share) for share in (0.1, 0.25, 0.5, 0.75, 0.9)),
)
_MARGIN = 1 - 1e-9  # covers the rounding error of a quantile
_DIGITS = 6  # significant digits of the noise scale, as printed and as used


def weights(sizes: npt.ArrayLike, noise: NoiseKind = "gaussian") -> Integers:
    """Return the weight, in `CELL`, that a user with m keys adds to each; the L2 (Laplace: L1) norm is at most 1."""
    keys = np.asarray(sizes, dtype=np.int64)
    if noise == "laplace":
        return _CELLS // keys
    # the integer root of 2^48 // m; a double resolves the roots of integers below 2^52
    return np.sqrt(_CELLS**2 // keys).astype(np.int64)


def threshold(scale: float, delta_names: float, keys: int, noise: NoiseKind = "gaussian") -> float:
    """Return the smallest T on the grid of the noise with m P(w_m + Z >= T) <= delta_names for m = 1 .. keys.  (1)

    The bound is largest at m = keys or at one of the first sizes (proof in the derivation).
    """
    step, power = grid_step(scale), 0.5 if noise == "gaussian" else 1.0

    def gap(chance: float) -> float:  # P(Z >= gap) <= chance at scale 1
        return max(0.0, -NormalDist().inv_cdf(chance) if noise == "gaussian" else -math.log(2 * chance))

    sizes = {*range(1, min(keys, 4) + 1), keys}
    sums = max(math.pow(size, -power) + scale * gap(delta_names / size * _MARGIN) for size in sizes)
    # the noisy sum is rounded to the nearest step, so it reaches T from T - step / 2 on
    return math.ceil(sums / step + 0.5) * step


@dataclass(frozen=True)
class SetUnion:
    """Weighted set union of keys (Korolova et al. 2009; Gopi et al. 2020; Carvalho et al. 2022).

    A user with m keys, at most ``keys``, adds `weights` to the sums of these keys. Every sum that is not zero gets
    noise, and keys whose noisy sum is at least ``threshold`` are released.

    **Guarantee** (unit user, add/remove, central): with the profile delta_noise of the noise at sensitivity 1,
    (epsilon, delta_noise(epsilon + ln(1 - delta_names)) + delta_names)-DP for every epsilon, if ``threshold`` is at
    least the function of that name. Assumption: `dptext.noise.gaussian_sums.ELEMENTARY`.
    """

    noise: NoiseKind
    scale: float
    threshold: float
    keys: int
    delta_names: float

    @classmethod
    def build(cls, scale: float, delta_names: float, keys: int, noise: NoiseKind = "gaussian") -> SetUnion:
        """Return the union with the smallest threshold for this noise."""
        return cls(noise, scale, threshold(scale, delta_names, keys, noise), keys, delta_names)

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, keys: int) -> SetUnion:
        """Return the (epsilon, delta)-DP union that finds a key with the fewest users of ``keys`` keys each."""
        epsilon = check_float("epsilon", epsilon, minimum=1e-3, maximum=100)
        delta = check_float("delta", delta, minimum=1e-100, below=1)
        keys = check_int("the number of keys per user", keys, minimum=1, maximum=1 << 20)
        limit = -math.expm1(-epsilon / 2)  # at least half of epsilon is for the noise
        unions = []
        for noise, share in _OPTIONS:
            names = min(share * delta, limit)
            left = epsilon + math.log1p(-names)
            normal = gaussian_sigma(epsilon=left, delta=delta - names, sensitivity=1.0) if share < 1 else 0.0
            unions.append(cls.build(rounded_up(normal or 1 / left, _DIGITS), names, keys, noise))
        return min(unions, key=lambda union: union.threshold / int(weights(keys, union.noise)))

    def contributions(self, users: Integers, counts: Integers, bits: RandomBits) -> Integers:
        """Return the weights of the keys of sorted users: 0 beyond the ``keys`` of a user with the largest counts."""
        sizes = np.bincount(users)
        cells = weights(np.clip(sizes, 1, self.keys), self.noise)[users]
        if sizes.max(initial=0) > self.keys:
            # equal counts in random order, uniform up to n^2 / 2^64
            order = np.lexsort((bits.integers(len(users)), -counts, users))
            cells[order[np.arange(len(users)) - np.searchsorted(users, users) >= self.keys]] = 0
        return cells

    def release(self, keys: Integers, cells: Integers, bits: RandomBits) -> tuple[Integers, Floats]:
        """Return the keys whose noisy sum reaches the threshold, in the given order, and these sums (in weights)."""
        keys, cells = keys[cells > 0], cells[cells > 0]
        if self.noise == "gaussian":
            noisy = noisy_matrix(cells[:, None], self.scale, bits)[:, 0]
        else:
            step = grid_step(self.scale)
            exact = cells[:, None].astype(np.float64)
            noisy = step * rounded_laplace(bits, exact, scale=self.scale / CELL, step=step / CELL)[:, 0]
        reached = noisy >= self.threshold
        return keys[reached], noisy[reached]


def sum_cells(parts: Sequence[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    """Return sorted distinct keys and the sums of their cells, from parts with repeated keys."""
    keys, _, cells = sums_by_key(*np.concatenate(parts, axis=1))
    return keys, cells
