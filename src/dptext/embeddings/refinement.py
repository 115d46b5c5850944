"""Word vectors from noisy sums: public vectors improved by the corpus.

Derivation: docs/mechanisms/cooccurrence.md#embeddings-refinement
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]

SHARE = 2 / 3
"""Share of the learned skip-gram vector that is added to a public vector of length 1."""

_POWER = -0.35
_BETA, _RHO = 0.25, 0.03
_FLAT, _ROUNDING = 1e-9, 1e-13  # of the largest variance, of the square of the largest mean: below is rounding only
_FIRST_BAND, _ROUNDS = 200, 3
_RIDGE = 2e-4  # of the mean diagonal: keeps the fit defined where vectors span less than their dimension
_WEAKEST = 1e-3
_LEAST_SHARE = 0.25  # minimum strength of a word, relative to its band
_CLEARLY = 1.15  # five of Tracy and Widom's standard deviations for the smallest band and 50 features


def public_base(matrix: npt.NDArray[np.float32], unknown_row: int) -> Floats:
    """Return (P, d) public vectors, centred, their principal components scaled by variance^-.35, of length 1.

    It helps without any private text (Mu and Viswanath 2018; Raunak et al. 2019): **compare a release with these.**
    """
    points = matrix.astype(np.float64)
    words = np.arange(len(points)) != unknown_row
    mean = points[words].mean(axis=0)
    points -= mean
    variances, directions = np.linalg.eigh(points[words].T @ points[words] / max(int(words.sum()), 1))
    kept = variances > _FLAT * variances.max(initial=0.0) + _ROUNDING * float(np.abs(mean).max()) ** 2
    scale = np.zeros_like(variances)
    scale[kept] = variances[kept] ** _POWER
    return _unit((points @ directions) * scale)


def improved(noisy: Floats, sigma: float, base: Floats, measured: Rows) -> Floats:
    """Return (V, d) float64 vectors by equations (improved) and (new) from the (V, k) release with noise sigma."""
    known = len(base)
    public = np.zeros((len(noisy), base.shape[1]))
    public[:known] = base
    has_public = np.arange(len(noisy)) < known
    result = news(noisy, sigma, public, measured & has_public)
    left, sizes, right = np.linalg.svd(result.slope, full_matrices=False)
    largest = float(sizes.max(initial=0.0))
    back = np.zeros(result.slope.T.shape)
    if largest > 0.0:
        back = (right.T * (sizes / (sizes**2 + _RHO * largest**2))) @ left.T
    vectors: Floats = public + _BETA * result.guess @ back  # (improved)
    new = np.flatnonzero(measured & ~has_public)
    if len(new):
        vectors[new] = _unit(_new_words(noisy[new], sigma, result, base))
    return vectors


def learned(rows: Floats, sigma: float) -> Floats:
    """Return (n, d) best estimates of the learned part of context vectors that started at 0."""
    rest = _without(rows, rows.sum(axis=0))
    for band in bands(len(rest)):
        variance = float((rest[band] ** 2).mean())
        rest[band] *= max(variance - sigma**2, 0.0) / variance if variance > 0 else 0.0
    return rest


def learned_bands(rows: Floats, sigma: float) -> Rows:
    """Return (n,) whether `learned` finds, in the band of a row, more than noise of sigma has by chance."""
    rest = _without(rows, rows.sum(axis=0))
    result = np.zeros(len(rest), dtype=bool)
    for band in bands(len(rest)):
        part = rest[band]
        # five standard deviations of a mean square of m normal numbers: by chance less than once in a million bands
        result[band] = float((part**2).mean()) > sigma**2 * (1 + math.sqrt(50 / max(part.size, 1)))
    return result


def _new_words(rows: Floats, sigma: float, news: News, base: Floats) -> Floats:
    """Compute equation (new). The strength of new words explains their norm; they have the S of the last band."""
    slope = news.slope
    spread = base.T @ base / len(base)
    rows = _less(rows, news.common)
    expected = slope.T @ spread @ slope + news.covariance
    excess = float((rows**2).sum(axis=1).mean()) - rows.shape[1] * sigma**2
    size = float(np.trace(expected))
    if excess <= 0 or size <= 0:
        return np.zeros((len(rows), base.shape[1]))
    n = math.sqrt(excess / size)
    # a ridge of rounding size: without noise and news the bracket has no inverse in the direction of b
    total = expected + ((sigma / n) ** 2 + 1e-9 * size) * np.eye(rows.shape[1])
    return rows @ np.linalg.solve(total, slope.T @ spread)  # (new)


def _without(rows: Floats, common: Floats) -> Floats:
    length = float(np.linalg.norm(common))
    return rows - np.outer(rows @ common, common) / length**2 if length > 0 else rows.copy()


def _unit(points: Floats) -> Floats:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    unit: Floats = np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0)
    return unit


# -- signal and noise --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class News:
    """Result of `news`."""

    guess: Floats  # (V, k) E[e_w | y_w], without the direction of b; 0 if nothing was measured or the noise hides it
    slope: Floats  # (d, k) B, without that direction
    common: Floats  # (k,) the direction of b, of length 1; or 0
    covariance: Floats  # (k, k) of e_w, in the last band


def bands(words: int) -> list[slice]:
    """Return slices of a list of words by frequency, in bands that double: 0 to 200, 200 to 400, 400 to 800, ...

    >>> [(each.start, each.stop) for each in bands(1000)]
    [(0, 200), (200, 400), (400, 1000)]
    """
    edges = [0]
    size = _FIRST_BAND
    while size * 1.5 <= words:  # the last band is not left with a few words
        edges.append(size)
        size *= 2
    return [slice(low, high) for low, high in zip(edges, [*edges[1:], words], strict=True)]


def filtered(rows: Floats, noise: float) -> tuple[Floats, Floats]:
    """Return (n, k) the best estimate of the signal in rows with noise, (posterior), and (k, k) its covariance."""
    count, width = rows.shape
    if count == 0:
        return rows, np.zeros((width, width))
    variances, directions = np.linalg.eigh(rows.T @ rows / count)
    signal = np.where(variances > _edge(noise, width, count), variances - noise**2, 0.0)
    gain = np.divide(signal, variances, out=np.zeros_like(signal), where=signal > 0)
    guess: Floats = ((rows @ directions) * gain) @ directions.T
    covariance: Floats = (directions * signal) @ directions.T
    return guess, covariance


def news(noisy: Floats, sigma: float, public: Floats, measured: Rows) -> News:
    """Fit equation (model) on the measured words and guess e_w, from (V, k) Y with noise of sigma, and (V, d) t_w."""
    of_band, strength, slope, common = _fitted(noisy, sigma, public, measured)
    guess = np.zeros_like(noisy)
    covariance = np.zeros((noisy.shape[1],) * 2)
    for words in of_band:
        n = strength[words][:, None]
        rows = _less(noisy[words] - n * (public[words] @ slope), common)
        signal, of_signal = filtered(rows, sigma)  # of n_w e_w, where all rows have the same noise
        guess[words] = signal / n  # (posterior)
        covariance = of_signal / float(np.mean(n**2)) if len(n) else covariance
    return News(guess, slope, common, covariance)


def _fitted(rows: Floats, sigma: float, public: Floats, measured: Rows) -> tuple[list[Rows], Floats, Floats, Floats]:
    of_band = [np.flatnonzero(measured[band]) + band.start for band in bands(len(rows))]
    strength = np.ones(len(rows))
    for _ in range(_ROUNDS):
        slope, intercept = _fit(rows, sigma, public, measured, strength)
        predicted = public @ slope + intercept
        for words in of_band:
            strength[words] = _mean_strength(rows[words], predicted[words])
    for words in of_band:
        strength[words] = _word_strengths(rows[words], predicted[words], sigma)
    length = float(np.linalg.norm(intercept))
    common = intercept / length if length > 0 else intercept
    return of_band, strength, _less(slope, common), common


def _mean_strength(rows: Floats, predicted: Floats) -> float:
    """Return the least-squares factor of all words from their predictions to their rows."""
    size = float(np.vdot(predicted, predicted))
    return max(float(np.vdot(rows, predicted)) / size, _WEAKEST) if size > 0 else _WEAKEST


def _word_strengths(rows: Floats, predicted: Floats, sigma: float) -> Floats:
    """Return (n,) strengths of the words, shrunk towards their mean as far as noise explains the difference."""
    sizes = np.einsum("ij,ij->i", predicted, predicted)
    if not sizes.any():
        return np.full(len(sizes), _WEAKEST)
    mean = _mean_strength(rows, predicted)
    along = np.einsum("ij,ij->i", rows, predicted)
    word_factors = np.divide(along, sizes, out=np.full_like(along, mean), where=sizes > 0)
    noise = np.divide(sigma**2, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    spread = max(float(np.average((word_factors - mean) ** 2 - noise, weights=sizes)), 0.0)
    trusted = np.divide(spread, spread + noise, out=np.zeros_like(noise), where=spread + noise > 0)
    return np.asarray(np.maximum(mean + (word_factors - mean) * trusted, _LEAST_SHARE * mean))


def _fit(noisy: Floats, sigma: float, public: Floats, measured: Rows, strength: Floats) -> tuple[Floats, Floats]:
    design = np.column_stack([public, np.ones(len(public))])[measured]
    n = strength[measured]
    weights = n**2 / (n**2 + noisy.shape[1] * sigma**2)
    normal = design.T @ (design * weights[:, None])
    normal += _RIDGE * max(float(weights.sum()), 1.0) * np.eye(len(normal))
    fitted = np.linalg.solve(normal, design.T @ (noisy[measured] * (weights / n)[:, None]))
    return fitted[:-1], fitted[-1]


@dataclass(frozen=True, eq=False)
class Strengths:
    """Information about words beyond public vectors, as variances along directions, band by band."""

    words: tuple[int, ...]  # number of measured words per band
    variances: tuple[Floats, ...]  # visible variances of n_w e_w of (model) per band, for one person, the largest first

    def passed(self, people: float, sigma: float, width: int) -> float:
        """Return the mean fraction of the variance of e_w that equation (posterior) keeps."""
        result = 0.0
        for count, variances in zip(self.words, self.variances, strict=True):
            if len(variances):
                signal = people**2 * variances
                seen = signal + sigma**2 > _edge(sigma, width, count)
                result += count * float((variances * signal / (signal + sigma**2))[seen].sum() / variances.sum())
        return result / max(sum(self.words), 1)

    def minimum_people(self, sigma: float, width: int) -> float:
        """Return the smallest number of people for which any signal passes; infinite if none does."""
        needed = [
            math.sqrt((_edge(sigma, width, count) - sigma**2) / float(variances[0]))
            for count, variances in zip(self.words, self.variances, strict=True)
            if len(variances)
        ]
        return min(needed, default=math.inf)


def strengths(one: Floats, other: Floats, public: Floats, measured: Rows) -> Strengths:
    """Estimate strengths from the mean matrices (V, k) of two halves of *public people*, without noise."""
    mean, chance = (one + other) / 2, (one - other) / 2
    sigma = math.sqrt(float((chance[measured] ** 2).mean())) if measured.any() else 0.0
    of_band, strength, slope, common = _fitted(mean, sigma, public, measured)
    result = []
    for words in of_band:
        known = strength[words][:, None] * (public[words] @ slope)
        first, second = (_less(half[words], common) - known for half in (one, other))
        result.append(_above_chance(first, second))
    return Strengths(tuple(len(words) for words in of_band), tuple(result))


def _less(rows: Floats, direction: Floats) -> Floats:
    return rows - np.outer(rows @ direction, direction)


def _above_chance(first: Floats, second: Floats) -> Floats:
    count, width = first.shape
    if count == 0:
        return np.zeros(0)
    # chance differs between the halves: its products have eigenvalues up to v sqrt(2 k / n), v its variance in a half
    product = first.T @ second / count
    variances = np.linalg.eigvalsh((product + product.T) / 2)[::-1]
    by_chance = float(((first - second) ** 2).mean()) / 2
    return variances[variances > _CLEARLY * by_chance * math.sqrt(2 * width / count)]


def _edge(sigma: float, width: int, count: int) -> float:
    """Return a variance clearly above that of noise alone (Marchenko and Pastur 1967; Tracy and Widom 1994)."""
    return sigma**2 * (1 + math.sqrt(width / max(count, 1))) ** 2 * _CLEARLY
