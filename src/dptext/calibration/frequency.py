"""Which words to look at when not all can be: a public sample that stands for the words of running text.

Vectors come most frequent first, and word frequencies follow Zipf's law roughly (Zipf 1949): the r-th word makes up
about 1 / r of the first. That is an *assumption* about public text, not a measurement of anybody's: a caller who
knows better public frequencies gives them.

The sample is stratified. Words so frequent that a sample of this size would surely hold them are all in it. The rest
are laid side by side in their order, each as wide as its weight, and cut into strata of equal weight; two words are
drawn in each stratum, independently, in proportion to their weights. So a weighted mean over the sample is unbiased,
and the two words of a stratum tell its error: with W the weight of a stratum and y, y' their values, the variance is
estimated without bias by the sum over strata of (W (y - y') / 2)^2 (Cochran 1977, section 5A.12 for two a stratum).
The draws come from a fixed public seed: the same words for the same weights, and no text of anybody has a part in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.privacy.randomness import RandomBits

__all__ = ["WordSample", "checked_weights", "sample_words", "zipf_weights"]

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]

_PUBLIC_SEED = 1949


def zipf_weights(size: int) -> Floats:
    """(size,) weights proportional to 1 / rank, most frequent first; their sum is 1.

    >>> zipf_weights(3).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    weights: Floats = 1.0 / np.arange(1, size + 1)
    weights /= weights.sum()
    return weights


def checked_weights(weights: npt.ArrayLike | None, size: int) -> Floats:
    """The caller's weights, scaled to sum 1; Zipf's where there are none.

    Raises:
        ParameterError: not one finite number of at least 0 for each of ``size`` words, or all 0.
    """
    if weights is None:
        return zipf_weights(size)
    given: Floats = np.asarray(weights, dtype=np.float64)
    if given.shape != (size,):
        raise ParameterError(f"weights must be one number for each of {size:,} words, got shape {given.shape}")
    if not np.isfinite(given).all() or (given < 0).any() or not given.sum() > 0:
        raise ParameterError("weights must be finite numbers of at least 0, and not all of them 0")
    scaled: Floats = given / given.sum()
    return scaled


@dataclass(frozen=True, eq=False)
class WordSample:
    """Distinct rows of a vocabulary and what each stands for.

    Attributes:
        rows: (n,) ascending.
        weights: (n,) the share of running text that each row stands for; their sum is 1.
        pairs: (strata, 2) places in ``rows`` of the two words of each stratum.
        strata: (strata,) the weight of each stratum.
    """

    rows: Rows
    weights: Floats
    pairs: Rows
    strata: Floats

    @property
    def is_everything(self) -> bool:
        """Whether nothing was left out, so that means have no sampling error."""
        return self.strata.size == 0

    def variance(self, values: Floats) -> float:
        """The estimated variance of the weighted mean of ``values``, over the choice of the sample."""
        first, second = values[self.pairs[:, 0]], values[self.pairs[:, 1]]
        return float((((first - second) * self.strata / 2) ** 2).sum())

    @property
    def largest_variance(self) -> float:
        """What the variance of the estimated share of any set of words can be at most: W^2 / 8 for each stratum."""
        return float((self.strata**2).sum() / 8)


def sample_words(weights: Floats, most: int) -> WordSample:
    """At most ``most`` words that stand for all of them, weighted; all words of weight above 0 where these are so few.

    Raises:
        ParameterError: fewer than 2 words asked for.
    """
    if most < 2:
        raise ParameterError(f"rows must be at least 2, got {most}")
    possible = np.flatnonzero(weights > 0)
    if possible.size <= most:
        nothing = np.empty((0, 2), dtype=np.int64)
        return WordSample(possible, weights[possible], nothing, np.empty(0))
    sure = _sure_words(weights, most)
    rest = np.where(sure, 0.0, weights)
    count = (most - int(sure.sum())) // 2
    edges = np.cumsum(rest)
    mass = float(edges[-1])
    at = (np.arange(count)[:, None] + RandomBits(_PUBLIC_SEED).uniform(count, 2)) * (mass / count)
    # a word owns the interval that ends at its edge: never one of weight 0
    drawn = np.searchsorted(edges, np.minimum(at, mass), side="left")
    rows = np.union1d(np.flatnonzero(sure), drawn)
    pairs = np.searchsorted(rows, drawn)
    strata = np.full(count, mass / count)
    shares = np.where(sure[rows], weights[rows], 0.0)
    np.add.at(shares, pairs, strata[:, None] / 2)
    return WordSample(rows, shares, pairs, strata)


def _sure_words(weights: Floats, most: int) -> npt.NDArray[np.bool_]:
    """Words whose weight is at least an even share of what is left for the rest of the sample."""
    sure = np.zeros(weights.size, dtype=np.bool_)
    while True:
        left = float(weights[~sure].sum())
        room = most - int(sure.sum())
        more = ~sure & (weights * room >= left) if room > 2 else np.zeros_like(sure)
        if not more.any() or int((sure | more).sum()) > most - 2:
            return sure
        sure |= more
