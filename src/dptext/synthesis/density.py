"""Density ratios estimated from a noisy release, and the selection of candidate texts by these ratios.

Derivation: docs/mechanisms/synthesis.md#synthesis-ratio
Derivation: docs/mechanisms/synthesis.md#synthesis-sampling
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dptext.errors import ParameterError
from dptext.features.features import frozen_array
from dptext.privacy.randomness import RandomBits
from dptext.threads import one_blas_thread
from dptext.validation import check_float, check_int

Floats = npt.NDArray[np.float64]

_EXPONENTS = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)
_STRENGTHS = np.geomspace(1e-6, 1e4, 21)
_FINER = np.geomspace(10**-0.4, 10**0.4, 9)
_LEAST_GAIN = 8.0  # minimum gain in log likelihood (nats) for a gap that is not noise
_TRUST, _TRUST_DEVIATION = 0.15, 0.07  # prior of c in (trust)
_FLOOR = 2.0  # tau in (expected)
_RIDGE = 5.0  # rho in (weights)
_COUNT_DEVIATION = 0.25  # prior deviation of a class's count, relative to the average count
_LEAST_SHARE = 1e-3  # relative to the average count
_ROWS_AT_ONCE = 4096
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Weights:
    """Likelihood of n texts: (n, K) scores per class, and (n,) nearness over all classes."""

    scores: Floats
    nearness: Floats


@dataclass(frozen=True, eq=False)
class LogRatio:
    """Log density ratios, linear in the vector of a text."""

    weights: Floats
    offsets: Floats
    domain: Floats
    domain_offset: float
    shares: Floats
    trust: float = 0.0

    @classmethod
    def fit(
        cls,
        matrix: npt.ArrayLike,
        sigma: float,
        b: float,
        features_mean: npt.ArrayLike,
        features_covariance: npt.ArrayLike,
        descriptions: npt.ArrayLike | None = None,
        blocks: Sequence[int] = (),
        leading: int = 0,
    ) -> LogRatio:
        """Estimate the log density ratios from a released matrix and the moments of the pool."""
        released, mean = np.asarray(matrix, dtype=np.float64), np.asarray(features_mean, dtype=np.float64)
        covariance = np.asarray(features_covariance, dtype=np.float64)
        classes, size = len(released), len(mean)
        public = None if descriptions is None else np.asarray(descriptions, dtype=np.float64)
        counts, means, errors = _moments(released, sigma, b)
        shares = counts / counts.sum()
        overall = shares @ means

        common = float((shares**2 * errors).sum())
        values, basis = _eigen(covariance)
        spread = (common + values / counts.sum())[None]
        gap = ((overall - mean) @ basis)[None]
        domain = (_posterior(gap, spread, values) * gap / np.maximum(values, _TINY) @ basis.T)[0]
        moved = covariance @ domain

        weights, shifts = np.zeros((classes, size)), np.zeros(classes)
        trust = 0.0
        if classes > 1:
            values, basis = _eigen(covariance + np.outer(moved, moved))  # (moved)
            noise = np.maximum(errors * (1 - 2 * shares) + common, 0.0)
            spread = noise[:, None] + ((1 - shares) / counts)[:, None] * values  # (errors)
            gaps = (means - overall) @ basis
            expected = np.zeros_like(gaps)
            if public is not None:
                directions = public - shares @ public
                directions = directions * _agreement(directions, covariance, blocks, leading)
                directions = _expected(directions, covariance) @ basis
                trust = _trust(directions, gaps, spread)
                expected = trust * directions
            known = _posterior(gaps - expected, spread, values)
            weights, shifts = _discriminants(expected + known * (gaps - expected), values)
            weights = weights @ basis.T

        return cls(
            weights=frozen_array(weights),
            offsets=frozen_array(np.log(shares) - 0.5 * shifts - weights @ (mean + moved)),  # (scores)
            domain=frozen_array(domain),
            domain_offset=-float(domain @ mean) - float(domain @ moved),  # (nearness)
            shares=frozen_array(shares),
            trust=trust,
        )

    def weigh(self, vectors: npt.ArrayLike, unit: float = 1.0) -> Weights:
        """Evaluate equations (scores) and (nearness) for (n, k) vectors, given in multiples of ``unit``."""
        values = np.asarray(vectors)
        both = np.vstack([self.domain[None], self.weights]).T
        result = np.empty((len(values), both.shape[1]))
        for start in range(0, len(values), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            result[rows] = (values[rows].astype(np.float64) * unit) @ both
        nearness = result[:, 0] + self.domain_offset
        return Weights(result[:, 1:] + self.offsets + nearness[:, None], nearness)


def _moments(released: Floats, sigma: float, b: float) -> tuple[Floats, Floats, Floats]:
    """Return the counts (counts), the means (moments) and the noise variance of each entry of a mean."""
    noisy, error = released[:, 0] / b, (sigma / b) ** 2
    # A total within its noise is replaced by two standard deviations of that noise.
    average = max(float(noisy.sum()), 2 * np.sqrt(len(noisy) * error), 1e-9) / len(noisy)
    prior = (_COUNT_DEVIATION * average) ** 2
    counts = average + prior / (prior + error) * (noisy - average)
    # A class that may be empty needs a mean with a large error: its count is at least twice its noise.
    counts = np.maximum(counts, max(_LEAST_SHARE * average, min(2 * np.sqrt(error), average / 4)))
    means = released[:, 1:] / (np.sqrt(1 - b * b) * counts[:, None])
    return counts, means, sigma**2 / ((1 - b * b) * counts**2)


def _trust(directions: Floats, gaps: Floats, spread: Floats) -> float:
    """Return c of (trust)."""
    spread = spread + _TINY + 1e-12 * float(np.square(directions).mean())
    prior = _TRUST_DEVIATION**-2
    precision = prior + float((directions**2 / spread).sum())
    return (prior * _TRUST + float((directions * gaps / spread).sum())) / precision


def _agreement(directions: Floats, covariance: Floats, blocks: Sequence[int], leading: int) -> Floats:
    """Return the (k,) factors of (agreement), one per feature; they are 1 in the leading block."""
    factors = np.ones(len(covariance))
    if len(blocks) < 2:
        return factors
    of_block = np.repeat(np.arange(len(blocks)), blocks)
    parts = directions * (of_block == np.arange(len(blocks))[:, None])[:, None]  # (blocks, K, k)
    products = np.einsum("ayk,byk->ab", parts @ covariance, parts)
    for block in set(range(len(blocks))) - {leading}:
        scale = np.sqrt(products[leading, leading] * products[block, block])
        factors[of_block == block] = max(float(products[leading, block]), 0.0) / (scale + _TINY)
    return factors


def _expected(directions: Floats, covariance: Floats) -> Floats:
    """Return k of (expected) from h."""
    average = float(np.trace(covariance)) / len(covariance) + _TINY
    gaps = directions @ covariance / average + _FLOOR * directions
    return np.asarray(gaps * (np.linalg.norm(directions) / (np.linalg.norm(gaps) + _TINY)))


def _discriminants(gaps: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return w of (weights) and w g^ of each class, in the eigenbasis."""
    weights = gaps / (values + _RIDGE * float(values.mean()) + _TINY)
    shifts = (gaps * weights).sum(axis=1)
    variance = float((weights**2 * values).sum())
    factor = float(shifts.sum()) / variance if variance > 0 else 0.0
    return factor * weights, factor * shifts


def _eigen(covariance: Floats) -> tuple[Floats, Floats]:
    """Return the eigenvalues, bounded below by a rounding error, and the eigenbasis."""
    with one_blas_thread():  # with a few hundred features, BLAS threads mostly wait for each other
        values, basis = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.maximum(values, 1e-9 * max(float(values.max(initial=0.0)), 0.0)), basis


def _posterior(gaps: Floats, spread: Floats, values: Floats) -> Floats:
    """Return (rows, k) r of (posterior) from (rows, k) g and q in the eigenbasis."""
    average = float(values.mean()) if values.size else 0.0
    size = float((gaps**2).sum())
    if average <= 0 or size <= 0:
        return np.zeros_like(gaps)
    relative = values / average
    spread = spread + 1e-12 * average
    squares = gaps**2

    def likelihood(strength: float, exponent: float) -> float:  # (evidence)
        variance = strength * (values**2 * relative**exponent) + spread
        return -0.5 * float((np.log(variance) + squares / variance).sum())

    tried = [
        (strength * size / (len(gaps) * float((values**2 * relative**exponent).sum())), exponent)
        for exponent in _EXPONENTS
        for strength in _STRENGTHS.tolist()
    ]
    strength, exponent = max(tried, key=lambda pair: likelihood(*pair))
    strength = max((strength * _FINER).tolist(), key=lambda finer: likelihood(finer, exponent))
    if likelihood(strength, exponent) <= likelihood(0.0, 0.0) + _LEAST_GAIN:
        return np.zeros_like(gaps)
    prior = strength * relative**exponent
    return np.asarray(prior * values**2 / (prior * values**2 + spread + _TINY))


Indices = npt.NDArray[np.intp]

VARIETY = 0.5
"""Default variety (papers/synthesis/README.md has the measurements)."""

_ROOM = 1.5  # minimum number of near texts, relative to n
_SPARE = 1.2  # sufficient number of candidates per class, relative to its quota
_STEPS = 8
_MOST_FITTED = 20_000  # maximum number of texts for fitting the offsets
_TURNS = 200


def choose(
    scores: npt.ArrayLike,
    nearness: npt.ArrayLike,
    n: int,
    *,
    shares: npt.ArrayLike,
    bits: RandomBits,
    variety: float = VARIETY,
) -> tuple[Indices, Indices]:
    """Select n different candidates; return their rows and classes in random order."""
    table, close, requested = (np.asarray(score, dtype=np.float64) for score in (scores, nearness, shares))
    n, variety = check_int("n", n, minimum=0), check_float("variety", variety, minimum=0, maximum=1)
    if n > len(table):
        raise ParameterError(
            f"n must be at most the number of candidates, {len(table):,}, got {n:,}: request fewer texts, or use "
            "a larger pool"
        )
    target = quotas(requested, n)
    if n == 0:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    closest = near(close)
    eligible = np.zeros(len(table), dtype=bool)
    eligible[closest if len(closest) >= _ROOM * n else slice(None)] = True
    closest = near(close, minimum=_ROOM * n)
    table = table + _offsets(table[closest], requested / requested.sum(), target)
    classes = table.argmax(axis=1)
    margins = _margins(table)
    count = np.bincount(classes[closest], minlength=len(requested)).tolist()
    picked = []
    for code, size in enumerate(target.tolist()):
        candidates = np.flatnonzero((classes == code) & eligible)
        window = size + int(np.ceil(variety * max(0, count[code] - size)))
        picked.append(_pick(candidates, margins, close, size, window, bits))
    return _complete(picked, target, table, bits)


def choose_written(
    scores: npt.ArrayLike,
    nearness: npt.ArrayLike,
    usable: npt.NDArray[np.bool_],
    n: int,
    *,
    shares: npt.ArrayLike,
    bits: RandomBits,
    variety: float = VARIETY,
) -> tuple[Indices, Indices]:
    """Select n different candidates, the usable ones first: nearness only ranks texts of one class."""
    table, close = (np.asarray(score, dtype=np.float64) for score in (scores, nearness))
    target = quotas(shares, n)
    classes, margins = table.argmax(axis=1), _margins(table)
    picked = []
    for code, size in enumerate(target.tolist()):
        candidates = np.flatnonzero((classes == code) & usable)
        window = size + int(np.ceil(variety * max(0, len(candidates) - size)))
        picked.append(_pick(candidates, margins, close, size, window, bits))
    return _complete(picked, target, table, bits)


def _pick(candidates: Indices, margins: Floats, nearness: Floats, size: int, window: int, bits: RandomBits) -> Indices:
    """Draw candidates from the first ones by margin and nearness."""
    rank = _ranks(margins[candidates]) * _ranks(np.minimum(nearness[candidates], 0.0))
    order = candidates[np.argsort(-rank, kind="stable")][:window]
    return np.asarray(order[_shuffled(len(order), bits)[:size]])


def quotas(shares: npt.ArrayLike, n: int) -> npt.NDArray[np.int64]:
    """Return (K,) integers with sum n, proportional to the shares, by the largest remainder method."""
    values = np.asarray(shares, dtype=np.float64)
    exact = values / values.sum() * n
    result: npt.NDArray[np.int64] = np.floor(exact).astype(np.int64)
    result[np.lexsort((-values, result - exact))[: n - int(result.sum())]] += 1
    return result


def near(nearness: Floats, *, minimum: float = 1.0) -> Indices:
    order = np.argsort(-nearness, kind="stable")
    means = np.cumsum(nearness[order]) / np.arange(1, len(order) + 1)
    enough = int((means >= -1e-12).sum())  # means over less near texts decrease
    return order[: max(enough, int(np.ceil(minimum)))]


def _offsets(table: Floats, shares: Floats, targets: npt.NDArray[np.int64]) -> Floats:
    """Return the smallest (K,) offsets of the scores that give each class enough candidates."""
    if table.shape[1] == 1:
        return np.zeros(1)
    enough = np.minimum(_SPARE * targets, shares * len(table))
    goal: Floats | None = None
    for step in range(_STEPS + 1):
        offsets = np.zeros(len(shares)) if goal is None else goal * (step / _STEPS)
        counts = np.bincount((table + offsets).argmax(axis=1), minlength=len(shares))
        if (counts >= enough).all():
            break
        if goal is None:
            goal = _balancing(table, shares)
    return offsets


def _balancing(table: Floats, shares: Floats) -> Floats:
    """Return the (K,) offsets that make the mean class probabilities equal to the shares."""
    rows = table[:: -(-len(table) // _MOST_FITTED)]
    rows = rows - rows.max(axis=1, keepdims=True)
    goal = np.maximum(shares, _LEAST_SHARE)
    goal = goal / goal.sum()
    offsets = np.zeros(len(goal))
    for _ in range(_TURNS):
        moved = rows + offsets
        odds = np.exp(moved - moved.max(axis=1, keepdims=True))
        means = (odds / odds.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(means - goal).max() < 1e-4:
            break
        offsets += np.log(goal) - np.log(np.maximum(means, 1e-12))
        offsets -= offsets.mean()
    return offsets


def _margins(table: Floats) -> Floats:
    if table.shape[1] == 1:
        return np.zeros(len(table))
    two = np.partition(table, -2, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value in (0, 1], where 1 is the greatest; equal values have equal ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(np.cumsum(counts)[which] / max(len(values), 1))


def _shuffled(count: int, bits: RandomBits) -> Indices:
    return np.asarray(np.argsort(bits.integers(count), kind="stable"))


def _complete(
    picked: list[Indices], targets: npt.NDArray[np.int64], table: Floats, bits: RandomBits
) -> tuple[Indices, Indices]:
    """Assign unselected candidates to classes with too few texts; return all rows and classes in random order."""
    taken = np.zeros(len(table), dtype=bool)
    taken[np.concatenate(picked)] = True
    others = table - table.max(axis=1, keepdims=True)
    for code, size in enumerate(targets.tolist()):
        lacking = size - len(picked[code])
        if lacking > 0:
            free = np.flatnonzero(~taken)
            more = free[np.argsort(-others[free, code], kind="stable")[:lacking]]
            taken[more] = True
            picked[code] = np.concatenate([picked[code], more])
    order = _shuffled(int(targets.sum()), bits)
    return np.concatenate(picked)[order], np.repeat(np.arange(len(targets)), targets)[order]
