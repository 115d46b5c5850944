"""Deniability of words: how often a word stays, how many words it may become, and their distances.

Derivation: docs/understand/epsilon.md#calibration-deniability
Derivation: docs/understand/epsilon.md#calibration-outcomes
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dptext.display import Fields, ReprMixin, progress_bar
from dptext.errors import ParameterError
from dptext.noise.selection import DistanceTable
from dptext.plotting import get_axes, grey, label_axes, next_style
from dptext.privacy.randomness import RandomBits
from dptext.threads import for_each_block
from dptext.validation import check_float, check_int
from dptext.vectors.formats import VectorsLike
from dptext.words.mechanism import WordMechanism
from dptext.words.registry import word_mechanism

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]

_BINS = 8


def draw_density(axes: Any, measured: Deniability) -> None:
    labels = axes.get_legend_handles_labels()[1]
    style = next_style(axes, len(labels) - (_DIAGONAL in labels))
    x, y = measured.neighbourhood, measured.replacement_distance
    number = np.isfinite(y)
    x, y = x[number], y[number]
    axes.scatter(x, y, s=9, color=[style["color"]], marker=style["marker"], alpha=0.35, linewidths=0)
    groups = np.array_split(np.argsort(x, kind="stable"), _BINS if x.size >= 2 * _BINS else 1)
    means = [(x[group].mean(), y[group].mean()) for group in groups if group.size]
    label = f"{measured.mechanism}, epsilon {measured.epsilon:.4g} (stays {measured.mean('keep'):.0%})"
    axes.plot(*np.array(means).reshape(-1, 2).T, label=label, markersize=6, linewidth=2, **style)
    for line in [entry for entry in axes.lines if entry.get_label() == _DIAGONAL]:
        line.remove()  # it stands last in the legend
    if x.size:
        axes.axline((x.mean(), x.mean()), slope=1, color=grey(axes, 0.3), linewidth=0.8, zorder=0, label=_DIAGONAL)
    axes.margins(y=0.2)  # space above the words for the legend
    neighbour = f"distance to neighbour {measured.neighbours} (dense to sparse)"
    label_axes(axes, neighbour, "mean distance of a replacement", "How far a replacement goes")


_DIAGONAL = "as far as that neighbour"


_PUBLIC_SEED = 1949


def zipf_weights(size: int) -> Floats:
    """(size,) weights proportional to 1 / rank, most frequent first; their sum is 1."""
    weights: Floats = 1.0 / np.arange(1, size + 1)
    weights /= weights.sum()
    return weights


def check_weights(weights: npt.ArrayLike | None, size: int) -> Floats:
    """The caller's weights, scaled to sum 1; Zipf's where there are none."""
    if weights is None:
        return zipf_weights(size)
    values: Floats = np.asarray(weights, dtype=np.float64)
    if values.shape != (size,):
        raise ParameterError(f"weights must be one number for each of {size:,} words, got shape {values.shape}")
    if not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        raise ParameterError("weights must be finite numbers of at least 0, and not all of them 0")
    scaled: Floats = values / values.sum()
    return scaled


@dataclass(frozen=True, eq=False)
class WordSample:
    """Distinct rows of a vocabulary with their weights."""

    rows: Rows
    weights: Floats
    pairs: Rows
    strata: Floats

    @property
    def is_everything(self) -> bool:
        """True if the sample has all words, so that means have no sampling error."""
        return self.strata.size == 0

    def variance(self, values: Floats) -> float:
        """Return the estimated sampling variance of the weighted mean of ``values``."""
        first, second = values[self.pairs[:, 0]], values[self.pairs[:, 1]]
        return float((((first - second) * self.strata / 2) ** 2).sum())

    @property
    def largest_variance(self) -> float:
        """Upper bound on the variance of the estimated share of any set of words: W^2 / 8 per stratum."""
        return float((self.strata**2).sum() / 8)


def sample_words(weights: Floats, maximum: int) -> WordSample:
    check_int("rows", maximum, minimum=2)
    possible = np.flatnonzero(weights > 0)
    if possible.size <= maximum:
        nothing = np.empty((0, 2), dtype=np.int64)
        return WordSample(possible, weights[possible], nothing, np.empty(0))
    sure = np.zeros(weights.size, dtype=np.bool_)  # words whose weight is at least an even share of what is left
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
    # a word owns the interval that ends at its edge: never one of weight 0
    draws = np.searchsorted(edges, np.minimum(position, mass), side="left")
    rows = np.union1d(np.flatnonzero(sure), draws)
    pairs = np.searchsorted(rows, draws)
    strata = np.full(count, mass / count)
    shares = np.where(sure[rows], weights[rows], 0.0)
    np.add.at(shares, pairs, strata[:, None] / 2)
    return WordSample(rows, shares, pairs, strata)


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MEASURES = ("keep", "support", "distance", "replacement_distance", "median_rank", "neighbourhood")
_BOUNDS = ("keep_low", "keep_high", "support_low", "support_high")
_NORMAL_95 = 1.96


@dataclass(frozen=True, eq=False, repr=False)
class Deniability(ReprMixin):
    """Effect of a mechanism on each of n words, and on the words of running text.

    Arrays are (n,) float64, one entry per word. Measures of a replacement are conditional on the word not staying,
    and NaN if it always stayed.

    Attributes:
        mechanism, epsilon: the measured mechanism.
        words: the n words.
        weights: the share of running text that each stands for; their sum is 1.
        keep, keep_low, keep_high: N_w, the probability that the word stays, and a 95% interval for it.
        support, support_low, support_high: S_w, the size of the smallest set of outputs that holds a probability of at
            least 1 - eta, and a 95% interval for it.
            distance: mean distance from the word to its output, 0 where it stays, in the metric that epsilon counts.
        median_rank: median rank of a replacement among the neighbours of the word (1: the nearest).
        neighbourhood: distance to the ``neighbours``-th nearest other word: small where the region is dense.
        eta, neighbours: as above.
        draws: how many draws of each word the numbers come from; None: exact, from the integers of the sampler.
    """

    mechanism: str
    epsilon: float
    words: tuple[str, ...]
    weights: Floats
    keep: Floats
    keep_low: Floats
    keep_high: Floats
    support: Floats
    support_low: Floats
    support_high: Floats
    distance: Floats
    median_rank: Floats
    neighbourhood: Floats
    eta: float
    neighbours: int
    draws: int | None
    distance_variance: Floats = field(repr=False)
    sample: WordSample = field(repr=False)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def replacement_distance(self) -> Floats:
        """(n,) mean distance of a replacement: of the output, given that the word does not stay."""
        leaves = 1.0 - self.keep
        result: Floats = np.divide(self.distance, leaves, out=np.full(len(self), np.nan), where=leaves > 0)
        return result

    def mean(self, name: str) -> float:
        """The mean of a measure over running text (over words for which it is a number)."""
        values = self._values(name)
        finite = np.isfinite(values)
        return float(np.average(values[finite], weights=self.weights[finite])) if finite.any() else math.nan

    def error(self, name: str) -> float:
        """Half the width of a 95% interval around the mean of ``keep`` or ``distance`` (normal approximation).

        It covers the choice of the words and, where there are draws, the draws; 0 where both are exhaustive.
        """
        if name not in ("keep", "distance"):
            raise ParameterError(f"the error is known for 'keep' and 'distance', got {name!r}")
        of_words = self.sample.variance(self._values(name))
        if self.draws is None:
            of_draws = np.zeros(len(self))
        else:
            of_draws = self.distance_variance if name == "distance" else self.keep * (1 - self.keep) / self.draws
        return _NORMAL_95 * math.sqrt(of_words + float((self.weights**2 * of_draws).sum()))

    def quantile(self, name: str, share: float) -> float:
        """The smallest value that a word of running text does not exceed with probability at least ``share``."""
        return weighted_quantile(self._values(name), self.weights, share)

    @property
    def quantile_error(self) -> float:
        """Half the width of a 95% interval for the share of a quantile: the median may be the .47-quantile."""
        return _NORMAL_95 * math.sqrt(self.sample.largest_variance)

    def quantiles(self, shares: Sequence[float] = QUANTILES) -> dict[str, tuple[float, ...]]:
        """For every measure its quantiles over running text."""
        return {name: tuple(self.quantile(name, share) for share in shares) for name in MEASURES}

    def as_dict(self) -> dict[str, Any]:
        """Return the measures for JSON; NaN becomes null."""

        def number(value: float) -> float | None:
            return value if math.isfinite(value) else None

        return {
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "words": len(self),
            "draws": self.draws,
            "eta": self.eta,
            "neighbours": self.neighbours,
            "mean": {name: number(self.mean(name)) for name in MEASURES},
            "error": {name: number(self.error(name)) for name in ("keep", "distance")},
            "shares": list(QUANTILES),
            "quantiles": {name: list(map(number, values)) for name, values in self.quantiles().items()},
            "quantile_error": self.quantile_error,
        }

    def _values(self, name: str) -> Floats:
        if name not in MEASURES + _BOUNDS:
            raise ParameterError(f"a measure is one of {', '.join(MEASURES)}, got {name!r}")
        values: Floats = getattr(self, name)
        return values

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
        yield "it could become", f"{middle:,.0f} words (median; with {1 - self.eta:.0%} of the probability)"
        yield "computed", "exactly" if self.draws is None else f"from {self.draws:,} draws of each word"

    def plot(self, axes: Any = None) -> Any:
        """Draw how far replacements go where words lie close together and where they do not: a dot per word."""
        axes = get_axes(axes)
        draw_density(axes, self)
        return axes


def deniability(
    mechanism: WordMechanism | str,
    words: Iterable[str] | None = None,
    *,
    epsilon: float | None = None,
    vectors: VectorsLike | None = None,
    weights: npt.ArrayLike | None = None,
    rows: int = 400,
    eta: float = 0.05,
    neighbours: int = 10,
    draws: int = 200,
    seed: int | None = None,
    progress: bool | None = None,
) -> Deniability:
    """Measure the effect of a mechanism on words.

    Exact, from the integers that the sampler draws from, for mechanisms that have ``distributions`` (TEM); from
    ``draws`` draws of each word for the others (Madlib).

    Args:
        mechanism: a word mechanism, or the name of one (``"tem"``).
        epsilon, vectors: of one that is given by name: see `dptext.words.registry.word_mechanism`.
        words: the words to measure; None: a public sample of at most ``rows`` words, the whole vocabulary where it
            is no larger. A word outside the vocabulary counts as ``"<unk>"``.
        weights: (V,) public frequencies of the vocabulary; None: 1 / rank, an assumption.
        rows: how many words to sample.
        eta: S_w leaves out a probability of at most this.
        neighbours: which neighbour measures the density of a region.
        draws: draws of each word. An upper bound on S_w below the vocabulary's size needs about 4 / eta^2.
        seed: of the draws. The sampled words are public, so a seed reveals nothing.
        progress: show a progress bar, see `dptext.display`.

    Raises:
        ParameterError: a number out of range; no words.

    >>> from dptext import TEM, load_vectors
    >>> vectors = load_vectors((["cat", "dog", "tax"], [[0.0, 0.0], [0.0, 1.0], [9.0, 9.0]]))
    >>> found = deniability(TEM(vectors, epsilon=2.0, threshold=3.0), ["cat"])
    >>> found.keep.round(3), found.support
    (array([0.681]), array([3.]))
    """
    with progress_bar(progress, "measuring words"):
        measured = word_mechanism(mechanism, epsilon=epsilon, vectors=vectors)
        eta = check_float("eta", eta, above=0, below=1)
        neighbours, draws = check_int("neighbours", neighbours, minimum=1), check_int("draws", draws, minimum=1)
        names, sample, position = _select_words(measured, words, check_weights(weights, len(measured.vectors)), rows)
        result = outcomes(measured, position, RandomBits(seed), draws=draws, eta=eta, neighbours=neighbours)
        arrays = result | {"weights": sample.weights}
        for array in arrays.values():
            array.setflags(write=False)
        return Deniability(
            mechanism=measured.name,
            epsilon=measured.epsilon,
            words=names,
            eta=eta,
            neighbours=neighbours,
            draws=draws if distributions_of(measured) is None else None,
            sample=sample,
            **arrays,
        )


_ENTRIES = 1 << 20  # probabilities in memory at a time, about
_LEAST_BATCH = 32
_TILE = 4096
_SIDE = 0.025  # error of each side of an interval
_ROUNDING = 1e-12  # shares are sums of float64


def distributions_of(mechanism: WordMechanism) -> Callable[[list[str]], Floats] | None:
    """The mechanism's exact output distributions, (n words) -> (n, V); None where it can only be sampled."""
    value: Callable[[list[str]], Floats] | None = getattr(mechanism, "distributions", None)
    return value


def outcomes(
    mechanism: WordMechanism, rows: Rows, bits: RandomBits, *, draws: int, eta: float, neighbours: int
) -> dict[str, Floats]:
    """Return the measures of some words: from their distributions if there are any, else from ``draws`` draws each."""
    result = {name: np.zeros(rows.size) for name in (*MEASURES, *_BOUNDS, "distance_variance")}
    words, table, distributions = mechanism.vectors.words, mechanism.distance_table(), distributions_of(mechanism)
    numbers = _outcome_from_draws if distributions is None else _outcome_from_distribution
    at_a_time = batch_for(len(table))
    for start in range(0, rows.size, at_a_time):
        batch = rows[start : start + at_a_time]
        if distributions is None:
            seen: Any = mechanism.sample_rows(np.repeat(batch, draws), bits).reshape(batch.size, draws)
        else:
            seen = distributions([words[row] for row in batch])
        distance = distances_from(table, batch)

        def measure(
            index: int, start: int = start, batch: Rows = batch, seen: Any = seen, distances: Any = distance
        ) -> None:
            row = int(batch[index])
            for name, value in numbers(seen[index], distances[index], row, eta=eta, neighbours=neighbours).items():
                result[name][start + index] = value

        for_each_block(measure, range(batch.size))
    if distributions is None:
        kept = np.rint(result["keep"] * draws)
        result["keep_low"], result["keep_high"] = probability_interval(kept, draws, 2 * _SIDE)
    del result["replacement_distance"]  # follows from the distance
    return result


def distances_from(table: DistanceTable, rows: Rows) -> npt.NDArray[np.float32]:
    """(n, V) public distances from some rows to all."""
    distance = np.empty((rows.size, len(table)), dtype=np.float32)
    left = table.rows(rows)
    for start in range(0, len(table), _TILE):
        stop = min(start + _TILE, len(table))
        distance[:, start:stop] = table.distances(left, table.columns(start, stop), math.inf)
    distance *= np.float32(table.step)
    return distance


def reach_of_masses(draws: int) -> float:
    """Return h: no mass of nested sets is further below its true one, with probability 97.5%."""
    return math.sqrt(math.log(1 / _SIDE) / (2 * draws))


def batch_for(size: int) -> int:
    """Return how many rows of a vocabulary's size are worked on at a time: a few MiB."""
    return max(_LEAST_BATCH, _ENTRIES // size)


def smallest_support(shares: Floats, eta: float) -> float:
    """The size of the smallest set of outputs that holds a probability of at least 1 - eta; shares sum to 1."""
    return float(np.searchsorted(np.cumsum(np.sort(shares)[::-1]), 1 - eta - _ROUNDING) + 1)


def probability_interval(successes: npt.ArrayLike, trials: int, error: float) -> tuple[Floats, Floats]:
    """(low, high) around k / n: each side is wrong with probability at most error / 2 (Chernoff 1952)."""
    share: Floats = np.asarray(successes, dtype=np.float64) / trials
    maximum = math.log(2 / error) / trials
    inner_low, inner_high = np.zeros_like(share), share.copy()
    outer_low, outer_high = share.copy(), np.ones_like(share)
    for _ in range(50):
        low, high = (inner_low + inner_high) / 2, (outer_low + outer_high) / 2
        too_far = _relative_entropy(share, low) > maximum
        inner_low, inner_high = np.where(too_far, low, inner_low), np.where(too_far, inner_high, low)
        too_far = _relative_entropy(share, high) > maximum
        outer_low, outer_high = np.where(too_far, outer_low, high), np.where(too_far, high, outer_high)
    return np.where(share > 0, inner_low, 0.0), np.where(share < 1, outer_high, 1.0)


def _relative_entropy(share: Floats, other: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(share > 0, share * np.log(share / other), 0.0)
        rest = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - other)), 0.0)
    total: Floats = one + rest
    return np.where(np.isnan(total), np.inf, total)


def _outcome_from_distribution(
    shares: Floats, distances: npt.NDArray[np.float32], row: int, *, eta: float, neighbours: int
) -> dict[str, float]:
    order = np.argsort(np.where(np.arange(distances.size) == row, -1.0, distances), kind="stable")  # itself first
    summed = np.cumsum(shares[order[1:]])
    leaves = float(summed[-1])
    support = smallest_support(shares, eta)
    return {
        "keep": float(shares[row]),
        "keep_low": float(shares[row]),
        "keep_high": float(shares[row]),
        "support": support,
        "support_low": support,
        "support_high": support,
        "distance": float(shares @ distances),
        "median_rank": float(np.searchsorted(summed, leaves / 2) + 1) if leaves > 0 else math.nan,
        "neighbourhood": float(distances[order[min(neighbours, shares.size - 1)]]),
    }


def _outcome_from_draws(
    draws: Rows, distances: npt.NDArray[np.float32], row: int, *, eta: float, neighbours: int
) -> dict[str, float]:
    order = np.argsort(np.where(np.arange(distances.size) == row, -1.0, distances), kind="stable")  # itself first
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    lengths = distances[draws].astype(np.float64)
    replaced = rank[draws[draws != row]]
    counts = np.sort(np.unique(draws, return_counts=True)[1])[::-1]
    shares = counts / draws.size
    reach = reach_of_masses(draws.size)
    # an upper bound: half of the draws rank the outputs, the other half tests how many of them suffice
    half, support_high = draws.size // 2, float(rank.size)
    tested = draws[half:]
    needed = math.ceil((1 - eta + reach_of_masses(tested.size)) * tested.size)
    if half > 0 and needed <= tested.size:
        seen, times = np.unique(draws[:half], return_counts=True)
        place = rank + seen.size  # ranked after the seen words
        place[seen[np.argsort(-times, kind="stable")]] = np.arange(seen.size)
        support_high = float(min(int(np.sort(place[tested])[needed - 1]) + 1, rank.size))
    return {
        "keep": float((draws == row).mean()),
        "support": smallest_support(shares, eta),
        "support_low": smallest_support(shares, eta + reach),
        "support_high": support_high,
        "distance": float(lengths.mean()),
        "distance_variance": float(lengths.var(ddof=1) / draws.size) if draws.size > 1 else math.inf,
        "median_rank": float(np.sort(replaced)[(replaced.size - 1) // 2]) if replaced.size else math.nan,
        "neighbourhood": float(distances[order[min(neighbours, order.size - 1)]]),
    }


@dataclass(frozen=True)
class InShort:
    """Effect of a mechanism on running text, in two numbers."""

    keep: float
    support: float

    @property
    def most_stay(self) -> bool:
        """True if at least half of the words stay."""
        return self.keep >= 0.5


def in_short(mechanism: WordMechanism, *, rows: int = 200, draws: int = 40, eta: float = 0.05) -> InShort:
    """`deniability` in brief, and fast: no distances."""
    unknown = mechanism.vectors.vocabulary.unknown_row
    weights = zipf_weights(len(mechanism.vectors))
    weights[unknown] = 0.0  # under some policies its distribution takes all others
    sample = sample_words(weights / weights.sum(), rows)
    keep, support = kept_and_support(mechanism, sample.rows, draws=draws, eta=eta, seed=_PUBLIC_SEED)
    return InShort(float(sample.weights @ keep), weighted_quantile(support, sample.weights, 0.5))


def kept_and_support(
    mechanism: WordMechanism, rows: Rows, *, draws: int, eta: float, seed: int | None, support: bool = True
) -> tuple[Floats, Floats]:
    kept, supports = np.empty(rows.size), np.full(rows.size, math.nan)
    distributions, words = distributions_of(mechanism), mechanism.vectors.words
    if distributions is None:
        sample = mechanism.sample_rows(np.repeat(rows, draws), RandomBits(seed)).reshape(rows.size, -1)
        kept[:] = (sample == rows[:, None]).mean(axis=1)
        if support:
            shares = (np.unique(row, return_counts=True)[1] / draws for row in sample)
            supports[:] = [smallest_support(share, eta) for share in shares]
        return kept, supports
    at_a_time = batch_for(len(words))
    for start in range(0, rows.size, at_a_time):
        rows_of_batch = slice(start, start + at_a_time)
        result = distributions([words[row] for row in rows[rows_of_batch]])
        kept[rows_of_batch] = result[np.arange(len(result)), rows[rows_of_batch]]
        if support:
            supports[rows_of_batch] = [smallest_support(entry, eta) for entry in result]
    return kept, supports


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """The smallest value such that the weight of all values up to it is at least ``share`` of the whole; NaNs aside."""
    finite = np.isfinite(values)
    if not finite.any():
        return math.nan
    values, weights = values[finite], weights[finite]
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(summed, share - 1e-12)), values.size - 1)])


def _select_words(
    mechanism: WordMechanism, words: Iterable[str] | None, weights: Floats, maximum: int
) -> tuple[tuple[str, ...], WordSample, Rows]:
    vectors = mechanism.vectors
    if words is None:
        sample = sample_words(weights, maximum)
        return tuple(vectors.words[row] for row in sample.rows), sample, sample.rows
    if isinstance(words, str):
        raise ParameterError("words must be a list of strings, got one string")
    names = tuple(words)
    if not names:
        raise ParameterError("words must hold at least one word, got none")
    position = np.array([vectors.vocabulary.row(name) for name in names], dtype=np.int64)
    shares = weights[position] if weights[position].sum() > 0 else np.ones(position.size)
    nothing = np.empty((0, 2), dtype=np.int64)
    return names, WordSample(position, shares / shares.sum(), nothing, np.empty(0)), position


@dataclass(frozen=True, repr=False)
class Replacements(ReprMixin):
    """The outputs of one word."""

    word: str
    known: bool
    epsilon: float
    keep: float
    support: int
    support_low: int
    likeliest: tuple[tuple[str, float], ...]
    eta: float
    draws: int | None

    def _repr_fields(self) -> Fields:
        """The word is left out: it may come from a private text."""
        return [(name, getattr(self, name)) for name in ("known", "epsilon", "keep", "support", "draws")]

    def _html_fields(self) -> Fields:
        yield "likeliest", ", ".join(f"{word} ({share:.1%})" for word, share in self.likeliest)


def replacements(
    mechanism: WordMechanism,
    word: str,
    *,
    maximum: int = 5,
    eta: float = 0.05,
    draws: int = 2000,
    seed: int | None = None,
) -> Replacements:
    """Return the replacements of a word: exact if the mechanism has ``distributions``, else from ``draws`` draws."""
    vocabulary = mechanism.vectors.vocabulary
    row = vocabulary.row(word)
    distributions = distributions_of(mechanism)
    if distributions is not None:
        shares = distributions([word])[0]
    else:
        rows = mechanism.sample_rows(np.full(draws, row, dtype=np.int64), RandomBits(seed))
        shares = np.bincount(rows, minlength=len(vocabulary)) / draws
    reach = 0.0 if distributions is not None else reach_of_masses(draws)
    support, support_low = (int(smallest_support(shares, left_out)) for left_out in (eta, eta + reach))
    keep, shares[row] = float(shares[row]), 0.0
    order = [int(position) for position in np.argsort(-shares, kind="stable")[:maximum] if shares[position] > 0]
    likeliest = tuple((vocabulary.words[position], float(shares[position])) for position in order)
    return Replacements(
        word=word,
        known=word in vocabulary,
        epsilon=mechanism.epsilon,
        keep=keep,
        support=support,
        support_low=support_low,
        likeliest=likeliest,
        eta=eta,
        draws=draws if distributions is None else None,
    )
