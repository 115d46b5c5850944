"""Deniability of words: how often a word stays, its number of possible replacements, and their distances.

Derivation: docs/understand/epsilon.md#calibration-deniability
Derivation: docs/understand/epsilon.md#calibration-outcomes
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin
from dptext.errors import ParameterError
from dptext.noise.selection import DistanceTable
from dptext.privacy.randomness import RandomBits
from dptext.representations.encoders import zipf_weights
from dptext.threads import for_each_block
from dptext.validation import check_int
from dptext.words.mechanism import WordMechanism

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]

ETA = 0.05
"""Largest probability of the outputs outside a support."""
MEASURES = ("keep", "support", "distance", "replacement_distance", "median_rank")
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_NORMAL_95 = 1.96
_PUBLIC_SEED = 1949
_ENTRIES = 1 << 20  # approximate number of probabilities in memory
_LEAST_BATCH = 32
_TILE = 4096
_SIDE = 0.025  # error of each side of an interval
_ROUNDING = 1e-12  # probabilities are sums of float64


# -- a public sample of words --------------------------------------------------------------------------------------


def check_weights(weights: npt.ArrayLike | None, size: int) -> Floats:
    """Return the weights scaled to sum 1; None: Zipf weights."""
    if weights is None:
        return zipf_weights(size)
    values: Floats = np.asarray(weights, dtype=np.float64)
    if values.shape != (size,) or not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        raise ParameterError(f"weights must be {size:,} numbers of at least 0, one per word, and not all 0")
    return np.asarray(values / values.sum())


@dataclass(frozen=True, eq=False)
class WordSample:
    """Distinct rows of a vocabulary with their weights."""

    rows: Rows
    weights: Floats
    pairs: Rows = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    strata: Floats = field(default_factory=lambda: np.empty(0))

    def variance(self, values: Floats) -> float:
        """Return the estimated sampling variance of the weighted mean of ``values``."""
        first, second = values[self.pairs[:, 0]], values[self.pairs[:, 1]]
        return float((((first - second) * self.strata / 2) ** 2).sum())


def sample_words(weights: Floats, maximum: int) -> WordSample:
    check_int("rows", maximum, minimum=2)
    possible = np.flatnonzero(weights > 0)
    if possible.size <= maximum:
        return WordSample(possible, weights[possible])
    sure = np.zeros(weights.size, dtype=np.bool_)  # words with a large part of the remaining mass
    while (room := maximum - int(sure.sum())) > 2:
        more = ~sure & (weights * room >= float(weights[~sure].sum()))
        if not more.any() or int((sure | more).sum()) > maximum - 2:
            break
        sure |= more
    rest = np.where(sure, 0.0, weights)
    count = (maximum - int(sure.sum())) // 2
    edges = np.cumsum(rest)
    mass = float(edges[-1])
    position = (np.arange(count)[:, None] + RandomBits(_PUBLIC_SEED).uniform(count, 2)) * (mass / count)
    # each word has the interval that ends at its edge; it is empty for a word of weight 0
    draws = np.searchsorted(edges, np.minimum(position, mass), side="left")
    rows = np.union1d(np.flatnonzero(sure), draws)
    pairs = np.searchsorted(rows, draws)
    strata = np.full(count, mass / count)
    shares = np.where(sure[rows], weights[rows], 0.0)
    np.add.at(shares, pairs, strata[:, None] / 2)
    return WordSample(rows, shares, pairs, strata)


# -- the effect on many words --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Deniability(ReprMixin):
    """Effect of a mechanism on each of n words, and on the words of running text.

    Arrays are (n,) float64, one entry per word. Measures of a replacement are conditional on a replaced word,
    and NaN if the word always stayed.

    Attributes:
        mechanism, epsilon: the measured mechanism.
        words: the n words.
        weights: the fraction of running text that each word represents; the sum is 1.
        keep: N_w, the probability that the word stays.
        support: S_w, the size of the smallest set of outputs with a probability of at least 95%. From draws it is
            underestimated.
        distance: mean distance from the word to its output, 0 if it stays, in the metric of epsilon.
        distance_variance: sampling variance of ``distance``.
        median_rank: median rank of a replacement among the neighbours of the word (1: the nearest).
        draws: number of draws per word; None: exact, from the integers of the sampler.
        sample: the sampled rows of the vocabulary.
    """

    mechanism: str
    epsilon: float
    words: tuple[str, ...]
    weights: Floats
    keep: Floats
    support: Floats
    distance: Floats
    distance_variance: Floats
    median_rank: Floats
    draws: int | None
    sample: WordSample

    def __len__(self) -> int:
        return len(self.words)

    @property
    def replacement_distance(self) -> Floats:
        """(n,) mean distance to the output, given that the word does not stay."""
        leaves = 1.0 - self.keep
        result: Floats = np.divide(self.distance, leaves, out=np.full(len(self), np.nan), where=leaves > 0)
        return result

    def mean(self, name: str) -> float:
        """Return the mean of a measure over running text, without words for which it is NaN."""
        values: Floats = getattr(self, name)
        finite = np.isfinite(values)
        return float(np.average(values[finite], weights=self.weights[finite])) if finite.any() else math.nan

    def error(self, name: str) -> float:
        """Return half the width of a 95% interval around the mean of ``keep`` or ``distance`` (normal approximation).

        It covers the sampling of words and of draws; 0 if all words are measured exactly.
        """
        variances = {"keep": self.keep * (1 - self.keep) / (self.draws or 1), "distance": self.distance_variance}
        of_draws = 0.0 if self.draws is None else float((self.weights**2 * variances[name]).sum())
        return _NORMAL_95 * math.sqrt(self.sample.variance(getattr(self, name)) + of_draws)

    def quantile(self, name: str, share: float) -> float:
        """Return the smallest value that a word of running text does not exceed with probability at least ``share``."""
        return weighted_quantile(getattr(self, name), self.weights, share)

    def as_dict(self) -> dict[str, Any]:
        """Return the measures for JSON; NaN becomes null."""

        def number(value: float) -> float | None:
            return value if math.isfinite(value) else None

        return {
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "words": len(self),
            "draws": self.draws,
            "mean": {name: number(self.mean(name)) for name in MEASURES},
            "error": {name: number(self.error(name)) for name in ("keep", "distance")},
            "shares": list(_QUANTILES),
            "quantiles": {name: [number(self.quantile(name, share)) for share in _QUANTILES] for name in MEASURES},
        }

    def _repr_fields(self) -> Fields:
        yield "mechanism", self.mechanism
        yield "epsilon", self.epsilon
        yield "words", len(self)
        yield "keep", self.mean("keep")
        yield "support", self.quantile("support", 0.5)
        yield "draws", self.draws

    def _html_fields(self) -> Fields:
        low, high = (self.quantile("keep", share) for share in (0.05, 0.95))
        middle = self.quantile("support", 0.5)
        yield "a word stays", f"with probability {self.mean('keep'):.1%} (mean; 90% of text: {low:.1%} to {high:.1%})"
        yield "it could become", f"{middle:,.0f} words (median; with {1 - ETA:.0%} of the probability)"
        yield "computed", "exactly" if self.draws is None else f"from {self.draws:,} draws of each word"


def deniability(
    mechanism: WordMechanism,
    words: Iterable[str] | None = None,
    *,
    weights: npt.ArrayLike | None = None,
    rows: int = 400,
    draws: int = 200,
    seed: int | None = None,
) -> Deniability:
    """Measure the effect of a mechanism on words.

    The result is exact, from the integers of the sampler, for mechanisms with ``distributions`` (TEM). For other
    mechanisms (Madlib) it is estimated from ``draws`` draws per word.

    Args:
        mechanism: a word mechanism.
        words: the words to measure; None: a public sample of at most ``rows`` words, or the whole vocabulary if it
            is not larger. A word outside the vocabulary counts as ``"<unk>"``.
        weights: (V,) public frequencies of the vocabulary; None: 1 / rank, an assumption.
        rows: number of words to sample.
        draws: number of draws per word, an upper limit of S_w.
        seed: seed of the draws. The sampled words are public, so a seed reveals nothing.

    Raises:
        ParameterError: a number out of range; no words.

    >>> from dptext import TEM, load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> found = deniability(TEM(vectors, epsilon=2.0, threshold=3.0), ["cat"])
    >>> found.keep.round(3), found.support
    (array([0.681]), array([3.]))
    """
    draws, vectors = check_int("draws", draws, minimum=1), mechanism.vectors
    frequencies = check_weights(weights, len(vectors))
    if words is None:
        sample = sample_words(frequencies, rows)
        names = tuple(vectors.words[row] for row in sample.rows)
    else:
        names = () if isinstance(words, str) else tuple(words)
        if not names:
            raise ParameterError("words must be a list of at least one word")
        positions = np.array([vectors.vocabulary.row(name) for name in names], dtype=np.int64)
        shares = frequencies[positions] if frequencies[positions].sum() > 0 else np.ones(positions.size)
        sample = WordSample(positions, shares / shares.sum())
    arrays = _measure(mechanism, sample.rows, RandomBits(seed), draws) | {"weights": sample.weights}
    for array in arrays.values():
        array.setflags(write=False)
    return Deniability(
        mechanism=mechanism.name,
        epsilon=mechanism.epsilon,
        words=names,
        draws=draws if distributions_of(mechanism) is None else None,
        sample=sample,
        **arrays,
    )


def distributions_of(mechanism: WordMechanism) -> Callable[[list[str]], Floats] | None:
    """Return the exact output distributions of a mechanism, (n words) -> (n, V); None if it can only be sampled."""
    return getattr(mechanism, "distributions", None)


def _measure(mechanism: WordMechanism, rows: Rows, bits: RandomBits, draws: int) -> dict[str, Floats]:
    """Return the measures of words, from their distributions if available, otherwise from ``draws`` draws per word."""
    words, table, distributions = mechanism.vectors.words, mechanism.distance_table(), distributions_of(mechanism)
    results: list[dict[str, float]] = []
    for batch in _batches(rows, len(table)):
        if distributions is None:
            outputs: Any = mechanism.sample_rows(np.repeat(batch, draws), bits).reshape(batch.size, draws)
        else:
            outputs = distributions([words[row] for row in batch])
        numbers = _measure_draws if distributions is None else _measure_distribution
        results += _measure_batch(batch, outputs, distances_from(table, batch), numbers)
    return {name: np.array([result[name] for result in results]) for name in results[0]}


def _measure_batch(
    rows: Rows, outputs: Any, distances: npt.NDArray[np.float32], numbers: Callable[..., dict[str, float]]
) -> list[dict[str, float]]:
    results: list[dict[str, float]] = [{} for _ in rows]

    def measure(index: int) -> None:
        row, lengths = int(rows[index]), distances[index]
        order = np.argsort(np.where(np.arange(lengths.size) == row, -1.0, lengths), kind="stable")  # the word first
        results[index] = numbers(outputs[index], lengths, row, order)

    for_each_block(measure, range(rows.size))
    return results


def distances_from(table: DistanceTable, rows: Rows) -> npt.NDArray[np.float32]:
    """Return (n, V) public distances from ``rows`` to all rows."""
    distance = np.empty((rows.size, len(table)), dtype=np.float32)
    left = table.rows(rows)
    for start in range(0, len(table), _TILE):
        stop = min(start + _TILE, len(table))
        distance[:, start:stop] = table.distances(left, table.columns(start, stop), math.inf)
    distance *= np.float32(table.step)
    return distance


def batch_for(size: int) -> int:
    """Return the number of rows per batch for a vocabulary of this size: a few MiB."""
    return max(_LEAST_BATCH, _ENTRIES // size)


def _batches(rows: Rows, size: int) -> Iterator[Rows]:
    for start in range(0, rows.size, batch_for(size)):
        yield rows[start : start + batch_for(size)]


def smallest_support(shares: Floats, eta: float = ETA) -> float:
    """Return the size of the smallest set of outputs with a probability of at least 1 - eta; shares sum to 1."""
    return float(np.searchsorted(np.cumsum(np.sort(shares)[::-1]), 1 - eta - _ROUNDING) + 1)


def _measure_distribution(
    shares: Floats, distances: npt.NDArray[np.float32], row: int, order: npt.NDArray[np.intp]
) -> dict[str, float]:
    summed = np.cumsum(shares[order[1:]])
    leaves = float(summed[-1])
    return {
        "keep": float(shares[row]),
        "support": smallest_support(shares),
        "distance": float(shares @ distances),
        "distance_variance": 0.0,
        "median_rank": float(np.searchsorted(summed, leaves / 2) + 1) if leaves > 0 else math.nan,
    }


def _measure_draws(
    draws: Rows, distances: npt.NDArray[np.float32], row: int, order: npt.NDArray[np.intp]
) -> dict[str, float]:
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    lengths = distances[draws].astype(np.float64)
    replaced = rank[draws[draws != row]]
    return {
        "keep": float((draws == row).mean()),
        "support": smallest_support(np.unique(draws, return_counts=True)[1] / draws.size),
        "distance": float(lengths.mean()),
        "distance_variance": float(lengths.var(ddof=1) / draws.size) if draws.size > 1 else math.inf,
        "median_rank": float(np.sort(replaced)[(replaced.size - 1) // 2]) if replaced.size else math.nan,
    }


# -- the effect in brief -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InShort:
    """Effect of a mechanism on running text, in two numbers."""

    keep: float
    support: float

    @property
    def most_stay(self) -> bool:
        """True if at least half of the words stay."""
        return self.keep >= 0.5


def in_short(mechanism: WordMechanism) -> InShort:
    """Return keep rate and support of running text, faster than `deniability`, because without distances."""
    weights = zipf_weights(len(mechanism.vectors))
    weights[mechanism.vectors.vocabulary.unknown_row] = 0.0  # without unknown words
    sample = sample_words(weights / weights.sum(), 200)
    keep, support = kept_and_support(mechanism, sample.rows, draws=40, seed=_PUBLIC_SEED)
    return InShort(float(sample.weights @ keep), weighted_quantile(support, sample.weights, 0.5))


def kept_and_support(
    mechanism: WordMechanism, rows: Rows, *, draws: int, seed: int | None, support: bool = True
) -> tuple[Floats, Floats]:
    """Return the keep rates of words and their supports (0 without ``support``), without distances."""
    distributions, words = distributions_of(mechanism), mechanism.vectors.words
    kept, supports = np.empty(rows.size), np.zeros(rows.size)
    if distributions is None:
        sample = mechanism.sample_rows(np.repeat(rows, draws), RandomBits(seed)).reshape(rows.size, -1)
        kept[:] = (sample == rows[:, None]).mean(axis=1)
        if support:
            supports[:] = [smallest_support(np.unique(row, return_counts=True)[1] / draws) for row in sample]
        return kept, supports
    for places in _batches(np.arange(rows.size), len(words)):
        result = distributions([words[row] for row in rows[places]])
        kept[places] = result[np.arange(places.size), rows[places]]
        if support:
            supports[places] = [smallest_support(shares) for shares in result]
    return kept, supports


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """Return the smallest value for which values up to it have at least ``share`` of the weight, without NaNs."""
    finite = np.isfinite(values)
    if not finite.any():
        return math.nan
    values, weights = values[finite], weights[finite]
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(summed, share - 1e-12)), values.size - 1)])


@dataclass(frozen=True)
class Replacements:
    """Outputs of one word, which may be private and is omitted from the representation."""

    word: str = field(repr=False)
    known: bool
    epsilon: float
    keep: float
    support: int
    support_low: int
    likeliest: tuple[tuple[str, float], ...] = field(repr=False)
    draws: int | None


def replacements(
    mechanism: WordMechanism, word: str, *, maximum: int = 5, draws: int = 2000, seed: int | None = None
) -> Replacements:
    """Return the replacements of a word: exact if the mechanism has ``distributions``, else from ``draws`` draws."""
    vocabulary, distributions = mechanism.vectors.vocabulary, distributions_of(mechanism)
    row = vocabulary.row(word)
    if distributions is not None:
        shares = distributions([word])[0]
    else:
        rows = mechanism.sample_rows(np.full(draws, row, dtype=np.int64), RandomBits(seed))
        shares = np.bincount(rows, minlength=len(vocabulary)) / draws
    # with probability 97.5%, the mass of no nested set is below its true mass by more than this
    reach = 0.0 if distributions is not None else math.sqrt(math.log(1 / _SIDE) / (2 * draws))
    support, support_low = (int(smallest_support(shares, eta)) for eta in (ETA, ETA + reach))
    keep, shares[row] = float(shares[row]), 0.0
    order = [int(position) for position in np.argsort(-shares, kind="stable")[:maximum] if shares[position] > 0]
    return Replacements(
        word=word,
        known=word in vocabulary,
        epsilon=mechanism.epsilon,
        keep=keep,
        support=support,
        support_low=support_low,
        likeliest=tuple((vocabulary.words[position], float(shares[position])) for position in order),
        draws=draws if distributions is None else None,
    )
