"""Word vectors out of a noisy matrix: public vectors improved by what the corpus adds, or vectors from nothing.

Post-processing of the release and of public numbers: none of it costs privacy.

Where there are public vectors, a word keeps its own unless the corpus says otherwise:

    v_w = t_w + beta K e_w,   K = B^T (B B^T + rho ||B||^2 I)^-1 (as a map of rows),                       (improved)

t_w the public vector, e_w the best guess of what the corpus adds (`dptext.embeddings.signal`; 0 where the noise hides
it), K the way back from contexts to vectors, and beta the share of it that is meaning: the rest is what a few contexts
happen to hold.

A word that has no public vector (of a private vocabulary) gets the one that its contexts ask for, as in Khodak et al.
2018 ("A la carte embedding"), here the best guess under equation (model), brought to length 1:

    v_w ~ y_w (B' T B + S + (sigma / n)^2 I)^-1 B' T,   T the covariance of public vectors,                   (new)

without the direction of b, in which nothing but the unknown strength of the word would show.

**The constants were chosen on other data** than any that results are published for: `_POWER` on public vectors alone
(GloVe 6B, 50 dimensions) by MTurk-771, SimLex-999, RG-65 and the rare words of Luong et al. 2013; `_BETA`, `_RHO`, the
weights of words and the window by these, WordSim-353 and MEN, on IMDb reviews (in made-up users) and WikiText-2.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dptext.embeddings.signal import News, bands, filtered, news

__all__ = ["factorised", "improved", "public_base"]

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]

_POWER = -0.35
_BETA, _RHO = 0.25, 0.03
_FLAT, _ROUNDING = 1e-9, 1e-13  # of the largest variance, of the square of the largest mean: below is rounding only


def public_base(matrix: npt.NDArray[np.float32], unknown_row: int) -> Floats:
    """(P, d) public vectors, centred, their principal components scaled by variance^-.35, of length 1.

    Means of public vectors share one large direction, and a few components hold most of their variance though they tell
    few words apart; people's ratings of similarity agree better without (Mu and Viswanath 2018; Raunak et al. 2019).
    It helps without any private text: **compare what is released with this, not with the vectors as they were.**
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
    """(V, d) float64 vectors after equations (improved) and (new).

    Args:
        noisy: (V, k) the release.
        sigma: of its noise.
        base: (P, d) `public_base` of the first P words.
        measured: (V,) the words that had a weight.
    """
    known = len(base)
    public = np.zeros((len(noisy), base.shape[1]))
    public[:known] = base
    has_public = np.arange(len(noisy)) < known
    found = news(noisy, sigma, public, measured & has_public)
    vectors = public + _BETA * found.guess @ _back(found.slope)  # (improved)
    new = np.flatnonzero(measured & ~has_public)
    if len(new):
        vectors[new] = _unit(_new_words(noisy[new], sigma, found, base))
    return vectors


def factorised(noisy: Floats, sigma: float, measured: Rows, dimension: int) -> Floats:
    """(V, dimension) float64 vectors from the release alone: where nothing public is known of the words.

    The common direction goes, rows are filtered band by band and brought to one scale, and what is left is reduced to
    its first principal components. Words without a weight have the vector 0.
    """
    common = noisy[measured].sum(axis=0)
    length = float(np.linalg.norm(common))
    rows = noisy - np.outer(noisy @ common, common) / length**2 if length > 0 else noisy.copy()
    guess = np.zeros_like(rows)
    for band in bands(len(rows)):
        places = np.flatnonzero(measured[band]) + band.start
        if len(places):
            signal, covariance = filtered(rows[places], sigma)
            strength = float(np.sqrt(np.trace(covariance)))
            guess[places] = signal / strength if strength > 0 else 0.0
    _, _, directions = np.linalg.svd(guess, full_matrices=False)
    vectors = np.zeros((len(noisy), dimension))
    reduced = guess @ directions[:dimension].T
    vectors[:, : reduced.shape[1]] = reduced
    return vectors


def _back(slope: Floats) -> Floats:
    """(k, d) K of equation (improved)."""
    left, sizes, right = np.linalg.svd(slope, full_matrices=False)
    largest = float(sizes.max(initial=0.0))
    if largest == 0.0:
        return np.zeros(slope.T.shape)
    back: Floats = (right.T * (sizes / (sizes**2 + _RHO * largest**2))) @ left.T
    return back


def _new_words(rows: Floats, sigma: float, found: News, base: Floats) -> Floats:
    """Equation (new). The strength of new words is that which explains their length; their S that of the last band."""
    slope = found.slope
    spread = base.T @ base / len(base)
    rows = rows - np.outer(rows @ found.common, found.common)
    expected = slope.T @ spread @ slope + found.covariance
    excess = float((rows**2).sum(axis=1).mean()) - rows.shape[1] * sigma**2
    size = float(np.trace(expected))
    if excess <= 0 or size <= 0:
        return np.zeros((len(rows), base.shape[1]))
    n = math.sqrt(excess / size)
    # a ridge of rounding size: without noise and news the bracket has no inverse in the direction of b
    total = expected + ((sigma / n) ** 2 + 1e-9 * size) * np.eye(rows.shape[1])
    vectors: Floats = rows @ np.linalg.solve(total, slope.T @ spread)  # (new)
    return vectors


def _unit(points: Floats) -> Floats:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    unit: Floats = np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0)
    return unit
